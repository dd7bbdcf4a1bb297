//! The results of a worker's loop, once its last I/O is back.

use std::sync::atomic::Ordering;

use gpuio_base::stat::{Counted, IoLog, Tally};
use gpuio_io::engine::Op;
use gpuio_record::NeverStarted;

use super::super::rusage::Usage;
use super::super::stonewall;
use super::super::task::side;
use super::rates::Paced;
use super::{Blocks, Loop, Timed};

/// I/Os that were never started are counted one by one up to here.
const COUNTED_MOST: u64 = 1_000_000;

impl Loop<'_> {
    /// I/Os that were due by the end and were never started. Blocks are drawn as if they had been,
    /// so that sizes and bounds are theirs.
    fn never_started(&mut self) -> Option<NeverStarted> {
        // With two rates it is not known which direction an I/O would have had.
        let Paced::One(mut pacer) = std::mem::take(&mut self.paced) else { return None };
        let stopped = self.stopped_at.unwrap_or(0);
        let until = self.bounds.deadline.map_or(stopped, |deadline| deadline.min(stopped));
        let (first, mut ios) = (pacer.due(), 0_u64);
        while pacer.due() < until {
            let held = self.pending.take();
            let Some(block) = held.or_else(|| self.next_block(stopped)) else { break };
            self.issued_bytes += u64::from(block.len);
            pacer.took(block.len);
            ios += 1;
            if ios == COUNTED_MOST {
                let passed = u128::from((pacer.due() - first).max(1));
                let left = u128::from(until.saturating_sub(pacer.due()));
                ios += u64::try_from(left * u128::from(ios) / passed).unwrap_or(u64::MAX - ios);
                break;
            }
        }
        let longest_wait_ns = if ios > 0 { until - first } else { 0 };
        Some(NeverStarted { ios, longest_wait_ns })
    }

    /// The counts of one direction.
    fn tally(&mut self, op: Op) -> Tally {
        let at = Counted { write: op == Op::Write, ramp: false };
        let mut legs = std::mem::take(&mut self.legs[side(op)]);
        self.live().latencies(at, &mut legs.total);
        if !self.has_parts() {
            let only = if self.has_file { &mut legs.file } else { &mut legs.gpu };
            *only = legs.total.clone();
        }
        let (bytes, ios, failed) = self.live().of(at);
        Tally { ios, bytes, failed, legs }
    }

    pub(super) fn leave(mut self) -> Timed {
        let used = Usage::of_thread();
        let helpers = Usage::of_threads(&self.tools.helpers);
        self.publish();
        if stonewall::is_of(self.task.job) && self.bounds.deadline.is_some() {
            self.task.first_done.wall.miss();
        }
        self.task.first_done.note(self.last_back, || self.task.counted());
        if self.task.first_done.is_last() {
            self.task.gate.job_done();
            if self.task.job.ends_others {
                self.task.all_done.iter().for_each(|one| one.ended.store(true, Ordering::Relaxed));
            }
        }
        let (reads, writes) = (self.tally(Op::Read), self.tally(Op::Write));
        let before_all = self.before_all.unwrap_or_else(|| self.live().totals());
        // Those that were never started are drawn, too.
        let drawn_sizes = match &self.blocks {
            Blocks::Sequence(sequence) => sequence.drawn(),
            Blocks::Feed(_) | Blocks::Replay(_) => None,
        };
        let never_started = self.never_started();
        self.out.inline.complete = !self.out.interrupted;
        let mut usage = Usage::default();
        let mut usage_whole = true;
        if let Some((thread, theirs)) = &self.used_before {
            usage = thread.until(&used);
            match (theirs, helpers) {
                (Some(before), Some(after)) => usage.add(&before.until(&after)),
                _ => usage_whole = false,
            }
        }
        Timed {
            reads,
            writes,
            counted: (self.bounds.from, self.last_back),
            before_all,
            usage,
            usage_whole,
            never_started,
            drawn_sizes,
            log: self.log.take().map(IoLog::end).unwrap_or_default(),
            ..self.out
        }
    }
}
