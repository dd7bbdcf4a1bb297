//! One block after another.

use super::{Block, Op, RegionSpan};

/// Walks through the regions in order, and again.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    regions: Vec<RegionSpan>,
    /// Position of the next region in the list.
    next_region: usize,
    file: u32,
    at: u64,
    end: u64,
    /// Full passes that are still to begin; `None` without end.
    passes_left: Option<u64>,
}

impl Walk {
    /// A walk through regions that are not empty.
    pub(crate) fn new(regions: Vec<RegionSpan>, passes: Option<u64>) -> Walk {
        let next_region = regions.len();
        Walk { regions, next_region, file: 0, at: 0, end: 0, passes_left: passes }
    }

    /// The next block: `len` bytes, or what is left of the region.
    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        if self.at == self.end {
            self.enter()?;
        }
        let room = u32::try_from(self.end - self.at).unwrap_or(u32::MAX);
        let block = Block { op, file: self.file, offset: self.at, len: len.min(room) };
        self.at += u64::from(block.len);
        Some(block)
    }

    /// Steps into the next region; `None` at the end of the last pass.
    #[cold]
    fn enter(&mut self) -> Option<()> {
        if self.next_region == self.regions.len() {
            if let Some(left) = &mut self.passes_left {
                *left = left.checked_sub(1)?;
            }
            self.next_region = 0;
        }
        let region = self.regions[self.next_region];
        self.next_region += 1;
        (self.file, self.at, self.end) =
            (region.file, region.offset, region.offset + region.length);
        Some(())
    }
}

/// Takes a block of each region in turn; a region that is done waits until all are.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    regions: Vec<RegionSpan>,
    /// Bytes of each region that came in this pass.
    done: Vec<u64>,
    turn: usize,
    passes_left: Option<u64>,
}

impl Turns {
    /// Turns of regions that are not empty.
    pub(crate) fn new(regions: Vec<RegionSpan>, passes: Option<u64>) -> Turns {
        let done = vec![0; regions.len()];
        // The first pass begins here.
        Turns { regions, done, turn: 0, passes_left: passes.map(|passes| passes - 1) }
    }

    /// The next block: `len` bytes, or what is left of its region.
    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        let count = self.regions.len();
        let open = |at: &usize| self.done[*at] < self.regions[*at].length;
        let at = match (0..count).map(|step| (self.turn + step) % count).find(open) {
            Some(at) => at,
            None => {
                if let Some(left) = &mut self.passes_left {
                    *left = left.checked_sub(1)?;
                }
                self.done.fill(0);
                0
            }
        };
        self.turn = (at + 1) % count;
        let region = self.regions[at];
        let room = u32::try_from(region.length - self.done[at]).unwrap_or(u32::MAX);
        let block = Block {
            op,
            file: region.file,
            offset: region.offset + self.done[at],
            len: len.min(room),
        };
        self.done[at] += u64::from(block.len);
        Some(block)
    }
}
