use super::super::order::Way;
use super::super::tests::Program;
use super::*;

#[test]
fn what_a_thread_opens_before_it_is_counted_is_in_the_line() {
    let program = Program::new(10_000);
    let (order, _) = program.order(&program.user(), (Way::Host, 0));
    let threads = order.threads();
    threads.watch.add(&order);
    order.area.reached().store(order.area.value(1), Ordering::Release);
    // The test is the thread, which whoever starts it is about to count.
    threads.looking.fetch_add(1, Ordering::SeqCst);
    threads.open_reached();
    assert_eq!(threads.started.load(Ordering::Acquire), 0);
    assert!(threads.first().is_some_and(|first| Arc::ptr_eq(&first, &order)));
}
