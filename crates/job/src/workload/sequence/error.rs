//! Errors in the shape of a sequence of blocks.

use thiserror::Error;

/// A sequence that cannot be: each message names the numbers that do not fit.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SequenceError {
    #[error("a thread has no region to work on; give it a file, or use fewer threads")]
    NoRegion,
    #[error(
        "blocks with a distance between them lie in one file of each thread; use one file, or \
         rw= without the number behind the colon"
    )]
    SeveralRegions,
    /// A region without a byte.
    #[error(
        "region {region} (file {file}, offset {offset}) has no bytes; \
         give each thread a --size above 0"
    )]
    EmptyRegion {
        /// Its position in the list.
        region: usize,
        file: u32,
        /// Its first byte.
        offset: u64,
    },
    #[error(
        "a block of {block} bytes does not fit into region {region} \
         (file {file}, offset {offset}): of its {length} bytes {usable} can be used \
         after a skew of {skew} and in units of {unit}; \
         use a smaller --bs or a larger --size"
    )]
    BlockTooLarge {
        /// Largest block, in bytes.
        block: u64,
        /// Its position in the list.
        region: usize,
        file: u32,
        /// Its first byte.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// Skew in bytes.
        skew: u64,
        /// Unit in bytes.
        unit: u64,
        /// The usable length, in bytes.
        usable: u64,
    },
    /// A region beyond the last offset that a file can have.
    #[error(
        "region {region} (file {file}) ends past 2^63 - 1: offset {offset} and length {length}; \
         Linux counts file offsets as signed 64-bit numbers"
    )]
    TooFar {
        /// Its position in the list.
        region: usize,
        file: u32,
        /// Its first byte.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// Blocks of several sizes, each byte once, over too many positions.
    #[error(
        "blocks of several sizes that cover the file need a map of {positions} positions, {bytes} \
         bytes of memory for each thread; use norandommap, larger blocks, or less --size"
    )]
    MapTooLarge { positions: u64, bytes: u64 },
    /// Shares of block sizes do not make a whole.
    #[error("the shares of the block sizes sum to {percent} per cent; they must sum to 100")]
    Shares { percent: u32 },
    /// A range of block sizes that has no meaning.
    #[error("block sizes from {min} to {max} bytes in steps of {step}: {why}")]
    BlockRange {
        /// Smallest size in bytes.
        min: u64,
        /// Largest size in bytes.
        max: u64,
        /// Step in bytes.
        step: u64,
        why: &'static str,
    },
    /// A number that is off the grid that the file demands.
    #[error(
        "{what} {value} is not a multiple of {unit} bytes, which this file demands of direct I/O; \
         use a multiple of {unit}, or go through the page cache with --buffered"
    )]
    Alignment {
        what: &'static str,
        /// The number, in bytes.
        value: u64,
        /// The grid, in bytes.
        unit: u64,
    },
    /// Blocks that do not fit those of a stripe.
    #[error(
        "blocks that lie apart must all have {block} bytes, and regions and alignment be multiples \
         of that; use one --bs, or another layout"
    )]
    Striped {
        /// Length of a block of the stripe in bytes.
        block: u64,
    },
    /// A number that must be above 0.
    #[error("{what} is 0; it must be at least 1")]
    Zero { what: &'static str },
    /// A share of reads above 100.
    #[error("a share of {percent} per cent reads; it must be 0 to 100")]
    ReadShare { percent: u8 },
    /// A distribution's parameter is out of range.
    #[error("{distribution} with {parameter} = {value}: {wanted}")]
    Parameter {
        distribution: &'static str,
        parameter: &'static str,
        value: f64,
        wanted: &'static str,
    },
    /// Coverage together with hot blocks.
    #[error(
        "coverage visits every block equally often and {distribution} does not; \
         drop coverage, or use the uniform distribution"
    )]
    CoverageIsUniform { distribution: &'static str },
}
