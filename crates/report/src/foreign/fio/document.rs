//! The documents of a text. Messages may stand around them, and `--status-interval` writes one
//! after the other, each of the run so far.

use serde_json::Value;

use super::{NAME, entries, number};
use crate::foreign::{ForeignError, Skipped};

/// Every whole document of fio's in a text, in order, and whether another one behind them is cut.
///
/// # Errors
/// There is none: why the first that looks like one can't be parsed.
pub(super) fn pages(text: &str) -> Result<(Vec<Value>, bool), ForeignError> {
    let mut pages = Vec::new();
    let mut broken = None;
    let mut at = 0;
    while let Some(begin) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(page)) => {
                at = begin + values.byte_offset();
                if page["fio version"].is_string() {
                    pages.push(page);
                }
            }
            Some(Err(error)) => {
                // A brace of a message, or a document that is cut.
                let next = text[begin + 1..].find('{').map_or(text.len(), |next| begin + 1 + next);
                if text[begin..next].contains("\"fio version\"") {
                    broken.get_or_insert(error);
                    break;
                }
                at = begin + 1;
            }
            None => break,
        }
    }
    match (pages.is_empty(), broken) {
        (false, broken) => Ok((pages, broken.is_some())),
        (true, Some(error)) => Err(error.into()),
        (true, None) => Err(ForeignError::Empty { tool: NAME, why: String::new() }),
    }
}

pub(super) struct Run<'a> {
    /// The last one, which is of the whole run, or of the longest part that was written.
    pub(super) whole: &'a Value,
    /// The number of the first, from 1.
    first: usize,
    /// How many there are.
    count: usize,
}

impl Run<'_> {
    /// The note on the documents that are not read.
    pub(super) fn skipped(&self) -> Option<Skipped> {
        let last = self.first + self.count - 1;
        let place = match self.count {
            0 | 1 => return None,
            2 => format!("document {}", self.first),
            _ => format!("documents {} to {}", self.first, last - 1),
        };
        let why = format!(
            "states of the run so far (--status-interval); document {last}, the last, is read"
        );
        Some(Skipped { place, why })
    }
}

/// The runs of these documents: those that follow one another in the same run, together.
pub(super) fn runs(pages: &[Value]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (nth, page) in pages.iter().enumerate() {
        match runs.last_mut().filter(|run| goes_on(run.whole, page)) {
            Some(run) => {
                run.whole = page;
                run.count += 1;
            }
            None => runs.push(Run { whole: page, first: nth + 1, count: 1 }),
        }
    }
    runs
}

/// Whether a document is a later state of the same run: as much time has passed by its clock as by
/// its jobs', and nothing moved is less.
fn goes_on(before: &Value, after: &Value) -> bool {
    let jobs = (entries(before), entries(after));
    let all = |list: &[&Value], field: &str| -> f64 {
        let sides = ["read", "write", "mixed"];
        let of = |job: &&Value| sides.map(|side| number(&job[side][field])).iter().sum::<f64>();
        list.iter().map(of).sum()
    };
    let elapsed =
        |list: &[&Value]| list.iter().map(|job| number(&job["elapsed"])).fold(0.0, f64::max);
    let time = number(&after["timestamp"]) - number(&before["timestamp"]);
    let worked = elapsed(&jobs.1) - elapsed(&jobs.0);
    // Both are printed in whole seconds.
    (time - worked).abs() <= 1.0
        && ["total_ios", "runtime"].iter().all(|field| all(&jobs.1, field) >= all(&jobs.0, field))
}
