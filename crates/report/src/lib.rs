//! Formats records: one format per file, each a pure function from the record (or the plan) to
//! text. [`compare`] computes ratios of results, [`foreign`] reads those of other tools, and
//! [`post`] holds commands, results and other tools' counters of one text against each other.
//!
//! Nothing here measures, reads the system, prints, or looks at anything but its argument. Every
//! function may be called from any thread and gives the same text for the same record.
//!
//! - Whatever people read is a `gpuio_base::document::Document`: sections here, markup and columns
//!   there.
//! - `format/` prints one record. `format/text/table.rs` has the columns of the table of results
//!   and the fields of the record behind them (`job_line`); the other sections have a file each
//!   beside it. `ranks` is what text and page say of several ranks.
//! - [`set`] shows several records: `rows` (job and direction), `axes` (in what rows differ),
//!   `series`. Each is a table, as `gpuio_record::metric` is (what was measured), and every format
//!   walks the tables.
//! - `set/conclusion` and `set/plot` make the first screen: two sentences, and one plot that needs
//!   no script, which is also the format `svg`.
//! - `set/document` has the sections of Markdown and of the page.
//! - `set/html` writes one page: text that needs no script, blocks of JSON in columns, and the
//!   scripts of `assets/`, in the order in which `set/html/mod.rs` lists them. Distributions and
//!   series are parsed only when their plot is shown; records are packed (gzip, base64) until the
//!   reader saves them. `devices` selects what is shown of sampled devices; `origin` decides
//!   whether a record was made on a given machine, so that the `cli` draws only that machine's
//!   topology. Tests open the page in Chromium where it is installed.
//!
//! Where the field behind a column is computed:
//!
//! - throughput, IOPS, failed: `load/src/run/results.rs`
//! - p50 … max: the time at which an I/O is due: `load/src/run/timed/mod.rs`; its end:
//!   `Host::complete` in `io/src/path/host.rs`, `Requests::complete` in `io/src/path/two_legs.rs`
//!   and the like of other paths; the difference: `Loop::complete`, which counts it in
//!   `Live` (`base/src/stat/live.rs`, `base/src/stat/shared.rs`); the sum at the end:
//!   `load/src/run/timed/leave.rs` and `load/src/run/results.rs`, then `Histogram::summary`
//!   (`base/src/stat/histogram/mod.rs`)
//! - CPUs, µs/MiB: `Usage` in `load/src/run/rusage.rs`; whose CPU time it is: `whose` in
//!   `load/src/run/results.rs`
//! - rows of totals, all of the above: `load/src/run/total.rs`
//! - path taken: `load/src/evidence/verdict`, from the evidence sources in
//!   `load/src/evidence/source`
//! - % of: `load/src/ceiling/lowest.rs`; loads of ceilings in `job/src/plan/ceiling`, other
//!   ceilings beside `lowest.rs`
//! - verified: `load/src/run/verify/mod.rs`
//! - cached, from storage, to storage: `load/src/evidence/snapshot.rs`
//! - page cache pinned, reads until it pays: `load/src/run/mapped/mod.rs`
//! - device columns: `watch/src/probe/mod.rs`, `load/src/evidence/series.rs`
//! - expected, bottleneck: `machine/src/flow/fill.rs`; of several ranks `machine/src/flow/hosts.rs`
//! - ratio, interval, verdict of `compare`: `report/src/compare/evaluate.rs`,
//!   `base/src/stat/infer/mod.rs`
//!
//! The place of a column of the CSV: `csv` in the rows of `record/src/metric/rows.rs`; a percentile
//! adds its index.
//!
//! To add a format: a file `format/NAME.rs` and a row in [`FORMATS`], or `set/NAME.rs` and a row
//! in `SET_FORMATS`. To add a metric: a row in `gpuio_record::metric`; an axis: a row in `AXES` in
//! `set`.

mod ceilings;
pub mod compare;
mod copies;
mod doubts;
mod expected;
mod fast_enough;
pub mod foreign;
pub mod format;
mod number;
mod others;
pub mod post;
mod printable;
mod ranks;
mod recheck;
pub mod set;
mod standing;
pub mod verification;
mod workload;

pub use copies::Content;
pub use doubts::{first_of, kinds as doubt_kinds, of_record as doubts_of_record};
pub use fast_enough::{FastEnough, fast_enough};
pub use format::gdsio;
pub use format::plan::plan_text;
pub use format::text::{render_text, render_text_with_evidence};
pub use format::{FORMATS, Row, find};
pub use recheck::{Recheck, recheck, unknown_fields};
pub use standing::{MARKS, legend, marks_of_record, together as marks_together};
