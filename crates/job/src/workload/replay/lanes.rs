//! From calls to lanes of steps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use gpuio_base::trace::{Call, Within};
use gpuio_record::ReplayOrder;

use super::{Lane, Pause, Since, Step};

/// Who made a call, as far as order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Maker {
    Thread(u32),
    Stream(u32),
}

/// A call with the times that order it.
#[derive(Debug, Clone, Copy)]
struct Timed {
    call: Call,
    /// When it could begin: in a stream not before the end of the one before it.
    begin: u64,
    end: u64,
    /// Its place in the order of ends.
    place: u64,
    /// It follows the end of the call before it in its stream.
    follows: bool,
}

/// Lanes, and how many calls each order of ends has.
pub(super) fn of(calls: &[Call], order: ReplayOrder, has_ends: bool) -> (Vec<Lane>, Vec<u64>) {
    let mut lanes = gathered(calls);
    let orders = match order {
        ReplayOrder::Observed => {
            place(lanes.iter_mut().flatten());
            vec![calls.len() as u64]
        }
        ReplayOrder::Threads => {
            lanes.iter_mut().for_each(|lane| place(lane.iter_mut()));
            lanes.iter().map(|lane| lane.len() as u64).collect()
        }
    };
    let script_begin = lanes.iter().flatten().map(|one| one.begin).min().unwrap_or(0);
    let all = || sorted(lanes.iter().flatten());
    let all = if order == ReplayOrder::Observed { all() } else { Vec::new() };
    let steps = |(at, lane): (usize, &Vec<Timed>)| {
        let own = sorted(lane.iter());
        let (ends, order) = match order {
            ReplayOrder::Observed => (&all, 0),
            ReplayOrder::Threads => (&own, at),
        };
        let steps = steps(lane, (ends, &own), script_begin, has_ends);
        Lane { steps, concurrent: if has_ends { concurrent(lane) } else { 1 }, order }
    };
    let made = lanes.iter().enumerate().map(steps).collect();
    (made, orders)
}

/// Ends in the order of places, each with its beginning.
fn sorted<'a>(calls: impl Iterator<Item = &'a Timed>) -> Vec<(u64, u64)> {
    let mut ends: Vec<(u64, u64)> = calls.map(|one| (one.end, one.begin)).collect();
    ends.sort_unstable();
    ends
}

/// The calls of each lane by their beginning.
fn gathered(calls: &[Call]) -> Vec<Vec<Timed>> {
    let mut makers: BTreeMap<Maker, Vec<Timed>> = BTreeMap::new();
    for call in calls {
        let maker = match call.within {
            Within::Thread | Within::Batch(_) => Maker::Thread(call.thread),
            Within::Stream(stream) => Maker::Stream(stream),
        };
        let (begin, end) = (call.begin_ns, call.end_ns());
        let timed = Timed { call: *call, begin, end, place: 0, follows: false };
        makers.entry(maker).or_default().push(timed);
    }
    for (maker, calls) in &mut makers {
        // Calls of one moment, such as entries of a batch, keep the trace's order.
        calls.sort_by_key(|one| (one.begin, one.end));
        if matches!(maker, Maker::Stream(_)) {
            one_after_another(calls);
        }
    }
    shared(makers)
}

/// Work in a stream begins when what was enqueued before it has ended.
fn one_after_another(calls: &mut [Timed]) {
    let mut before: Option<u64> = None;
    for call in calls {
        if let Some(end) = before {
            call.follows = true;
            call.begin = call.begin.max(end);
            call.end = call.end.max(call.begin);
        }
        before = Some(call.end);
    }
}

/// Threads, and streams, that lived one after another share a lane.
fn shared(makers: BTreeMap<Maker, Vec<Timed>>) -> Vec<Vec<Timed>> {
    let mut by_begin: Vec<(Maker, Vec<Timed>)> = makers.into_iter().collect();
    by_begin.sort_by_key(|(maker, calls)| (calls.first().map(|one| one.begin), *maker));
    let mut lanes: Vec<Vec<Timed>> = Vec::new();
    // Lanes of threads and of streams, by the end of their last call.
    let mut free: [BinaryHeap<Reverse<(u64, usize)>>; 2] = Default::default();
    for (maker, calls) in by_begin {
        let Some(first) = calls.first().copied() else { continue };
        let last = calls.iter().map(|one| one.end).max().unwrap_or(0);
        let heap = &mut free[usize::from(matches!(maker, Maker::Stream(_)))];
        let at = match heap.peek() {
            Some(Reverse((end, at))) if *end < first.begin => {
                let at = *at;
                heap.pop();
                at
            }
            _ => {
                lanes.push(Vec::new());
                lanes.len() - 1
            }
        };
        if let Some(lane) = lanes.get_mut(at) {
            lane.extend(calls);
        }
        heap.push(Reverse((last, at)));
    }
    lanes
}

/// Numbers calls by their ends. Calls that ended at once: the one that began first comes first.
fn place<'a>(calls: impl Iterator<Item = &'a mut Timed>) {
    let mut all: Vec<&mut Timed> = calls.collect();
    all.sort_by_key(|one| (one.end, one.begin));
    for (place, one) in (0_u64..).zip(all) {
        one.place = place;
    }
}

/// Ends of calls with their beginnings, in order.
type Ends<'a> = &'a [(u64, u64)];

/// Steps of a lane. `ends` are those that a step may wait for, `own` those of the lane, both in
/// order.
fn steps(
    lane: &[Timed],
    (ends, own): (Ends<'_>, Ends<'_>),
    script_begin: u64,
    has_ends: bool,
) -> Vec<Step> {
    // A call that ended at this very moment is over, except for calls without a duration that began
    // then: they would wait for themselves.
    let over = |ends: Ends<'_>, begin: u64| ends.partition_point(|end| *end < (begin, begin));
    let mut before: Option<Timed> = None;
    let step = |one: &Timed| {
        let last = before.replace(*one);
        let mut after = if has_ends { over(ends, one.begin) as u64 } else { 0 };
        if let Some(last) = last.filter(|_| one.follows) {
            after = after.max(last.place + 1);
        }
        let ended = own.get(..over(own, one.begin)).and_then(<[_]>::last).map(|(end, _)| *end);
        let pause = match (last, ended.filter(|_| has_ends)) {
            (None, _) => Pause { since: Since::Start, ns: one.begin - script_begin },
            (Some(last), _) if one.follows => Pause { since: Since::End, ns: one.begin - last.end },
            (Some(last), Some(end)) if end >= last.begin => {
                Pause { since: Since::End, ns: one.begin - end }
            }
            (Some(last), _) => Pause { since: Since::Begin, ns: one.begin - last.begin },
        };
        let Call { op, file, offset, bytes, .. } = one.call;
        Step { op, file, offset, bytes, after, place: one.place, pause }
    };
    lane.iter().map(step).collect()
}

/// The most calls that were under way at once.
fn concurrent(lane: &[Timed]) -> u32 {
    let mut open: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut most = 1;
    for one in lane {
        while open.peek().is_some_and(|Reverse(end)| *end <= one.begin) {
            open.pop();
        }
        open.push(Reverse(one.end));
        most = most.max(open.len());
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}
