//! Samples counters of devices, and computes rates from two samples; [`page`] has the counters of
//! a running process in shared memory, which others read.
//!
//! A [`Watcher`] reads every [`Probe`] of [`PROBES`] into a [`Sample`]: counters as the kernel or
//! the driver gives them, with the time on the monotonic clock. [`Interval::between`] is a pure
//! function of two samples. A counter of 32 bits may wrap once. If one of 64 bits goes back, all
//! figures of that device are unknown for the interval. Devices may come and go. `select` turns
//! files, mounts and names into devices by the machine's facts.
//!
//! Reads kernel files through `host` and GPUs through `drivers`; writes, prints and starts nothing.
//! A [`Watcher`] belongs to one thread at a time. Users: `gpuio top` (screen, lines, Prometheus),
//! and `load::evidence`, which samples the devices below a job's files during the run.
//!
//! To add a kind of device: a file `probe/NAME.rs` with its metrics (key, unit, scale, width), the
//! figures made from a change and the one for its history, a row in [`PROBES`], and a row in
//! docs/top.md. To add a counter of a known kind: a row of its probe's `METRICS`, and of `FIGURES`
//! where it is shown.

mod counters;
mod interval;
mod metric;
pub mod openmetrics;
pub mod page;
pub mod print;
mod probe;
mod sample;
mod select;

pub use counters::Counters;
pub use interval::{Interval, Row, Table};
pub use metric::{Change, Figure, Form, Kind, Metric};
pub use probe::{Eye, PROBES, Probe, Reading, Trend};
pub use sample::{Sample, Watcher};
pub use select::{NameAbsent, Selection, behind, select, way_to};
