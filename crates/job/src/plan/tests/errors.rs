//! Every refusal, with its words.

use super::*;

/// The refusal of a job file on the usual machine.
fn refused(text: &str) -> PlanError {
    Bench::default().refusal(&parsed(&format!("[a]\n{text}")))
}

/// The same of a job that no job file can ask for.
fn refused_job(change: impl FnOnce(&mut JobSpec)) -> String {
    let mut job = JobSpec::new("a");
    change(&mut job);
    usage(Bench::default().refusal(&Spec { name: None, jobs: vec![job] }))
}

/// The text of an error that is the user's.
fn usage(error: PlanError) -> String {
    assert!(matches!(error, PlanError::Usage { .. }), "{error:?}");
    error.to_string()
}

/// The text of an error that is this machine's or this build's.
fn unavailable(error: PlanError) -> String {
    assert!(matches!(error, PlanError::Unavailable { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn paths_that_do_not_exist() {
    assert_eq!(
        usage(refused("path=warp")),
        "job 'a', path=warp (f:2:1): there is no path 'warp'; paths are host, staged, cached, \
         managed, gather, mapped, resident, initiated, routed, fan-out, library, library-stream, \
         library-batch, gds, gds-stream, gds-batch, gds-batch-stream, or auto, or all"
    );
}

#[test]
fn paths_by_their_names_in_other_tools() {
    for (word, ours) in [
        ("GPUD", "gdsio's is path gds here"),
        ("cpu-gpu", "gdsio's is path staged here"),
        ("2", "gdsio's is path staged here"),
        ("cufile", "other tools' is path gds here"),
        ("libaio", "it is an engine: path=host engine=libaio"),
        ("stagd", "nearest: staged"),
    ] {
        let said = usage(refused(&format!("path={word}")));
        assert!(said.contains(&format!("there is no path '{word}'; {ours}; paths are")), "{said}");
    }
}

/// A line of `[global]` once; without a value that is in error the others are looked at.
#[test]
fn all_errors_of_a_file_are_reported() {
    let text = "[global]\npre_read=1\ninvalidate=1\nbuffered=1\n[a]\nthreads=100000\nrw=write\n\
                verify=inline\n[b]\nbs=1000\ndirect=1\n";
    let all = Bench::default().refusal(&parsed(text));
    assert!(all.is_usage());
    let said = all.to_string();
    let lines: Vec<&str> = said.lines().collect();
    let at = ["threads=100000 (f:6:1)", "(f:3:1)", "verify=inline (f:8:1)", "bs=1000 (f:10:1)"];
    assert_eq!(lines.len(), at.len(), "{said}");
    assert!(lines.iter().zip(at).all(|(line, at)| line.contains(at)), "{said}");
}

/// They are good for jobs that read what is there, or what a job before wrote with headers.
#[test]
fn headers_are_not_checked_in_files_that_are_made_without() {
    let checks = "ioengine=psync\nrw=randread\nbs=4k\nsize=1m\nverify=crc32c\ndirectory=/d\n";
    let said = usage(refused(checks));
    assert!(said.contains("/d/a.0.0 is not there") && said.contains("rw=write"), "{said}");
    let fine = |text: &str| Bench::default().jobs(text).len();
    let there = checks.replace("directory=/d", "filename=/have1g");
    assert_eq!(fine(&format!("[a]\n{there}")), 1);
    let named = checks.replace("directory=/d", "filename=/new");
    let writes = named.replace("randread", "write");
    let both = |last: &str| format!("[w]\n{writes}[r]\n{named}{last}");
    assert_eq!(fine(&both("stonewall\n")), 2);
    let together = Bench::default().refusal(&parsed(&both("")));
    assert!(usage(together).contains("/new is not there"));
}

/// A header says how long its block is: blocks of another length have none where they begin.
#[test]
fn headers_of_another_length_than_a_job_before_writes() {
    let job = "ioengine=psync\nsize=1m\nverify=crc32c\nfilename=/have1g\nrw=";
    let both = |writes: &str, reads: &str| {
        format!("[w]\n{job}write\nbs=4k\n{writes}[r]\n{job}read\nstonewall\n{reads}")
    };
    for bs in ["bs=8k\n", "bs=2k\n"] {
        let said = usage(Bench::default().refusal(&parsed(&both("", bs))));
        assert!(said.contains("job 'r'") && said.contains("job 'w' writes /have1g"), "{said}");
        assert!(said.contains("use bs=4K here"), "{said}");
    }
    let again = format!("[again]\n{job}write\nbs=8k\nstonewall\n");
    let fine = [
        both("", "bs=4k\n"),
        both("", "bs=8k\noffset=1m\n"),
        both("", "bs=8k\nverify=0\n"),
        both("", "bs=8k\n").replace("[r]", &format!("{again}[r]")),
    ];
    for text in fine {
        Bench::default().jobs(&text);
    }
}

/// The line that stands against the headers is named, whichever key turns verification on.
#[test]
fn headers_that_a_key_rules_out_name_its_line() {
    let job = "rw=write\nsize=1m\nbuffered=1\nverify=crc32c\nfilename=/have1g\ndo_verify=1\n";
    for (line, fine) in [
        ("bssplit=4k/50:16k/50", "verify=pass"),
        ("bsrange=4k-16k", "verify=pass"),
        ("bs=32", "raise bs"),
        ("bs=4k,8k", "verify=pass"),
    ] {
        let job =
            if line.contains(',') { job.replace("rw=write", "rw=randrw") } else { job.into() };
        let text = format!("[a]\n{line}\n{job}");
        let error = Bench::default().refusal(&parsed(&text)).to_string();
        let (at, words) = error.split_once(": ").unwrap();
        assert!(at.contains(line) && words.contains(fine), "{error}");
        assert!(words.contains("verify=crc32c") && !error.contains("do_verify"), "{error}");
    }
}

#[test]
fn a_spec_without_jobs() {
    let error = Bench::default().refusal(&Spec { name: None, jobs: vec![] });
    assert_eq!(usage(error), "no job to run: give flags or a job file; see gpuio bench --help");
}

#[test]
fn engines_that_do_not_exist() {
    assert_eq!(
        refused_job(|job| job.engine = Some("magic".into())),
        "job 'a': there is no engine 'magic'; engines: psync, io_uring, io_uring-iopoll, \
         io_uring-sqpoll, libaio, mmap, null, pool"
    );
    let near = refused_job(|job| job.engine = Some("iouring".into()));
    assert!(near.contains("no engine 'iouring'; nearest: io_uring; engines: psync"), "{near}");
    let near = usage(refused("path=stagde"));
    assert!(near.contains("no path 'stagde'; nearest: staged; paths are host"), "{near}");
}

#[test]
fn gpus_that_are_not_there() {
    assert_eq!(
        usage(refused("path=staged\ngpu=none")),
        "job 'a', gpu=none (f:3:1): path staged needs a GPU, and gpu=none was requested"
    );
    assert_eq!(
        unavailable(refused("path=staged\ngpu=7")),
        "job 'a', gpu=7 (f:3:1): there is no GPU 7: this machine has 3, numbered 0-2"
    );
    let bench = Bench { gpus: no_gpus(), ..Bench::default() };
    assert_eq!(
        unavailable(bench.refusal(&parsed("[a]\npath=staged\n"))),
        "job 'a': path staged needs a GPU: libcuda.so.1: not found; gpu=software tries the job \
         without one"
    );
    let pinned = unavailable(bench.refusal(&parsed("[a]\nmemory=pinned\n")));
    assert!(pinned.contains("needs a GPU: libcuda.so.1: not found"), "{pinned}");
}

/// On the host path too, where a GPU says where threads run, and with all paths.
#[test]
fn what_was_named_is_an_error_where_it_can_not_be_had() {
    let bench = Bench { gpus: no_gpus(), missing: &["io_uring"], ..Bench::default() };
    for text in ["gpu=3", "gpu=3\npath=host", "gpu=3\npath=all", "gpu=3\npath=auto"] {
        let said = unavailable(bench.refusal(&parsed(&format!("[a]\n{text}\n"))));
        let want = "there is no GPU 3: this machine has none: libcuda.so.1: not found";
        assert!(said.contains(want), "{text}: {said}");
        let said = unavailable(refused(text));
        assert!(
            said.contains("there is no GPU 3: this machine has 3, numbered 0-2"),
            "{text}: {said}"
        );
    }
    let all = unavailable(bench.refusal(&parsed("[a]\ngpu=all\npath=host\n")));
    assert!(all.contains("this machine has no GPU: libcuda.so.1: not found"), "{all}");
    let engine = unavailable(bench.refusal(&parsed("[a]\nengine=io_uring\n")));
    assert!(
        engine.contains("engine io_uring can't run here: io_uring is switched off"),
        "{engine}"
    );
    // A default steps down, and says why.
    let plan = bench.job("");
    assert_eq!(plan.engine.actual, "libaio");
    assert!(plan.engine.why.unwrap().contains("io_uring is switched off"));
    // gdsio's users name a GPU for its processor-only type, too.
    bench.job("xfer_type=1\ngpu_dev_id=0\nsize=1g\nrw=write");
}

#[test]
fn keys_of_paths_that_are_not_built_in() {
    assert_eq!(
        usage(refused("batch=8")),
        "job 'a', batch=8 (f:2:1): a batch size belongs to transfer types 6 and 7, and this is 1 \
         (host); remove it"
    );
    assert_eq!(
        unavailable(refused("rdma_url=sockfs://x")),
        "job 'a', rdma_url=sockfs://x (f:2:1): an RDMA URL needs cuFile's user-space path, which \
         is not built into this gpuio"
    );
    assert_eq!(
        usage(refused("mix_percent=50\nxfer_type=2")),
        "job 'a', mix_percent=50 (f:2:1): a mixed percentage (-M) belongs to the batch transfer \
         types 6 and 7; use rw=randrw with rwmixread"
    );
    assert_eq!(
        usage(refused("path=gds-batch\nbatch=8\ngather_batch=9")),
        "job 'a', batch=8 (f:3:1): batch and gather_batch have the same meaning on this path, and \
         differ; leave one out"
    );
}

#[test]
fn numbers_out_of_range() {
    assert_eq!(
        usage(refused("threads=65537")),
        "job 'a', threads=65537 (f:2:1): 65537 threads; 1 to 65536 work"
    );
    // Refused before four billion regions are laid out.
    let most = refused_job(|job| job.threads = Some(u32::MAX));
    assert_eq!(most, "job 'a': 4294967295 threads; 1 to 65536 work");
    let none = refused_job(|job| job.threads = Some(0));
    assert_eq!(none, "job 'a': 0 threads; 1 to 65536 work");
    assert_eq!(
        usage(refused("depth=65536")),
        "job 'a', depth=65536 (f:2:1): a depth of 65536; 1 to 65535 work"
    );
    let none = refused_job(|job| job.depth = Some(0));
    assert_eq!(none, "job 'a': a depth of 0; 1 to 65535 work");
    assert_eq!(
        usage(refused("bs=2g\nsize=8g")),
        "job 'a', bs=2g (f:2:1): blocks of 2147483648 bytes; 1 byte to 2147479552 bytes work \
         (read(2) moves no more in one call)"
    );
    let block = BlockShare { min_bytes: 0, max_bytes: 4096, step_bytes: 512, percent: 100 };
    let empty = refused_job(|job| job.blocks = Some(vec![block]));
    assert!(empty.contains("blocks of 0 to 4096 step 512 bytes; 1 byte to"), "{empty}");
}

#[test]
fn times_that_measure_nothing_or_never_end() {
    assert_eq!(
        usage(refused("runtime=0")),
        "job 'a', runtime=0 (f:2:1): a run of no time or no bytes measures nothing"
    );
    let nothing = refused_job(|job| job.io_size = Some(crate::spec::IoSize::Bytes(0)));
    assert_eq!(nothing, "job 'a': a run of no time or no bytes measures nothing");
    for key in ["runtime", "ramp", "start_delay"] {
        let text = format!("{key}=4000000000");
        assert_eq!(
            usage(refused(&text)),
            format!("job 'a', {text} (f:2:1): a time above 100 years; give a shorter one")
        );
    }
}

#[test]
fn direct_i_o_off_the_alignment() {
    assert_eq!(
        usage(refused("bs=1000")),
        "job 'a', bs=1000 (f:2:1): O_DIRECT here needs blocks in multiples of 512 bytes, and 1000 \
         needs others; use buffered=1 or another bs"
    );
    assert_eq!(
        usage(refused("bs=4k:8k:100")),
        "job 'a', bs=4k:8k:100 (f:2:1): O_DIRECT here needs blocks in multiples of 512 bytes, and \
         4096 to 8192 step 100 needs others; use buffered=1 or another bs"
    );
    let coarse = usage(refused("bs=512\ndirectory=/coarse"));
    assert!(coarse.contains("multiples of 4096 bytes"), "{coarse}");
    assert_eq!(
        usage(refused("rw=randread\nblockalign=100")),
        "job 'a', blockalign=100 (f:3:1): O_DIRECT here needs offsets in multiples of 512 bytes; \
         alignment 100 with start offset 0 breaks that; use buffered=1"
    );
    assert_eq!(
        usage(refused("start_offset=100\nrw=write\nsize=1g")),
        "job 'a', start_offset=100 (f:2:1): O_DIRECT here needs offsets in multiples of 512 bytes; \
         alignment 512 with start offset 100 breaks that; use buffered=1"
    );
    assert_eq!(
        usage(refused("filename=/have8g\nthreads=2\nsize=10000\nbs=4k")),
        "job 'a', size=10000 (f:4:1): O_DIRECT here needs offsets in multiples of 512 bytes, and \
         threads that share a file start 10000 bytes apart; give a size that is such a \
         multiple, or use buffered=1"
    );
    job("bs=1000\ndirect=0");
    job("filename=/have8g\nthreads=2\nsize=10000\nbs=4k\ndirect=0");
    job("filename=/have8g\nthreads=1\nsize=10000\nbs=4k");
}

#[test]
fn direct_i_o_where_there_is_none() {
    assert_eq!(
        usage(refused("path=cached\ndirect=1")),
        "job 'a', direct=1 (f:3:1): path cached is the one through the page cache and can't be \
         direct; use path=staged"
    );
    assert_eq!(
        usage(refused("engine=mmap\ndirect=1")),
        "job 'a', direct=1 (f:3:1): engine mmap goes through the page cache and can't be direct; \
         use buffered=1"
    );
}

#[test]
fn offsets_off_the_grid_where_the_grid_is_the_alignment() {
    let native = "rw=randread\nunaligned\ndirectory=/coarse";
    assert_eq!(
        usage(refused(native)),
        "job 'a', unaligned (f:3:1): offsets off the 4 KiB grid need an alignment below 4096 \
         bytes, and O_DIRECT here has 4096; use buffered=1 to measure them through the page cache"
    );
    let gdsio = usage(refused("rw=randwrite\nunaligned_random=1\ndirectory=/coarse\nsize=1g"));
    assert!(gdsio.ends_with("use buffered=1 to measure them through the page cache"), "{gdsio}");
    assert_eq!(job(&format!("{native}\ndirect=0")).skew_bytes, 512);
}

#[test]
fn a_pattern_that_can_not_be_made() {
    let text = usage(refused("rw=randread\nunaligned\nbs=4k\nsize=4k"));
    assert!(text.starts_with("job 'a', size=4k (f:5:1): a block of 4096 bytes does not fit"));
    let theta = refused_job(|job| {
        job.rw = Some(crate::spec::Rw::RandRead);
        job.distribution = Some(Distribution::Zipf { theta: f64::NAN });
    });
    assert!(theta.starts_with("job 'a': "), "{theta}");
    let block = |percent| BlockShare { min_bytes: 4096, max_bytes: 4096, step_bytes: 0, percent };
    let half = refused_job(|job| job.blocks = Some(vec![block(50)]));
    assert!(half.contains("50"), "{half}");
}

#[test]
fn verification_of_other_data_than_the_pattern() {
    for verify in ["pass", "rewrite"] {
        let zeros = usage(refused(&format!("fill=zero\nrw=write\nverify={verify}")));
        assert!(zeros.starts_with("job 'a', fill=zero (f:2:1): zeros are alike"), "{zeros}");
        assert!(zeros.ends_with("or leave out verify"), "{zeros}");
        let plan = job(&format!("fill=random\nrw=write\nverify={verify}"));
        assert_eq!(plan.fill, Fill::Pattern);
        assert!(plan.notes.iter().any(|note| note.starts_with("fill: ")), "{:?}", plan.notes);
    }
}

#[test]
fn gpu_memory_on_the_host_path() {
    for (memory, line) in [("device", 2), ("vmm", 2)] {
        assert_eq!(
            usage(refused(&format!("memory={memory}\npath=host"))),
            format!(
                "job 'a', memory={memory} (f:{line}:1): the host path ends in host memory: \
                 memory=malloc, mmap or pinned"
            )
        );
    }
}

#[test]
fn places_that_threads_can_not_have() {
    assert_eq!(
        unavailable(refused("cpus=6-7")),
        "job 'a', cpus=6-7 (f:2:1): this process may run only on CPUs 0-6, not all of 6-7"
    );
    assert_eq!(
        unavailable(refused("numa=2")),
        "job 'a', numa=2 (f:2:1): this process may run on no CPU of NUMA node 2"
    );
    assert_eq!(
        unavailable(refused("numa=5")),
        "job 'a', numa=5 (f:2:1): there is no NUMA node 5; this machine has 0-2"
    );
    let mut bench = Bench::default();
    bench.host.numa.nodes.clear();
    let text = unavailable(bench.refusal(&parsed("[a]\nnuma=1\n")));
    assert!(text.ends_with("there is no NUMA node 1; this machine has none"), "{text}");
}

#[test]
fn files_that_do_not_go_together() {
    assert_eq!(
        usage(refused("xfer_type=1\ndirectory=/d\nfilename=x\nsize=1g")),
        "job 'a', filename=x (f:4:1): -D (directory) and -f (filename) exclude each other; give \
         one"
    );
    assert_eq!(
        usage(refused("filename=/have8g:/isdir")),
        "job 'a', filename=/have8g:/isdir (f:2:1): /isdir is a directory; give it with directory"
    );
}

#[test]
fn sizes_that_do_not_fit() {
    assert_eq!(
        usage(refused("size=4k")),
        "job 'a', size=4k (f:2:1): a size of 4096 bytes per thread holds no block of 1048576 \
         bytes; raise size or lower bs"
    );
    // Each is one fault: that a part needs a size follows from the size alone.
    assert_eq!(
        usage(refused("size=1g\nscale=0.000001\nfull_threads=8")),
        "job 'a', scale=0.000001 (f:3:1): it leaves 4096 bytes of each thread, less than a block \
         of 1048576; raise scale"
    );
    let one = usage(refused("size=4k\nfull_threads=8"));
    assert!(!one.contains('\n') && one.contains("holds no block"), "{one}");
    assert_eq!(
        usage(refused("filename=/have9g:/have8k\nthreads=3\nbs=4k")),
        "job 'a', filename=/have9g:/have8k (f:2:1): /have8k holds 8192 bytes: too few for 3 \
         threads of one 4096-byte block each after offset 0; lower bs or threads, \
         or name a longer file"
    );
    let past = "offset plus size of all threads is past the largest file";
    for text in ["filename=/x\nthreads=2\nsize=8000000t", "filename=/x\noffset=9000000t\nsize=1g"] {
        let error = usage(refused(text));
        assert!(error.ends_with(past), "{error}");
    }
}

#[test]
fn gdsio_reads_what_it_wrote_before() {
    let read = "xfer_type=1\ndirectory=/d\nrw=read";
    assert_eq!(
        usage(refused(read)),
        "job 'a': no size (-s) was given and the files are not there yet; write them first with \
         -I 1 and the same -D, -w and -s"
    );
    assert_eq!(job("xfer_type=1\ndirectory=/d\nrw=write").size_bytes, GIB);
    assert_eq!(job(&format!("{read}\nsize=1m\nbs=4k")).size_bytes, MIB);
}

#[test]
fn cufile_that_is_not_here_and_what_it_has_not() {
    let bench = Bench { cufile: Some("no libcufile"), ..Bench::default() };
    let text = unavailable(bench.refusal(&parsed("[a]\npath=gds\n")));
    assert_eq!(text, "job 'a', path=gds (f:2:1): path gds needs a cuFile library: no libcufile");
    for key in ["engine=psync", "inject=eio=1%"] {
        let text = usage(refused(&format!("path=gds\n{key}")));
        assert!(text.contains("path gds has no engine") && text.contains(key), "{text}");
    }
}

#[test]
fn what_can_not_be_verified() {
    let inline = usage(refused("rw=write\nsize=1g\nverify=inline"));
    assert!(inline.contains("this job only writes"), "{inline}");
    let null = usage(refused("rw=write\nsize=1g\nengine=null\nverify"));
    assert!(null.contains("engine null writes nothing"), "{null}");
    let maps = usage(refused("rw=randwrite\nsize=1t\nbs=4097\ndirect=0\nverify"));
    assert!(maps.contains("verify=rewrite"), "{maps}");
    let both = |one: &str, two: &str| {
        let text = format!("[global]\nfilename=/d/f\nsize=1g\n[a]\n{one}\n[b]\n{two}\n");
        let bench = Bench::default();
        bench.plan(&parsed(&text)).map_err(usage)
    };
    for (one, two) in [
        ("rw=read\nverify", "rw=write"),
        ("rw=read\nverify", "rw=write\nverify"),
        ("rw=write\nverify", "rw=randwrite"),
        ("rw=write\nverify", "rw=rw\nverify=inline"),
        ("rw=rw\nverify=inline", "rw=write\nverify=rewrite"),
    ] {
        let why = both(one, two).unwrap_err();
        assert!(why.contains("what /d/f must hold is not known"), "{one}, {two}: {why}");
        both(one, &format!("stonewall\n{two}")).unwrap();
    }
    for (one, two) in [
        ("rw=read\nverify", "rw=read"),
        ("rw=write\nverify", "rw=randrw\nverify"),
        ("rw=rw\nverify=inline", "rw=read\nverify"),
        ("rw=write\nverify=rewrite", "rw=write"),
    ] {
        both(one, two).unwrap();
    }
}

/// A name for each of many files is not made before it is seen that none can have it.
#[test]
fn names_that_no_file_can_have() {
    let long = "A".repeat(4000);
    let text = usage(refused(&format!("directory=d\nthreads=8\nfile_prefix={long}")));
    assert!(text.contains("names of files would have 4002 bytes, and 255"), "{text}");
    let text = usage(refused(&format!("directory=/{}\nthreads=8", "d/".repeat(2100))));
    assert!(text.contains("bytes, and 4095 are the most"), "{text}");
    let feed = "sample_size=1k\nbatch_samples=1\ncompute=none\nfiles=262144";
    let text = usage(refused(&format!("{feed}\nfile_prefix={}", "A".repeat(249))));
    assert!(text.contains("names of files would have 256 bytes"), "{text}");
    job(&format!("file_prefix={}", "A".repeat(253)));
}
