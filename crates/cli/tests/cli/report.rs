//! `gpuio report`: over real runs, and over files that are not its own.

use std::fs;
use std::path::Path;

use crate::tool::{bench, command, file, finish, gpuio, scratch, words};

/// Two short runs on the host path.
fn runs(dir: &Path) {
    for threads in [1, 2] {
        let line = format!(
            "--size 4M --runtime 200ms --threads {threads} --rw randread --bs 64k -q -o \
             r/{threads}.json"
        );
        fs::create_dir_all(dir.join("r")).unwrap();
        bench(dir, &line).exits(0);
    }
}

#[test]
fn a_page_and_every_other_format_of_two_runs() {
    let dir = scratch();
    let dir = dir.path();
    runs(dir);
    gpuio(dir, "report r/1.json r/2.json").exits(0).prints(&["report.html"]);
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("bench --size 4M"), "{page}");
    let once = gpuio(dir, "report r/1.json r/1.json --format markdown").exits(0).out;
    assert!(once.contains("(one run)") && once.contains("the same run as "), "{once}");
    let markdown = gpuio(dir, "report r --format markdown").exits(0).out;
    assert!(markdown.contains("| 1 | job | host |"), "{markdown}");
    let csv = gpuio(dir, "report r --format csv").exits(0).out;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let metrics = gpuio(dir, "report r --format openmetrics -o -").exits(0).out;
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    gpuio(dir, "report r --format fio-json -o fio/").exits(0);
    assert_eq!(fs::read_dir(dir.join("fio")).unwrap().count(), 1, "one path, one block size");
    assert_eq!(fs::read_dir(dir.join("fio/host-64K")).unwrap().count(), 2, "two runs");
}

/// A grid of two axes has its first across the first plot, or the one that is named.
#[test]
fn the_first_plot_is_drawn_across_the_named_axis() {
    let dir = scratch();
    let line = "sweep --size 256k --bs 4k --runtime 30ms --vary threads=1,2 --vary depth=1,2,4 \
                --set path=host --repeats 1 -o s";
    gpuio(dir.path(), line).exits(0);
    let title = |more: &str| {
        let picture = gpuio(dir.path(), &format!("report s --format svg {more}")).exits(0).out;
        let at = picture.find("Throughput against ").unwrap_or_else(|| panic!("{picture}"));
        picture[at..].chars().take(40).collect::<String>()
    };
    assert!(title("--x threads").contains("against threads"), "{}", title("--x threads"));
    assert!(title("--x depth").contains("depth"), "{}", title("--x depth"));
    let three = gpuio(dir.path(), "report s --format svg --x threads --lines depth").exits(0).out;
    for depth in [1, 2, 4] {
        assert!(three.contains(&format!("host, depth per thread {depth}")), "{three}");
    }
    let lines = |name: &str| gpuio(dir.path(), &format!("report s --format svg --lines {name}"));
    lines("nothing").exits(2).prints(&["--lines nothing", "depth"]);
    gpuio(dir.path(), "report s --format svg --x path").exits(2).prints(&["threads, depth"]);
    gpuio(dir.path(), "report s --format csv --x depth").exits(2).prints(&["--x:"]);
}

/// The picture is of the machine that the record was made on, or there is none.
#[test]
fn topology_is_of_the_records_machine_or_not_there() {
    let dir = scratch();
    let dir = dir.path();
    bench(dir, "--size 4M --runtime 100ms --rw randread --bs 64k -q -o a.json").exits(0);
    let page = |line: &str| {
        gpuio(dir, &format!("report {line} -o page.html")).exits(0);
        fs::read_to_string(dir.join("page.html")).unwrap()
    };
    let own = page("a.json");
    assert!(own.contains("when the report was made: the same boot of the kernel."), "{own}");
    assert!(own.contains("data:image/svg+xml;base64"), "{own}");
    assert!(!page("a.json --topo none").contains("data:image/svg+xml;base64"));
    let mut record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join("a.json")).unwrap()).unwrap();
    record["boot"] = "another".into();
    // Another version's record without a digest: known to be changed it would be left out.
    record["tool"]["version"] = "0.0.1".into();
    record.as_object_mut().unwrap().remove("content_sha256");
    fs::write(dir.join("b.json"), record.to_string()).unwrap();
    let other = page("a.json b.json");
    assert!(
        other.contains("No picture: it is unknown whether b was recorded on this machine"),
        "{other}"
    );
    assert!(!other.contains("data:image/svg+xml;base64"));
    gpuio(dir, "topo --capture here.tar").exits(0);
    let from = page("b.json --from here.tar");
    assert!(
        from.contains("given with --from") && from.contains("data:image/svg+xml;base64"),
        "{from}"
    );
    record["host"]["cpu"]["model"] = "Another CPU".into();
    fs::write(dir.join("b.json"), record.to_string()).unwrap();
    assert!(page("b.json").contains("No picture: b was recorded on another machine"));
    gpuio(dir, "report b.json -o c.html --from here.tar").exits(2).prints(&["Another CPU"]);
}

#[test]
fn a_sweep_has_its_axes_and_says_what_it_lacks() {
    let dir = scratch();
    let dir = dir.path();
    runs(dir);
    let sweep = r#"{"gpuio_sweep": 1, "name": "by threads",
        "tool": {"name": "gpuio", "version": "0"},
        "command": ["gpuio", "sweep"], "started_at": "2026-01-01T00:00:00Z", "seed": 1,
        "axes": [{"key": "threads", "values": ["1", "2", "4"]}],
        "points": [{"at": ["1"], "records": ["1.json"], "ended": null},
                   {"at": ["2"], "records": ["2.json"], "ended": null},
                   {"at": ["4"], "records": [], "ended": "too few CPUs"}]}"#;
    file(&dir.join("r"), "sweep.json", sweep);
    let csv = gpuio(dir, "report r --format csv").exits(0).out;
    assert!(csv.lines().next().unwrap().ends_with("record,doubt,axis_threads"), "{csv}");
    let markdown = gpuio(dir, "report r/sweep.json --format markdown").exits(0).out;
    assert!(markdown.contains("# by threads") && markdown.contains("too few CPUs"), "{markdown}");
}

#[test]
fn only_its_own_files_are_overwritten() {
    let dir = scratch();
    let dir = dir.path();
    runs(dir);
    gpuio(dir, "report r -o a.html").exits(0);
    gpuio(dir, "report r -o a.html").exits(0);
    file(dir, "mine.html", "<p>mine</p>");
    gpuio(dir, "report r -o mine.html").exits(2).prints(&["mine.html", "--force"]);
    assert_eq!(fs::read_to_string(dir.join("mine.html")).unwrap(), "<p>mine</p>");
    gpuio(dir, "report r -o mine.html --force").exits(2).prints(&["did not write", "mine.html"]);
    assert_eq!(fs::read_to_string(dir.join("mine.html")).unwrap(), "<p>mine</p>");
    // A page with a line of the user's is the user's.
    let own = fs::read_to_string(dir.join("a.html")).unwrap() + "<p>mine</p>";
    file(dir, "a.html", &own);
    gpuio(dir, "report r -o a.html").exits(2).prints(&["changed since"]);
    gpuio(dir, "report r -o a.html --force").exits(2).prints(&["changed since"]);
    assert_eq!(fs::read_to_string(dir.join("a.html")).unwrap(), own);
    gpuio(dir, "report r/1.json -o r/1.json").exits(2).prints(&["--force"]);
    gpuio(dir, "report r -o r").exits(2);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let dir = scratch();
    let dir = dir.path();
    file(dir, "none.json", "{}");
    gpuio(dir, "report none.json").exits(2).prints(&["none.json", "not a gpuio record"]);
    let fio = "crates/report/tests/report/fixtures/foreign/fio_3.33_three_jobs.json";
    fs::copy(gpuio_testkit::repository(fio), dir.join("fio.json")).unwrap();
    let compare = "gpuio compare fio.json";
    gpuio(dir, "report fio.json").exits(2).prints(&["a result of fio", compare]);
    gpuio(dir, "report nowhere.json").exits(2).prints(&["nowhere.json"]);
    gpuio(dir, "report . --format html").exits(2).prints(&["sweep.json"]);
    gpuio(dir, "report none.json --format doc").exits(2).prints(&["html", "openmetrics, pdf"]);
    gpuio(dir, "report none.json --format pdf -o -").exits(2).prints(&["written to a file"]);
    gpuio(dir, "report none.json -o x.pdf --embed-limit 1M").exits(2).prints(&["--embed-limit"]);
    gpuio(dir, "report").exits(2);
}

/// Stands in for a browser: a program that writes the file it is asked for, or does not.
fn browser(dir: &Path, text: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = file(dir, "browser", &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_browser_prints_the_pdf_and_without_one_the_exit_code_is_3() {
    let dir = scratch();
    let dir = dir.path();
    runs(dir);
    let tmp = dir.join("tmp");
    fs::create_dir(&tmp).unwrap();
    let report = |set: &[(&str, &Path)], line: &str| {
        let mut command = command(dir);
        command.env_remove("GPUIO_CHROMIUM").env("TMPDIR", &tmp).args(words(line));
        finish(command.envs(set.iter().copied()))
    };
    let writes = browser(
        dir,
        "for word in \"$@\"; do case $word in --print-to-pdf=*) out=${word#*=};; file://*) \
         page=${word#file://};; esac; done\n\
         grep -q '<!doctype html>' \"$page\" && echo '%PDF-1.4' > \"$out\"",
    );
    let set = [("GPUIO_CHROMIUM", writes.as_path())];
    report(&set, "report r --format pdf").exits(0).prints(&["report.pdf", "printed by"]);
    assert_eq!(fs::read_to_string(dir.join("report.pdf")).unwrap(), "%PDF-1.4\n");
    report(&set, "report r -o report.pdf").exits(2).prints(&["--force"]);
    report(&set, "report r -o report.pdf --force").exits(0);
    file(dir, "mine.pdf", "mine");
    report(&set, "report r -o mine.pdf --force").exits(2);
    assert_eq!(fs::read_to_string(dir.join("mine.pdf")).unwrap(), "mine");
    // None, one that fails, and one that does not exist.
    let none = [("PATH", tmp.as_path())];
    report(&none, "report r -o none.pdf").exits(3).prints(&["apt-get install chromium"]);
    browser(dir, "echo 'no display here' >&2; exit 7");
    report(&set, "report r -o none.pdf").exits(1).prints(&["no display here"]);
    let gone = dir.join("gone");
    report(&[("GPUIO_CHROMIUM", &gone)], "report r -o none.pdf").exits(1).prints(&["gone"]);
    assert!(!dir.join("none.pdf").exists());
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "nothing stays");
}

/// A record that is gone or changed stops no other: it is in no figure, which is said.
#[test]
fn a_record_that_is_gone_or_changed_is_left_out() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary path=host --repeats 3 -o s";
    gpuio(dir.path(), line).exits(0);
    let run = |nth: u32| dir.path().join(format!("s/point-0001-run-00{nth}.json"));
    let mut record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run(1)).unwrap()).unwrap();
    record["jobs"][0]["read"]["bytes_per_s"] = 9e12.into();
    fs::write(run(1), record.to_string()).unwrap();
    let page = gpuio(dir.path(), "report s --format markdown").exits(0).out;
    assert!(page.contains("point-0001-run-001.json: left out of all figures: The record"));
    assert!(page.contains("median of 2 runs") && !page.contains("TiB/s"), "{page}");
    let csv = gpuio(dir.path(), "report s --format csv").exits(0).out;
    assert_eq!((csv.lines().count(), csv.matches("not_all_runs: ").count()), (3, 2), "{csv}");
    fs::remove_file(run(2)).unwrap();
    let missing = "s/point-0001-run-002.json: the record can't be read";
    gpuio(dir.path(), "report s --format csv").exits(1).prints(&[missing]);
    let checked = gpuio(dir.path(), "show s --check").exits(1).out;
    assert!(checked.contains(missing) && checked.contains("1 of 2 records hold"), "{checked}");
    bench(dir.path(), "--size 64k --bs 4k --runtime 30ms -q -o o.json").exits(0);
    let compared = gpuio(dir.path(), "compare o.json s --despite all").out;
    assert!(compared.contains("-run-002.json: the result can't be read"), "{compared}");
}

/// A record of another sweep is whole, and no run of this one: also after this one was resumed.
#[test]
fn a_record_that_was_put_in_place_of_a_run_is_found() {
    let dir = scratch();
    let line = "sweep --size 64k --bs 4k --runtime 30ms --vary path=host --repeats 2";
    for name in ["s", "t"] {
        gpuio(dir.path(), &format!("{line} -o {name}")).exits(0);
    }
    gpuio(dir.path(), "show s --check").exits(0);
    let run = |folder: &str| dir.path().join(folder).join("point-0001-run-002.json");
    std::fs::copy(run("t"), run("s")).unwrap();
    let found = || {
        let checked = gpuio(dir.path(), "show s --check").exits(1).out;
        let shown = gpuio(dir.path(), "report s --format markdown").exits(0);
        for text in [checked, shown.out + &shown.err] {
            let is_named = text.contains("point-0001-run-002")
                && text.contains("it is not the one that the sweep made: sweep.json lists");
            assert!(is_named, "{text}");
        }
    };
    found();
    gpuio(dir.path(), &format!("{line} -o s")).exits(0);
    found();
    // Older sweeps list no digests, and have none; each record still says which run it is.
    let list = dir.path().join("s/sweep.json");
    let mut sweep: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&list).unwrap()).unwrap();
    let points = sweep["points"].as_array_mut().unwrap();
    assert_eq!(points[0]["content_sha256"].as_object().unwrap().len(), 2);
    points[0].as_object_mut().unwrap().remove("content_sha256");
    sweep["tool"]["version"] = "0.0.1".into();
    sweep.as_object_mut().unwrap().shift_remove("content_sha256");
    std::fs::write(list, sweep.to_string()).unwrap();
    let checked = gpuio(dir.path(), "show s --check").exits(1).out;
    assert!(checked.contains("1 record is not here of "), "{checked}");
}
