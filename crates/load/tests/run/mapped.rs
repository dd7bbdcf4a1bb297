//! Runs in which the GPU reads the page cache by itself.

use gpuio_record::{EndedHow, JobResult, MappedResult, Route, Source, WarningKind};
use gpuio_testkit::child;

use crate::lab::Lab;

/// Copies that run late: what was not waited for is wrong.
const LATE: (&str, &str) = ("GPUIO_SOFT_DELAY_US", "200");

fn mapped(job: &JobResult) -> &MappedResult {
    job.mapped.as_ref().expect("the path maps")
}

#[test]
fn what_is_mapped_is_verified_counted_and_named() {
    child::alone(&[LATE], || {
        let lab = Lab::with_gpu();
        for (bs, rw, by_kernel) in
            [("4k", "randread", true), ("60000", "read", true), ("1m", "read", false)]
        {
            let job = lab.job(&format!(
                "path=mapped\nrw={rw}\nbs={bs}\nsize=6m\nthreads=2\nloops=2\nverify=pass"
            ));
            assert_eq!((job.ended, job.failed), (EndedHow::Complete, 0), "{bs}");
            let verify = job.verify.as_ref().unwrap();
            assert!(verify.is_fine() && verify.pass_bytes > 0, "{bs}: {verify:?}");
            let proof = job.proof.as_ref().unwrap();
            assert_eq!(proof.verdict.words, "from page cache, no host copy", "{proof:#?}");
            assert_eq!(
                (proof.verdict.route, proof.verdict.source),
                (Route::Mapped, Source::PageCache)
            );
            assert!(proof.as_requested, "{proof:#?}");
            let mapped = mapped(&job);
            assert_eq!(
                (mapped.files, mapped.mapped_bytes, mapped.pinned_bytes),
                (2, 12 << 20, 12 << 20)
            );
            assert!(mapped.map_ns > 0 && mapped.register_ns > 0 && mapped.unregister_ns > Some(0));
            assert_eq!(mapped.unregister_failed, None);
            assert!(mapped.break_even_unknown.is_some(), "there is no other job");
            let moved = (mapped.by_kernel_bytes, mapped.by_copy_bytes);
            assert_eq!(moved.0 + moved.1, job.read.bytes, "{bs}");
            assert_eq!(job.file_leg.read_bytes, job.read.bytes);
            assert!(if by_kernel { moved.0 > moved.1 } else { moved.0 == 0 }, "{bs}: {moved:?}");
            let latency = job.read.latency.as_ref().unwrap();
            assert_eq!(latency.file, None, "there is no file leg");
            assert_eq!(latency.gpu, Some(latency.total.clone()), "it is the whole");
        }
    });
}

#[test]
fn what_the_gpu_writes_in_place_is_verified_counted_and_named() {
    child::alone(&[LATE], || {
        let lab = Lab::with_gpu();
        for (bs, rw) in [("4k", "randwrite"), ("1m", "write"), ("60000", "randrw")] {
            let job = lab.job(&format!(
                "path=mapped\nrw={rw}\nbs={bs}\nsize=6m\nthreads=2\nloops=2\nverify=pass"
            ));
            assert_eq!((job.ended, job.failed), (EndedHow::Complete, 0), "{bs}");
            assert!(job.verify.as_ref().unwrap().is_fine(), "{bs}: {:?}", job.verify);
            let proof = job.proof.as_ref().unwrap();
            let toward = if rw == "randrw" { "" } else { "to " };
            assert_eq!(
                proof.verdict.words,
                format!("{toward}page cache, no host copy"),
                "{proof:#?}"
            );
            assert!(proof.as_requested, "{proof:#?}");
            let mapped = mapped(&job);
            let by = (mapped.written_by_kernel_bytes, mapped.written_by_copy_bytes);
            assert_eq!(by.0 + by.1, job.write.bytes, "{bs}");
            assert_eq!(mapped.by_kernel_bytes + mapped.by_copy_bytes, job.read.bytes, "{bs}");
            assert_eq!((mapped.mapped_bytes, mapped.lost_bytes), (12 << 20, Some(0)), "{bs}");
        }
    });
}

/// Shorter, then as long as before: nothing but the pages shows it.
#[test]
fn what_a_file_lost_fails_its_job() {
    let lab = Lab::with_gpu();
    let file = lab.file("lost").display().to_string();
    let shortened = file.clone();
    lab.diary.when_verifying(move || {
        let file = std::fs::File::options().write(true).open(&shortened).unwrap();
        file.set_len(1 << 20).unwrap();
        file.set_len(4 << 20).unwrap();
    });
    let ran = lab.run(&format!(
        "[a]\npath=mapped\nfilename={file}\nrw=write\nbs=64k\nsize=4m\nloops=1\nverify=pass\n"
    ));
    let job = &ran.jobs[0];
    assert_eq!((job.ended, mapped(job).lost_bytes), (EndedHow::Failed, Some(3 << 20)));
    assert!(!job.verify.as_ref().unwrap().is_fine(), "{:?}", job.verify);
    let proof = job.proof.as_ref().unwrap();
    assert_eq!((proof.verdict.route, proof.as_requested), (Route::Unknown, false));
    let lost = WarningKind::WrittenPagesLost { lost_bytes: 3 << 20, mapped_bytes: 4 << 20 };
    assert!(ran.warnings.iter().any(|warning| warning.kind == lost), "{:?}", ran.warnings);
}

/// As the kernel has it on ext4: the first page says so, and nothing is written.
#[test]
fn pages_that_no_device_may_write_are_refused_with_what_to_do() {
    child::alone(&[("GPUIO_SOFT_FAIL", "cuMemHostRegister_v2:1")], || {
        let lab = Lab::with_gpu();
        let text = "[a]\ndirectory=${DIR}\npath=mapped\nrw=write\nbs=64k\nsize=1m\nloops=1\n";
        let why = lab.carry_out(&mut lab.plan(text)).unwrap_err().to_string();
        for word in ["gpuio.0", "cuMemHostRegister", "tmpfs (/dev/shm)", "--path cached"] {
            assert!(why.contains(word), "{word}: {why}");
        }
        assert!(!why.contains('\n'), "{why}");
    });
}

#[test]
fn threads_that_share_a_file_share_its_mapping() {
    let lab = Lab::with_gpu();
    let file = lab.file("shared").display().to_string();
    let make =
        format!("[a]\nfilename={file}\nrw=write\nsize=1m\nthreads=3\nbs=64k\nloops=1\nverify\n");
    assert!(lab.run(&make).jobs[0].verify.as_ref().unwrap().is_fine());
    let ran = lab.run(&format!(
        "[a]\npath=mapped\nfilename={file}\nsize=1m\nthreads=3\nbs=4k\nrw=randread\nloops=1\n\
         verify=pass\n"
    ));
    let job = &ran.jobs[0];
    let mapped = mapped(job);
    assert_eq!((mapped.files, mapped.mapped_bytes), (1, 3 << 20));
    assert!(job.verify.as_ref().unwrap().is_fine());
    let warned = |wanted: fn(&WarningKind) -> bool| ran.warnings.iter().any(|w| wanted(&w.kind));
    assert!(warned(|kind| matches!(kind, WarningKind::MappedMemory { .. })));
    assert!(!warned(|kind| matches!(kind, WarningKind::PageCacheServedReads { .. })));
    assert!(!warned(|kind| matches!(kind, WarningKind::DataSetFitsMemory { .. })));
}

/// With a rate the wait before the start is a part of its own.
#[test]
fn a_rate_leaves_queue_and_gpu() {
    let job = Lab::with_gpu()
        .job("path=mapped\nbs=4k\nsize=1m\nrw=randread\nrate_iops=2000\nruntime=200ms");
    let latency = job.read.latency.unwrap();
    assert!(latency.queue.is_some() && latency.gpu.is_some());
    assert_eq!(latency.file, None);
}

#[test]
fn what_registering_costs_is_held_against_another_path() {
    let text = "[a]\ndirectory=${DIR}\npath=mapped,cached\nbs=64k\nrw=randread\nsize=4m\nloops=20\n\
                pre_read=1\n";
    let ran = Lab::with_gpu().run(text);
    let mapped = mapped(&ran.jobs[0]);
    assert_eq!(mapped.resident_before, Some(1.0));
    let even = mapped.break_even.as_ref().unwrap_or_else(|| panic!("{mapped:?}"));
    assert_eq!(even.against, "a-cached");
    assert_eq!((&mapped.break_even_unknown, &ran.jobs[1].mapped), (&None, &None));
}

#[test]
fn what_the_driver_refuses_ends_the_run_with_file_and_call() {
    child::alone(&[("GPUIO_SOFT_FAIL", "cuMemHostRegister_v2:2")], || {
        let lab = Lab::with_gpu();
        let text = |path: &str| {
            format!("[a]\ndirectory=${{DIR}}\npath={path}\nbs=64k\nsize=1m\nloops=1\nceilings=0\n")
        };
        let mut plan = lab.plan(&text("mapped"));
        let why = lab.carry_out(&mut plan).unwrap_err().to_string();
        for word in ["job 'a'", "path mapped", "gpuio.0", "cuMemHostRegister", "OUT_OF_MEMORY"] {
            assert!(why.contains(word), "{word}: {why}");
        }
        // Paths that were not named go without it.
        let mut plan = lab.plan(&text("all"));
        let ran = lab.carry_out(&mut plan).unwrap();
        assert_eq!(ran.error, None);
        let out = plan.left_out.iter().find(|out| out.path == "mapped").unwrap();
        assert!(out.why.contains("cuMemHostRegister"), "{}", out.why);
        assert!(ran.jobs.iter().all(|job| job.mapped.is_none()) && ran.jobs.len() > 4);
    });
}

#[test]
fn what_can_not_be_unregistered_is_said() {
    child::alone(&[("GPUIO_SOFT_FAIL", "cuMemHostUnregister:1")], || {
        let job = Lab::with_gpu().job("path=mapped\nbs=64k\nsize=1m\nloops=1");
        let mapped = mapped(&job);
        assert_eq!(mapped.unregister_ns, None);
        let why = mapped.unregister_failed.as_ref().unwrap();
        assert!(why.contains("cuMemHostUnregister"), "{why}");
        assert_eq!(job.ended, EndedHow::Complete);
    });
}

/// Raises the flag when the files have been read in, before they are mapped.
struct StopsBefore(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl gpuio_load::run::RunObserver for StopsBefore {
    fn making(&self, _: u64, _: u64) {}
    fn reading(&self, done: u64, of: u64) {
        if done == of {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
    fn started(&self, _: &[gpuio_record::JobPlan]) {
        panic!("it was stopped before");
    }
    fn tick(&self, _: &gpuio_load::run::Tick) {}
    fn verifying(&self, _: &[gpuio_record::JobPlan]) {}
    fn job_done(&self, _: &gpuio_record::JobPlan, _: &JobResult) {}
    fn group_done(&self, _: &gpuio_record::Plan, _: &gpuio_load::run::Ran) {}
}

#[test]
fn an_interrupt_before_the_files_are_mapped_ends_the_run() {
    let lab = Lab::with_gpu();
    let text = "[a]\ndirectory=${DIR}\npath=mapped\nbs=64k\nsize=1m\nloops=1\npre_read\n";
    let watch = StopsBefore(std::sync::Arc::clone(&lab.diary.flag));
    let mut plan = lab.plan(text);
    let why = lab.carry_out_reported(&mut plan, &watch).unwrap_err().to_string();
    assert!(why.contains("gpuio.0: stopped while it was being read into the page cache"), "{why}");
}
