//! Which block each thread moves next, and when that block is due.
//!
//! - [`sequence`]: the sequence of blocks of one thread, from a seed.
//! - [`blocks`]: what a planned job says of that sequence.
//! - [`cover`]: the bytes of its files that a planned job uses.
//! - [`pace`]: due times at a rate.
//! - [`feed`]: the ranges that readers of a training feed read, and for which step.
//! - [`lru`]: which samples stand in a tier of host memory.
//! - [`preset`]: workloads with a name, as job files in `presets/`.
//! - [`short`]: the same in a time of seconds, for a try.
//!
//! A [`sequence::BlockSequence`] and a [`pace::Pacer`] belong to one thread. They answer from their
//! own numbers, allocate nothing after they are made, take no lock and never block.
//!
//! To add a preset: a file `crates/job/presets/NAME.ini` and a row in [`preset::PRESETS`].
//!
//! It neither does an I/O nor reads a clock. Pure: no file, no clock, no environment.

pub mod blocks;
pub mod cover;
pub mod feed;
pub mod lru;
pub mod pace;
pub mod preset;
pub mod replay;
pub mod sequence;
pub mod short;
