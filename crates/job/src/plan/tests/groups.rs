//! Several jobs and several paths.

use super::*;

fn groups(text: &str) -> Vec<(String, u32)> {
    let jobs = Bench::default().jobs(text);
    jobs.into_iter().map(|job| (job.name, job.group)).collect()
}

fn names(text: &str) -> Vec<String> {
    groups(text).into_iter().map(|(name, _)| name).collect()
}

fn pairs(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter().map(|(name, group)| ((*name).to_owned(), *group)).collect()
}

#[test]
fn jobs_run_together_unless_a_stonewall_parts_them() {
    assert_eq!(groups("[a]\n[b]\n[c]\n"), pairs(&[("a", 0), ("b", 0), ("c", 0)]));
    let walled = "[a]\nstonewall\n[b]\nstonewall\n[c]\n[d]\nstonewall\n";
    assert_eq!(groups(walled), pairs(&[("a", 0), ("b", 1), ("c", 1), ("d", 2)]));
}

#[test]
fn paths_of_one_job_run_one_after_another() {
    let spread = groups("[a]\npath=host,staged,cached\n");
    assert_eq!(spread, pairs(&[("a-host", 0), ("a-staged", 1), ("a-cached", 2)]));
}

#[test]
fn no_neighbour_runs_beside_one_of_several_paths() {
    let between = groups("[a]\n[b]\npath=host,staged\n[c]\n[d]\n");
    let alone = [("a", 0), ("b-host", 1), ("b-staged", 2), ("c", 3), ("d", 3)];
    assert_eq!(between, pairs(&alone));
}

#[test]
fn all_paths_are_those_that_this_machine_has() {
    let spec = parsed("[a]\npath=all\n[b]\npath=all\n");
    let plan = Bench::default().plan(&spec).unwrap();
    let paths: Vec<&str> = plan.jobs.iter().map(|job| job.path.choice.actual.as_str()).collect();
    let library = ["library", "library-stream", "library-batch"];
    let cufile = ["gds", "gds-stream", "gds-batch", "gds-batch-stream"];
    let engine =
        ["host", "staged", "cached", "managed", "gather", "mapped", "resident", "initiated"];
    let all = [engine.as_slice(), &library, &cufile].concat();
    assert_eq!(paths, [all.clone(), all.clone()].concat());
    let left: Vec<&str> = plan.left_out.iter().map(|out| out.path.as_str()).collect();
    assert_eq!(left, ["routed", "fan-out"], "they run where they are named");
    for job in &plan.jobs {
        assert_eq!(job.path.choice.requested, "all");
        assert_eq!(job.path.choice.why.as_deref(), Some("all paths were requested"));
    }

    let plan = Bench { gpus: no_gpus(), ..Bench::default() }.plan(&spec).unwrap();
    let groups: Vec<(&str, u32)> = plan.jobs.iter().map(|j| (j.name.as_str(), j.group)).collect();
    assert_eq!(groups, [("a", 0), ("b", 1)], "groups are as on a machine with GPUs");
    let left: Vec<(&str, &str)> =
        plan.left_out.iter().map(|out| (out.path.as_str(), out.why.as_str())).collect();
    let why = "libcuda.so.1: not found";
    let ours = [
        "staged",
        "cached",
        "managed",
        "gather",
        "mapped",
        "resident",
        "initiated",
        "routed",
        "fan-out",
    ];
    let gpu_paths: Vec<(&str, &str)> =
        ours.iter().chain(&library).chain(&cufile).map(|path| (*path, why)).collect();
    assert_eq!(left, gpu_paths, "each once");

    let bench = Bench { cufile: Some("no libcufile"), ..Bench::default() };
    let plan = bench.plan(&spec).unwrap();
    assert_eq!(plan.jobs.len(), 2 * (engine.len() + library.len()));
    let left: Vec<(&str, &str)> =
        plan.left_out.iter().map(|out| (out.path.as_str(), out.why.as_str())).collect();
    assert_eq!(left[2..], cufile.map(|path| (path, "no libcufile")));
    // An engine that was named leaves out the path that has none.
    let spec = parsed("[a]\npath=all\nengine=psync\n");
    let plan = Bench::default().plan(&spec).unwrap();
    let left: Vec<&str> = plan.left_out.iter().map(|out| out.path.as_str()).collect();
    assert_eq!(plan.jobs.len(), engine.len() - 2);
    assert_eq!(
        left,
        [["mapped", "initiated", "routed", "fan-out"].as_slice(), &library, &cufile].concat()
    );
    assert!(plan.left_out[4..].iter().all(|out| out.why.contains("no engine")), "{left:?}");
}

#[test]
fn names_are_unique() {
    assert_eq!(names("[a]\n[a]\n[a]\n"), ["a", "a#2", "a#3"]);
    assert_eq!(names("[a]\npath=host,host\n"), ["a-host", "a-host#2"]);
    assert_eq!(names("[a]\n[a]\n[a#2]\n"), ["a", "a#3", "a#2"], "a name given stays");
    assert_eq!(names("[a#2]\n[a#2]\n[a]\n[a]\n"), ["a#2", "a#2#2", "a", "a#3"]);
}

#[test]
fn a_plan_says_whether_its_gpus_are_real() {
    let mut bench = Bench::default();
    let plan = |bench: &Bench| bench.plan(&parsed("[a]\n[b]\ngpu=all\n")).unwrap().software_gpu;
    assert!(!plan(&bench));
    if let Gpus::Present(gpus) = &mut bench.gpus {
        gpus.iter_mut().for_each(|gpu| gpu.software = true);
    }
    assert!(plan(&bench));
    assert!(!bench.plan(&parsed("[a]\n")).unwrap().software_gpu, "no job uses one");
}
