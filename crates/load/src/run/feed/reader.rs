//! A worker's part of a feed: its blocks, and what of its batches is there.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use gpuio_io::clock::Nanos;
use gpuio_io::path::{Place, Request};
use gpuio_job::workload::feed::{Next, Reader};
use gpuio_job::workload::lru::Use;
use gpuio_job::workload::sequence::Block;
use gpuio_record::JobPlan;

use super::{Feed, LOOK, hold};

/// The next step of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Step {
    Read(Block),
    /// It is as far ahead as it may be.
    Wait,
    /// All is read, or nothing more is computed.
    End,
}

/// A batch that is not there yet.
struct OpenBatch {
    step: u64,
    in_flight: u64,
    /// Whether its last block was started.
    is_whole: bool,
    /// On the worker's own clock, which stands while gpuio generates or checks data.
    began: Nanos,
    ended: Nanos,
}

/// A unit that is not there yet.
struct OpenUnit {
    /// Its number among all that this reader has begun: a batch may have the same unit twice.
    reading: u64,
    unit: u64,
    /// Where it is in the feed's tier, where there is one.
    tier: Use,
    in_flight: u64,
    is_whole: bool,
    failed: bool,
}

/// Where a block belongs.
#[derive(Debug, Clone, Copy, Default)]
struct Of {
    step: u64,
    reading: u64,
    place: Place,
    /// How long the worker had worked between I/Os when it was started.
    worked_ns: Nanos,
}

/// The sequence of one reader. Dropping it says that it reads no more.
pub(in crate::run) struct FeedReader<'a> {
    feed: &'a Feed,
    reader: Reader,
    accelerator: u32,
    number: u32,
    /// The contents of each slot of the path.
    slots: Vec<Of>,
    /// The sample that was handed out last and is in no slot yet.
    handed: Of,
    batches: VecDeque<OpenBatch>,
    units: Vec<OpenUnit>,
    /// Units that it has begun.
    readings: u64,
    /// The step that it may not begin yet.
    waits_for: u64,
    /// Since when it has been as far ahead as it may be, and for how long it was so before.
    rests_from: Option<Nanos>,
    rested_ns: Nanos,
    /// Bytes that came from the tier, and from files.
    moved: (u64, u64),
}

impl<'a> FeedReader<'a> {
    pub(in crate::run) fn new(feed: &'a Feed, job: &JobPlan, thread: u32) -> FeedReader<'a> {
        let block = job.sizes().map(|block| block.max_bytes).max().unwrap_or(1);
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        let (accelerators, depth) = (feed.plan.accelerators, job.depth as usize);
        let (accelerator, number) = (thread % accelerators, thread / accelerators);
        FeedReader {
            feed,
            reader: Reader::new(&feed.plan, (accelerator, number), block, job.seed),
            accelerator,
            number,
            slots: vec![Of::default(); depth],
            handed: Of::default(),
            batches: VecDeque::with_capacity(feed.plan.prefetch as usize + 1),
            units: Vec::with_capacity(depth + 1),
            readings: 0,
            waits_for: 0,
            rests_from: None,
            rested_ns: 0,
            moved: (0, 0),
        }
    }

    /// The first step that may not be begun yet.
    fn limit(&self) -> u64 {
        let taken = self.feed.queue(self.accelerator).taken.load(Ordering::Relaxed);
        if self.feed.plan.writes {
            return taken;
        }
        taken + self.feed.ahead()
    }

    /// The next step, where the worker has worked between I/Os for so long.
    pub(in crate::run) fn next(&mut self, now: Nanos, worked_ns: Nanos) -> Step {
        let step = self.step(now.saturating_sub(worked_ns));
        match (step, self.rests_from) {
            (Step::Wait, _) => _ = self.rests_from.get_or_insert(now),
            (_, Some(from)) => {
                self.rested_ns += now.saturating_sub(from);
                self.rests_from = None;
            }
            (_, None) => {}
        }
        step
    }

    fn step(&mut self, now: Nanos) -> Step {
        loop {
            if self.feed.has_ended() {
                return Step::End;
            }
            match self.reader.next(self.limit()) {
                Next::End => return Step::End,
                Next::Ahead { step } => {
                    self.waits_for = step;
                    return Step::Wait;
                }
                Next::Nothing { step } => {
                    let batch =
                        OpenBatch { step, in_flight: 0, is_whole: true, began: now, ended: now };
                    self.batches.push_back(batch);
                    self.deliver();
                }
                Next::Range { block, step, unit, ends_unit, ends_batch } => {
                    self.hand_out((step, unit), (ends_unit, ends_batch), block.offset, now);
                    return Step::Read(block);
                }
            }
        }
    }

    fn hand_out(&mut self, of: (u64, u64), ends: (bool, bool), offset: u64, now: Nanos) {
        let ((step, unit), (ends_unit, ends_batch)) = (of, ends);
        if self.batches.back().is_none_or(|batch| batch.step != step) {
            let batch = OpenBatch { step, in_flight: 0, is_whole: false, began: now, ended: now };
            self.batches.push_back(batch);
        }
        if let Some(batch) = self.batches.back_mut() {
            batch.in_flight += 1;
            batch.is_whole = ends_batch;
        }
        let tier = self.feed.tier.as_ref();
        // Ranges of a unit follow one another.
        let at = self.units.iter().position(|open| !open.is_whole).unwrap_or_else(|| {
            self.readings += 1;
            self.units.push(OpenUnit {
                reading: self.readings,
                unit,
                tier: tier.map_or(Use::Pass, |tier| tier.begin(unit)),
                in_flight: 0,
                is_whole: false,
                failed: false,
            });
            self.units.len() - 1
        });
        let open = &mut self.units[at];
        (open.in_flight, open.is_whole) = (open.in_flight + 1, ends_unit);
        let place = tier.map_or(Place::Slot, |tier| {
            tier.place(open.tier, offset - self.feed.shape.unit_offset(unit))
        });
        self.handed = Of { step, reading: open.reading, place, worked_ns: 0 };
    }

    /// Where the block that was handed out last is in host memory.
    pub(in crate::run) fn place(&self) -> Place {
        self.handed.place
    }

    /// The block that was handed out last is in this slot; the worker has worked for so long.
    pub(in crate::run) fn started(&mut self, slot: u32, worked_ns: Nanos) {
        self.slots[slot as usize] = Of { worked_ns, ..self.handed };
    }

    /// The block of this slot is in memory, or failed. Checks while it was in flight count: how
    /// much sooner it would have been seen is not known.
    pub(in crate::run) fn completed(&mut self, request: &Request, ended: Nanos, is_fine: bool) {
        let Of { step, reading, place, worked_ns } = self.slots[request.slot as usize];
        let done = ended;
        let ended = ended.saturating_sub(worked_ns);
        if is_fine {
            let bytes = u64::from(request.len);
            match place {
                Place::Kept(_) => self.moved.0 += bytes,
                Place::Slot | Place::Into(_) => self.moved.1 += bytes,
            }
        }
        if let Some(at) = self.units.iter().position(|one| one.reading == reading) {
            let open = &mut self.units[at];
            open.in_flight -= 1;
            open.failed |= !is_fine;
            if open.in_flight == 0 && open.is_whole {
                let open = self.units.swap_remove(at);
                if let Some(tier) = &self.feed.tier {
                    tier.end(open.tier, !open.failed);
                }
                if !open.failed {
                    self.feed.count(self.feed.shape.epoch_of(step), open.unit, done);
                }
            }
        }
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.step == step) {
            batch.in_flight -= 1;
            batch.ended = batch.ended.max(ended);
        }
        self.deliver();
    }

    /// Tells the accelerator of batches that are there, in their order.
    fn deliver(&mut self) {
        let is_there = |batch: &OpenBatch| batch.is_whole && batch.in_flight == 0;
        if !self.batches.front().is_some_and(is_there) {
            return;
        }
        let queue = self.feed.queue(self.accelerator);
        let mut state = hold(&queue.state);
        while let Some(batch) = self.batches.pop_front_if(|batch| is_there(batch)) {
            state.readers[self.number as usize].read_before = batch.step + 1;
            if batch.ended > batch.began {
                state.batch_read.record(batch.ended - batch.began);
            }
        }
        drop(state);
        queue.changed.notify_all();
    }

    /// Sleeps until the accelerator has taken enough, or for a while.
    pub(in crate::run) fn wait(&self) {
        let queue = self.feed.queue(self.accelerator);
        let state = hold(&queue.state);
        if self.waits_for < self.limit() || self.feed.has_ended() {
            return;
        }
        drop(queue.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for FeedReader<'_> {
    fn drop(&mut self) {
        if let Some(tier) = &self.feed.tier {
            tier.add(self.moved.0, self.moved.1);
        }
        let queue = self.feed.queue(self.accelerator);
        let mut state = hold(&queue.state);
        state.readers[self.number as usize].left = true;
        state.rested_ns += self.rested_ns;
        drop(state);
        queue.changed.notify_all();
    }
}
