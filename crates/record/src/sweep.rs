//! A sweep: many runs over the values of some axes, and where their records are.
//!
//! A sweep is a folder with `sweep.json` (a [`Sweep`]) and one record for each finished run.
//! The records are written first, each whole, so that what `sweep.json` names is there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{ContentDigest, Tool};

/// The name of the file that makes a folder a sweep.
pub const SWEEP_FILE: &str = "sweep.json";

/// Version of [`Sweep`]. Raised when a field changes meaning or goes; added fields do not raise it.
pub const SWEEP_VERSION: u32 = 1;

/// The parameters that were varied, and the results so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Version of this schema; the field's name distinguishes sweeps from other JSON.
    pub gpuio_sweep: u32,
    /// SHA-256 of all the rest, as in records: whether the list was changed by other hands than
    /// gpuio's. Absent in older sweeps.
    #[serde(default, skip_serializing_if = "ContentDigest::has_none")]
    pub content_sha256: ContentDigest,
    /// Name: the preset's, or the folder's.
    pub name: String,
    /// The tool that made it.
    pub tool: Tool,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Wall-clock time at its first start, RFC 3339 with offset.
    pub started_at: String,
    /// Seed of the order in which points were run.
    pub seed: u64,
    /// In which state runs were to find the page cache, in words; absent in older sweeps.
    #[serde(default)]
    pub cache: Option<String>,
    /// Level of the t of each point's interval where points were looked at after each run, which
    /// makes intervals at 95 % too narrow (0.975 for 95 of 100); absent where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The result of a search for the highest load, in the words of the terminal; absent of other
    /// sweeps, of searches that have not ended, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Aim of a search for the highest load, with its limit, in words; absent of other sweeps and
    /// in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// The parameters that were varied, slowest first as in a nested loop.
    pub axes: Vec<SweepAxis>,
    /// Every point of the sweep, in the order of a nested loop over the axes; those that a
    /// constraint excluded are not among them.
    pub points: Vec<SweepPoint>,
}

/// One thing that was varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAxis {
    /// A key of the job file (`threads`, `bs`, `path`, …) or `target`.
    pub key: String,
    /// Its values as the job file spells them, in the order requested.
    pub values: Vec<String>,
}

/// One combination of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// One value for each axis.
    pub at: Vec<String>,
    /// File names of the finished runs' records, in the order in which they were made.
    pub records: Vec<String>,
    /// `content_sha256` of each record when it was made, by its file name; absent in older files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub content_sha256: BTreeMap<String, String>,
    /// Why no more runs of it are made: its confidence is reached, its budget is spent, the machine
    /// lacks what it needs. Absent while runs are still owed.
    pub ended: Option<String>,
    /// Whether it is within the limit of a search, as far as it was run: `yes`, `no`, `undecided`
    /// or `unknown`; absent of other sweeps and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_limit: Option<String>,
}

/// Points that a sentence names.
const NAMED: usize = 6;

/// The beginning of why a point ended whose runs are made when the sweep goes on.
pub const BUDGET: &str = "budget of";

impl Sweep {
    /// A point in words: `threads=4 bs=64k`.
    pub fn point(&self, at: &[String]) -> String {
        let words = self.axes.iter().zip(at).map(|(axis, value)| format!("{}={value}", axis.key));
        words.collect::<Vec<_>>().join(" ")
    }

    /// That it is not finished, and what is missing; `None` of one that is.
    pub fn unfinished(&self) -> Option<String> {
        let open =
            |point: &&SweepPoint| point.ended.as_ref().is_none_or(|why| why.starts_with(BUDGET));
        let open: Vec<String> =
            self.points.iter().filter(open).map(|point| self.point(&point.at)).collect();
        let what = match &self.search {
            _ if self.answer.is_some() => return None,
            Some(search) => format!("{search}: no answer yet"),
            None if open.is_empty() => return None,
            None => {
                let more = open.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("runs are missing of {}{more}", open[..open.len().min(NAMED)].join(", "))
            }
        };
        Some(format!("Not finished: {what}. Run the same command again to resume."))
    }
}
