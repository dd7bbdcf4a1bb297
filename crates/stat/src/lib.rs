//! Counting: histograms, tallies, and the live counters that other threads may read. And what a
//! few runs say of the next: intervals of ratios, the rank test.
//!
//! Nothing here reads a clock or knows files and GPUs; times come in as nanoseconds.

mod histogram;
pub mod infer;
mod live;
mod shared;
mod steady;
mod summary;
mod tally;

pub use histogram::{Histogram, enough_for};
pub use live::{Counted, Live, LiveTotals};
pub use shared::SharedHistogram;
pub use steady::{SteadyRule, SteadySeen};
pub use summary::Summary;
pub use tally::{Legs, Tally};
