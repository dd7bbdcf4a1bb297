//! Blocks that follow the one before them in another way than the order's own.

use gpuio_record::Follow;

use super::error::SequenceError;
use super::random::Draws;
use super::stream::{Stream, Use};
use super::{Block, Op, RegionSpan, SequenceConfig};

/// In order, with a distance from the end of each block to the next. As in fio, reads and writes
/// of a mix have a position each; past an end of the region it goes on from the other one; and a
/// block that ends where the region does is the last of a pass.
#[derive(Debug, Clone)]
pub(crate) struct Gaps {
    region: RegionSpan,
    bytes: i64,
    /// The ends of the last read and of the last write; `None` before the first.
    ends: [Option<u64>; 2],
    /// Passes that are still to begin after this one; `None` without end.
    passes_left: Option<u64>,
    /// Positions are multiples of this behind the region's begin.
    unit: u64,
    over: bool,
}

impl Gaps {
    /// Within one region.
    pub(crate) fn new(
        config: &SequenceConfig,
        regions: &[RegionSpan],
    ) -> Result<Gaps, SequenceError> {
        let bytes = match config.follow {
            Some(Follow::Gap { bytes }) => bytes,
            _ => 0,
        };
        let [region] = regions else { return Err(SequenceError::SeveralRegions) };
        let unit = config.unit_bytes;
        if !bytes.unsigned_abs().is_multiple_of(unit) {
            let (what, value) = ("the distance between blocks", bytes.unsigned_abs());
            return Err(SequenceError::Alignment { what, value, unit });
        }
        let passes_left = config.passes.map(|passes| passes - 1);
        Ok(Gaps { region: *region, bytes, ends: [None; 2], passes_left, unit, over: false })
    }

    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        let RegionSpan { file, offset: first, length } = self.region;
        let at = match self.ends[usize::from(op == Op::Write)] {
            _ if self.over => return None,
            None => 0,
            Some(end) if end >= length => {
                self.again()?;
                0
            }
            Some(end) => self.behind(end),
        };
        let len = u32::try_from(length - at).unwrap_or(u32::MAX).min(len);
        self.ends[usize::from(op == Op::Write)] = Some(at + u64::from(len));
        Some(Block { op, file, offset: first + at, len })
    }

    /// Where the block behind one that ended there begins, which is within the region.
    fn behind(&self, end: u64) -> u64 {
        let length = self.region.length;
        match end.checked_add_signed(self.bytes) {
            Some(at) if at < length => at,
            _ if self.bytes > 0 => 0,
            // From the end of the region backwards, as far as it reaches.
            _ => {
                let at = length.saturating_sub(self.bytes.unsigned_abs());
                at - at % self.unit
            }
        }
    }

    #[cold]
    fn again(&mut self) -> Option<()> {
        match &mut self.passes_left {
            Some(0) => {
                self.over = true;
                return None;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.ends = [None; 2];
        Some(())
    }
}

/// By chance, with blocks between that follow the last one of their direction. They may come to
/// blocks that were accessed before; at the end of a region the next is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    draws: Draws,
    follow: Follow,
    regions: Vec<RegionSpan>,
    stream: Stream,
    /// Blocks that still follow the one that was drawn.
    left: u64,
    /// The last read and the last write.
    last: [Option<Block>; 2],
}

impl Runs {
    pub(crate) fn new(draws: Draws, follow: Follow, regions: Vec<RegionSpan>, seed: u64) -> Runs {
        let stream = Stream::new(seed, Use::Follow);
        Runs { draws, follow, regions, stream, left: 0, last: [None; 2] }
    }

    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        let side = usize::from(op == Op::Write);
        let follows = self.follows(op);
        let behind = if follows { self.behind(side, len) } else { None };
        let block = match behind {
            Some(block) => self.draws.took(Block { op, ..block })?,
            None if follows && matches!(self.follow, Follow::Share { .. }) => {
                self.first(side, len, op)?
            }
            None => self.draws.next(len, op)?,
        };
        self.last[side] = Some(block);
        Some(block)
    }

    /// Whether the next block is not drawn.
    fn follows(&mut self, op: Op) -> bool {
        match self.follow {
            Follow::Run { ios, .. } => {
                let drawn = self.left == 0;
                self.left = if drawn { ios.saturating_sub(1) } else { self.left - 1 };
                !drawn
            }
            Follow::Share { reads, writes } => {
                let share = if op == Op::Write { writes } else { reads };
                self.stream.below(100) >= u64::from(share)
            }
            Follow::Gap { .. } => false,
        }
    }

    /// A block behind the last one of this direction, or at its offset; `None` where none was
    /// before, or where the region has no space behind it.
    fn behind(&self, side: usize, len: u32) -> Option<Block> {
        let last = self.last[side]?;
        if matches!(self.follow, Follow::Run { same: true, .. }) {
            return Some(Block { len: len.min(last.len), ..last });
        }
        let offset = last.offset + u64::from(last.len);
        let within = |region: &&RegionSpan| {
            region.file == last.file
                && (region.offset..region.offset + region.length).contains(&last.offset)
        };
        let region = self.regions.iter().find(within)?;
        let room = (region.offset + region.length).checked_sub(offset).filter(|room| *room > 0)?;
        let len = u32::try_from(room).unwrap_or(u32::MAX).min(len);
        Some(Block { offset, len, ..last })
    }

    /// The first block in order: the begin of the region after the last one's.
    fn first(&mut self, side: usize, len: u32, op: Op) -> Option<Block> {
        let of = |last: Block| {
            let within = |region: &RegionSpan| {
                region.file == last.file
                    && (region.offset..region.offset + region.length).contains(&last.offset)
            };
            self.regions.iter().position(within).map_or(0, |at| (at + 1) % self.regions.len())
        };
        let region = self.regions[self.last[side].map_or(0, of)];
        let len = u32::try_from(region.length).unwrap_or(u32::MAX).min(len);
        self.draws.took(Block { op, file: region.file, offset: region.offset, len })
    }
}
