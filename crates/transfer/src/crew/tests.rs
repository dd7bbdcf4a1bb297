use super::*;

fn crew(busy: u32) -> Crew {
    Crew::new(&Settings { busy_most: busy, workers_most: busy, crowd: busy, ..Settings::default() })
}

#[test]
fn pieces_are_short_for_a_lone_call_and_long_among_many() {
    let crew = crew(10);
    let most = 1 << 20;
    let piece = |len, most| crew.share(len, Pace::Copies, End::Host, true, most);
    assert_eq!(piece(4 << 20, most), (By::All, 128 << 10));
    assert_eq!(piece(64 << 10, most), (By::All, 128 << 10));
    assert_eq!(piece(1 << 40, most), (By::All, most));
    assert_eq!(piece(4 << 20, 64 << 10), (By::All, 64 << 10));
    crew.calls.store(15, Ordering::Relaxed);
    assert_eq!(piece(4 << 20, most), (By::All, most));
    // In parts all the same.
    assert_eq!(piece(1 << 20, most), (By::All, 256 << 10));
}

#[test]
fn reads_to_a_gpu_are_left_to_threads_of_ours_where_calls_are_many() {
    let crew = crew(10);
    let most = 1 << 20;
    let by = |pace, end| crew.share(4 << 20, pace, end, true, most).0;
    crew.calls.store(crew.crowd - 1, Ordering::Relaxed);
    assert_eq!(by(Pace::Copies, End::Kernel), By::All);
    crew.calls.store(crew.crowd, Ordering::Relaxed);
    assert_eq!(crew.share(4 << 20, Pace::Copies, End::Kernel, true, most), (By::Us, 512 << 10));
    assert_eq!(by(Pace::Copies, End::Host), By::All);
    assert_eq!(by(Pace::Waits, End::Kernel), By::All);
    assert_eq!(by(Pace::Alone, End::Kernel), By::Caller);
}

#[test]
fn copy_engines_get_long_pieces_where_calls_are_several() {
    let crew = crew(10);
    let most = 1 << 20;
    let share = |pace| crew.share(1 << 20, pace, End::Engines, true, most);
    crew.calls.store(2, Ordering::Relaxed);
    assert_eq!(share(Pace::Copies), (By::All, 128 << 10));
    for calls in [3, 15] {
        crew.calls.store(calls, Ordering::Relaxed);
        assert_eq!(share(Pace::Copies), (By::All, 512 << 10));
        assert_eq!(share(Pace::Waits).0, By::All);
    }
}

#[test]
fn pieces_that_wait_for_a_device_are_long_and_those_of_a_lone_write_short() {
    let crew = crew(10);
    let most = 1 << 20;
    assert_eq!(crew.share(1 << 20, Pace::Waits, End::Kernel, true, most), (By::All, 256 << 10));
    assert_eq!(crew.share(1 << 20, Pace::Alone, End::Kernel, true, most), (By::Caller, 256 << 10));
    crew.calls.store(15, Ordering::Relaxed);
    assert_eq!(crew.share(1 << 20, Pace::Waits, End::Kernel, true, most), (By::All, most));
    assert_eq!(crew.share(1 << 20, Pace::Alone, End::Kernel, true, most), (By::Caller, most));
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
