//! No key is accepted and ignored: each has an effect on the plan, or is refused or noted.

use super::super::unused;
use super::*;
use crate::spec::{Key, Origin, Status, keys};
use gpuio_record::BytesOf;

/// Jobs of every kind, to which each key is added.
pub(super) const LOADS: &[&str] = &[
    "rw=read",
    "rw=randwrite\nbs=4k",
    "rw=randrw\nrandom_distribution=pareto:0.3",
    "rw=write\nbuffer_compress_percentage=60",
    "rw=write\ndirect=0\nruntime=9",
    "engine=psync\nrw=rw",
    "engine=null\nrw=randread\nnorandommap",
    "filename=/have8g\nsize=1g\nthreads=2",
    "filename=have8g\nsize=1g\nrw=rw\nmix_percent=50\nxfer_type=6",
    "filename=/have8g\nbs=1m",
    "io_size=64m\nsize=1g\nruntime=8",
    "loops=4\nsize=1g",
    "rate_iops=50",
    "steadystate=iops:5%",
    "path=host\ncpus=0-3",
    "verify=pass\nrw=randwrite",
    "pre_read=1\ndirect=0",
    "path=staged\ndepth=8",
    "path=staged\nengine=psync\nrw=randread",
    "path=cached\ndepth=4",
    "path=managed\ndepth=4",
    "path=gather\nrw=randread",
    "path=gather\ndepth=2\nrw=write",
    "path=mapped\nrw=randread",
    "path=initiated\nrw=randread\ndepth=4",
    "path=initiated\nrw=randread\nchain",
    "path=mapped\nbs=2m\ndepth=4",
    "path=resident",
    "path=routed\ngpu=0\nvia_gpu=1\nsize=1g\ndepth=4",
    "path=fan-out\nsize=1g\ndepth=4",
    "path=gds",
    "path=gds-stream",
    "path=gds-batch\nsize=1g",
    "path=gds-batch-stream\nsize=1g",
    "path=library",
    "path=library-stream",
    "path=library-batch\nsize=1g",
    "path=auto",
    "path=all",
    "path=host,staged",
    "ioengine=libcufile\nrw=read\nsize=1g",
    "size=1g\nnrfiles=2",
    "filename=/have8g\nsize=1g\nshared=0\nthreads=2\ndirect=0",
    "engine=io_uring\nrw=randread\ndirect=1",
    "thinktime=100\nfsync=9\nrw=write",
    "rw=randread:8\nsize=1g",
    "rw=randread\nbs=4k,64k\nsize=1g",
    "rw=randread\nbs=4k-64k\ndirect=0\nsize=1g",
    "rw=randrw\nbs=4k,64k\nrate=4m,1m\nsize=1g",
    "write_bw_log=l",
    "xfer_type=1\nsize=1g\nrw=write",
    "xfer_type=2\nsize=1g\nrw=randwrite\nruntime=5",
    "ioengine=libaio\nrw=read\ndirect=1",
    "ioengine=sync\nrw=randread\nsize=1g\nruntime=5",
    "gpu=0\nfiles=20\nsample_size=200k\nbatch_samples=7\ncompute_time=5ms",
    "files=20\nsample_size=8\ncolumns=2+,6\nsamples_per_file=64\nbatch_samples=7\ncompute=none",
];

/// Keys with an effect on several ranks only: `layout` tests them.
pub(super) const OF_RANKS: &[&str] = &["read_shift"];

/// Keys that are about other jobs or runs, and a permission: tests of their own.
pub(super) const OF_OTHERS: &[&str] = &[
    "wait_for",
    "allow_file_create",
    "readonly",
    "exitall",
    "latency_target",
    "latency_percentile",
    "lockmem",
];

fn is_noted(plan: &Plan, key: &str) -> bool {
    let note = format!("'{key}' (f:");
    plan.jobs.iter().flat_map(|job| &job.notes).any(|one| one.starts_with(&note))
}

/// Each key in each load, with both of its values: a key that is accepted has an effect or is
/// noted, but for who requested it and for reasons. Each rule refuses somewhere, with place and
/// advice, and is silent where the key has an effect.
#[test]
fn no_key_is_accepted_and_ignored_and_every_rule_refuses_and_lets_pass() {
    let (mut ignored, mut refused, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for Key { name, status, tried, .. } in keys() {
        let Status::Supported(setter) = status else { continue };
        let mut changes = 0;
        for load in LOADS {
            let [one, two] = tried.map(|value| {
                let text = format!("[a]\n{load}\n{name}={value}\n");
                let plan = Bench::default().plan(&parsed(&text));
                match &plan {
                    Ok(_) => passed.extend(setter.fields()),
                    Err(PlanError::Usage { at, what }) if what.contains("no effect") => {
                        let line = text.lines().count();
                        let place = format!("job 'a', {name}={value} (f:{line}:1)");
                        // Another line of the load may have lost its effect by this one.
                        if at.as_deref() == Some(place.as_str()) {
                            refused.extend(setter.fields());
                        }
                        let advice = ["leave", "use ", "add ", "lower", "raise"];
                        assert!(advice.iter().any(|word| what.contains(word)), "{text}{what}");
                    }
                    Err(_) => {}
                }
                plan.map(without_reasons)
            });
            match (&one, &two) {
                (Ok(one), Ok(two)) if one != two => changes += 1,
                _ if OF_OTHERS.contains(name) => {}
                (Ok(one), Ok(_)) if !is_noted(one, name) => ignored.push((*name, load)),
                _ => {}
            }
        }
        // A key that no load takes can't be tested by its effect.
        let untested = *name == "rdma_url" || OF_RANKS.contains(name) || OF_OTHERS.contains(name);
        assert!(changes > 0 || untested, "{name}: nothing takes it");
    }
    assert!(ignored.is_empty(), "accepted and ignored: {ignored:#?}");
    for key in keys().filter(|key| key.unused.is_some()) {
        let field = key.field().unwrap();
        let of_ranks = OF_RANKS.contains(&field);
        assert!(passed.contains(&field) || of_ranks, "{field}: never in effect");
        assert!(refused.contains(&field), "{field}: never refused");
    }
}

fn said(text: &str) -> String {
    match Bench::default().plan(&parsed(text)) {
        Ok(_) => "planned".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_line_for_several_jobs_is_refused_only_if_none_uses_it() {
    let global = "[global]\nrwmixread=70\n";
    assert_eq!(said(&format!("{global}[a]\n[b]\nrw=randrw\n")), "planned");
    assert_eq!(
        said(&format!("{global}[a]\n[b]\nrw=randread\n")),
        "job 'a', rwmixread=70 (f:2:1): it has no effect here: the load does not mix reads and \
         writes; use rw=rw or rw=randrw, or leave it out"
    );
    let own = said("[a]\nrwmixread=70\n[b]\nrwmixread=70\nrw=rw\n");
    assert!(own.starts_with("job 'a', rwmixread=70 (f:2:1): it has no effect"), "{own}");
    assert_eq!(said("[a]\npath=host,gather\ngather_batch=4\n"), "planned");
    assert_eq!(said("[a]\npath=all\nskip_bufregister\n"), "planned");
    let none = said("[a]\npath=host,staged\ngather_batch=4\n");
    assert!(none.contains("gather_batch=4 (f:3:1): it has no effect here"), "{none}");
}

/// A value that one job of several does not use is not in its plan, whose text can be run again.
#[test]
fn what_is_unused_is_not_planned() {
    let jobs = Bench::default().jobs("[global]\nseed=9\nrefill\n[a]\n[b]\nrw=randwrite\n");
    assert_eq!(jobs.iter().map(|job| job.seed).collect::<Vec<_>>(), [1, 9]);
    assert_eq!(jobs.iter().map(|job| job.refill).collect::<Vec<_>>(), [false, true]);
}

/// fio runs such files, and says nothing.
#[test]
fn fios_keys_in_fios_jobs_are_noted() {
    let fio = job("ioengine=sync\niodepth=32\nrw=read\nrwmixread=70\nrandseed=7");
    assert_eq!((fio.depth, fio.seed), (1, 1));
    assert_eq!(fio.notes.len(), 3, "{:?}", fio.notes);
    let mix = "'rwmixread' (f:5:1) has no effect here";
    assert!(fio.notes.iter().any(|note| note.starts_with(mix)), "{:?}", fio.notes);
    // A key of ours is not fio's, and a flag is not in the file.
    let ours = said("[a]\nioengine=libaio\ngather_batch=3\n");
    assert!(ours.contains("gather_batch=3 (f:3:1): it has no effect here"), "{ours}");
    let mut spec = parsed("[a]\nioengine=libaio\n");
    let flag = Origin::Flag("--rwmixread");
    crate::spec::apply(&mut spec.jobs[0], "rwmixread", "30", flag).unwrap();
    let flag = Bench::default().refusal(&spec).to_string();
    assert!(flag.starts_with("job 'a', rwmixread=30 (--rwmixread): it has no effect"), "{flag}");
}

/// gdsio's running time starts over: that was not requested, so the plan has no note of it. A key
/// that it takes the effect from was.
#[test]
fn what_a_dialect_implies_is_not_checked() {
    let lines = "[a]\nxfer_type=1\nrw=write\nsize=1g\nruntime=5\n";
    assert_eq!(said(lines), "planned");
    let refused = said(&format!("{lines}io_size=1m\n"));
    assert!(refused.contains("io_size=1m (f:6:1)") && refused.contains("gdsio's"), "{refused}");
}

#[test]
fn a_depth_that_was_requested_for_is_had() {
    let engine = |text: &str| job(text).engine.actual;
    assert_eq!(engine("direct=0\ndepth=8"), "io_uring");
    assert_eq!(engine("direct=0"), "psync");
    assert_eq!(engine("path=staged\ndirect=0\ndepth=8"), "psync", "the ring has it");
    let bench = Bench { missing: &["io_uring"], ..Bench::default() };
    assert_eq!(bench.job("direct=0\ndepth=8").engine.actual, "pool");
}

#[test]
fn settings_of_cufile_need_a_path_of_cufiles() {
    let set = "cufile.properties.allow_compat_mode=true\n";
    assert_eq!(said(&format!("[a]\n{set}path=host\n[b]\npath=gds\n")), "planned");
    let none = said(&format!("[a]\n{set}path=host\n"));
    assert!(
        none.contains("cufile.properties.allow_compat_mode (f:2:1): it has no effect"),
        "{none}"
    );
    // Nothing proves that cuFile has a direct way, so `auto` takes another.
    assert!(said(&format!("[a]\n{set}path=auto\n")).contains("no job takes one"));
    let bench = Bench { cufile: Some("no libcufile"), ..Bench::default() };
    let all = bench.refusal(&parsed(&format!("[a]\n{set}path=all\n")));
    assert!(matches!(&all, PlanError::Unavailable { .. }), "{all:?}");
    assert!(all.to_string().contains("no libcufile"), "{all}");
}

/// The same on all paths, it would be refused; dropped in silence, the paths are compared at what
/// nobody sees to be different depths.
#[test]
fn a_depth_without_effect_on_some_of_several_paths_is_noted_there() {
    let load = "engine=psync\ndepth=8\ngpu=0\nrw=randread\nsize=1g\n";
    let plan = Bench::default().plan(&parsed(&format!("[a]\npath=host,staged\n{load}"))).unwrap();
    let [host, staged] = &plan.jobs[..] else { panic!("{:?}", plan.jobs) };
    assert_eq!((host.depth, staged.depth), (1, 8));
    let noted = |job: &JobPlan| {
        job.notes
            .iter()
            .find(|note| note.starts_with("'depth' (f:4:1) has no effect here: "))
            .cloned()
    };
    let why = "engine psync has one I/O in flight for each thread";
    assert!(noted(host).is_some_and(|note| note.contains(why)), "{:?}", host.notes);
    assert_eq!(noted(staged), None);
}

/// A pause begins once all I/Os are back.
#[test]
fn a_depth_that_pauses_keep_from_being_reached_is_noted() {
    let noted = |more: &str| {
        let notes = job(&format!("ioengine=libaio\ndirect=1\nsize=1g\niodepth=16{more}")).notes;
        notes.into_iter().find(|note| note.starts_with("depth: thinktime"))
    };
    let note = noted("\nthinktime=1000").unwrap();
    assert!(note.contains("at most 1 in flight and not 16"), "{note}");
    assert!(noted("\nthinktime=1000\nthinktime_blocks=4").is_some());
    assert_eq!(noted("\nthinktime=1000\nthinktime_blocks=16"), None);
    assert_eq!(noted(""), None);
}

/// Points of a sweep.
#[test]
fn runs_are_checked_together_without_their_machine() {
    let none_uses = |jobs: &[JobSpec]| unused::none_uses(jobs, gpuio_io::CATALOG);
    let unused_here = |job: &JobSpec| unused::unused_here(job, gpuio_io::CATALOG);
    let of = |texts: &[&str]| -> Vec<JobSpec> {
        texts.iter().flat_map(|text| parsed(&format!("[a]\n{text}\n")).jobs).collect()
    };
    let mixed = of(&["rwmixread=70\nrw=read", "rwmixread=70\nrw=randrw"]);
    assert!(none_uses(&mixed).is_ok());
    let unused: Vec<&str> = unused_here(&mixed[0]).iter().map(|requested| requested.key).collect();
    assert_eq!(unused, ["rwmixread"]);
    assert_eq!(unused_here(&mixed[1]), []);
    let error = none_uses(&of(&["rwmixread=70\nrw=read", "rwmixread=70\nrw=write"])).unwrap_err();
    assert!(error.to_string().contains("rwmixread=70 (f:2:1): it has no effect"), "{error}");
    // Its machine decides which path that is.
    assert!(none_uses(&of(&["path=auto\ngather_batch=8"])).is_ok());
    // In its own process such a run notes what it does not use.
    let mut one = Spec { name: None, jobs: mixed[..1].to_vec() };
    one.jobs[0].one_of_many = true;
    let plan = Bench::default().plan(&one).unwrap();
    let noted = plan.jobs[0].notes.iter().any(|note| note.starts_with("'rwmixread'"));
    assert!(noted, "{:?}", plan.jobs[0].notes);
}

#[test]
fn jobs_wait_for_others_and_files_may_have_to_be_there() {
    let groups = |text: &str| -> Vec<u32> {
        Bench::default().jobs(text).iter().map(|job| job.group).collect()
    };
    let chain = "[w]\nrw=write\n[r]\nwait_for=w\n[x]\nwait_for=r\n[y]\nwait_for=w\n";
    assert_eq!(groups(chain), [0, 1, 2, 2]);
    let beside = said("[w]\n[other]\n[r]\nwait_for=w\n");
    assert!(beside.contains("job 'other' runs at the same time as 'w'"), "{beside}");
    assert!(said("[r]\nwait_for=w\n").contains("there is no job 'w' above it"));
    let absent = said("[a]\nfilename=/none\nsize=1m\nallow_file_create=0\n");
    assert!(absent.contains("/none does not exist, and is not to be made"), "{absent}");
    assert_eq!(said("[a]\nfilename=/have8g\nsize=1m\nallow_file_create=0\n"), "planned");
    let safe = |more: &str| said(&format!("[a]\nreadonly=1\nsize=1m\n{more}\n"));
    assert_eq!(safe("filename=/have8g\nrw=randread"), "planned");
    assert!(safe("filename=/have8g\nrw=randrw").contains("the job writes"));
    assert!(safe("filename=/none\nrw=read").contains("/none does not exist"));
    assert!(safe("filename=/have8g\nrw=read\nsize=9g").contains("use less"));
}

#[test]
fn shares_counts_and_files_of_threads() {
    let whole = job("filename=/have8g\nsize=25%\nrw=read");
    assert_eq!(whole.size_bytes, 2 << 30);
    let counted = job("rw=randread\nbs=4k\nsize=1g\nnumber_ios=10");
    assert_eq!((counted.stop.bytes_per_thread, counted.stop.runtime_ns), (Some(40 << 10), None));
    assert_eq!(counted.bytes_of, Some(BytesOf::NumberIos));
    let fio = "ioengine=libaio\nrw=randread\nbs=4k\nsize=4k\nnumber_ios=10";
    assert_eq!(job(fio).bytes_of, Some(BytesOf::Size), "a count beyond the size ends nothing");
    assert_eq!(job("rw=read\nruntime=9").bytes_of, None);
    let many = job("directory=/d\nthreads=2\nsize=8m\nnrfiles=4\nrw=read");
    let names: Vec<&str> = many.targets.iter().map(|target| target.path.as_str()).collect();
    assert_eq!((names[0], names[7], names.len()), ("/d/gpuio.0.0", "/d/gpuio.1.3", 8));
    assert!(many.targets.iter().all(|target| target.length_bytes == 2 << 20));
    assert_eq!(many.workers[1].regions.len(), 4);
    let apart = job("filename=/have8g\nshared=0\nthreads=3\nsize=1m\noffset_increment=2m\nrw=read");
    let at: Vec<u64> = apart.workers.iter().map(|worker| worker.regions[0].offset).collect();
    assert_eq!(at, [0, 2 << 20, 4 << 20]);
    let polled = job("ioengine=io_uring\nhipri\ndirect=1\nrw=read\nsize=1m");
    assert_eq!(polled.engine.actual, "io_uring-iopoll");
    let cufile = job("ioengine=libcufile\ngpu_dev_ids=0:1\ndirect=1\nrw=read\nsize=1m");
    assert_eq!((cufile.path.choice.actual.as_str(), cufile.gpus.len()), ("gds", 2));
}

/// fio's lists: reads, writes.
#[test]
fn a_list_has_a_value_for_each_direction() {
    let read = job("rw=read\nioengine=psync\nbs=64k,4k\nrate=8m,4m\nrate_iops=9,7\nsize=1g");
    let pacing = read.pacing.as_ref().unwrap();
    assert_eq!((read.blocks.clone(), pacing.bytes_per_s), (sizes(64 * KIB), Some(8 * MIB)));
    assert_eq!(pacing.iops, Some(9));
    let write = job("rw=write\nioengine=psync\nbs=64k,4k\nrate=8m,4m\nrate_iops=9,7\nsize=1g");
    let pacing = write.pacing.as_ref().unwrap();
    assert_eq!((write.blocks.clone(), pacing.bytes_per_s), (sizes(4 * KIB), Some(4 * MIB)));
    assert_eq!(pacing.iops, Some(7));
    // An entry that a list lacks is the default, as in fio.
    let split = "ioengine=psync\nbssplit=8k/90:16k/10,,\nsize=1g\nrw=";
    assert_eq!(job(&format!("{split}randread")).blocks.len(), 2);
    let writes = job(&format!("{split}randwrite"));
    assert_eq!(writes.blocks, sizes(4 * KIB));
    assert!(writes.notes[0].starts_with("'bssplit' (f:3:1) has no effect"), "{:?}", writes.notes);
    let alike = job("rw=randrw\nbs=8k,8k,8k\nrate=1m,1m\nsize=1g");
    assert_eq!(alike.blocks, sizes(8 * KIB));
    assert!(alike.write_blocks.is_empty() && alike.write_pacing.is_none());
    let mixed = |list: &str| job(&format!("rw=randrw\nsize=1g\n{list}"));
    let apart = mixed("bs=8k,16k");
    assert_eq!((apart.blocks, apart.write_blocks), (sizes(8 * KIB), sizes(16 * KIB)));
    let default = mixed("bs=8k,");
    assert_eq!((default.blocks, default.write_blocks), (sizes(8 * KIB), sizes(4 * KIB)));
    let rates = |plan: &JobPlan| {
        [plan.pacing, plan.write_pacing].map(|pacing| pacing.map(|it| (it.bytes_per_s, it.iops)))
    };
    let (none, both) = (Some((None, None)), Some((Some(4 * MIB), Some(7))));
    assert_eq!(rates(&mixed("rate=8m,4m\nrate_iops=9,7")), [Some((Some(8 * MIB), Some(9))), both]);
    assert_eq!(rates(&mixed("rate=8m,")), [Some((Some(8 * MIB), None)), none]);
    assert_eq!(rates(&mixed("rate_iops=,5")), [None, Some((None, Some(5)))]);
    let of_rates = |plan: &JobPlan| plan.notes.iter().any(|note| note.contains("make the mix"));
    assert!(of_rates(&mixed("rwmixread=30\nrate=2m,1m")));
    assert!(!of_rates(&mixed("rate=2m,1m")) && !of_rates(&mixed("rwmixread=30\nrate=2m,2m")));
    let none = said("[a]\nrw=read\nsize=1g\nrate=,4m\n");
    assert!(none.contains("rate=,4m (f:4:1): it has no effect here"), "{none}");
}

/// Keys about writes are refused where the load writes.
#[test]
fn refused_keys_about_writes_are_noted_where_nothing_is_written() {
    for key in ["buffer_pattern=0xff", "dedupe_percentage=50"] {
        let read = job(&format!("rw=randread\nsize=1g\n{key}"));
        assert!(read.notes[0].contains("the load writes nothing"), "{key}: {:?}", read.notes);
        for rw in ["write", "randrw"] {
            let refused = said(&format!("[a]\nrw={rw}\nsize=1g\n{key}\n"));
            assert!(refused.contains("is not supported by gpuio"), "{key}: {refused}");
            assert!(refused.contains("(f:4:1)"), "{key}: {refused}");
        }
    }
    let harmless = "[a]\nrw=write\nsize=1g\nzero_buffers=0\nnuma_mem_policy=local\n";
    assert_eq!(said(harmless), "planned");
}

/// Keys without effect in gdsio's own files and defaults are noted.
#[test]
fn gdsios_keys_in_gdsios_jobs_are_noted() {
    let seed = job("xfer_type=1\nrw=write\nsize=1g\nrandom_seed=7");
    assert!(seed.notes[0].starts_with("'random_seed' (f:5:1) has no effect"), "{:?}", seed.notes);
    let memory = job("xfer_type=1\nrw=write\nsize=1g\nmemory=device");
    assert_eq!(memory.memory, MemoryKind::Malloc);
    assert!(memory.notes[0].contains("-m 0"), "{:?}", memory.notes);
    assert!(said("[a]\nrw=write\nsize=1g\nmemory=device\npath=host\n").contains("host memory"));
}

#[test]
fn a_line_of_a_log_is_of_an_io_or_of_a_window() {
    let logs = |more: &str| {
        let text = format!("[a]\nruntime=5\nwrite_bw_log=x\n{more}");
        let plan = Bench::default().plan(&parsed(&text)).unwrap();
        let logs = plan.jobs[0].logs.as_ref().unwrap();
        (logs.line_ns, logs.offset, plan.interval_ns)
    };
    assert_eq!(logs(""), (None, false, 500_000_000));
    assert_eq!(logs("log_avg_msec=0\nlog_offset=1\n"), (None, true, 500_000_000), "as in fio");
    assert_eq!(logs("log_avg_msec=20\n"), (Some(20_000_000), false, 500_000_000));
}

/// fio's ways from one I/O to the next.
#[test]
fn an_io_follows_another_as_in_fio() {
    let follow = |lines: &str| job(&format!("ioengine=psync\nsize=1g\n{lines}")).follow;
    assert_eq!(follow("rw=read:8k"), Some(Follow::Gap { bytes: 8192 }));
    assert_eq!(follow("rw=write:-8k"), Some(Follow::Gap { bytes: -8192 }));
    assert_eq!(follow("rw=randwrite: 512"), Some(Follow::Run { ios: 512, same: false }));
    let same = "rw=randread:8\nrw_sequencer=identical";
    assert_eq!(follow(same), Some(Follow::Run { ios: 8, same: true }));
    let share = "rw=randrw\npercentage_random=100,0";
    assert_eq!(follow(share), Some(Follow::Share { reads: 100, writes: 0 }));
    assert_eq!(follow("rw=randread\npercentage_random=100"), None);
    assert_eq!(follow("rw=randread:1"), None);
    let both = said("[a]\nrw=randread:8\npercentage_random=50\nsize=1g\n");
    assert!(both.contains("exclude each other"), "{both}");
}

/// Files that fio would run by values that are elsewhere refused.
#[test]
fn values_of_fios_files() {
    let plan = job("ioengine=psync\nsize=1g\nrw=randread\nruntime=0\nrate_iops=3k");
    assert_eq!((plan.stop.runtime_ns, plan.pacing.unwrap().iops), (None, Some(3072)));
    let mapped = job("ioengine=mmap\ndirect=1\nrw=read\nsize=1g");
    assert_eq!(mapped.direct, DirectMode::Buffered);
    assert!(mapped.notes[0].contains("goes through the page cache"), "{:?}", mapped.notes);
    let pool = job("ioengine=posixaio\niodepth=8\nrw=read\nsize=1g");
    assert_eq!((pool.engine.actual.as_str(), pool.depth), ("pool", 8));
    assert!(pool.notes[0].contains("posixaio"), "{:?}", pool.notes);
    let sums = job("ioengine=psync\nverify=md5\nrw=write\nsize=1g");
    assert_eq!((sums.verify, sums.fio_headers), (VerifyMode::Pass, false));
    assert!(sums.notes[0].contains("every byte of its own pattern"), "{:?}", sums.notes);
    let files = job("ioengine=psync\nrw=write\nnrfiles=4\nfilesize=16k\nsize=1m\ndirectory=/d");
    assert_eq!(files.stop.bytes_per_thread, Some(64 << 10), "no longer than its files");
    let by_order = |rw: &str| job(&format!("rw={rw}\nbs=4k,64k\nbs_is_seq_rand=1\nsize=1g")).blocks;
    assert_eq!([by_order("read"), by_order("randrw")], [sizes(4 * KIB), sizes(64 * KIB)]);
    let buffered = said("[a]\nioengine=psync\nrw=read\nsize=1g\nlockmem=1g\n");
    assert!(buffered.contains("systemd-run"), "{buffered}");
    let direct = job("ioengine=psync\nrw=read\ndirect=1\nsize=1g\nlockmem=1g");
    assert!(direct.notes[0].contains("page cache"), "{:?}", direct.notes);
}

#[test]
fn a_limit_of_a_search_names_the_command_that_searches() {
    let found = said("[a]\nioengine=psync\nrw=read\nlatency_target=5000\nlatency_percentile=99\n");
    let wanted = "`gpuio sweep f` searches the highest one whose p99 stays within 5ms";
    assert!(found.contains(wanted) && !found.contains("belongs to"), "{found}");
    // A sweep takes a file of one job, so that command would be refused.
    let two = said("[a]\nrw=read\nsize=1m\nlatency_target=5ms\n[b]\nrw=read\nsize=1m\n");
    assert!(two.contains("of [a] whose p") && two.contains("gpuio sweep a.fio"), "{two}");
    // The way that runs all jobs is one that works.
    assert!(two.contains("--set latency_target=0"), "{two}");
    let job = "rw=read\nsize=1m\nlatency_target=";
    assert_eq!(Bench::default().jobs(&format!("[a]\n{job}0\n[b]\n{job}0\n")).len(), 2);
    let alone = said("[a]\nioengine=psync\nrw=read\nlatency_percentile=99\n");
    assert!(alone.contains("it belongs to latency_target"), "{alone}");
}

/// Names of files by fio's words; those without a thread's number are of all threads.
#[test]
fn names_of_files_follow_their_format() {
    let lines =
        "ioengine=psync\nrw=read\ndirectory=/d\nsize=8m\nthreads=2\nnrfiles=2\nfilename_format=";
    let names = |format: &str| -> Vec<String> {
        let plan = job(&format!("{lines}{format}"));
        plan.targets.iter().map(|target| target.path.clone()).collect()
    };
    let each = names("$jobname.$jobnum.$filenum");
    assert_eq!(each, ["/d/a.0.0", "/d/a.0.1", "/d/a.1.0", "/d/a.1.1"]);
    assert_eq!(names("data.$filenum"), ["/d/data.0", "/d/data.1"]);
    // Sections of fio's have files of their own, under any name that their plans get.
    let sections = "directory=/d\nioengine=psync\nrw=read\nsize=8m\n";
    let paths = |text: &str| -> Vec<String> {
        let jobs =
            Bench::default().jobs(&format!("[a]\n{sections}{text}\n[b c]\n{sections}{text}"));
        jobs.into_iter().flat_map(|job| job.targets).map(|target| target.path).collect()
    };
    assert_eq!(paths(""), ["/d/a.0.0", "/d/b c.0.0"]);
    assert_eq!(paths("path=host,staged"), ["/d/a.0.0", "/d/a.0.0", "/d/b c.0.0", "/d/b c.0.0"]);
    assert_eq!(paths("file_prefix=x"), ["/d/x.0", "/d/x.0"]);
    let ours = Bench::default().jobs("[a]\ndirectory=/d\n[b]\ndirectory=/d\n");
    assert!(ours.iter().all(|job| job.targets[0].path == "/d/gpuio.0"), "jobs of ours share them");
    let long = format!("[{}]\n{sections}", "n".repeat(300));
    let refused = Bench::default().refusal(&parsed(&long)).to_string();
    assert!(refused.contains("names of files would have 304 bytes"), "{refused}");
}
