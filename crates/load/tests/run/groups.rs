//! Who starts when.

use crate::lab::{Lab, MS};

#[test]
fn jobs_of_a_group_start_together_and_groups_one_after_another() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nruntime=100ms\ndirectory=${DIR}\nverify=pass\n\
         [a]\nfile_prefix=a\nverify=off\n[b]\nfile_prefix=b\nverify=off\n[c]\nstonewall\n\
         file_prefix=c\nverify=off\n",
    );
    let lines = lab.diary.lines.lock().unwrap().clone();
    assert_eq!(
        lines,
        ["started a b", "done a", "done b", "kept a b", "started c", "done c", "kept c"]
    );
    let groups: Vec<u32> = ran.jobs.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1]);
    assert_eq!(ran.totals.iter().map(|total| total.group).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn every_job_and_worker_begins_at_the_common_start() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nrate_iops=10\nio_size=4k\n\
         directory=${DIR}\n\
         [a]\nthreads=4\nfile_prefix=a\n[b]\nthreads=4\nfile_prefix=b\n",
    );
    let [a, b] = &ran.jobs[..] else { panic!("{ran:?}") };
    assert_eq!(a.measured.unwrap().begin_ns, b.measured.unwrap().begin_ns);
    for job in [a, b] {
        assert_eq!(job.read.ios, 4);
        // Each does one I/O, a quarter of the gap after the one before: never sooner.
        for worker in &job.workers {
            assert!(worker.done_ns >= u64::from(worker.thread) * 25 * MS, "{worker:?}");
        }
    }
}

#[test]
fn each_job_of_a_group_is_reported_its_own_engine() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nsize=1m\nbs=4k\ndirect=0\nio_size=64k\nthreads=3\ndirectory=${DIR}\n\
         [a]\nengine=pool\nfile_prefix=a\n[b]\nengine=psync\nfile_prefix=b\n\
         [c]\nengine=null\nfile_prefix=c\n",
    );
    for (job, name) in ran.jobs.iter().zip(["pool", "psync", "null"]) {
        let [engine] = &job.engine[..] else { panic!("{:?}", job.engine) };
        assert!(engine.actual.starts_with(name), "{}: {engine:?}", job.name);
        assert_eq!(engine.workers, 3);
    }
}
