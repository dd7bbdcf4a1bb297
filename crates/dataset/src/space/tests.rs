use std::os::unix::fs::FileExt as _;

use super::*;
use gpuio_testkit::jobs::job;

const MIB: u64 = 1 << 20;

/// A job on the file `name` of this directory.
fn on(dir: &Path, name: &str, lines: &str) -> JobPlan {
    let path = dir.join(name);
    job(&format!("filename={}\nbs=64k\n{lines}", path.display()))
}

fn refused(jobs: &[JobPlan], free: u64) -> Option<(u64, u64)> {
    match check_plan_with(jobs, |_| Some(free)) {
        Ok(()) => None,
        Err(MakeError::NoSpace { needed, free, .. }) => Some((needed, free)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn writes_need_their_whole_length_and_all_jobs_together() {
    let dir = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let dir = dir.path();
    let write = |name| on(dir, name, "rw=write\nsize=4m\nruntime=1h");
    assert_eq!(refused(&[write("a")], 4 * MIB), None, "an hour in 4 MiB needs 4 MiB");
    assert_eq!(refused(&[write("a")], 4 * MIB - 1), Some((4 * MIB, 4 * MIB - 1)));
    let longer = on(dir, "b", "rw=randwrite\nsize=5m");
    let jobs = [write("a"), write("a"), longer];
    assert_eq!(refused(&jobs, 9 * MIB), None, "two jobs share a file");
    assert_eq!(refused(&jobs, 9 * MIB - 1), Some((9 * MIB, 9 * MIB - 1)));
    // Bytes that are allocated are there already; a hole is not.
    let file = fs::File::create(dir.join("a")).unwrap();
    file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    file.set_len(4 * MIB).unwrap();
    file.sync_all().unwrap();
    let there = file.metadata().unwrap().blocks() * 512;
    assert!(there >= MIB, "{there}");
    assert_eq!(refused(&[write("a")], 0), Some((4 * MIB - there.min(4 * MIB), 0)));
    // A read of a file that is there needs nothing.
    let mut read = on(dir, "a", "rw=read\nsize=4m");
    read.targets[0].guard = GuardNote::ForeignReadOnly;
    assert_eq!(refused(&[read.clone()], 0), None);
    read.targets[0].guard = GuardNote::Remake;
    assert!(refused(&[read], 0).is_some(), "one that is made anew does");
}

#[test]
fn where_nothing_is_known_of_room_nothing_is_refused() {
    let job = on(Path::new("/nowhere/at/all"), "a", "rw=write\nsize=4m");
    assert!(check_plan_with(std::slice::from_ref(&job), |_| None).is_ok());
    let device = job_on_a_device(&job);
    assert_eq!(refused(&[device], 0), None, "a device has its size");
}

fn job_on_a_device(job: &JobPlan) -> JobPlan {
    let mut job = job.clone();
    for target in &mut job.targets {
        target.kind = TargetKind::BlockDevice;
    }
    job
}
