//! Which ranges of which files a reader of a training feed reads next, and for which step.
//!
//! [`Shape`] is the data set: its files, and in each the *units* that are read together: a sample,
//! or a row group of `sample_group` samples of which only some columns are read. [`Reader`] is the
//! sequence of one thread.
//!
//! An epoch has all units in an order of chance, cut into batches one after another. Batch `j`
//! belongs to accelerator `j mod A`, in its step `j / A`, and to that accelerator's reader `step
//! mod R`, as a loader of PyTorch hands whole batches to its workers. So each unit is read once an
//! epoch, by one thread, and the accelerators' numbers of steps differ by no more than one. A unit
//! that reaches into two batches is read with the first of them. In the order `zipf` the places of
//! an epoch are shared out like this, and the unit at each is drawn ([`Draws`]).

mod draws;
mod size;
#[cfg(test)]
mod tests;

use std::ops::Range;

use gpuio_base::catalog::Op;
use gpuio_record::{FeedPlan, SampleOrder};

pub use draws::Draws;

use crate::workload::sequence::Block;
use crate::workload::sequence::permutation::Permutation;

/// Files begin and end at multiples of this, and so do samples in them, so that O_DIRECT can read
/// them. Files of columns have their exact layout.
pub const ALIGNMENT: u64 = 4096;

/// The data set of a feed.
#[derive(Debug, Clone)]
pub struct Shape {
    plan: FeedPlan,
    units_per_file: u64,
    /// Length of a unit in its file, where all have one.
    unit_bytes: u64,
    /// Ranges of a unit that are read: offset in it and length.
    parts: Vec<(u64, u64)>,
}

impl Shape {
    /// The data set of this plan, whose numbers are not 0, and whose files hold whole groups.
    pub fn new(plan: &FeedPlan) -> Shape {
        let group = plan.sample_group;
        let (unit_bytes, parts) = if plan.columns.is_empty() {
            let bytes = plan.sample.mean_bytes.saturating_mul(group);
            let bytes = size::stored(bytes, plan.ratio).next_multiple_of(ALIGNMENT);
            (bytes, vec![(0, bytes)])
        } else {
            let mut at = 0;
            let mut parts = Vec::new();
            for column in &plan.columns {
                let length = u64::from(column.bytes).saturating_mul(group);
                if column.read {
                    parts.push((at, length));
                }
                at += length;
            }
            (at, parts)
        };
        let units_per_file = plan.samples_per_file / group;
        Shape { plan: plan.clone(), units_per_file, unit_bytes, parts }
    }

    /// Units of the data set.
    pub fn units(&self) -> u64 {
        self.plan.files.saturating_mul(self.units_per_file)
    }

    /// Samples of the data set.
    pub fn samples(&self) -> u64 {
        self.plan.samples()
    }

    pub fn file_bytes(&self, file: u64) -> u64 {
        self.length_of(file).saturating_mul(self.units_per_file)
    }

    fn length_of(&self, file: u64) -> u64 {
        let size = self.plan.sample;
        if size.deviation_bytes == 0 || !self.plan.columns.is_empty() {
            return self.unit_bytes;
        }
        size::stored(size::drawn(size, file), self.plan.ratio).next_multiple_of(ALIGNMENT)
    }

    pub fn read_bytes(&self, unit: u64) -> u64 {
        match self.plan.columns.is_empty() {
            true => self.length_of(unit / self.units_per_file),
            false => self.parts.iter().map(|(_, length)| length).sum(),
        }
    }

    /// Bytes of the longest unit, where a unit is one range.
    pub fn longest_unit(&self) -> u64 {
        // Sizes differ by the file, where they do.
        let files = if self.plan.sample.deviation_bytes == 0 { 1 } else { self.plan.files };
        (0..files).map(|file| self.length_of(file)).max().unwrap_or(0)
    }

    /// Where in its file a unit begins.
    pub fn unit_offset(&self, unit: u64) -> u64 {
        unit % self.units_per_file * self.length_of(unit / self.units_per_file)
    }

    /// Bytes that are read in an epoch of which every unit is a part.
    pub fn epoch_bytes(&self) -> u64 {
        let file = |file: u64| self.read_bytes(file * self.units_per_file);
        let all = (0..self.plan.files).map(file).fold(0, u64::saturating_add);
        all.saturating_mul(self.units_per_file)
    }

    /// The longest range that is read in one piece, in bytes; the middle of the distribution where
    /// sizes are drawn.
    pub fn longest_part(&self) -> u64 {
        self.parts.iter().map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// The unit of the offsets and lengths of all ranges, in bytes: a power of two.
    pub fn alignment(&self) -> u64 {
        let all = self.parts.iter().flat_map(|(at, length)| [*at, *length]);
        let all = all.chain([self.unit_bytes, ALIGNMENT]).filter(|n| *n > 0);
        1 << all.map(u64::trailing_zeros).min().unwrap_or(0)
    }

    pub fn batches(&self) -> u64 {
        self.plan.batches()
    }

    pub fn steps(&self) -> u64 {
        self.plan.steps()
    }

    pub fn all_steps(&self) -> u64 {
        self.steps().saturating_mul(self.plan.epochs)
    }

    /// Epoch of a step, from 0.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step / self.steps()
    }

    /// The batch of an accelerator in a step, by its number in the epoch; `None` where the epoch
    /// has no more for it.
    pub fn batch_of(&self, accelerator: u32, step: u64) -> Option<u64> {
        let accelerators = u64::from(self.plan.accelerators);
        let batch = step % self.steps() * accelerators + u64::from(accelerator);
        (batch < self.batches()).then_some(batch)
    }

    pub fn samples_in(&self, batch: u64) -> u64 {
        let size = self.plan.batch_samples;
        size.min(self.samples().saturating_sub(batch.saturating_mul(size)))
    }

    /// Where in the epoch's order the units lie that a batch reads.
    pub fn positions(&self, batch: u64) -> Range<u64> {
        let first = |batch: u64| {
            let samples = batch.saturating_mul(self.plan.batch_samples).min(self.samples());
            samples.div_ceil(self.plan.sample_group)
        };
        first(batch)..first(batch + 1)
    }
}

/// The next step of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This range, for this step, as a part of this unit.
    Range {
        /// File, offset and length.
        block: Block,
        step: u64,
        unit: u64,
        /// Whether it is the last range of its unit.
        ends_unit: bool,
        /// Whether it is the last of its batch.
        ends_batch: bool,
    },
    /// Nothing has to be read for this step: its samples came with the batch before.
    Nothing { step: u64 },
    /// The next one is of this step, which is too far ahead.
    Ahead { step: u64 },
    /// All epochs are read.
    End,
}

/// The ranges of one reader thread, in order.
#[derive(Debug, Clone)]
pub struct Reader {
    shape: Shape,
    seed: u64,
    block: u32,
    accelerator: u32,
    readers: u64,
    step: u64,
    /// The epoch whose order is in `order`.
    epoch: u64,
    order: Option<Permutation>,
    /// In an order that draws.
    draws: Option<Draws>,
    /// Positions of the batch that are still to be read; `None` before it is begun.
    left: Option<Range<u64>>,
    /// The unit in hand, the part of it and how far that was read.
    unit: u64,
    part: usize,
    done: u64,
}

impl Reader {
    /// The sequence of reader `reader` of `accelerator`, in blocks of at most `block` bytes, which
    /// is not 0.
    pub fn new(plan: &FeedPlan, (accelerator, reader): (u32, u32), block: u32, seed: u64) -> Self {
        Reader {
            shape: Shape::new(plan),
            seed,
            block,
            accelerator,
            readers: u64::from(plan.readers),
            step: u64::from(reader),
            epoch: u64::MAX,
            order: None,
            draws: Draws::of(plan, seed),
            left: None,
            unit: 0,
            part: 0,
            done: 0,
        }
    }

    /// The next read, if its step is below `limit`.
    pub fn next(&mut self, limit: u64) -> Next {
        loop {
            if self.step >= self.shape.all_steps() {
                return Next::End;
            }
            let step = self.step;
            if step >= limit {
                return Next::Ahead { step };
            }
            let Some(left) = &self.left else {
                let Some(batch) = self.shape.batch_of(self.accelerator, step) else {
                    self.step += self.readers;
                    continue;
                };
                let positions = self.shape.positions(batch);
                if positions.is_empty() {
                    self.step += self.readers;
                    return Next::Nothing { step };
                }
                self.unit = self.unit_at(self.shape.epoch_of(step), positions.start);
                self.left = Some(positions);
                continue;
            };
            return self.range(step, left.clone());
        }
    }

    /// The next range of the unit in hand.
    fn range(&mut self, step: u64, left: Range<u64>) -> Next {
        let (file, nth) =
            (self.unit / self.shape.units_per_file, self.unit % self.shape.units_per_file);
        let length = self.shape.length_of(file);
        let (at, part) = match self.shape.plan.columns.is_empty() {
            true => (0, length),
            false => self.shape.parts[self.part],
        };
        let len = u64::from(self.block).min(part - self.done);
        let offset = nth * length + at + self.done;
        let unit = self.unit;
        self.done += len;
        let (mut ends_unit, mut ends_batch) = (false, false);
        if self.done == part {
            (self.part, self.done) = (self.part + 1, 0);
            ends_unit = self.part == self.shape.parts.len();
        }
        if ends_unit {
            self.part = 0;
            let next = left.start + 1;
            ends_batch = next == left.end;
            if ends_batch {
                self.left = None;
                self.step += self.readers;
            } else {
                self.unit = self.unit_at(self.shape.epoch_of(step), next);
                self.left = Some(next..left.end);
            }
        }
        // Files are counted in u32 by plans, and a length is at most the block's.
        let file = u32::try_from(file).unwrap_or(u32::MAX);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let op = if self.shape.plan.writes { Op::Write } else { Op::Read };
        let block = Block { op, file, offset, len };
        Next::Range { block, step, unit, ends_unit, ends_batch }
    }

    /// The unit at a place of an epoch's order.
    fn unit_at(&mut self, epoch: u64, position: u64) -> u64 {
        if let Some(draws) = &self.draws {
            return draws.unit(epoch, position);
        }
        let each = self.shape.units_per_file;
        let count = match self.shape.plan.order {
            SampleOrder::InOrder | SampleOrder::Zipf { .. } => return position,
            SampleOrder::Reverse => return self.shape.units() - 1 - position,
            SampleOrder::Shuffle => self.shape.units(),
            SampleOrder::ShuffleFiles => self.shape.plan.files,
        };
        if self.epoch != epoch {
            self.order = None;
            self.epoch = epoch;
        }
        let order = self.order.get_or_insert_with(|| Permutation::new(count, self.seed, epoch));
        match self.shape.plan.order {
            SampleOrder::Shuffle => order.at(position),
            _ => order.at(position / each) * each + position % each,
        }
    }
}
