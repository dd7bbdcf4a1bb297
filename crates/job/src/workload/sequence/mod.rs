//! Which block comes next.
//!
//! A [`BlockSequence`] is one thread's: it answers from its own numbers alone, allocates nothing
//! after [`BlockSequence::new`] and takes no lock. Everything follows from the seed, so that one
//! seed gives one sequence on every machine, and offsets do not depend on the mix of reads and
//! writes.

mod error;
mod follow;
mod grid;
pub(crate) mod permutation;
mod random;
mod sequential;
mod sizes;
pub(crate) mod spread;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use gpuio_base::catalog::Op;
use gpuio_record::{BlockShare, Distribution, DrawnSizes, Follow, Order, Stripe};

pub use error::SequenceError;
use follow::{Gaps, Runs};
use grid::Grid;
use random::{Cover, Draws};
use sequential::{Turns, Walk};
use sizes::Sizes;
use spread::Spread;
use stream::{Stream, Use};

/// The shape of a thread's blocks. Sizes and offsets in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceConfig {
    pub order: Order,
    /// Where a block begins that the order alone does not say.
    pub follow: Option<Follow>,
    /// Sizes and their shares in per cent, which sum to 100; each size below 4 GiB.
    pub blocks: Vec<BlockShare>,
    /// The same of writes; empty where they have those of reads.
    pub write_blocks: Vec<BlockShare>,
    /// Random offsets are `region offset + k * align_bytes + skew_bytes`. With coverage a value
    /// below the smallest block has no effect. Sequential offsets follow one another and ignore it.
    pub align_bytes: u64,
    /// Added to every offset. It shortens each region from its start, so that blocks stay inside.
    pub skew_bytes: u64,
    /// Lengths, and offsets before the skew, are multiples of this: what O_DIRECT demands of the
    /// file, and 1 through the page cache. The rest of a region below one unit is left out.
    pub unit_bytes: u64,
    /// Share of reads, 0 to 100, drawn for each I/O.
    pub read_percent: u8,
    /// Where to work, in this order.
    pub regions: Vec<RegionSpan>,
    /// How the blocks of each region lie apart, of which all then have the same offset; blocks are
    /// as long as its blocks, and random ones aligned to them. `None` where regions are ranges.
    pub stripe: Option<Stripe>,
    /// In sequential order: a block of each region in turn, instead of one region after the other.
    pub in_turn: bool,
    /// In sequential order: regions may be shorter than a block, and are then read in one.
    pub short_regions: bool,
    /// Seed of everything random here.
    pub seed: u64,
    /// Times through the regions, at least 1; `None` without end. Sequential order: full passes.
    /// Coverage: each block once per pass. Otherwise: until as many bytes came as the regions hold.
    pub passes: Option<u64>,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionSpan {
    /// Index into the worker's files.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// One I/O: never empty, never across the end of its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Read or write.
    pub op: Op,
    /// Index into the worker's files.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// The blocks of one thread, one by one.
#[derive(Debug, Clone)]
pub struct BlockSequence {
    offsets: Offsets,
    sizes: Sizes,
    /// Sizes of writes, where they have some of their own.
    write_sizes: Option<Sizes>,
    directions: Directions,
    /// The sizes that were drawn so far, where there are several.
    drawn: Option<DrawnSizes>,
    /// Where blocks of a region in one piece really lie: from this offset on, so far apart.
    stripe: Option<(u64, Stripe)>,
}

#[derive(Debug, Clone)]
enum Offsets {
    Sequential(Walk),
    Turns(Turns),
    Draws(Draws),
    Cover(Cover),
    Gaps(Gaps),
    Runs(Runs),
}

#[derive(Debug, Clone)]
enum Directions {
    Only(Op),
    Mixed { read_percent: u64, stream: Stream },
}

impl BlockSequence {
    /// Checks a configuration and makes its sequence.
    ///
    /// # Errors
    /// [`SequenceError`] when no block fits, numbers are off the unit or shares make no sense.
    pub fn new(config: &SequenceConfig) -> Result<BlockSequence, SequenceError> {
        check_numbers(config)?;
        let sizes = Sizes::new(&config.blocks, config.unit_bytes, config.seed)?;
        let write_sizes = match config.write_blocks.as_slice() {
            [] => None,
            blocks => Some(Sizes::new(blocks, config.unit_bytes, config.seed)?),
        };
        let largest = write_sizes.as_ref().map_or(0, Sizes::largest).max(sizes.largest());
        let largest = u64::from(largest);
        let regions = usable(config, largest)?;
        let offsets = match &config.order {
            Order::Sequential if matches!(config.follow, Some(Follow::Gap { .. })) => {
                Offsets::Gaps(Gaps::new(config, &regions)?)
            }
            Order::Sequential if config.in_turn => {
                Offsets::Turns(Turns::new(regions, config.passes))
            }
            Order::Sequential => Offsets::Sequential(Walk::new(regions, config.passes)),
            Order::Random { distribution, coverage: true } => {
                if !matches!(distribution, Distribution::Uniform) {
                    let distribution = Spread::name(distribution);
                    return Err(SequenceError::CoverageIsUniform { distribution });
                }
                let smallest = write_sizes.as_ref().map_or(u32::MAX, Sizes::smallest);
                let step = u64::from(sizes.smallest().min(smallest)).max(config.align_bytes);
                let grid = Grid::covering(&regions, step);
                Offsets::Cover(if largest > step {
                    Cover::of_sizes(grid, config.seed, config.passes)?
                } else {
                    Cover::new(grid, config.seed, config.passes)
                })
            }
            Order::Random { distribution, coverage: false } => {
                let total: u128 = regions.iter().map(|region| u128::from(region.length)).sum();
                let grid = Grid::whole_blocks(&regions, config.align_bytes, largest);
                let spread = Spread::new(distribution, grid.count(), total)?;
                let bytes = config.passes.map(|passes| total.saturating_mul(u128::from(passes)));
                let draws = Draws::new(grid, spread, config.seed, bytes);
                match config.follow {
                    Some(follow @ (Follow::Run { .. } | Follow::Share { .. })) => {
                        Offsets::Runs(Runs::new(draws, follow, regions, config.seed))
                    }
                    Some(Follow::Gap { .. }) | None => Offsets::Draws(draws),
                }
            }
        };
        let directions = Directions::new(config);
        let has_several = write_sizes.is_some() || !matches!(sizes, Sizes::One(_));
        let drawn = has_several.then(DrawnSizes::default);
        let stripe = stripe(config)?;
        Ok(BlockSequence { offsets, sizes, write_sizes, directions, drawn, stripe })
    }

    /// The direction of the next block by the mix, for [`BlockSequence::next_as`].
    #[inline]
    pub fn direction(&mut self) -> Op {
        self.directions.draw()
    }

    /// The sizes that were drawn so far, where there are several.
    pub fn drawn(&self) -> Option<DrawnSizes> {
        self.drawn
    }

    /// The next block; `None` once all passes are done, and from then on.
    #[expect(
        clippy::should_implement_trait,
        reason = "the hot loop wants one plain call, no adapters"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Block> {
        let op = self.directions.draw();
        self.next_as(op)
    }

    /// The next block, in this direction.
    #[inline]
    pub fn next_as(&mut self, op: Op) -> Option<Block> {
        let len = match (&mut self.write_sizes, op) {
            (Some(sizes), Op::Write) => sizes.draw(),
            _ => self.sizes.draw(),
        };
        let block = match &mut self.offsets {
            Offsets::Sequential(walk) => walk.next(len, op),
            Offsets::Turns(turns) => turns.next(len, op),
            Offsets::Draws(draws) => draws.next(len, op),
            Offsets::Cover(cover) => cover.next(len, op),
            Offsets::Gaps(gaps) => gaps.next(len, op),
            Offsets::Runs(runs) => runs.next(len, op),
        };
        if let (Some(drawn), Some(block)) = (&mut self.drawn, &block) {
            *drawn += DrawnSizes {
                ios: 1,
                cut_ios: u64::from(block.len < len),
                drawn_bytes: len.into(),
                bytes: block.len.into(),
            };
        }
        match (self.stripe, block) {
            (Some((first, stripe)), Some(block)) => {
                let offset = first + stripe.distance(block.offset - first);
                Some(Block { offset, ..block })
            }
            (_, block) => block,
        }
    }
}

impl Directions {
    fn new(config: &SequenceConfig) -> Directions {
        match config.read_percent {
            0 => Directions::Only(Op::Write),
            100 => Directions::Only(Op::Read),
            percent => Directions::Mixed {
                read_percent: percent.into(),
                stream: Stream::new(config.seed, Use::Directions),
            },
        }
    }

    #[inline]
    fn draw(&mut self) -> Op {
        match self {
            Directions::Only(op) => *op,
            Directions::Mixed { read_percent, stream } => {
                if stream.below(100) < *read_percent {
                    Op::Read
                } else {
                    Op::Write
                }
            }
        }
    }
}

/// Where striped blocks lie.
fn stripe(config: &SequenceConfig) -> Result<Option<(u64, Stripe)>, SequenceError> {
    let Some(stripe) = config.stripe else { return Ok(None) };
    let length = stripe.block_bytes;
    let first = config.regions.first().map_or(0, |region| region.offset);
    let random = matches!(config.order, Order::Random { .. });
    let same = config
        .blocks
        .iter()
        .chain(&config.write_blocks)
        .all(|one| (one.min_bytes, one.max_bytes) == (length, length));
    let whole = |span: &RegionSpan| span.offset == first && span.length.is_multiple_of(length);
    let fits = length > 0
        && same
        && config.follow.is_none()
        && config.skew_bytes == 0
        && config.regions.iter().all(whole)
        && (!random || config.align_bytes.is_multiple_of(length));
    if fits { Ok(Some((first, stripe))) } else { Err(SequenceError::Striped { block: length }) }
}

fn check_numbers(config: &SequenceConfig) -> Result<(), SequenceError> {
    if config.unit_bytes == 0 {
        return Err(SequenceError::Zero { what: "the unit of direct I/O" });
    }
    if config.align_bytes == 0 {
        return Err(SequenceError::Zero { what: "the alignment of offsets" });
    }
    if config.passes == Some(0) {
        return Err(SequenceError::Zero { what: "the number of passes" });
    }
    if config.read_percent > 100 {
        return Err(SequenceError::ReadShare { percent: config.read_percent });
    }
    let random = matches!(config.order, Order::Random { .. });
    if random && !config.align_bytes.is_multiple_of(config.unit_bytes) {
        return Err(SequenceError::Alignment {
            what: "the alignment of offsets",
            value: config.align_bytes,
            unit: config.unit_bytes,
        });
    }
    Ok(())
}

/// The regions as blocks may use them: begun after the skew, cut to whole units.
fn usable(config: &SequenceConfig, largest: u64) -> Result<Vec<RegionSpan>, SequenceError> {
    let (skew, unit) = (config.skew_bytes, config.unit_bytes);
    if config.regions.is_empty() {
        return Err(SequenceError::NoRegion);
    }
    let mut regions = Vec::with_capacity(config.regions.len());
    for (index, span) in config.regions.iter().enumerate() {
        let RegionSpan { file, offset, length } = *span;
        if length == 0 {
            return Err(SequenceError::EmptyRegion { region: index, file, offset });
        }
        if !offset.is_multiple_of(unit) {
            return Err(SequenceError::Alignment {
                what: "the offset of a region",
                value: offset,
                unit,
            });
        }
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > i64::MAX.cast_unsigned()) {
            return Err(SequenceError::TooFar { region: index, file, offset, length });
        }
        let usable = length.saturating_sub(skew) / unit * unit;
        let least = if config.short_regions { unit } else { largest };
        if usable < least {
            return Err(SequenceError::BlockTooLarge {
                block: largest,
                region: index,
                file,
                offset,
                length,
                skew,
                unit,
                usable,
            });
        }
        regions.push(RegionSpan { file, offset: offset + skew, length: usable });
    }
    Ok(regions)
}
