//! A worker's part of a replay: its blocks, and when each may start.

use std::sync::atomic::Ordering;

use gpuio_io::clock::Nanos;
use gpuio_job::workload::replay::{Lane, Since, Step};
use gpuio_job::workload::sequence::Block;
use gpuio_record::{JobPlan, ReplayPace};

use super::Replay;
use super::ends::Ends;

/// The next permitted step of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Look {
    /// Start its next block.
    Ready,
    /// Nothing before this moment.
    Until(Nanos),
    /// Nothing before other calls end.
    Wait,
    /// All is done, or another lane was left.
    End,
}

/// A call of which a part is in flight.
#[derive(Debug, Clone, Copy)]
struct Open {
    step: usize,
    in_flight: u64,
    /// Whether its last part was started.
    is_whole: bool,
}

/// The calls of one lane. Dropped before its last call it ends the replay for all.
pub(in crate::run) struct LaneReader<'a> {
    replay: &'a Replay,
    lane: &'a Lane,
    ends: &'a Ends,
    keeps_pauses: bool,
    /// Longest part of a call.
    block: u64,
    /// The step whose part comes next, and how many bytes of it were handed out.
    next: usize,
    at: u64,
    /// The contents of each slot of the path.
    slots: Vec<usize>,
    handed: usize,
    open: Vec<Open>,
    /// When the replay began, and the last step, and when the last one ended.
    began: Nanos,
    last_begin: Nanos,
    last_end: Nanos,
    waiting_since: Option<Nanos>,
    waited_ns: u64,
    calls: u64,
}

impl<'a> LaneReader<'a> {
    /// The lane of a worker; nothing where the script has none for it.
    pub(in crate::run) fn new(
        replay: &'a Replay,
        job: &JobPlan,
        thread: u32,
        began: Nanos,
    ) -> Option<LaneReader<'a>> {
        let lane = replay.script.lanes.get(thread as usize)?;
        let ends = replay.orders.get(lane.order)?;
        let block = job.sizes().map(|block| block.max_bytes).max().unwrap_or(1);
        let depth = job.depth as usize;
        let keeps = job.replay.as_ref().is_some_and(|plan| plan.pace == ReplayPace::Recorded);
        Some(LaneReader {
            replay,
            lane,
            ends,
            keeps_pauses: keeps,
            block: block.clamp(1, u64::from(u32::MAX)),
            next: 0,
            at: 0,
            slots: vec![0; depth],
            handed: 0,
            open: Vec::with_capacity(depth + 1),
            began,
            last_begin: began,
            last_end: began,
            waiting_since: None,
            waited_ns: 0,
            calls: 0,
        })
    }

    fn step(&self) -> Option<&'a Step> {
        self.lane.steps.get(self.next)
    }

    /// The step that it may take now.
    pub(in crate::run) fn look(&mut self, now: Nanos) -> Look {
        let Some(step) = self.step() else { return Look::End };
        if self.replay.abandoned.load(Ordering::Relaxed) {
            return Look::End;
        }
        if self.at > 0 {
            return Look::Ready;
        }
        if self.ends.over() < step.after {
            self.waiting_since.get_or_insert(now);
            return Look::Wait;
        }
        if let Some(since) = self.waiting_since.take() {
            self.waited_ns += now.saturating_sub(since);
        }
        if self.keeps_pauses {
            let from = match step.pause.since {
                Since::Start => self.began,
                Since::Begin => self.last_begin,
                Since::End => self.last_end,
            };
            let due = from.saturating_add(step.pause.ns);
            if due > now {
                return Look::Until(due);
            }
        }
        Look::Ready
    }

    /// The next block, where [`LaneReader::look`] said that it may start.
    pub(in crate::run) fn next(&mut self, now: Nanos) -> Option<Block> {
        if self.look(now) != Look::Ready {
            return None;
        }
        let step = self.step()?;
        let len = self.block.min(step.bytes - self.at);
        let offset = step.offset + self.at;
        if self.at == 0 {
            self.last_begin = now;
            self.open.push(Open { step: self.next, in_flight: 0, is_whole: false });
        }
        self.handed = self.next;
        self.at += len;
        let is_whole = self.at == step.bytes;
        if let Some(open) = self.open.iter_mut().find(|open| open.step == self.handed) {
            (open.in_flight, open.is_whole) = (open.in_flight + 1, is_whole);
        }
        if is_whole {
            (self.next, self.at) = (self.next + 1, 0);
        }
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Some(Block { op: step.op, file: step.file, offset, len })
    }

    /// The block that was handed out last is in this slot.
    pub(in crate::run) fn started(&mut self, slot: u32) {
        self.slots[slot as usize] = self.handed;
    }

    /// The block of this slot is back, moved or failed.
    pub(in crate::run) fn completed(&mut self, slot: u32, ended: Nanos) {
        let step = self.slots[slot as usize];
        let Some(at) = self.open.iter().position(|open| open.step == step) else { return };
        let open = &mut self.open[at];
        open.in_flight -= 1;
        if !open.is_whole || open.in_flight > 0 {
            return;
        }
        self.open.swap_remove(at);
        self.last_end = self.last_end.max(ended);
        self.calls += 1;
        if let Some(step) = self.lane.steps.get(step) {
            self.ends.end(step.place);
        }
    }

    /// Nothing is in flight: waits until the next step may start, or for a while.
    pub(in crate::run) fn wait(&self) {
        if let Some(step) = self.step() {
            self.ends.wait(step.after);
        }
    }
}

impl Drop for LaneReader<'_> {
    fn drop(&mut self) {
        self.replay.calls.fetch_add(self.calls, Ordering::Relaxed);
        self.replay.waited_ns.fetch_add(self.waited_ns, Ordering::Relaxed);
        if self.step().is_some() || !self.open.is_empty() {
            self.replay.abandon();
        }
    }
}
