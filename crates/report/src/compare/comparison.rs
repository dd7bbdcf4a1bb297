//! All pairs of all sides.

use gpuio_base::document::unique;
use gpuio_base::stat::Percentile;
use gpuio_record::Metric;
use gpuio_record::metric::List;
use serde::Serialize;

use crate::compare::aspect::{SOFTWARE, SOFTWARE_GPU};
use crate::compare::axis::Axis;
use crate::compare::cell::Cell;
use crate::compare::difference::{Difference, differences, unknown_of_both, unknown_properties};
use crate::compare::evaluate;
use crate::compare::figure::{Doubted, Row};
use crate::compare::pair::pair;
use crate::compare::run::{Run, Side};
use crate::compare::threshold::{Check, Outcome, Threshold};
use crate::compare::{LEVEL, figure};

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Values of `--despite`: flags and keys of aspects, or `all`.
    pub despite: Vec<String>,
    /// The limit on how much worse a result may be.
    pub threshold: Option<Threshold>,
    /// The axis that distinguishes the sides, if there is one.
    pub axis: Option<Axis>,
    /// Whether the nth run of one side was made next to the nth of the other.
    pub in_turns: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// `gpuio-compare-v1`.
    pub schema: &'static str,
    /// Level of the intervals, 0 to 1.
    pub level: f64,
    /// The sides, the baseline first.
    pub sides: Vec<SideLine>,
    /// Every pair, by side and in the order of the baseline.
    pub pairs: Vec<Pair>,
    /// Results without a partner.
    pub alone: Vec<Alone>,
    /// The threshold with its checks, if one was given.
    pub threshold: Option<Threshold>,
    #[serde(skip)]
    pub metrics: Vec<Metric>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideLine {
    pub name: String,
    /// Files, each once.
    pub files: Vec<String>,
    pub notes: Vec<String>,
    /// Why its files are not all runs that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Why nothing is concluded from the figures of some of its files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Whether it has several files of which no list says that they are all (`CHOSEN`).
    #[serde(skip)]
    pub may_be_chosen: bool,
    /// Whether a run of it used gpuio's software GPU.
    pub software_gpu: bool,
}

/// Two cells and their comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Index of the other side in `sides`.
    pub side: usize,
    /// Job and load of the baseline.
    pub baseline: String,
    /// Job and load of the other.
    pub other: String,
    pub runs: [usize; 2],
    /// How others disturbed the runs of each side; null where no record says that they did.
    pub disturbed: [Option<String>; 2],
    /// Whether others used the processors during the runs of each side, where that is unknown.
    pub others_unknown: [Option<String>; 2],
    /// Why the figures of each side are not those of whole runs of storage alone: those of
    /// `report`.
    pub doubts: [Vec<Doubted>; 2],
    pub differences: Vec<Difference>,
    /// Important properties that one side does not report.
    #[serde(rename = "untold")]
    pub unknown_properties: Vec<String>,
    /// Important properties that neither side reports.
    #[serde(rename = "untold_by_both")]
    pub unknown_of_both: Vec<String>,
    /// An entry for each metric that both have.
    pub rows: Vec<Row>,
    /// The other metrics, with whether each side has it.
    #[serde(skip)]
    pub(crate) absent: Vec<(Metric, [bool; 2])>,
    /// Whether an absent percentile is one of too few I/Os: all runs have a histogram.
    #[serde(skip)]
    pub(crate) counts_each_io: bool,
    /// Notes on the runs, preceded by the side's name.
    pub notes: Vec<String>,
}

/// A job and load without a partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alone {
    pub side: usize,
    /// Index of the side that lacks it.
    pub not_in: usize,
    /// Job and load.
    pub what: String,
    /// Results of its direction on that side that are without a partner too: none of both is
    /// certain to be the other's.
    pub rivals: usize,
}

impl Pair {
    pub(crate) fn is_disturbed(&self) -> bool {
        self.disturbed.iter().any(Option::is_some)
    }

    /// The work of others during the runs of each side, as far as it is known.
    pub(crate) fn work_of_others(&self) -> Option<[&str; 2]> {
        let of = |side: usize| self.disturbed[side].as_ref().or(self.others_unknown[side].as_ref());
        let both = [of(0), of(1)];
        both.iter().any(Option::is_some).then(|| both.map(|how| how.map_or("none", String::as_str)))
    }
}

impl Comparison {
    /// Differences for which pairs are refused, each with its pair.
    pub fn refused(&self) -> impl Iterator<Item = (&Pair, &Difference)> {
        let of = |pair| move |difference| (pair, difference);
        self.pairs.iter().flat_map(move |pair: &Pair| {
            pair.differences.iter().filter(|difference| difference.refused).map(of(pair))
        })
    }

    /// Entries that are worse than the threshold allows, each with its pair.
    pub fn beyond(&self) -> impl Iterator<Item = (&Pair, &Row)> {
        let of = |pair| move |row| (pair, row);
        self.pairs.iter().flat_map(move |pair: &Pair| {
            pair.rows.iter().filter(|row| row.beyond == Some(true)).map(of(pair))
        })
    }

    /// The threshold's outcome; `None` without one.
    pub fn outcome(&self) -> Option<Outcome> {
        self.threshold.as_ref()?.outcome
    }

    /// Whether some entry has this basis.
    pub(crate) fn rests_on(&self, basis: figure::Basis) -> bool {
        self.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.basis == basis)
    }
}

/// Compares every side after the first with the first.
pub fn compare(sides: &[Side], options: &Options) -> Comparison {
    let mut comparison = Comparison {
        schema: "gpuio-compare-v1",
        level: LEVEL,
        sides: sides.iter().map(side_line).collect(),
        pairs: Vec::new(),
        alone: Vec::new(),
        threshold: options.threshold.clone(),
        metrics: metrics(sides, options),
    };
    let Some((baseline, others)) = sides.split_first() else {
        return comparison;
    };
    let cells = Cell::of(&baseline.runs);
    for (nth, other) in others.iter().enumerate() {
        let theirs = Cell::of(&other.runs);
        one_side(&mut comparison, &cells, &theirs, nth + 1, options);
    }
    if let Some(threshold) = &mut comparison.threshold {
        threshold.checks = checks(threshold, &comparison.pairs, options.in_turns);
        threshold.outcome = threshold.checks.iter().map(|check| check.outcome).max();
    }
    comparison
}

/// Runs in turns meet a load of others on both sides.
fn checks(threshold: &Threshold, pairs: &[Pair], in_turns: bool) -> Vec<Check> {
    let of_pair = |(nth, pair): (usize, &Pair)| {
        let check = |metric: &Metric| {
            let row = pair.rows.iter().find(|row| row.metric == *metric);
            threshold.check((nth, pair.is_disturbed() && !in_turns), *metric, row)
        };
        threshold.metrics.iter().map(check).collect::<Vec<_>>()
    };
    pairs.iter().enumerate().flat_map(of_pair).collect()
}

/// Those of every comparison, with the percentiles that runs were asked for, and those of the
/// threshold.
fn metrics(sides: &[Side], options: &Options) -> Vec<Metric> {
    let asked = sides.iter().flat_map(|side| &side.runs).map(|run| run.percentiles.as_slice());
    let all = List::Compared.metrics(&Percentile::asked_by(asked)).into_iter();
    unique(all.chain(options.threshold.iter().flat_map(|threshold| threshold.metrics.clone())))
}

/// The note on a pair whose latencies count from different moments, where both are known from
/// submission on.
fn due(cell: &Cell<'_>, pair: [&Cell<'_>; 2]) -> Option<&'static str> {
    let is_paced = |cell: &Cell<'_>| cell.runs.iter().all(|run| run.since_submission.is_some());
    let submitted = !pair[0].counts_as(pair[1]) && is_paced(cell);
    submitted.then_some(
        "the load is paced: its latencies are compared from submission on (the file leg), as \
         other tools count",
    )
}

fn one_side(
    comparison: &mut Comparison,
    baseline: &[Cell<'_>],
    other: &[Cell<'_>],
    side: usize,
    options: &Options,
) {
    let free = options.axis.as_ref().map_or(Vec::new(), Axis::frees);
    let mut may_differ = free.clone();
    may_differ.extend(options.despite.iter().map(String::as_str));
    let pairs = pair(baseline, other, &free, &may_differ);
    for &(a, b) in &pairs {
        let (a, b) = (&baseline[a], &other[b]);
        let row =
            |metric| evaluate::row(metric, a, b, options.in_turns, options.threshold.as_ref());
        let names = [0, side].map(|side| comparison.sides[side].name.as_str());
        let main = comparison.metrics.first();
        let notes = names.iter().zip([a, b]).flat_map(|(name, cell)| {
            let notes = cell.runs.iter().flat_map(|run| run.notes.clone());
            let outliers = main.map_or_else(Vec::new, |metric| cell.outliers(metric));
            notes
                .chain(outliers)
                .chain(cell.disturbed())
                .chain(due(cell, [a, b]).map(str::to_owned))
                .map(move |note| format!("{name}: {note}"))
        });
        let notes = unique(notes);
        let rows: Vec<Row> = comparison.metrics.iter().copied().filter_map(row).collect();
        let lacks = |metric: &&Metric| rows.iter().all(|row| row.metric != **metric);
        let has = |metric: &Metric| [a, b].map(|cell| !cell.figures(metric).is_empty());
        let absent = comparison.metrics.iter().filter(lacks);
        let absent = absent.map(|metric| (*metric, has(metric))).collect();
        comparison.pairs.push(Pair {
            side,
            baseline: a.label.clone(),
            other: b.label.clone(),
            runs: [a.runs.len(), b.runs.len()],
            disturbed: [a, b].map(Cell::disturbed),
            others_unknown: [a, b].map(Cell::others_unknown),
            doubts: [a, b].map(Cell::doubts),
            differences: differences(a, b, &options.despite, &free),
            unknown_properties: unknown_properties(a, b),
            unknown_of_both: unknown_of_both(a, b),
            rows,
            absent,
            counts_each_io: a.runs.iter().chain(&b.runs).all(|run| run.latency.is_some()),
            notes,
        });
    }
    let left = |cells: &'_ [Cell<'_>], which: fn(&(usize, usize)) -> usize| {
        let taken: Vec<usize> = pairs.iter().map(which).collect();
        let left = (0..cells.len()).filter(|nth| !taken.contains(nth));
        left.map(|nth| (cells[nth].first().direction, cells[nth].label.clone())).collect::<Vec<_>>()
    };
    let both = [left(baseline, |pair| pair.0), left(other, |pair| pair.1)];
    for (own, theirs, side, not_in) in [(0, 1, 0, side), (1, 0, side, 0)] {
        let alone = both[own].iter().map(|(direction, what)| Alone {
            side,
            not_in,
            what: what.clone(),
            rivals: both[theirs].iter().filter(|(other, _)| other == direction).count(),
        });
        comparison.alone.extend(alone);
    }
}

/// A remark on runs in files of their own, of which no list says that they are all.
pub(crate) const CHOSEN: &str = "several runs in files of their own: whether more were made and \
                                 left out is not known; a sweep (--repeats N) lists all of its \
                                 runs";

fn side_line(side: &Side) -> SideLine {
    let files = unique(side.runs.iter().map(|run| run.from.clone()));
    let is_software =
        |run: &Run| run.properties.get(SOFTWARE_GPU).is_some_and(|kind| kind == SOFTWARE);
    let software_gpu = side.runs.iter().any(is_software);
    let (name, notes, lacks) = (side.name.clone(), side.notes.clone(), side.lacks.clone());
    let doubts = unique(side.runs.iter().flat_map(|run| run.doubts.iter().cloned()));
    let may_be_chosen = files.len() > 1 && side.made.len() < files.len();
    SideLine { name, files, notes, lacks, doubts, may_be_chosen, software_gpu }
}
