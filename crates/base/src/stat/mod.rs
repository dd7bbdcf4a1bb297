//! Statistics: histograms, tallies, live counters that other threads may read, confidence
//! intervals of ratios, and the rank test.
//!
//! Nothing here reads a clock or knows files and GPUs; times are nanoseconds that the caller
//! passes. The histogram is our own: recording never fails, memory and error are fixed, it has one
//! counter per value range, merges exactly and serialises sparsely. Student's t is our own too,
//! tested against SciPy (`tests/scipy`).

mod buckets;
mod histogram;
pub mod infer;
mod io_log;
mod live;
mod percentile;
mod shared;
mod steady;
mod summary;
mod tally;

pub use buckets::Buckets;
pub use histogram::{Histogram, enough_for};
pub use io_log::{IoLine, IoLines, IoLog, LogSpace};
pub use live::{Counted, Live, LiveTotals, add_single_writer};
pub use percentile::Percentile;
pub use shared::SharedHistogram;
pub use steady::{SteadyRule, SteadySeen};
pub use summary::Summary;
pub use tally::{Legs, Tally};
