//! A load that can't keep its rate: what it did, and what it never came to.

use gpuio_record::WarningKind;

use crate::lab::{Lab, MS};

#[test]
fn what_was_due_and_never_started_is_counted() {
    let lab = Lab::new();
    let ran = lab.run(
        "[a]\ndirectory=${DIR}\nengine=psync\ndirect=0\nbs=4k\nsize=1m\nrate_iops=2000\n\
         inject=iops=500\nruntime=1\ndepth=1\n",
    );
    let job = &ran.jobs[0];
    let never = job.never_started.unwrap();
    // 2000 are due within the second, no more and no fewer; the device gives 500 of them.
    assert_eq!(job.read.ios + never.ios, 2000);
    assert!(job.read.ios <= 510, "{}", job.read.ios);
    // The first that was not started was due after as many half milliseconds.
    assert_eq!(never.longest_wait_ns, 1000 * MS - job.read.ios * MS / 2);
    let said = ran.warnings.iter().find_map(|warning| match &warning.kind {
        WarningKind::NeverStarted { ios, completed, longest_wait_ns, .. } => {
            Some((*ios, *completed, *longest_wait_ns))
        }
        _ => None,
    });
    assert_eq!(said, Some((never.ios, job.read.ios, never.longest_wait_ns)));
}

#[test]
fn bytes_that_were_requested_bound_what_is_due() {
    let lab = Lab::new();
    // 100 blocks in all, of which the device gives 50 in its time; nothing else was ever due.
    let job = lab.job(
        "engine=psync\ndirect=0\nbs=4k\nsize=1m\nio_size=400k\nruntime=500ms\nrate_iops=1000\n\
         inject=iops=100\ndepth=1",
    );
    assert_eq!(job.read.ios + job.never_started.unwrap().ios, 100);
    assert!(job.never_started.unwrap().ios >= 40, "{job:?}");
    // Without a rate nothing is due.
    let free = lab.job("engine=null\nbs=4k\nsize=1m\nio_size=400k");
    assert_eq!(free.never_started, None);
}
