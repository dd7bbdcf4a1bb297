use gpuio_gpu::{Driver, Which};

use super::*;

fn context() -> Context {
    let driver = Driver::load(&Which::Software).unwrap();
    Context::new(&driver, 0).unwrap()
}

/// First and last byte, as numbers.
fn span<T>(start: *const T, bytes: u64) -> (u64, u64) {
    (start.addr() as u64, start.addr() as u64 + bytes)
}

#[test]
fn parts_and_lists_lie_apart_in_the_area() {
    let (context, areas) = (context(), Areas::new(64 << 20, 1 << 20));
    let mut taken = Vec::new();
    for most in [0, 1, 64 << 10, 100_000, 1 << 20, 4 << 20, 5 << 20, 1 << 40] {
        let area = areas.take(&context, Some(most)).unwrap();
        let part_len = area.part_len(most);
        assert!(part_len >= most || part_len * 2 == area.room as u64);
        let parts = if part_len >= most { 1 } else { 2 };
        let mut spans = vec![span(area.start, 384)];
        for part in 0..parts {
            let (list, list_seen) = area.list(part, part_len);
            let (bytes, bytes_seen) = area.part(part, part_len);
            assert!(bytes.addr().is_multiple_of(PAGE) && list.addr().is_multiple_of(32));
            assert_eq!(bytes_seen.0 - area.seen.0, (bytes.addr() - area.start.addr()) as u64);
            assert_eq!(list_seen.0 - area.seen.0, (list.addr() - area.start.addr()) as u64);
            // The most entries, and a page more on either side of the bytes.
            let entries = most_pieces(part_len, PIECE_LEAST) * size_of::<Piece>() as u64;
            spans.extend([span(list, entries), span(bytes, part_len + 2 * PAGE as u64)]);
        }
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{most} bytes: {spans:?}");
        let end = span(area.start, Area::size(area.room) as u64).1;
        assert!(spans.iter().all(|span| span.1 <= end), "{most} bytes end at {end}: {spans:?}");
        taken.push((area.start.addr(), Area::size(area.room)));
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "areas overlap");
}

#[test]
fn an_area_comes_again_when_the_stream_has_passed() {
    let (context, areas) = (context(), Areas::new(64 << 20, 1 << 20));
    let most = Some(4 << 20);
    let first = areas.take(&context, most).unwrap();
    let value = first.value(3);
    areas.give_later(first, value);
    let second = areas.take(&context, most).unwrap();
    assert_ne!(first.start, second.start, "the stream has work for it");
    first.empty().store(value, Ordering::Release);
    let again = areas.take(&context, most).unwrap();
    assert_eq!((again.start, again.value), (first.start, value));
    areas.give(second, 7);
    let after = second.value.wrapping_add(7);
    assert_eq!(areas.take(&context, most).unwrap().value, after);
    let words = [second.served(), second.reached(), second.empty()];
    assert_eq!(words.map(|word| word.load(Ordering::Acquire)), [after; 3]);
}

#[test]
fn beyond_the_bound_areas_are_small_and_still_there() {
    let (context, areas) = (context(), Areas::new(6 << 20, 1 << 20));
    let take = || areas.take(&context, Some(4 << 20)).unwrap();
    let first = take();
    assert_eq!(first.room, 4 << 20);
    let others: Vec<Area> = (0..40).map(|_| take()).collect();
    assert!(others.iter().all(|area| (LEAST..=BEYOND).contains(&area.room)));
    areas.give(first, 1);
    assert_eq!(take().start, first.start);
    assert_eq!(areas.take(&context, None).unwrap().room, 0);
}
