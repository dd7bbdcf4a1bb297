//! `--ceilings` and `--no-ceilings`.

use crate::tool::{bench, gpuio, scratch};

const ALL: &str = "--gpu software --path all --bs 64k --size 1m --runtime 60ms --directory d";

/// Names of the ceilings of a record, and of those that its results are held against.
fn names(line: &str) -> (Vec<String>, Vec<String>) {
    let dir = scratch();
    let record = bench(dir.path(), &format!("{line} --format json")).exits(0).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let all = record["ceilings"].as_array().unwrap().iter().map(|one| text(&one["name"]));
    let jobs = record["jobs"].as_array().unwrap().iter();
    let beside = jobs.filter_map(|job| job["read"]["of_ceiling"].get("ceiling"));
    (all.collect(), beside.map(text).collect())
}

#[test]
fn all_paths_have_them_unless_switched_off() {
    let (all, beside) = names(&format!("{ALL} --set ceilings=40ms"));
    assert!(all.iter().any(|name| name == "link to GPU 0"), "{all:?}");
    assert!(beside.len() >= 3 && beside.iter().all(|name| all.contains(name)), "{beside:?}");
    let dir = scratch();
    let planned = |more: &str| {
        let plan = bench(dir.path(), &format!("{ALL} --dry-run {more}")).exits(0).out;
        plan.matches("\n# ceiling '").count()
    };
    assert!(planned("") >= all.len());
    assert_eq!(planned("--no-ceilings"), 0);
}

#[test]
fn a_named_path_has_them_when_requested() {
    let one = ALL.replace("--path all", "--path cached");
    assert_eq!(names(&one).0, Vec::<String>::new());
    let dir = scratch();
    let shows = |more: &str, words: &[&str]| {
        let out = bench(dir.path(), &format!("{one} {more}")).exits(0).out;
        assert!(words.iter().all(|word| out.contains(word)), "{out}");
    };
    let section =
        ["% of", "ceilings, measured after", "measured 40ms", "link to GPU 0, software GPU"];
    shows("--ceilings=40ms", &section);
    let planned = ["ceilings = 1s", "# ceiling 'storage of job, read' (read) of job: measured 1s"];
    shows("--ceilings --dry-run", &planned);
}

#[test]
fn a_changed_ceiling_is_found() {
    let dir = scratch();
    let line = format!("{} --ceilings=40ms -o r.json", ALL.replace("--path all", "--path cached"));
    bench(dir.path(), &line).exits(0);
    let record = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    gpuio(dir.path(), "show r.json --check").exits(0);
    let ceilings = record["ceilings"].as_array().unwrap();
    let storage = ceilings.iter().position(|one| one["kind"] == "storage").unwrap();
    for (place, of) in [
        ("/jobs/0/read/of_ceiling/percent".to_owned(), "per cent of the ceiling"),
        (format!("/ceilings/{storage}/bytes_per_s"), "blocks of at most 65536"),
    ] {
        let mut changed = record.clone();
        let figure = changed.pointer_mut(&place).unwrap();
        *figure = (figure.as_f64().unwrap() * 3.0).into();
        std::fs::write(dir.path().join("changed.json"), changed.to_string()).unwrap();
        let found = gpuio(dir.path(), "show changed.json --check").exits(1).out;
        assert!(found.contains(of), "{place}: {found}");
    }
}

#[test]
fn what_is_no_time_is_refused_with_the_flag() {
    let dir = scratch();
    bench(dir.path(), "--ceilings=high --directory d")
        .exits(2)
        .prints(&["--ceilings", "on or off"]);
    bench(dir.path(), "--ceilings --no-ceilings --directory d").exits(2);
    assert!(!dir.path().join("d").exists());
}
