//! How long the next block is.

use gpuio_record::BlockShare;

use super::error::SequenceError;
use super::stream::{Stream, Use};

/// Draws block sizes.
#[derive(Debug, Clone)]
pub(crate) enum Sizes {
    /// Always this many bytes.
    One(u32),
    /// By chance.
    Mix(Mix),
}

/// Ranges of sizes and their shares.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    ranges: Vec<Range>,
    stream: Stream,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    /// Share of this range and those before it, in per cent.
    up_to: u64,
    min: u32,
    step: u32,
    /// How many sizes the range has.
    count: u64,
}

impl Sizes {
    /// Checks the shares and makes a source of sizes.
    pub(crate) fn new(blocks: &[BlockShare], unit: u64, seed: u64) -> Result<Sizes, SequenceError> {
        let percent: u32 = blocks.iter().map(|block| u32::from(block.percent)).sum();
        if percent != 100 {
            return Err(SequenceError::Shares { percent });
        }
        let mut ranges = Vec::with_capacity(blocks.len());
        let mut up_to = 0;
        for block in blocks.iter().filter(|block| block.percent > 0) {
            up_to += u64::from(block.percent);
            ranges.push(range(block, unit, up_to)?);
        }
        match ranges.as_slice() {
            [only] if only.count == 1 => Ok(Sizes::One(only.min)),
            _ => Ok(Sizes::Mix(Mix { ranges, stream: Stream::new(seed, Use::Sizes) })),
        }
    }

    /// The largest size that can come, in bytes.
    pub(crate) fn largest(&self) -> u32 {
        match self {
            Sizes::One(len) => *len,
            Sizes::Mix(mix) => mix
                .ranges
                .iter()
                .map(|range| range.size(range.count - 1))
                .max()
                .expect("shares that sum to 100 leave at least one range"),
        }
    }

    /// The smallest size that can come, in bytes.
    pub(crate) fn smallest(&self) -> u32 {
        match self {
            Sizes::One(len) => *len,
            Sizes::Mix(mix) => mix
                .ranges
                .iter()
                .map(|range| range.min)
                .min()
                .expect("shares that sum to 100 leave at least one range"),
        }
    }

    /// The next size in bytes.
    #[inline]
    pub(crate) fn draw(&mut self) -> u32 {
        match self {
            Sizes::One(len) => *len,
            Sizes::Mix(mix) => mix.draw(),
        }
    }
}

impl Mix {
    fn draw(&mut self) -> u32 {
        let roll = self.stream.below(100);
        // Both draws happen always, so that one range's count does not shift the next draws.
        let within = self.stream.below(1 << 32);
        let last = self.ranges.len() - 1;
        let index = self.ranges.iter().position(|range| roll < range.up_to).unwrap_or(last);
        let range = self.ranges[index];
        range.size((within * range.count) >> 32)
    }
}

impl Range {
    /// The size at `index`, which is below the count; at most the range's greatest.
    fn size(&self, index: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "at most max_bytes, checked as u32")]
        let size = (u64::from(self.min) + index * u64::from(self.step)) as u32;
        size
    }
}

fn range(block: &BlockShare, unit: u64, up_to: u64) -> Result<Range, SequenceError> {
    let bad = |why| SequenceError::BlockRange {
        min: block.min_bytes,
        max: block.max_bytes,
        step: block.step_bytes,
        why,
    };
    if block.min_bytes == 0 {
        return Err(bad("a block has at least one byte"));
    }
    if block.max_bytes < block.min_bytes {
        return Err(bad("the largest size is below the smallest"));
    }
    if block.max_bytes > block.min_bytes && block.step_bytes == 0 {
        return Err(bad("a range of sizes needs a step"));
    }
    let min = u32::try_from(block.min_bytes).ok();
    let Some((min, _)) = min.zip(u32::try_from(block.max_bytes).ok()) else {
        return Err(bad("one I/O moves less than 4 GiB"));
    };
    let spread = block.max_bytes - block.min_bytes;
    let count = if spread == 0 { 1 } else { spread / block.step_bytes + 1 };
    // A step beyond the spread leaves one size and is never used.
    let step = if count == 1 { 0 } else { block.step_bytes };
    for value in [block.min_bytes, step] {
        if value % unit != 0 {
            return Err(SequenceError::Alignment { what: "block size or step", value, unit });
        }
    }
    let step = u32::try_from(step).map_err(|_| bad("one I/O moves less than 4 GiB"))?;
    Ok(Range { up_to, min, step, count })
}
