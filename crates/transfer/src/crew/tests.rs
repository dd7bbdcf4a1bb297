use super::*;

fn crew(busy: u32) -> Crew {
    Crew::new(&Settings { busy_most: busy, workers_most: busy, ..Settings::default() })
}

#[test]
fn pieces_are_short_for_a_lone_call_and_long_among_many() {
    let crew = crew(10);
    let most = 1 << 20;
    assert_eq!(crew.chunk(4 << 20, most), 128 << 10);
    assert_eq!(crew.chunk(64 << 10, most), 128 << 10);
    assert_eq!(crew.chunk(1 << 40, most), most);
    assert_eq!(crew.chunk(4 << 20, 64 << 10), 64 << 10);
    crew.calls.store(15, Ordering::Relaxed);
    assert_eq!(crew.chunk(4 << 20, most), most);
    // In parts all the same.
    assert_eq!(crew.chunk(1 << 20, most), 256 << 10);
}

#[test]
fn there_are_so_many_turns_and_no_more() {
    let crew = crew(2);
    let (first, second) = (crew.enter(), crew.enter());
    assert!(first.is_some() && second.is_some() && crew.enter().is_none());
    first.unwrap().end();
    let third = crew.enter();
    assert!(third.is_some() && crew.enter().is_none());
    drop((second, third));
    assert_eq!(crew.busy.load(Ordering::Relaxed), 0);
}
