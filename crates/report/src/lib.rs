//! Formats records: one format per file, each a pure function from the record (or the plan) to
//! text.
//!
//! Nothing here measures, reads the system, prints, or looks at anything but its argument. Every
//! function may be called from any thread and gives the same text for the same record.
//!
//! - `format/` prints one record. `format/text/table.rs` has the columns of the text table and, in
//!   the same order, the fields behind them; `load` and `evidence` compute the fields.
//! - [`set`] shows several records: `rows` (job and direction), `axes` (in what rows differ),
//!   `figures` (what was measured), `series`. Each is a table, and every format walks the tables.
//! - `set/html` writes one page: text that needs no script, blocks of JSON in columns, and the
//!   scripts of `assets/`, in the order in which `html/mod.rs` lists them. Distributions and
//!   series are parsed only when their plot is shown; records are packed (gzip, base64) until the
//!   reader saves them. `devices` selects what is shown of sampled devices; `origin` decides
//!   whether a record was made on a given machine, so that the `cli` draws only that machine's
//!   topology. Tests open the page in Chromium where it is installed.
//!
//! To add a format: a file `format/NAME.rs` and a row in [`FORMATS`], or `set/NAME.rs` and a row
//! in `SET_FORMATS`. To add a figure, axis or series: a row in `FIGURES`, `AXES` or `LINES` in
//! `set`.

mod ceilings;
mod expected;
pub mod format;
mod number;
mod printable;
pub mod set;
mod workload;
mod wrap;

pub use format::gdsio;
pub use format::plan::plan_text;
pub use format::text::{render_text, render_text_with_evidence};
pub use format::{FORMATS, Row, find};
