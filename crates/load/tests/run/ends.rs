//! Ends that were not planned.

use std::time::Instant;

use gpuio_load::run::RunError;
use gpuio_record::EndedHow;
use gpuio_testkit::child;

use crate::lab::{Lab, Stop};

#[test]
fn an_interrupt_leaves_partial_results() {
    for lines in ["engine=null", "engine=psync\ninject=delay=1ms", "engine=null\nrate_iops=1"] {
        let lab = Lab::stopping(Stop::Started { after_ms: 200 });
        let began = Instant::now();
        let ran =
            lab.run(&format!("[a]\ndirectory=${{DIR}}\nsize=1m\nbs=4k\nruntime=600\n{lines}\n"));
        assert!(began.elapsed().as_secs() < 300, "{lines}");
        assert_eq!((ran.ended, ran.jobs[0].ended), (EndedHow::Interrupted, EndedHow::Interrupted));
        assert!(ran.jobs[0].read.ios > 0, "{lines}");
    }
}

#[test]
fn an_interrupt_ends_a_start_delay() {
    let lab = Lab::stopping(Stop::Started { after_ms: 100 });
    let began = Instant::now();
    let ran = lab.run("[a]\ndirectory=${DIR}\nsize=1m\nbs=4k\nstart_delay=600\nengine=null\n");
    assert!(began.elapsed().as_secs() < 300);
    assert_eq!(ran.ended, EndedHow::Interrupted);
    assert_eq!(ran.jobs[0].read.ios, 0);
    assert_eq!(ran.jobs[0].last_done_ns, 0);
}

#[test]
fn storage_that_only_fails_is_given_up() {
    let job = Lab::new().job("size=1m\nbs=4k\nruntime=600\nengine=psync\ninject=eio=100%");
    assert_eq!(job.ended, EndedHow::Failed);
    assert_eq!((job.read.ios, job.failed, job.read.failed), (0, 1000, 1000));
    assert_eq!(job.read.latency, None);
    let [failure] = &job.failures[..] else { panic!("{:?}", job.failures) };
    assert_eq!((failure.times, failure.op.as_str(), failure.leg.as_str()), (1000, "read", "file"));
    assert_eq!((failure.offset, failure.length), (0, 4096));
    assert!(failure.what.contains("gpuio injects such errors into this job"), "{failure:?}");
}

#[test]
fn failed_i_os_are_counted_apart() {
    let job =
        Lab::new().job("size=1m\nbs=4k\nio_size=1m\nengine=psync\ninject=eio=25%,seed=3\nrw=write");
    assert_eq!(job.ended, EndedHow::Complete);
    assert_eq!(job.write.ios + job.failed, 256);
    assert!((30..100).contains(&job.failed), "{}", job.failed);
    assert_eq!(job.write.latency.as_ref().unwrap().total.count, job.write.ios);
    assert_eq!(job.file_leg.faults, job.failed);
    assert_eq!(job.write.bytes, job.write.ios * 4096);
}

#[test]
fn a_target_that_has_gone_is_refused_before_anything_starts() {
    let lab = Lab::new();
    std::fs::write(lab.file("f"), vec![7; 1 << 20]).unwrap();
    let mut plan = lab.plan("[a]\nfilename=${DIR}/f\nbs=4k\nio_size=64k\n");
    std::fs::remove_file(lab.file("f")).unwrap();
    let error = lab.carry_out(&mut plan).unwrap_err();
    assert!(matches!(error, RunError::DataSet(_)), "{error:?}");
    assert!(error.to_string().contains(&lab.file("f").display().to_string()), "{error}");
    assert!(lab.diary.lines.lock().unwrap().is_empty(), "nothing started");
}

#[test]
fn one_worker_that_can_not_open_ends_all_workers() {
    // Each worker's slots take 8 MiB of GPU memory: not all four fit.
    child::alone(&[("GPUIO_SOFT_MEM", "25165824")], || {
        let lab = Lab::with_gpu();
        let lines = "directory=${DIR}\npath=staged\ngpu=software\nbs=1m\ndepth=8\nsize=8m\n\
                     engine=psync\ndirect=0\nio_size=8m";
        let job = lab.job(&format!("{lines}\nthreads=2"));
        assert_eq!(job.ended, EndedHow::Complete, "two fit");
        let mut plan = lab.plan(&format!("[a]\n{lines}\nthreads=4\n"));
        let error = lab.carry_out(&mut plan).unwrap_err();
        assert!(matches!(&error, RunError::Path { job, .. } if job == "a"), "{error:?}");
        assert!(error.to_string().contains("memory"), "{error}");
    });
}

#[test]
fn too_few_descriptors_end_all_workers() {
    // Alone: it lowers the process's limit.
    child::alone(&[], || {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let lab = Lab::new();
        let mut plan = lab.plan(
            "[a]\ndirectory=${DIR}\nsize=64k\nbs=4k\nthreads=40\nengine=null\nruntime=100ms\n",
        );
        // Enough to make the files one by one, too few for 40 workers.
        setrlimit(Resource::Nofile, Rlimit { current: Some(30), maximum: Some(30) }).unwrap();
        let error = lab.carry_out(&mut plan).unwrap_err();
        let RunError::Open { path, .. } = &error else { panic!("{error:?}") };
        assert!(path.contains("gpuio."), "{path}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    });
}

#[test]
fn a_worker_that_panics_ends_the_group_and_not_the_program() {
    let lab = Lab::new();
    let mut plan =
        lab.plan("[a]\ndirectory=${DIR}\nsize=64k\nbs=4k\nthreads=4\nengine=null\nruntime=600\n");
    // No plan of ours has such a region; what else would panic is a bug that we do not know.
    plan.jobs[0].workers[2].regions[0].target = 99;
    let began = Instant::now();
    let error = lab.carry_out(&mut plan).unwrap_err();
    assert!(matches!(&error, RunError::Panic { job, .. } if job == "a"), "{error:?}");
    assert!(error.to_string().contains("99"), "the panic's own words: {error}");
    assert!(began.elapsed().as_secs() < 300);
}

#[test]
fn an_error_of_a_later_group_keeps_the_results_before_it() {
    let lab = Lab::new();
    let mut plan = lab.plan(
        "[global]\ndirectory=${DIR}\nsize=64k\nbs=4k\nengine=null\nruntime=50ms\n[a]\n[b]\n\
         stonewall\nthreads=2\n[c]\nstonewall\n",
    );
    plan.jobs[1].workers[1].regions[0].target = 99;
    let ran = lab.carry_out(&mut plan).unwrap();
    assert_eq!(ran.ended, EndedHow::Failed);
    assert_eq!(ran.jobs.len(), 1);
    assert!(ran.jobs[0].read.ios > 0);
    assert!(ran.error.is_some_and(|error| error.contains("job 'b'")));
}
