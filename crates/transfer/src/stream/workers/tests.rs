use super::super::op::Method;
use super::super::tests::Program;
use super::*;

#[test]
fn without_workers_the_poller_does_the_work_itself() {
    let program = Program::new(10_000);
    let mut memory = vec![0_u8; 10_000];
    let base = memory.as_mut_ptr().expose_provenance() as u64;
    let (stream_op, completion) = program.stream_op(&program.user(), (Method::Host, base));
    let workers = stream_op.workers();
    assert!(workers.pending.add(&stream_op));
    assert!(!workers.start_reached(), "the stream has not reached it");
    stream_op.buffer.reached().store(stream_op.buffer.value(1), Ordering::Release);
    // A thread that is about to be counted: no other is started, and none is running.
    workers.idle.start_spinning();
    assert!(workers.start_reached());
    assert_eq!(workers.started.load(Ordering::Acquire), 0);
    assert_eq!(completion.try_recv().unwrap().1.unwrap().bytes, 10_000);
    assert!(workers.pending.is_empty());
}
