//! Sets of records (repeats, several paths, sweeps) and the formats that show them.
//!
//! Pure: the caller reads the files. A new axis or series of the page is one entry of `axes` or
//! `series`, a new figure a row of `gpuio_record::metric`.

mod axes;
mod chosen;
mod colours;
mod conclusion;
mod csv;
mod devices;
mod document;
mod findings_text;
mod fio;
mod fix;
mod html;
pub mod knee;
mod openmetrics;
mod origin;
mod plot;
mod rows;
mod series;
mod summary;

pub use fio::files as fio_files;
pub use openmetrics::heads as openmetrics_heads;
pub use origin::{Candidate, Origin, origin};

use gpuio_base::document::unique;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gpuio_base::stat::Percentile;
use gpuio_record::metric::List;
use gpuio_record::{Metric, Record, RunOf, Sweep};

use crate::copies::{Content, Copies};
use crate::doubts;
use crate::number::many;
use crate::printable;
use crate::recheck::{Recheck, recheck};
use crate::workload::scaled;

/// One record and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Name to show: that of the file, relative to the caller's argument.
    pub name: String,
    /// Its file, relative to the directory that all members share.
    pub file: String,
    pub record: Record,
    /// Its point in a sweep: key and value for each axis, in the sweep's order. Empty without one.
    pub at: Vec<(String, String)>,
    /// Whether its point is within the limit of its search: `yes`, `no`, `undecided`, `unknown`.
    pub within_limit: Option<String>,
    /// SHA-256 of its file, in hexadecimal; `None` where it is not from a file.
    pub digest: Option<String>,
    /// Whether its figures follow from its counts.
    pub recheck: Recheck,
}

impl Member {
    /// A record that is from no file and at no point of a sweep. Rechecks it.
    #[must_use]
    pub fn new(name: impl Into<String>, record: Record) -> Member {
        let recheck = recheck(&record);
        let name = name.into();
        Member {
            file: name.clone(),
            name,
            record,
            at: Vec::new(),
            within_limit: None,
            digest: None,
            recheck,
        }
    }
}

/// Records to be shown together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Set {
    pub title: String,
    /// The records, in the order in which they are shown.
    pub members: Vec<Member>,
    pub sweeps: Vec<Sweep>,
    /// A picture of the machine's topology, or why there is none.
    pub topology: Picture,
    /// The requested parts that are not in the set, with the reason.
    pub left_out: Vec<String>,
    /// Files that can't be read as records, with the reason.
    pub unread: Vec<String>,
    /// Why the records are not, or may not be, all runs that a sweep or a comparison made.
    pub lacks: Vec<String>,
    /// Maximum compressed size of the records in a page; `None` for no limit. Figures,
    /// distributions and series of all records are always in it.
    pub embed_limit: Option<usize>,
    /// The key of the axis across the first plot; `None` for the first that was varied.
    pub x: Option<String>,
    /// The key of the axis whose values have a line each in the first plot, beside paths.
    pub lines: Option<String>,
    /// Files that a sweep lists and that can't be read, with the reason.
    pub unreadable: Vec<String>,
}

impl Set {
    /// The set with the sentences of its records in the requested units.
    fn in_requested_units(&self) -> Cow<'_, Set> {
        if !printable::is_other() {
            return Cow::Borrowed(self);
        }
        let mut shown = self.clone();
        for member in &mut shown.members {
            if let Cow::Owned(record) = printable::record(&member.record) {
                member.record = record;
            }
        }
        Cow::Owned(shown)
    }

    /// Leaves out what is no run of its own: copies, whatever their files' names, and records that
    /// are known to be changed or to stand in the place of another. A set of nothing else keeps
    /// these, for formats that have the doubt beside each figure.
    pub fn keep_runs(&mut self) {
        if self.members.iter().any(|member| member.recheck.forged().is_none()) {
            self.leave_out_forged();
        }
        let mut copies = Copies::default();
        let mut nth = 0;
        self.members.retain(|member| {
            nth += 1;
            let copy = copies.of(Content::of_record(&member.record), nth, &member.name);
            self.left_out.extend(copy.clone());
            copy.is_none()
        });
    }

    fn leave_out_forged(&mut self) {
        self.members.retain(|member| {
            let why = member.recheck.forged();
            let say = |why| format!("{}: left out of all figures: {why}", member.name);
            self.lacks.extend(why.clone().map(say));
            why.is_none()
        });
    }

    /// The set as people see it: without any record that is known to be changed or to stand in the
    /// place of another.
    fn for_people(&self) -> Cow<'_, Set> {
        if self.members.iter().all(|member| member.recheck.forged().is_none()) {
            return Cow::Borrowed(self);
        }
        let mut kept = self.clone();
        kept.leave_out_forged();
        Cow::Owned(kept)
    }

    /// Draws the first plot across the axis of this name.
    ///
    /// # Errors
    /// The names of the axes that it can be drawn across.
    pub fn draw_across(&mut self, name: &str) -> Result<(), Vec<String>> {
        self.x = Some(plot::across(self, name)?);
        Ok(())
    }

    /// Draws a line of the first plot for each value on the axis of this name.
    ///
    /// # Errors
    /// The names of the axes on which the records differ.
    pub fn draw_lines(&mut self, name: &str) -> Result<(), Vec<String>> {
        self.lines = Some(plot::parting(self, name)?);
        Ok(())
    }

    /// A sentence on the records whose figures do not follow from their counts, or of which that is
    /// not known, if there are any.
    pub fn doubt(&self) -> Option<String> {
        let doubts =
            |member: &Member| Some(format!("{}: {}.", member.name, member.recheck.doubt()?));
        let mut all = self.members.iter().filter_map(doubts);
        let (first, more) = (all.next()?, all.count() as u64);
        let more = (more > 0).then(|| format!(" Doubts about {}.", many(more, "more record")));
        Some(first + &more.unwrap_or_default())
    }

    /// The sentences that stand above all figures, where they hold.
    pub fn banners(&self) -> Vec<String> {
        let software = "Software GPU: these runs used no hardware GPU. Never compare these figures \
                        with those of a GPU.";
        let software = rows::software(self).then(|| software.to_owned());
        [software, self.incomplete(), self.doubt(), self.scaled()].into_iter().flatten().collect()
    }

    /// Why runs that were made are not in the set, or may not be.
    pub fn not_here(&self) -> Vec<String> {
        let of_runs = self.members.iter().filter_map(|member| member.record.run_of.as_ref());
        let of_sweep = |one: &RunOf| one.runs.is_none() || !one.of.starts_with(RunOf::AB);
        let unlisted = self.sweeps.is_empty() && of_runs.clone().any(of_sweep);
        // A sweep's list knows better than its plan how many runs were made.
        let made: Vec<RunOf> = of_runs
            .cloned()
            .map(|one| match self.sweeps.iter().any(|sweep| one.is_of_sweep(&sweep.started_at)) {
                true => RunOf { runs: None, ..one },
                false => one,
            })
            .collect();
        let list = unlisted.then(|| {
            "the records are of a sweep, and its sweep.json, which lists all points and runs, is \
             not among them"
                .to_owned()
        });
        self.unreadable
            .iter()
            .chain(&self.lacks)
            .cloned()
            .chain(gaps(made.iter()))
            .chain(list)
            .collect()
    }

    /// A sentence on runs that were made and are not in the set, if there are any.
    pub fn incomplete(&self) -> Option<String> {
        doubts::incomplete(&self.not_here()).map(|text| text + ".")
    }

    /// A sentence on jobs that are a part of a larger load, if there are any.
    pub fn scaled(&self) -> Option<String> {
        const MOST: usize = 4;
        let of_record = |member| scaled(member).into_iter();
        let all = self.members.iter().flat_map(|member| of_record(&member.record));
        let all = unique(all.map(|(job, words)| format!("{job}: {words}")));
        let more = match all.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let first = all.get(..MOST).unwrap_or(&all).join("; ");
        let rates = "Rates of the whole may differ.";
        (!all.is_empty()).then(|| format!("A part of a larger load. {first}{more}. {rates}"))
    }

    /// The percentiles that records asked for, ascending.
    fn percentiles(&self) -> Vec<Percentile> {
        let all: Vec<_> = self.members.iter().map(|member| member.record.percentiles()).collect();
        Percentile::asked_by(all.iter().map(Vec::as_slice))
    }

    /// The metrics of a list, with the percentiles that records asked for.
    fn metrics(&self, list: List) -> Vec<Metric> {
        list.metrics(&self.percentiles())
    }
}

/// Runs that records say were made beside theirs, and whose records are not among them.
pub fn gaps<'a>(runs: impl Iterator<Item = &'a RunOf>) -> Vec<String> {
    let mut points: BTreeMap<(&str, &str), (BTreeSet<u32>, u32, bool)> = BTreeMap::new();
    for one in runs {
        let (there, all, known) = points.entry((&one.of, &one.point)).or_default();
        there.insert(one.run);
        *all = (*all).max(one.run).max(one.runs.unwrap_or(0));
        *known |= one.runs.is_some();
    }
    let gap = |((of, point), (there, all, known)): ((&str, &str), (BTreeSet<u32>, u32, bool))| {
        let lost = u64::from(all).saturating_sub(there.len() as u64);
        (lost > 0).then(|| {
            let lost = many(lost, "record is|records are");
            let least = if known { "" } else { "at least " };
            format!("{of}, {point}: {lost} not here of {least}{}", many(u64::from(all), "run"))
        })
    };
    points.into_iter().filter_map(gap).collect()
}

/// A picture of the machine that made the records.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// There is none, for this reason.
    Absent(String),
    /// An SVG, shown as an image, so that nothing in it can run.
    Svg {
        svg: String,
        /// Which machine it shows, and how that is known.
        about: String,
    },
}

impl Default for Picture {
    fn default() -> Picture {
        Picture::Absent("no picture was requested".to_owned())
    }
}

/// The rows of a set that one figure draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figured {
    /// Indices of the rows: members, then jobs, then directions.
    pub rows: Vec<usize>,
    /// The axes that the figure does not show and on which rows differ, each with the text of the
    /// one value that it keeps.
    pub fixed: Vec<(String, String)>,
}

/// The content of a figure that shows these axes (by key: `path`, `block`, `depth`, …), with these
/// values (key and text) chosen for the others. The rule is that of `fix`: one load; other rows are
/// left out.
pub fn figured(set: &Set, shown_by: &[&str], chosen: &[(&str, &str)]) -> Figured {
    let rows = rows::rows(set);
    let columns = axes::columns(set, &rows);
    let all: Vec<usize> = (0..rows.len()).collect();
    let choice = fix::fix(&columns, &all, shown_by, chosen);
    let fixed = choice.fixed.iter().map(|fixed| {
        let column = &columns[fixed.column];
        (column.key.clone(), column.words[fixed.place].clone())
    });
    Figured { fixed: fixed.collect(), rows: choice.rows }
}

/// The texts of the ticks of rates from `low` to `high`, as all plots have them.
pub fn ticks_of_rates(low: f64, high: f64, log: bool, about: f64) -> Vec<String> {
    plot::rates(low, high, log, about).into_iter().map(|(_, text)| text).collect()
}

#[derive(Debug, Clone, Copy)]
pub struct SetFormat {
    /// The name after `--format`.
    pub name: &'static str,
    /// The file extension that selects it.
    pub extension: &'static str,
    /// Text in the first 4 KiB of every file of this format and of few others: it identifies a file
    /// that gpuio created.
    pub mark: &'static str,
    /// The set in this format, ending in a line feed.
    pub render: fn(&Set) -> String,
}

/// Every format of sets, in the order in which help lists them.
pub const SET_FORMATS: &[SetFormat] = &[
    SetFormat {
        name: "html",
        extension: "html",
        mark: "<meta name=\"generator\" content=\"gpuio report",
        render: html::render,
    },
    SetFormat { name: "svg", extension: "svg", mark: plot::MARK, render: plot::render },
    SetFormat {
        name: "markdown",
        extension: "md",
        mark: "<!-- gpuio report -->",
        render: document::markdown,
    },
    SetFormat { name: "csv", extension: "csv", mark: csv::MARK, render: csv::render },
    SetFormat { name: "fio-json", extension: "json", mark: fio::MARK, render: fio::render },
    SetFormat {
        name: "openmetrics",
        extension: "prom",
        mark: openmetrics::MARK,
        render: openmetrics::render,
    },
];

/// One record in the format `fio-json`.
pub fn fio_json(record: &Record) -> String {
    let members = vec![Member::new("", record.clone())];
    fio::render(&Set { members, ..Set::default() })
}

pub fn find_set_format(name: &str) -> Option<&'static SetFormat> {
    SET_FORMATS.iter().find(|format| format.name == name)
}
