//! Path `mapped`: its shape, what it can't do, and how much it may pin.

use gpuio_record::facts::CgroupLimit;

use super::*;

#[test]
fn blocks_go_in_groups_or_as_copies() {
    let shape = |text: &str| {
        let job = job(&format!("path=mapped\n{text}"));
        (job.depth, job.gather_batch.unwrap(), job.streams)
    };
    assert_eq!(shape("bs=4k"), (8192, 1024, 4));
    assert_eq!(shape("bs=16k"), (2048, 256, 4));
    assert_eq!(shape("bs=64k"), (512, 64, 4));
    assert_eq!(shape("bs=512"), (8192, 1024, 4));
    assert_eq!(shape("bs=1m"), (32, 8, 1));
    assert_eq!(shape("bs=4m"), (8, 2, 1));
    assert_eq!(shape("bs=4k\nthreads=2"), (4096, 512, 4));
    assert_eq!(shape("bs=4k\nthreads=16"), (2048, 512, 4));
    assert_eq!(shape("bs=1m\nthreads=16"), (8, 2, 1));
    assert_eq!(shape("bs=16m"), (2, 1, 1));
    assert_eq!(shape("bs=4k\ndepth=1"), (1, 1, 1));
    assert_eq!(shape("bs=4k\ndepth=64"), (64, 16, 4));
    assert_eq!(shape("bs=4k\ngather_batch=128"), (512, 128, 4));
    assert_eq!(shape("bs=4k\ndepth=64\ngather_batch=64\nstreams=1"), (64, 64, 1));
    let job = job("path=mapped\nrw=randread");
    assert_eq!((job.direct, job.memory), (DirectMode::Buffered, MemoryKind::Device));
    assert_eq!((job.engine.actual.as_str(), job.has_engine()), ("none (mapping)", false));
    assert_eq!((job.gather_scatter, job.register_buffer), (None, None));
}

#[test]
fn what_it_can_not_do_is_refused_with_the_reason() {
    let why = |text: &str| {
        let spec = parsed(&format!("[a]\npath=mapped\n{text}\n"));
        Bench::default().refusal(&spec).to_string()
    };
    assert!(why("direct=1").contains("page cache and can't be direct"));
    assert!(why("engine=psync").contains("reads and writes the page cache; leave out engine"));
    assert!(why("inject=eio=0.1").contains("no engine"));
    assert!(why("memory=pinned").contains("device or vmm memory"));
    assert!(why("gather_scatter=1").contains("no effect"));
    // Registering on GPU 2 does not pin read-only memory.
    let refused = why("gpu=0,2");
    assert!(refused.contains("GPU 2") && refused.contains("READ_ONLY_HOST_REGISTER"), "{refused}");
}

#[test]
fn paths_that_are_all_leave_it_out_where_it_can_not_run() {
    let left = |text: &str, bench: &Bench| {
        let plan = bench.plan(&parsed(&format!("[a]\npath=all\n{text}\n"))).unwrap();
        let groups: BTreeSet<u32> = plan.jobs.iter().map(|job| job.group).collect();
        assert_eq!(groups.len(), plan.jobs.len(), "each alone, and no number is left out");
        assert_eq!(groups.last(), Some(&u32::try_from(plan.jobs.len() - 1).unwrap()));
        plan.left_out.into_iter().find(|out| out.path == "mapped").map(|out| out.why)
    };
    assert_eq!(left("rw=randread", &Bench::default()), None);
    assert_eq!(left("rw=write", &Bench::default()), None, "which files take it is found by asking");
    assert!(left("gpu=2", &Bench::default()).unwrap().contains("GPU 2"));
    let mut tight = Bench::default();
    tight.host.memory.available_bytes = Some(GIB);
    assert!(left("size=1g", &tight).unwrap().contains("512 MiB"));
    assert_eq!(left("size=512m", &tight), None);
}

#[test]
fn what_is_pinned_is_bounded_by_memory() {
    let mut bench = Bench::default();
    let why = |bench: &Bench, text: &str| match bench.plan(&parsed(text)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let one = |size: &str| format!("[a]\npath=mapped\nsize={size}\n");
    assert_eq!(why(&bench, &one("32g")), "");
    let said = why(&bench, &one("33g"));
    assert!(said.starts_with("job 'a', size=33g (f:3:1): path mapped would pin"), "{said}");
    assert!(said.contains("pin 33.0 GiB;") && said.contains("limit is 32.0 GiB,"), "{said}");
    assert!(said.contains("lower size"), "{said}");
    bench.host.memory.available_bytes = Some(8 * GIB);
    assert!(why(&bench, &one("5g")).contains("8.00 GiB (MemAvailable"));
    bench.host.memory.cgroup =
        Some(CgroupLimit { version: 2, path: String::new(), limit_bytes: 4 * GIB });
    assert!(why(&bench, &one("3g")).contains("4.00 GiB (the control group's limit)"));
    // Jobs that run together pin together; those one after another do not.
    let two = "[global]\npath=mapped\nsize=1536m\n[a]\nfile_prefix=a\n[b]\nfile_prefix=b\n";
    assert!(why(&bench, two).contains("would pin 3.00 GiB;"));
    assert_eq!(why(&bench, &format!("{two}stonewall\n")), "");
    assert_eq!(why(&bench, "[a]\npath=cached\nsize=100g\n"), "", "others pin none of it");
    bench.host.memory = MemoryFacts::default();
    assert_eq!(why(&bench, &one("100t")), "", "no limit is known");
}

#[test]
fn each_file_is_mapped_once_for_all_threads() {
    let shared = job("path=mapped\nfilename=/have8g\nsize=1g\noffset=4096\nthreads=3");
    assert_eq!(mapped_parts(&shared), [(0, 4096..4096 + 3 * GIB)]);
    let each = job("path=mapped\nsize=1g\nthreads=3");
    assert_eq!(mapped_parts(&each), [(0, 0..GIB), (1, 0..GIB), (2, 0..GIB)]);
    let several = job("path=mapped\nfilename=/have8g:/have9g\nsize=2g");
    assert_eq!(mapped_parts(&several), [(0, 0..GIB), (1, 0..GIB)]);
}

#[test]
fn buffers_are_bounded_by_memory() {
    let mut bench = Bench::default();
    let why = |bench: &Bench, text: &str| match bench.plan(&parsed(text)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let one = |depth: u32| format!("[a]\npath=host\nsize=1g\nbs=64m\nthreads=4\ndepth={depth}\n");
    assert_eq!(why(&bench, &one(256)), "");
    let said = why(&bench, &one(257));
    assert!(said.contains("the buffers take 64.2 GiB, more than 64.0 GiB"), "{said}");
    bench.host.memory.usable_bytes = Some(4 * GIB);
    bench.host.memory.cgroup =
        Some(CgroupLimit { version: 2, path: "/g/memory.max".to_owned(), limit_bytes: 4 * GIB });
    let said = why(&bench, &one(17));
    assert!(said.contains("the control group, /g/memory.max; lower threads"), "{said}");
    // Jobs that run together need theirs together; those one after another do not.
    let two =
        "[global]\npath=host\nsize=1g\nbs=64m\ndepth=40\n[a]\nfile_prefix=a\n[b]\nfile_prefix=b\n";
    assert!(why(&bench, two).contains("the buffers take 5.00 GiB"), "{}", why(&bench, two));
    assert_eq!(why(&bench, &format!("{two}stonewall\n")), "");
}
