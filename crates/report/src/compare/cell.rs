//! Repeats: the runs of one side with the same job, direction, point of a sweep and load.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_base::document::grouped;
use gpuio_base::stat::infer::{median, outliers};
use gpuio_record::Metric;

use crate::compare::aspect::{ASPECTS, Aspect, Kind, SINCE, SOFTWARE};
use crate::compare::figure::Doubted;
use crate::compare::run::{Figure, Run};
use crate::doubts::first_of;
use crate::number::many;
use crate::others::{self, Others};

/// Repeats of one thing, in the order in which they were given.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    pub(crate) runs: Vec<&'a Run>,
    /// Job, load and point, for the heading of a table, with what tells it from the cells of its
    /// side that have the same load in these words.
    pub(crate) label: String,
}

impl<'a> Cell<'a> {
    /// The cells of a side. Jobs of one name whose load differs are not repeats.
    pub(crate) fn of(runs: &'a [Run]) -> Vec<Cell<'a>> {
        let among_tools = runs.windows(2).any(|two| two[0].tool_word() != two[1].tool_word());
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for run in runs {
            let same = |cell: &&mut Cell<'a>| repeats(cell.first(), run);
            match cells.iter_mut().find(same) {
                Some(cell) => cell.runs.push(run),
                None => cells.push(Cell { runs: vec![run], label: String::new() }),
            }
        }
        let loads: Vec<String> = cells.iter().map(Cell::load).collect();
        let labels: Vec<String> = (0..cells.len())
            .map(|nth| {
                let run = cells[nth].first();
                let alike = (0..cells.len()).filter(|other| loads[*other] == loads[nth]);
                let alike: Vec<&Run> = alike.map(|other| cells[other].first()).collect();
                let tool = among_tools.then(|| run.tool_word().to_owned());
                let before = tool.into_iter().chain(run.job.clone());
                let load = [loads[nth].clone()].into_iter();
                before.chain(load).chain(apart(run, &alike)).collect::<Vec<_>>().join(" ")
            })
            .collect();
        for (cell, label) in cells.iter_mut().zip(labels) {
            cell.label = label;
        }
        cells
    }

    pub(crate) fn first(&self) -> &'a Run {
        self.runs[0]
    }

    /// The values of an aspect in its runs: empty if none reports it.
    pub(crate) fn properties(&self, key: &str) -> BTreeSet<&'a str> {
        self.runs.iter().filter_map(|run| run.properties.get(key)).map(String::as_str).collect()
    }

    /// Places of the facts that its runs have.
    pub(crate) fn places(&self) -> Vec<&'a str> {
        let all: BTreeSet<&str> =
            self.runs.iter().flat_map(|run| run.facts.keys()).map(String::as_str).collect();
        all.into_iter().collect()
    }

    /// The values of a fact in its runs: empty if none has it.
    pub(crate) fn facts(&self, place: &str) -> BTreeSet<&'a str> {
        self.runs.iter().filter_map(|run| run.facts.get(place)).map(String::as_str).collect()
    }

    /// A metric's figures, of those runs that have it.
    pub(crate) fn figures(&self, metric: &Metric) -> Vec<Figure> {
        self.runs.iter().filter_map(|run| run.figure(metric)).collect()
    }

    /// The same of latencies that count from submission; `None` unless every run has it.
    pub(crate) fn since_submission(&self, metric: &Metric) -> Option<Vec<Figure>> {
        self.runs.iter().map(|run| run.figure_since_submission(metric)).collect()
    }

    /// Whether latencies of both count from the same moment, as far as that is known.
    pub(crate) fn counts_as(&self, other: &Cell<'_>) -> bool {
        self.properties(SINCE).union(&other.properties(SINCE)).count() < 2
    }

    /// The requested rate, if all runs met the same one.
    pub(crate) fn met(&self, metric: &Metric) -> Option<f64> {
        let rate = self.first().met(metric)?;
        self.runs.iter().all(|run| run.met(metric) == Some(rate)).then_some(rate)
    }

    /// Runs whose value of a metric is far from those of the others, in a sentence each.
    pub(crate) fn outliers(&self, metric: &Metric) -> Vec<String> {
        let known = self.runs.iter().filter_map(|run| Some((*run, run.figure(metric)?.value)));
        let (runs, values): (Vec<&Run>, Vec<f64>) = known.unzip();
        let middle = median(&values).unwrap_or_default();
        let one = |nth: usize| {
            let [own, middle] = [values[nth], middle].map(|value| metric.print(value));
            let (file, name, all) = (&runs[nth].from, metric.name(), values.len());
            format!("outlier {file}: {name} {own}, median of the {all} runs {middle}")
        };
        outliers(&values).into_iter().map(one).collect()
    }

    /// That others used the drive or the processors meanwhile, in words.
    pub(crate) fn disturbed(&self) -> Option<String> {
        let others: Vec<Others> = self.runs.iter().filter_map(|run| run.others.clone()).collect();
        let how = others::disturbed(&others, self.runs.len())?;
        Some(format!("disturbed{how}"))
    }

    /// The doubts of its runs, those of a kind together.
    pub(crate) fn doubts(&self) -> Vec<Doubted> {
        let all = self.runs.iter().flat_map(|run| run.standing.clone());
        let of_kind = |(doubt, whys): (&'static str, Vec<String>)| {
            let runs = whys.len();
            Doubted { doubt, why: first_of(whys), runs }
        };
        grouped(all).into_iter().map(of_kind).collect()
    }

    /// Runs of which it is unknown whether others used the processors, in words.
    pub(crate) fn others_unknown(&self) -> Option<String> {
        let unknown = self.runs.iter().filter(|run| run.others_unknown).count();
        (unknown > 0).then(|| match self.runs.len() {
            1 => "unknown".to_owned(),
            runs => format!("unknown in {unknown} of {}", many(runs as u64, "run")),
        })
    }

    /// Load and point in a few words.
    fn load(&self) -> String {
        let run = self.first();
        let properties = |key: &str| run.properties.get(key).map(String::as_str);
        let mut words: Vec<String> = Vec::new();
        words.push(properties("rw").unwrap_or_else(|| run.direction.name()).to_owned());
        words.extend(properties("bs").map(str::to_owned));
        let ranks = properties("ranks").filter(|ranks| *ranks != "1");
        let ranks = ranks.map_or_else(String::new, |ranks| format!("{ranks}×"));
        match (properties("threads"), properties("depth")) {
            (Some(threads), Some(depth)) => words.push(format!("{ranks}{threads}×{depth}")),
            (Some(threads), None) => words.push(format!("{threads} threads")),
            _ => {}
        }
        words.extend(properties("path").map(str::to_owned));
        // No line may be mistaken for a hardware result.
        words
            .extend(properties("software-gpu").filter(|kind| *kind == SOFTWARE).map(str::to_owned));
        let more = run.at.iter().filter(|(key, _)| !IN_LABELS.contains(&key.as_str()));
        words.extend(more.map(|(key, value)| format!("{key}={value}")));
        words.join(" ")
    }
}

/// Aspects that every label has.
const IN_LABELS: [&str; 6] = ["rw", "bs", "ranks", "threads", "depth", "path"];

/// Notes that decide figures: another size may fit into a cache, another ramp leaves out its start.
const DECIDING: [&str; 2] = ["size", "stop"];

/// The values of a run in which those with the same label differ, by their keys.
fn apart(run: &Run, alike: &[&Run]) -> Vec<String> {
    let is_of_load = |aspect: &&Aspect| {
        aspect.kind == Kind::Load && !IN_LABELS.contains(&aspect.key)
            || DECIDING.contains(&aspect.key)
    };
    let aspects = ASPECTS.iter().filter(is_of_load).filter_map(|aspect| {
        let of = |run: &Run| run.properties.get(aspect.key).cloned();
        let differs = alike.iter().any(|other| of(other) != of(run));
        Some((aspect.key, of(run).filter(|_| differs)?))
    });
    let keys = run.keys.iter().filter_map(|(key, value)| {
        let differs = alike.iter().any(|other| other.keys.get(key) != Some(value));
        Some((*key, value.clone().filter(|_| differs)?))
    });
    aspects.chain(keys).map(|(key, value)| format!("{key}={value}")).collect()
}

fn repeats(a: &Run, b: &Run) -> bool {
    // Different releases of one tool may be repeats, and the output will say so; different tools
    // never are.
    let place = |run: &'_ Run| (run.job.clone(), run.direction, run.at.clone());
    let place = place(a) == place(b) && a.tool_word() == b.tool_word();
    place && loads(a) == loads(b) && a.keys == b.keys && a.unread == b.unread
}

/// The requested load, including the path.
fn loads(run: &Run) -> BTreeMap<&'static str, &str> {
    let load = ASPECTS.iter().filter(|aspect| aspect.kind == Kind::Load || aspect.key == "path");
    load.filter_map(|aspect| Some((aspect.key, run.properties.get(aspect.key)?.as_str()))).collect()
}
