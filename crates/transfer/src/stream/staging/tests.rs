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
fn halves_and_lists_do_not_overlap() {
    let (context, buffers) = (context(), StagingBuffers::new(64 << 20, 1 << 20));
    let mut taken = Vec::new();
    for most in [0, 1, 64 << 10, 100_000, 1 << 20, 4 << 20, 5 << 20, 1 << 40] {
        let buffer = buffers.take(&context, Some(most)).unwrap();
        let chunk_len = buffer.chunk_len(most);
        assert!(chunk_len >= most || chunk_len * 2 == buffer.capacity as u64);
        let halves = if chunk_len >= most { 1 } else { 2 };
        let mut spans = vec![span(buffer.start, 384)];
        for half in 0..halves {
            let (list, list_seen) = buffer.list(half, chunk_len);
            let (bytes, bytes_seen) = buffer.half(half, chunk_len);
            assert!(bytes.addr().is_multiple_of(PAGE) && list.addr().is_multiple_of(32));
            assert_eq!(
                bytes_seen.0 - buffer.device_ptr.0,
                (bytes.addr() - buffer.start.addr()) as u64
            );
            assert_eq!(
                list_seen.0 - buffer.device_ptr.0,
                (list.addr() - buffer.start.addr()) as u64
            );
            // The most entries, and a page more on either side of the bytes.
            let entries = most_pieces(chunk_len, MIN_PIECE) * size_of::<Piece>() as u64;
            spans.extend([span(list, entries), span(bytes, chunk_len + 2 * PAGE as u64)]);
        }
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{most} bytes: {spans:?}");
        let end = span(buffer.start, StagingBuffer::size(buffer.capacity) as u64).1;
        assert!(spans.iter().all(|span| span.1 <= end), "{most} bytes end at {end}: {spans:?}");
        taken.push((buffer.start.addr(), StagingBuffer::size(buffer.capacity)));
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "buffers overlap");
}

#[test]
fn a_buffer_is_reused_when_the_stream_has_passed() {
    let (context, buffers) = (context(), StagingBuffers::new(64 << 20, 1 << 20));
    let most = Some(4 << 20);
    let first = buffers.take(&context, most).unwrap();
    let value = first.value(3);
    buffers.give_back_later(first, value);
    let second = buffers.take(&context, most).unwrap();
    assert_ne!(first.start, second.start, "the stream has work for it");
    first.released().store(value, Ordering::Release);
    let again = buffers.take(&context, most).unwrap();
    assert_eq!((again.start, again.value), (first.start, value));
    buffers.give_back(second, 7);
    let after = second.value.wrapping_add(7);
    assert_eq!(buffers.take(&context, most).unwrap().value, after);
    let semaphores = [second.completed(), second.reached(), second.released()];
    assert_eq!(semaphores.map(|word| word.load(Ordering::Acquire)), [after; 3]);
}

#[test]
fn beyond_the_limit_buffers_are_small_but_available() {
    let (context, buffers) = (context(), StagingBuffers::new(6 << 20, 1 << 20));
    let take = || buffers.take(&context, Some(4 << 20)).unwrap();
    let first = take();
    assert_eq!(first.capacity, 4 << 20);
    let others: Vec<StagingBuffer> = (0..40).map(|_| take()).collect();
    assert!(
        others
            .iter()
            .all(|buffer| (MIN_CAPACITY..=MAX_CAPACITY_BEYOND_LIMIT).contains(&buffer.capacity))
    );
    buffers.give_back(first, 1);
    assert_eq!(take().start, first.start);
    assert_eq!(buffers.take(&context, None).unwrap().capacity, 0);
}
