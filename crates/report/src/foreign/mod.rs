//! Parses what other load generators print: gdsio's result lines, fio's JSON and text, elbencho's
//! CSV and text.
//!
//! Each parser gives [`Reading`]s: a result with what the tool reports about the load. A fact that
//! it does not report is absent, never guessed; a figure carries the possible error of its printed
//! digits. Nothing here reads a file or compares.
//!
//! To add a tool: a file here and a row in `TOOLS`.

pub(crate) mod elbencho;
pub(crate) mod elbencho_text;
mod error;
pub(crate) mod fio;
pub(crate) mod fio_text;
pub(crate) mod gdsio;
mod reading;

pub use error::ForeignError;
pub use reading::{Direction, Number, Output, Reading, Skipped};

/// A tool whose results can be read.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// How it measures, where that is not how gpuio does: what to know before its figures are held
    /// against another tool's.
    pub measures: &'static [&'static str],
    /// Whether a text looks like it.
    pub looks: fn(&str) -> bool,
    /// Reads it.
    pub read: fn(&str) -> Result<Output, ForeignError>,
}

/// Every tool. Texts are tried in this order.
pub const TOOLS: &[Tool] =
    &[gdsio::TOOL, fio::TOOL, elbencho::TOOL, fio_text::TOOL, elbencho_text::TOOL];

/// Reads a text of whichever tool it looks like.
///
/// # Errors
/// [`ForeignError`]: no tool's form, or one that is cut or broken.
pub fn read(text: &str) -> Result<(&'static Tool, Output), ForeignError> {
    let tool = TOOLS.iter().find(|tool| (tool.looks)(text));
    let tool = tool.ok_or(ForeignError::Strange)?;
    Ok((tool, (tool.read)(text)?))
}
