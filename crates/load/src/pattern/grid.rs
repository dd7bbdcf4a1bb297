//! The places where random blocks may begin.

use super::{Block, RegionSpan, op};

/// Places in all regions, numbered one after another.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Distance of two places of one region, in bytes.
    step: u64,
    places: Vec<Places>,
    count: u64,
}

/// The places of one region.
#[derive(Debug, Clone, Copy)]
struct Places {
    /// Number of the first one.
    first: u64,
    file: u32,
    /// Byte offset of the first one.
    start: u64,
    /// End of the bytes that may be used.
    end: u64,
}

impl Grid {
    /// Every place where a block of `largest` bytes fits whole.
    pub(crate) fn whole_blocks(regions: &[RegionSpan], step: u64, largest: u64) -> Grid {
        Grid::new(regions, step, |length| (length - largest) / step + 1)
    }

    /// Places that together cover every byte when blocks are `step` long; the last of a region
    /// may have room for a shorter block only.
    pub(crate) fn covering(regions: &[RegionSpan], step: u64) -> Grid {
        Grid::new(regions, step, |length| length.div_ceil(step))
    }

    fn new(regions: &[RegionSpan], step: u64, count_of: impl Fn(u64) -> u64) -> Grid {
        let mut count = 0;
        let mut places = Vec::with_capacity(regions.len());
        for region in regions {
            let end = region.offset + region.length;
            places.push(Places { first: count, file: region.file, start: region.offset, end });
            count += count_of(region.length);
        }
        Grid { step, places, count }
    }

    /// How many places there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The block of at most `len` bytes at place `number`, which is below the count.
    #[inline]
    pub(crate) fn block(&self, number: u64, len: u32, op: op::Op) -> Block {
        let places = match self.places.as_slice() {
            [only] => only,
            many => &many[many.partition_point(|places| places.first <= number) - 1],
        };
        let offset = places.start + (number - places.first) * self.step;
        let room = u32::try_from(places.end - offset).unwrap_or(u32::MAX);
        Block { op, file: places.file, offset, len: len.min(room) }
    }
}
