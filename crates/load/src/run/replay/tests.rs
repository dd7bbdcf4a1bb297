//! The order of a replay, against the order of the recorded calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpuio_base::trace::{Call, End, Format, OtherActions, Trace, TraceFile, Within};
use gpuio_job::workload::replay::Script;
use gpuio_record::{BlockShare, JobPlan, ReplayOrder, ReplayPace, ReplayPlan};

use super::{LaneReader, Look, Replay};
use gpuio_testkit::jobs;

const PAGE: u64 = 4096;

/// A step of a generator that is the same everywhere (Knuth's MMIX).
fn chance(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Four threads with calls, batches and a stream, of chance. Each call has an offset of its own.
fn recorded(seed: u64) -> Trace {
    let mut state = seed;
    let mut calls: Vec<Call> = Vec::new();
    let mut call = |thread: u32, within, begin_ns: u64, duration_ns: u64| {
        let offset = calls.len() as u64 * 3 * PAGE;
        let bytes = 3 * PAGE;
        let result = bytes.cast_signed();
        let new =
            Call { offset, bytes, result, begin_ns, duration_ns, thread, within, ..Call::NONE };
        calls.push(new);
    };
    for thread in 0..4 {
        let mut now = chance(&mut state, 100);
        let mut stream_end = 0;
        for nth in 0..60 {
            let time = 20 + chance(&mut state, 200);
            match chance(&mut state, 4) {
                0 => {
                    let mut last = 0;
                    for _ in 0..3 {
                        let time = 20 + chance(&mut state, 200);
                        call(thread, Within::Batch(nth), now, time);
                        last = last.max(time);
                    }
                    now += last;
                }
                1 if thread == 0 => {
                    let end = (now + time).max(stream_end + 10);
                    call(thread, Within::Stream(0), now, end - now);
                    (stream_end, now) = (end, now + 5);
                }
                _ => {
                    call(thread, Within::Thread, now, time);
                    now += time;
                }
            }
            now += chance(&mut state, 60);
        }
    }
    let size = calls.len() as u64 * 3 * PAGE;
    Trace {
        format: Format::Gpuio(1),
        program: None,
        began_unix_ns: 0,
        files: vec![TraceFile { size, ..TraceFile::default() }],
        calls,
        lost: 0,
        senseless: 0,
        end: End::Whole,
        other: OtherActions::default(),
    }
}

fn job(script: &Script, depth: u32, order: ReplayOrder) -> JobPlan {
    let replay = ReplayPlan {
        trace: "t".to_owned(),
        format: "gpuio 1".to_owned(),
        program: None,
        calls: script.calls,
        reads: script.reads,
        read_bytes: script.read_bytes,
        written_bytes: 0,
        left_out: 0,
        missing: None,
        hole_bytes: 0,
        order,
        pace: ReplayPace::Asap,
        recorded_ns: None,
        recorded_calls: None,
    };
    // Calls have two parts.
    let size = 2 * PAGE;
    let block = BlockShare { min_bytes: size, max_bytes: size, step_bytes: 0, percent: 100 };
    JobPlan { depth, blocks: vec![block], replay: Some(replay), ..jobs::job("rw=read") }
}

/// When each call started and ended, by a counter of all such events: what a worker does, with
/// parts that complete in any order.
fn replayed(script: &Arc<Script>, depth: u32, order: ReplayOrder, seed: u64) -> Vec<(u64, u64)> {
    let replay = Replay::new(script);
    let job = job(script, depth, order);
    let events = AtomicU64::new(1);
    let calls = usize::try_from(script.calls).unwrap();
    let seen: Vec<(AtomicU64, AtomicU64)> = (0..calls).map(|_| Default::default()).collect();
    std::thread::scope(|scope| {
        for thread in 0..u32::try_from(script.lanes.len()).unwrap() {
            let (replay, job, events, seen) = (&replay, &job, &events, &seen);
            scope.spawn(move || {
                let mut lane = LaneReader::new(replay, job, thread, 0).unwrap();
                let mut state = seed + u64::from(thread);
                let mut free: Vec<u32> = (0..depth).collect();
                let mut out: Vec<(u32, u64)> = Vec::new();
                loop {
                    while let Some(&slot) = free.last()
                        && lane.look(0) == Look::Ready
                    {
                        let block = lane.next(0).unwrap();
                        lane.started(slot);
                        free.pop();
                        let at = usize::try_from(block.offset / (3 * PAGE)).unwrap();
                        let now = events.fetch_add(1, Ordering::SeqCst);
                        let start = &seen[at].0;
                        let _ = start.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
                        out.push((slot, block.offset));
                    }
                    if out.is_empty() {
                        match lane.look(0) {
                            Look::End => return,
                            _ => lane.wait(),
                        }
                        continue;
                    }
                    if chance(&mut state, 3) == 0 {
                        std::thread::yield_now();
                    }
                    let at = usize::try_from(chance(&mut state, out.len() as u64)).unwrap();
                    let (slot, offset) = out.swap_remove(at);
                    let at = usize::try_from(offset / (3 * PAGE)).unwrap();
                    // The last part decides.
                    seen[at].1.fetch_max(events.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                    lane.completed(slot, 0);
                    free.push(slot);
                }
            });
        }
    });
    assert_eq!(replay.result().calls, script.calls);
    let load = |one: &AtomicU64| one.load(Ordering::SeqCst);
    seen.iter().map(|(start, end)| (load(start), load(end))).collect()
}

/// Every pair of which one had ended when the other was made.
#[test]
fn what_had_ended_before_a_call_has_ended_before_its_repetition() {
    for seed in 1..6 {
        let trace = recorded(seed);
        let script = Arc::new(Script::of(&trace, ReplayOrder::Observed).unwrap());
        for depth in [1, 8] {
            let seen = replayed(&script, depth, ReplayOrder::Observed, seed);
            let mut pairs = 0;
            for (a, was_a) in seen.iter().zip(&trace.calls) {
                for (b, was_b) in seen.iter().zip(&trace.calls) {
                    if was_a.end_ns() < was_b.begin_ns {
                        pairs += 1;
                        assert!(a.1 < b.0, "{was_a:?} {a:?}, {was_b:?} {b:?}");
                    }
                }
            }
            assert!(pairs > 10_000, "{pairs}");
        }
    }
}

/// Calls of each thread and stream come in their own order; and nothing of them hangs.
#[test]
fn threads_alone_keep_their_own_order() {
    let trace = recorded(9);
    let script = Arc::new(Script::of(&trace, ReplayOrder::Threads).unwrap());
    let seen = replayed(&script, 8, ReplayOrder::Threads, 9);
    let maker = |call: &Call| match call.within {
        Within::Stream(stream) => (None, Some(stream)),
        _ => (Some(call.thread), None),
    };
    for (a, was_a) in seen.iter().zip(&trace.calls) {
        for (b, was_b) in seen.iter().zip(&trace.calls) {
            let same = maker(was_a) == maker(was_b);
            if same && was_a.end_ns() < was_b.begin_ns {
                assert!(a.1 < b.0, "{was_a:?} {a:?}, {was_b:?} {b:?}");
            }
        }
    }
    let streamed = trace.calls.iter().zip(&seen);
    let streamed = streamed.filter(|(call, _)| matches!(call.within, Within::Stream(_)));
    let streamed: Vec<_> = streamed.map(|(_, times)| times).collect();
    assert!(streamed.len() > 5 && streamed.is_sorted_by(|a, b| a.1 < b.0), "{streamed:?}");
}

#[test]
fn a_lane_that_is_left_ends_the_others() {
    let script = Arc::new(Script::of(&recorded(3), ReplayOrder::Observed).unwrap());
    let replay = Replay::new(&script);
    let job = job(&script, 1, ReplayOrder::Observed);
    let mut other = LaneReader::new(&replay, &job, 1, 0).unwrap();
    drop(LaneReader::new(&replay, &job, 0, 0));
    assert_eq!(other.look(0), Look::End);
}

#[test]
fn recorded_pauses_are_kept() {
    let mut trace = recorded(4);
    trace.calls.retain(|call| call.thread == 1 && call.within == Within::Thread);
    let script = Arc::new(Script::of(&trace, ReplayOrder::Observed).unwrap());
    let replay = Replay::new(&script);
    let mut job = job(&script, 2, ReplayOrder::Observed);
    job.replay.as_mut().unwrap().pace = ReplayPace::Recorded;
    let mut lane = LaneReader::new(&replay, &job, 0, 1000).unwrap();
    let (mut now, mut last) = (1000, None);
    for call in &trace.calls {
        let pause = last.map_or(0, |end| call.begin_ns - end);
        if pause > 0 {
            assert_eq!(lane.look(now), Look::Until(now + pause));
        }
        now += pause;
        for slot in 0..2 {
            assert!(lane.next(now).is_some());
            lane.started(slot);
        }
        // This storage is three times as slow.
        now += 3 * call.duration_ns;
        (0..2).for_each(|slot| lane.completed(slot, now));
        last = Some(call.end_ns());
    }
    assert_eq!(lane.look(now), Look::End);
}
