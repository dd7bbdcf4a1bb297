use super::super::order::Way;
use super::super::tests::Program;
use super::*;

#[test]
fn what_the_sentry_finds_while_there_is_no_other_thread_it_does_itself() {
    let program = Program::new(10_000);
    let mut memory = vec![0_u8; 10_000];
    let base = memory.as_mut_ptr().expose_provenance() as u64;
    let (order, told) = program.order(&program.user(), (Way::Host, base));
    let threads = order.threads();
    assert!(threads.watch.add(&order));
    assert!(!threads.open_reached(), "the stream has not come to it");
    order.area.reached().store(order.area.value(1), Ordering::Release);
    // A thread that is about to be counted: nobody starts another, and nobody is there.
    threads.looking.fetch_add(1, Ordering::SeqCst);
    assert!(threads.open_reached());
    assert_eq!(threads.started.load(Ordering::Acquire), 0);
    assert_eq!(told.try_recv().unwrap().1.unwrap().bytes, 10_000);
    assert!(threads.watch.is_empty());
}
