//! Blocks by chance.

use super::error::SequenceError;
use super::grid::Grid;
use super::permutation::Permutation;
use super::spread::Spread;
use super::stream::{Stream, Use};
use super::{Block, Op};

/// Draws positions without memory of those drawn before.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    grid: Grid,
    spread: Spread,
    /// Scatters hot ranks over the regions; `None` where ranks are positions.
    scatter: Option<Permutation>,
    stream: Stream,
    /// Bytes that are still to come; `None` without end.
    bytes_left: Option<u128>,
}

impl Draws {
    pub(crate) fn new(grid: Grid, spread: Spread, seed: u64, bytes: Option<u128>) -> Draws {
        let scatter = spread.has_hot_ranks().then(|| Permutation::new(grid.count(), seed, 0));
        Draws { grid, spread, scatter, stream: Stream::new(seed, Use::Offsets), bytes_left: bytes }
    }

    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        let rank = self.spread.draw(&mut self.stream, self.grid.count());
        let position = self.scatter.as_ref().map_or(rank, |scatter| scatter.at(rank));
        self.took(self.grid.block(position, len, op))
    }

    /// Counts a block, drawn or not; `None` once all bytes came.
    #[inline]
    pub(crate) fn took(&mut self, block: Block) -> Option<Block> {
        if self.bytes_left == Some(0) {
            return None;
        }
        if let Some(left) = &mut self.bytes_left {
            *left = left.saturating_sub(u128::from(block.len));
        }
        Some(block)
    }
}

/// Visits every position once per pass, in an order that differs from pass to pass.
#[derive(Debug, Clone)]
pub(crate) struct Cover {
    grid: Grid,
    order: Permutation,
    /// Positions of this pass that a block has; `None` where each block has one.
    taken: Option<Taken>,
    seed: u64,
    visited: u64,
    pass: u64,
    passes: Option<u64>,
}

impl Cover {
    /// Blocks of a grid's step, or of less.
    pub(crate) fn new(grid: Grid, seed: u64, passes: Option<u64>) -> Cover {
        let order = Permutation::new(grid.count(), seed, 1);
        Cover { grid, order, taken: None, seed, visited: 0, pass: 1, passes }
    }

    /// Blocks of one step or several. They are cut to whole steps, and before a position that a
    /// block of this pass has; one that would begin there begins at the next that is free. fio's
    /// are made so, too (fio(1), `norandommap`).
    ///
    /// # Errors
    /// The map of what was visited is too large.
    pub(crate) fn of_sizes(
        grid: Grid,
        seed: u64,
        passes: Option<u64>,
    ) -> Result<Cover, SequenceError> {
        let taken = Some(Taken::new(grid.count())?);
        Ok(Cover { taken, ..Cover::new(grid, seed, passes) })
    }

    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        let over = match &self.taken {
            Some(taken) => taken.left == 0,
            None => self.visited == self.order.count(),
        };
        if over {
            self.again()?;
        }
        let drawn = self.order.at(self.visited);
        self.visited += 1;
        let Some(taken) = &mut self.taken else {
            return Some(self.grid.block(drawn, len, op));
        };
        let position = taken.free_from(drawn);
        let count = taken.take(position, self.grid.behind(position, len));
        let most = u32::try_from(count.saturating_mul(self.grid.step())).unwrap_or(len);
        Some(self.grid.block(position, len.min(most), op))
    }

    /// Begins the next pass; `None` after the last.
    #[cold]
    fn again(&mut self) -> Option<()> {
        if self.passes.is_some_and(|passes| self.pass >= passes) {
            return None;
        }
        self.pass += 1;
        self.visited = 0;
        if let Some(taken) = &mut self.taken {
            taken.clear();
        }
        self.order = Permutation::new(self.grid.count(), self.seed, self.pass);
        Some(())
    }
}

/// A bit for each position, and one for each word of these that is full.
#[derive(Debug, Clone)]
struct Taken {
    words: Vec<u64>,
    full: Vec<u64>,
    count: u64,
    /// Positions that are free.
    left: u64,
}

impl Taken {
    /// Bytes at most: of 4 KiB blocks, those of 32 TiB.
    const MOST: u64 = 1 << 30;

    fn new(count: u64) -> Result<Taken, SequenceError> {
        let bytes = count.div_ceil(8);
        let zeros = |bits: u64| {
            let words = usize::try_from(bits.div_ceil(64)).ok()?;
            let mut made = Vec::new();
            made.try_reserve_exact(words).ok()?;
            made.resize(words, 0);
            Some(made)
        };
        let maps = (bytes <= Taken::MOST).then(|| zeros(count).zip(zeros(count.div_ceil(64))));
        let Some((words, full)) = maps.flatten() else {
            return Err(SequenceError::MapTooLarge { positions: count, bytes });
        };
        let mut made = Taken { words, full, count, left: 0 };
        made.clear();
        Ok(made)
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.full.fill(0);
        self.left = self.count;
        // Bits behind the last position are never free.
        let rest = self.count % 64;
        if let (Some(last), 1..) = (self.words.last_mut(), rest) {
            *last = u64::MAX << rest;
        }
    }

    /// The first free position from this one on, or else from the first one on: there is one.
    #[inline]
    fn free_from(&self, position: u64) -> u64 {
        let (word, bit) = at(position);
        let free = !self.words[word] & (u64::MAX << bit);
        if free != 0 {
            return word as u64 * 64 + u64::from(free.trailing_zeros());
        }
        let word = self.free_word(word + 1).or_else(|| self.free_word(0));
        let word = word.expect("a position is free, so a word is not full");
        word as u64 * 64 + u64::from(self.words[word].trailing_ones())
    }

    /// The first word from this one on that is not full.
    fn free_word(&self, from: usize) -> Option<usize> {
        let (first, bit) = (from / 64, from % 64);
        let begun = *self.full.get(first)? | ((1 << bit) - 1);
        let rest = self.full[first + 1..].iter().copied();
        let (nth, full) =
            std::iter::once(begun).chain(rest).enumerate().find(|(_, full)| *full != u64::MAX)?;
        let word = (first + nth) * 64 + full.trailing_ones() as usize;
        (word < self.words.len()).then_some(word)
    }

    /// Takes positions from this free one on, up to `end` or the next that is taken; how many.
    #[inline]
    fn take(&mut self, first: u64, end: u64) -> u64 {
        let mut position = first;
        while position < end {
            let (word, bit) = at(position);
            if self.words[word] >> bit & 1 == 1 {
                break;
            }
            self.words[word] |= 1 << bit;
            if self.words[word] == u64::MAX {
                self.full[word / 64] |= 1 << (word % 64);
            }
            position += 1;
        }
        self.left -= position - first;
        position - first
    }
}

/// A position's word and bit.
#[inline]
fn at(position: u64) -> (usize, u64) {
    let word = (position / 64) as usize;
    (word, position % 64)
}
