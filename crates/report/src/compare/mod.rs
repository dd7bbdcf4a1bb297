//! Compares measurements: pairs like with like, computes each ratio with its confidence interval,
//! and lists the differences that make two results no fair pair.
//!
//! Pure: [`of_record::runs`] and [`of_reading::run`] make [`Run`]s, [`compare`] makes a
//! [`Comparison`] of them, and [`render`] prints it. The reasons
//! are in `docs/compare.md`.
//!
//! - A `Run` holds facts by the keys of `ASPECTS` and figures by the names of
//!   `gpuio_record::metric`. A row of `ASPECTS` has its key, the flag of `--despite`, whether a
//!   difference is refused or only shown, and a function each for gpuio's records and for another
//!   tool's reading.
//! - `keys` has every other key of job files that makes the load, `facts` every other fact of a
//!   record, by its place in it.
//! - `cell` joins repeats, `pair` finds partners, `difference` compares aspects and facts,
//!   `evaluate` computes ratio, interval and verdict with `stat::infer`, which is tested against
//!   SciPy.
//! - The verb reads files; `bench --ab` makes records alternately and calls the same functions.
//!
//! To add a reason against a comparison: a row of `ASPECTS`.

mod aspect;
pub mod axis;
mod cell;
mod comparison;
mod difference;
mod evaluate;
mod facts;
mod figure;
pub(crate) mod job;
pub(crate) mod keys;
pub mod of_reading;
pub mod of_record;
mod pair;
mod run;
mod shown;
mod storage;
mod threshold;

pub use aspect::{ASPECTS, Aspect, Kind, flags, is_flag};
pub(crate) use comparison::CHOSEN;
pub use comparison::{Alone, Comparison, Options, Pair, SideLine, compare};
pub use difference::Difference;
pub use figure::{Basis, Row, Verdict};
pub use keys::names as load_keys;
pub use run::{Figure, Run, Side, count_once};
pub use shown::render;
pub use threshold::{Check, Doubt, Outcome, Threshold};

/// The level of every interval: it holds the true ratio in 95 of 100 comparisons.
pub const LEVEL: f64 = 0.95;
