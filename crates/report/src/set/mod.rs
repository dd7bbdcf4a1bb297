//! Sets of records: repeats, paths beside each other, sweeps; and the formats that show them.
//!
//! Pure: what is read from disk is read by the caller. A further figure, axis or series of the page
//! is one row of `figures`, `axes` or `series`.

mod axes;
mod chosen;
mod csv;
mod devices;
mod figures;
mod fio;
mod html;
mod markdown;
mod openmetrics;
mod origin;
mod rows;
mod series;
mod summary;
mod told;

pub use fio::files as fio_files;
pub use origin::{Candidate, Origin, origin};

use gpuio_record::{Record, Sweep};

/// One record and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Name to show: the file's, relative to what the caller was given.
    pub name: String,
    /// The record.
    pub record: Record,
    /// Its place in a sweep: key and value for each axis, in the sweep's order. Empty outside one.
    pub at: Vec<(String, String)>,
}

/// Records to be shown together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Set {
    /// Title of the report.
    pub title: String,
    /// The records, in the order in which they are shown.
    pub members: Vec<Member>,
    /// The sweeps that some of them are of.
    pub sweeps: Vec<Sweep>,
    /// A picture of the machine's topology, or why there is none.
    pub topology: Picture,
    /// What was asked for and is not in the set, with the reason.
    pub left_out: Vec<String>,
    /// Most bytes that the records may take in a page, compressed; absent for no limit. Figures,
    /// distributions and series of all records are in it in any case.
    pub embed_limit: Option<usize>,
}

/// A picture of the machine that records were made on.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// There is none, for this reason.
    Absent(String),
    /// An SVG, shown as an image, so that nothing in it can run.
    Svg {
        /// The picture.
        svg: String,
        /// Of which machine it is, and how that is known.
        about: String,
    },
}

impl Default for Picture {
    fn default() -> Picture {
        Picture::Absent("none was asked for".to_owned())
    }
}

/// What of a set's rows one figure draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figured {
    /// Numbers of the rows: of members, jobs and directions in turn.
    pub rows: Vec<usize>,
    /// The axes that the figure does not show and on which rows differ, each with the words of the
    /// one place that it keeps to.
    pub held: Vec<(String, String)>,
}

/// What a figure draws that shows these axes (by key: `path`, `block`, `depth`, …), with these
/// places (key and words) chosen of the others. The rule is that of `figures`: one load, or rows
/// are left out.
#[must_use]
pub fn figured(set: &Set, shown_by: &[&str], chosen: &[(&str, &str)]) -> Figured {
    let rows = rows::rows(set);
    let columns = axes::columns(set, &rows);
    let records: Vec<usize> = rows.iter().map(|row| row.nth).collect();
    let all: Vec<usize> = (0..rows.len()).collect();
    let choice = figures::hold(&columns, &records, &all, shown_by, chosen);
    let held = choice.held.iter().map(|held| {
        let column = &columns[held.column];
        (column.key.clone(), column.words[held.place].clone())
    });
    Figured { held: held.collect(), rows: choice.rows }
}

/// One format of sets.
#[derive(Debug, Clone, Copy)]
pub struct SetFormat {
    /// What people write after `--format`.
    pub name: &'static str,
    /// The extension of files that mean it.
    pub extension: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// Words that stand in the first 4 KiB of every text of this format and in few others: by them
    /// a file is known as one that gpuio made.
    pub mark: &'static str,
    /// The set in this format, ending in a line feed.
    pub render: fn(&Set) -> String,
}

/// Every format of sets, in the order in which help lists them.
pub const SET_FORMATS: &[SetFormat] = &[
    SetFormat {
        name: "html",
        extension: "html",
        summary: "one page with plots, tables, evidence and the data; needs no network",
        mark: "<meta name=\"generator\" content=\"gpuio report",
        render: html::render,
    },
    SetFormat {
        name: "markdown",
        extension: "md",
        summary: "tables for an issue or a wiki",
        mark: "<!-- gpuio report -->",
        render: markdown::render,
    },
    SetFormat {
        name: "csv",
        extension: "csv",
        summary: "a row per record, job and direction, with the axes of sweeps",
        mark: csv::MARK,
        render: csv::render,
    },
    SetFormat {
        name: "fio-json",
        extension: "json",
        summary: "jobs as fio prints them, for tools that plot fio's results",
        mark: fio::MARK,
        render: fio::render,
    },
    SetFormat {
        name: "openmetrics",
        extension: "prom",
        summary: "gauges and summaries for Prometheus and its kin",
        mark: openmetrics::MARK,
        render: openmetrics::render,
    },
];

/// The format of this name.
#[must_use]
pub fn find_set_format(name: &str) -> Option<&'static SetFormat> {
    SET_FORMATS.iter().find(|format| format.name == name)
}
