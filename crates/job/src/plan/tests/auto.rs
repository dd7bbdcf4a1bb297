//! Path `auto`, and that nothing else chooses.

use gpuio_io::CATALOG;

use super::*;

/// The path and the reason.
fn chosen(bench: &Bench, text: &str) -> (String, String) {
    let choice = bench.job(&format!("path=auto\n{text}")).path.choice;
    assert_eq!(choice.requested, "auto");
    (choice.actual, choice.why.unwrap_or_default())
}

fn chosen_path(text: &str) -> String {
    chosen(&Bench::default(), text).0
}

#[test]
fn it_goes_by_the_size_of_blocks() {
    assert_eq!(chosen_path("rw=randread"), "gather");
    assert_eq!(chosen_path("rw=randwrite\nbs=64k"), "gather");
    assert_eq!(chosen_path(""), "gather");
    assert_eq!(chosen_path("rw=write\nbs=4m"), "staged");
    assert_eq!(
        chosen_path("rw=write\nbssplit=4k/90:4m/10"),
        "staged",
        "slots are made for the largest block"
    );
    assert_eq!(chosen_path("rw=randread\ndepth=1"), "resident");
    assert_eq!(chosen_path("rw=randread\ndepth=1\nmemory=malloc\ngpu=0"), "staged");
    assert_eq!(chosen_path("ioengine=psync\nbs=4k"), "resident", "fio's depth is 1");
    assert_eq!(chosen_path("memory=managed"), "managed");
}

#[test]
fn the_reason_is_that_of_the_plan() {
    let job = job("path=auto\nrw=randread");
    let why = job.path.choice.why.unwrap();
    assert_eq!(job.gather_batch, Some(128));
    assert!(why.starts_with("4K blocks, one launch carries 128:"), "{why}");
    let fewer = chosen(&Bench::default(), "rw=randread\ndepth=30").1;
    assert!(fewer.starts_with("4K blocks, one launch carries 10:"), "{fewer}");
}

#[test]
fn without_a_gpu_it_is_host_unless_a_gpu_was_named() {
    let bench = Bench { gpus: no_gpus(), ..Bench::default() };
    let (path, why) = chosen(&bench, "rw=randread");
    assert_eq!(path, "host");
    assert_eq!(why, "no GPU memory to end in: libcuda.so.1: not found");
    assert_eq!(chosen_path("gpu=none"), "host");
    assert_eq!(chosen_path("memory=mmap"), "host");
    assert_eq!(chosen_path("memory=mmap\ngpu=0"), "gather");
    for (named, why) in [
        ("gpu=0", "this machine has none: libcuda"),
        ("gpu=all", "no GPU: libcuda"),
        ("memory=device", "needs a GPU: libcuda"),
    ] {
        let refusal = bench.refusal(&parsed(&format!("[a]\npath=auto\n{named}\n")));
        assert!(matches!(refusal, PlanError::Unavailable { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
}

#[test]
fn cufile_needs_proof_and_a_job_that_it_can_do() {
    let proven = Bench { direct: Ok("seen"), ..Bench::default() };
    let (path, why) = chosen(&proven, "");
    assert_eq!((path.as_str(), why.as_str()), ("gds", "1M blocks go past host memory: seen"));
    for (text, reason) in [
        ("engine=psync", "the job requests an engine"),
        ("depth=8", "it moves one block at a time"),
        ("direct=0", "the job is buffered"),
    ] {
        let (path, why) = chosen(&proven, text);
        assert_ne!(path, "gds", "{text}");
        assert!(why.ends_with(&format!("; not gds: {reason}")), "{why}");
    }
    assert_eq!(chosen(&proven, "rw=randread").0, "gather");
    assert!(chosen(&Bench::default(), "").1.ends_with("; not gds: no nvidia-fs"));
}

#[test]
fn a_path_that_was_named_is_that_path() {
    for row in CATALOG.paths {
        let via = if row.via_gpu { "\ngpu=1\nvia_gpu=0" } else { "" };
        let job = job(&format!("path={}{via}", row.name));
        let choice = job.path.choice;
        assert_eq!((choice.requested.as_str(), choice.actual.as_str()), (row.name, row.name));
        assert_eq!(choice.why, None);
    }
}

#[test]
fn a_path_that_was_named_and_can_not_run_is_refused_with_its_reason() {
    let no_gpu = Bench { gpus: no_gpus(), ..Bench::default() };
    let no_cufile = Bench { cufile: Some("libcufile.so.0: not found"), ..Bench::default() };
    for row in CATALOG.paths {
        let via = if row.via_gpu { "gpu=1\nvia_gpu=0\n" } else { "" };
        let spec = parsed(&format!("[a]\npath={}\n{via}", row.name));
        for (bench, needs, reason) in [
            (&no_gpu, row.needs_gpu, "libcuda.so.1: not found"),
            (&no_cufile, row.uses_cufile(), "libcufile.so.0: not found"),
        ] {
            if !needs {
                assert_eq!(bench.plan(&spec).unwrap().jobs[0].path.choice.actual, row.name);
                continue;
            }
            let refusal = bench.refusal(&spec);
            assert!(matches!(refusal, PlanError::Unavailable { .. }), "{refusal:?}");
            let text = refusal.to_string();
            // One of two GPUs was named: that it is not here comes first.
            let by_path = text.contains(&format!("path {}", row.name)) || row.via_gpu;
            assert!(by_path && text.contains(reason), "{text}");
        }
    }
}

#[test]
fn all_runs_the_paths_of_cufile_last() {
    let plan = Bench::default().plan(&parsed("[a]\npath=all\n")).unwrap();
    let engines: Vec<bool> = plan.jobs.iter().map(|job| job.register_buffer.is_none()).collect();
    assert!(engines.is_sorted_by(|a, b| a >= b), "{engines:?}");
    let by_name_only = CATALOG.paths.iter().filter(|row| row.needs_gpus()).count();
    assert_eq!(engines.len(), CATALOG.paths.len() - by_name_only);
}
