//! Blocks by chance.

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
    seed: u64,
    visited: u64,
    pass: u64,
    passes: Option<u64>,
}

impl Cover {
    pub(crate) fn new(grid: Grid, seed: u64, passes: Option<u64>) -> Cover {
        let order = Permutation::new(grid.count(), seed, 1);
        Cover { grid, order, seed, visited: 0, pass: 1, passes }
    }

    #[inline]
    pub(crate) fn next(&mut self, len: u32, op: Op) -> Option<Block> {
        if self.visited == self.order.count() {
            self.again()?;
        }
        let position = self.order.at(self.visited);
        self.visited += 1;
        Some(self.grid.block(position, len, op))
    }

    /// Begins the next pass; `None` after the last.
    #[cold]
    fn again(&mut self) -> Option<()> {
        if self.passes.is_some_and(|passes| self.pass >= passes) {
            return None;
        }
        self.pass += 1;
        self.visited = 0;
        self.order = Permutation::new(self.grid.count(), self.seed, self.pass);
        Some(())
    }
}
