//! Reports: one format per file, each a pure function from the record (or the plan) to text.
//!
//! Nothing here measures, reads the system, prints, or looks at anything but its argument. Every
//! function may be called from any thread and gives the same text for the same record.

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
