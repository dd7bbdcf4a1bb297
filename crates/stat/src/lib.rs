//! Counting: histograms, tallies, and the live counters that other threads may read.
//!
//! Nothing here reads a clock or knows files and GPUs; times come in as nanoseconds.

mod histogram;
mod live;
mod tally;

pub use histogram::{Histogram, Summary};
pub use live::{Live, LiveTotals, Window};
pub use tally::{Legs, Tally};
