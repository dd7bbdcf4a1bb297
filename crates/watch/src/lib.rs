//! What devices do: raw samples of counters, and rates from two of them.
//!
//! A [`Watcher`] reads every [`Probe`] of [`PROBES`] into a [`Sample`]: counters as the kernel or
//! the driver gives them, with the moment on the monotonic clock. [`Interval::between`] is a pure
//! function of two samples. Counters that wrap are followed, those that went back make all figures
//! of their device unknown for that interval, and devices come and go.
//!
//! Reads kernel files through `host` and GPUs through `nvml`; writes, prints and starts nothing.
//! A [`Watcher`] belongs to one thread at a time.

mod interval;
mod metric;
pub mod openmetrics;
pub mod print;
mod probe;
mod sample;
mod select;

pub use interval::{Interval, Row, Table};
pub use metric::{Change, Figure, Form, Kind, Metric};
pub use probe::{Eye, PROBES, Probe, Reading};
pub use sample::{Sample, Watcher};
pub use select::{Selection, Unknown, behind, select, way_to};
