//! The positions where random blocks may begin.

use super::{Block, Op, RegionSpan};

/// Positions in all regions, numbered one after another.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Distance of two positions of one region, in bytes.
    step: u64,
    regions: Vec<GridRegion>,
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct GridRegion {
    /// Number of the first one.
    first: u64,
    file: u32,
    /// Byte offset of the first one.
    start: u64,
    /// End of the bytes that may be used.
    end: u64,
}

impl Grid {
    /// Every position where a block of `largest` bytes fits whole.
    pub(crate) fn whole_blocks(regions: &[RegionSpan], step: u64, largest: u64) -> Grid {
        Grid::new(regions, step, |length| (length - largest) / step + 1)
    }

    /// Positions that together cover every byte when blocks are `step` long; the last of a region
    /// may have space for a shorter block only.
    pub(crate) fn covering(regions: &[RegionSpan], step: u64) -> Grid {
        Grid::new(regions, step, |length| length.div_ceil(step))
    }

    fn new(regions: &[RegionSpan], step: u64, count_of: impl Fn(u64) -> u64) -> Grid {
        let mut count = 0;
        let mut grid = Vec::with_capacity(regions.len());
        for region in regions {
            let end = region.offset + region.length;
            grid.push(GridRegion { first: count, file: region.file, start: region.offset, end });
            count += count_of(region.length);
        }
        Grid { step, regions: grid, count }
    }

    /// How many positions there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Distance of two positions of one region, in bytes.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// The position behind a block of `len` bytes at `number`, cut to whole steps and the region.
    #[inline]
    pub(crate) fn behind(&self, number: u64, len: u32) -> u64 {
        let region = self.region(number);
        let last = region.first + (region.end - region.start).div_ceil(self.step);
        last.min(number + (u64::from(len) / self.step).max(1))
    }

    /// The block of at most `len` bytes at position `number`, which is below the count.
    #[inline]
    pub(crate) fn block(&self, number: u64, len: u32, op: Op) -> Block {
        let region = self.region(number);
        let offset = region.start + (number - region.first) * self.step;
        let room = u32::try_from(region.end - offset).unwrap_or(u32::MAX);
        Block { op, file: region.file, offset, len: len.min(room) }
    }

    #[inline]
    fn region(&self, number: u64) -> &GridRegion {
        match self.regions.as_slice() {
            [only] => only,
            many => &many[many.partition_point(|region| region.first <= number) - 1],
        }
    }
}
