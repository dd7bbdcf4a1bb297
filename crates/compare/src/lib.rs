//! Holds measurements against each other: pairs like with like, gives each ratio with the interval
//! that it may lie in, and lists what makes two results no fair pair.
//!
//! Pure: [`of_record::runs`] and [`of_reading::run`] make [`Run`]s, [`compare`] makes a
//! [`Comparison`] of them, [`text`], [`markdown`] and [`json`] print it. What is held against what
//! and why is in `docs/compare.md`.

mod aspect;
pub mod axis;
mod cell;
mod comparison;
mod difference;
mod figure;
mod job;
pub mod json;
mod judge;
pub mod markdown;
mod metric;
pub mod of_reading;
pub mod of_record;
mod pair;
mod run;
mod storage;
pub mod sweep;
mod table;
pub mod text;
mod threshold;

pub use aspect::{ASPECTS, Aspect, Kind, is_flag};
pub use comparison::{Alone, Comparison, Options, Pair, SideLine, compare};
pub use difference::Difference;
pub use figure::{Basis, Row, Verdict};
pub use metric::{METRICS, Metric};
pub use run::{Figure, Run, Side};
pub use threshold::Threshold;

/// The level of every interval: it holds the true ratio in 95 of 100 comparisons.
pub const LEVEL: f64 = 0.95;
