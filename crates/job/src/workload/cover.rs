//! Which bytes of its files a planned job uses, and whether it writes them all.

use std::collections::BTreeMap;
use std::ops::Range;

use gpuio_record::{JobPlan, Order, WorkerPlan};

use crate::workload::blocks;

/// Whether the load itself writes all bytes of its files, from start to end, whatever comes but a
/// failure or an interrupt: then nothing has to be written before it. With a time, a rule that ends
/// it early or an order by chance that is not certain.
pub fn lays_itself(job: &JobPlan) -> bool {
    let unit = blocks::unit(job);
    let in_order = job.order == Order::Sequential && job.follow.is_none();
    let in_order = in_order && job.read_percent == 0 && job.replay.is_none();
    let to_the_end = job.stop.runtime_ns.is_none() && job.steady.is_none() && job.inject.is_none();
    let whole = |worker: &WorkerPlan| {
        let lengths = worker.regions.iter().map(|region| region.length);
        let bytes = lengths.fold(0, u64::saturating_add);
        // The rest of a region below one unit is never written.
        let covered = worker.regions.iter().all(|region| region.length.is_multiple_of(unit));
        covered && job.stop.bytes_per_thread.is_some_and(|most| most >= bytes)
    };
    // A mapping can't reach past the end of a file.
    let grows = job.engine.actual != "mmap";
    let all = || parts(job).into_iter().zip(&job.targets).all(|(p, t)| p == (0..t.length_bytes));
    in_order && to_the_end && grows && job.workers.iter().all(whole) && all()
}

/// The bytes of each target that the job's workers use: from the first one on, as far as there is
/// no gap. Empty and at the target's end where no worker uses it.
pub fn parts(job: &JobPlan) -> Vec<Range<u64>> {
    if job.layout.as_ref().is_some_and(|layout| layout.kind.is_shared()) {
        // All threads of all ranks together leave no gap.
        return job.targets.iter().map(|target| job.offset_bytes..target.length_bytes).collect();
    }
    // Millions of files are used by one worker each: lists are kept of the others only.
    const UNUSED: Range<u64> = u64::MAX..u64::MAX;
    let mut parts: Vec<Range<u64>> = vec![UNUSED; job.targets.len()];
    let mut more: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
    for region in job.workers.iter().flat_map(|worker| &worker.regions) {
        let (at, span) = (region.target as usize, region.offset..region.end());
        match parts.get_mut(at) {
            Some(part) if *part == UNUSED => *part = span,
            Some(_) => more.entry(at).or_default().push(span),
            None => {}
        }
    }
    for (at, mut spans) in more {
        spans.push(parts[at].clone());
        let first = spans.iter().map(|span| span.start).min().unwrap_or(0);
        parts[at] = first..reach(first, spans);
    }
    for (part, target) in parts.iter_mut().zip(&job.targets) {
        if *part == UNUSED {
            *part = target.length_bytes..target.length_bytes;
        }
    }
    parts
}

/// How far `spans` cover everything from `from` on.
pub fn reach(from: u64, mut spans: Vec<Range<u64>>) -> u64 {
    spans.sort_unstable_by_key(|span| span.start);
    let mut reached = from;
    for span in spans {
        if span.start > reached {
            break;
        }
        reached = reached.max(span.end);
    }
    reached
}
