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

/// By how much a tool's own text and its JSON or CSV of one run differ at most: printed digits.
const ONE_RUN: f64 = 0.01;

/// Reads a text of all tools that it looks like: a post has those of several. A run that a tool
/// printed in two forms counts once.
///
/// # Errors
/// [`ForeignError`]: no tool's form, or only ones that are cut or broken.
pub fn read(text: &str) -> Result<(Vec<&'static Tool>, Output), ForeignError> {
    let (mut tools, mut all, mut wrong) = (Vec::new(), Output::default(), None);
    for tool in TOOLS.iter().filter(|tool| (tool.looks)(text)) {
        let output = match (tool.read)(text) {
            Ok(output) => output,
            Err(error) => {
                let why = error.to_string();
                all.skipped.push(Skipped { place: format!("results of {}", tool.name), why });
                wrong = wrong.or(Some(error));
                continue;
            }
        };
        let (known, new) = output.readings.into_iter().partition(|own: &Reading| {
            all.readings.iter().any(|other: &Reading| is_one_run(own, other))
        });
        let known: Vec<Reading> = known;
        all.skipped.extend(known.into_iter().map(|own| Skipped {
            place: own.job.map_or_else(|| tool.name.to_owned(), |job| format!("job {job}")),
            why: format!("{} printed this run in another form too, which counts", own.tool),
        }));
        all.readings.extend::<Vec<Reading>>(new);
        all.skipped.extend(output.skipped);
        tools.push(tool);
    }
    match tools.is_empty() {
        true => Err(wrong.unwrap_or(ForeignError::Strange)),
        false => Ok((tools, all)),
    }
}

fn is_one_run(a: &Reading, b: &Reading) -> bool {
    let rate = |of: &Reading| of.figures.get("throughput").map(|number| number.value);
    let tool = |of: &Reading| of.tool.split(' ').next().map(str::to_owned);
    let near = rate(a).zip(rate(b)).is_some_and(|(a, b)| (a / b - 1.0).abs() <= ONE_RUN);
    tool(a) == tool(b) && a.job == b.job && a.direction == b.direction && near
}
