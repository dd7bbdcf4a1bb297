//! The summary: one line per point, which is a load with all of its runs; or one per path if there
//! are many points.

use std::collections::BTreeMap;

use gpuio_base::document::{grouped, unique};
use gpuio_base::stat::infer::{self, median};
use gpuio_record::metric::{List, Unit, percent};
use gpuio_record::{EndedHow, Metric, Proof};

use super::axes::{Column, columns, shared_settings, with_settings};
use super::fix::points;
use super::rows::{Row, rows};
use super::{Set, findings_text};
use crate::compare::CHOSEN;
use crate::number::{NONE, many, throughput};
use crate::others;
use crate::standing;
use crate::verification;
use crate::{ceilings, expected};

/// Above this many points the summary has a line per path.
const REPORT_EACH: usize = 40;
const LEVEL: f64 = 0.95;
/// The metric behind which marks stand.
const THROUGHPUT: &str = "throughput";

/// The actual path of the bytes, briefly, whether it is the requested one, and whether storage
/// moved none or not all of them, as far as is known.
pub(super) type Taken = (String, Option<bool>, bool);

pub(super) struct Line {
    /// Its subject: a load, or a path.
    pub(super) about: String,
    /// Its path, for its colour.
    pub(super) path: String,
    /// Runs, or points of a path.
    pub(super) runs: usize,
    /// Medians over the runs, one for each head; empty for a path.
    pub(super) medians: Vec<String>,
    /// The 95 % interval of the mean rate, both ends; `None` with fewer than three runs.
    pub(super) interval: Option<String>,
    /// Whether it is within the limit of its search.
    pub(super) within_limit: Option<String>,
    /// Comparison with ceiling and expectation, and errors, in sentences.
    pub(super) notes: String,
    /// `None` if not recorded.
    pub(super) taken: Option<Taken>,
    /// The evidence behind the verdict.
    pub(super) evidence: String,
}

/// The summary, with remarks on several lines printed once.
pub(super) struct Summary {
    pub(super) lines: Vec<Line>,
    /// Heads of the medians of points.
    pub(super) heads: Vec<String>,
    /// Whether lines are points, not paths.
    pub(super) of_points: bool,
    pub(super) below: Vec<String>,
}

pub(super) fn summary(set: &Set) -> Summary {
    let rows = rows(set);
    let columns = columns(set, &rows);
    let records: Vec<usize> = rows.iter().map(|row| row.nth).collect();
    let numbers = points(&columns, &records);
    let of = |point: &Vec<usize>| point.iter().map(|row| rows[*row]).collect();
    let points: Vec<Vec<Row<'_>>> = numbers.iter().map(of).collect();
    let several = set.members.len() > 1;
    let of_points = points.len() <= REPORT_EACH;
    let mut metrics = set.metrics(List::Summary);
    // Loads without accelerators have no utilisation; a percentile of too few I/Os is said.
    let any = |metric: &Metric| rows.iter().any(|row| metric.of(row).is_some());
    metrics.retain(|metric| metric.is_whole() || any(metric));
    let shared = shared_settings(&rows);
    let all = all_disturbed(&rows).filter(|_| of_points && points.len() > 1);
    let lines: Vec<Line> = match of_points {
        true => {
            let words = |row: &Row<'_>| row.load_in_words();
            let loads = told_apart(&numbers, (&rows, &columns), Some(&shared), words);
            // A name that all jobs have is no information.
            let named = rows.iter().any(|row| row.plan.name != rows[0].plan.name);
            let each = points.iter().zip(loads);
            each.map(|(point, load)| {
                of_point(set, point, &load, &metrics, (several, named, all.is_some()))
            })
            .collect()
        }
        false => by_path(&rows).iter().map(|group| of_path(group)).collect(),
    };
    let mut below = Vec::new();
    if of_points && lines.iter().any(|line| line.runs > 1) {
        below.push(
            "Figures are medians over the runs of a load. 95 %: both ends of Student's \
             confidence interval of the mean rate; needs at least three runs."
                .to_owned(),
        );
    }
    let listed = set.members.iter().all(|member| member.record.run_of.is_some());
    if !listed && points.iter().any(|rows| unique(rows.iter().map(|row| row.nth)).len() > 1) {
        let mut words = CHOSEN.to_owned();
        words[..1].make_ascii_uppercase();
        below.push(words + ".");
    }
    if of_points && !shared.is_empty() {
        let of = if lines.len() == 1 { "The load" } else { "All loads" };
        below.push(format!("{of}: {}.", shared.join(", ")));
    }
    let marks = of_points.then(|| standing::together(rows.iter().map(Row::marks)));
    below.extend(marks.and_then(|marks| Some(standing::legend_line(&marks)? + ".")));
    below.extend(all);
    below.extend(unexpected(&points));
    let heads = metrics.iter().map(|metric| match (metric.unit(), metric.label()) {
        (Unit::Percent, label) if !label.contains('%') => label + " %",
        (_, label) => label,
    });
    let heads = heads.collect();
    Summary { lines, heads, of_points, below }
}

pub(super) fn median_of(rows: &[Row<'_>], metric: &Metric) -> Option<f64> {
    infer::median_of_all(rows.iter().map(|row| metric.of(row)))
}

/// Both ends of the 95 % interval of the mean of rates, that of the sweep: one that looked after
/// each run has a higher level.
pub(super) fn interval(set: &Set, rates: &[f64]) -> Option<[f64; 2]> {
    infer::mean_ends(rates, level(set))
}

/// The same in words.
pub(super) fn interval_words(set: &Set, rates: &[f64]) -> Option<String> {
    let [low, high] = interval(set, rates)?;
    let words = || format!("{} to {}", throughput(low), throughput(high));
    Some(if low > 0.0 { words() } else { infer::INCLUDES_0.to_owned() })
}

fn level(set: &Set) -> f64 {
    set.sweeps.iter().filter_map(|sweep| sweep.level).fold(LEVEL, f64::max)
}

/// Columns that tell points with the same text apart, besides settings.
const APART: &[&str] = &["machine", "opened", "engine", "memory", "gpu", "drive", "cufile"];

/// The words of all points; if another point of the path has the same, also what differs. Settings
/// that are not `shared` are in the words of each point that has them, where these are known.
pub(super) fn told_apart(
    points: &[Vec<usize>],
    (rows, columns): (&[Row<'_>], &[Column]),
    shared: Option<&[String]>,
    words: impl Fn(&Row<'_>) -> String,
) -> Vec<String> {
    let mut told: Vec<String> = points.iter().map(|point| words(&rows[point[0]])).collect();
    let path = |point: &[usize]| rows[point[0]].plan.path.choice.actual.as_str();
    let mut alike: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (nth, point) in points.iter().enumerate() {
        alike.entry((path(point), told[nth].clone())).or_default().push(nth);
    }
    for alike in alike.values() {
        let of: Vec<Row<'_>> = alike.iter().map(|nth| rows[points[*nth][0]]).collect();
        let of_alike = shared.map_or_else(|| shared_settings(&of), <[String]>::to_vec);
        for (nth, row) in alike.iter().zip(&of) {
            told[*nth] = with_settings(told[*nth].clone(), row, &of_alike);
        }
        for column in columns.iter().filter(|column| APART.contains(&column.key.as_str())) {
            let place = |nth: usize| column.of[points[nth][0]];
            if alike.iter().all(|nth| place(*nth) == place(alike[0])) {
                continue;
            }
            for nth in alike {
                told[*nth] = format!("{}, {}", told[*nth], column.words[place(*nth)]);
            }
        }
    }
    told
}

fn of_point(
    set: &Set,
    point: &[Row<'_>],
    load: &str,
    metrics: &[Metric],
    (several, named, all_disturbed): (bool, bool, bool),
) -> Line {
    let first = &point[0];
    let rates: Vec<f64> = point.iter().map(|row| row.figures().bytes_per_s).collect();
    let marks = standing::together(point.iter().map(Row::marks));
    let medians = metrics.iter().map(|metric| {
        let value = median_of(point, metric);
        let marks = if metric.key() == THROUGHPUT { marks.as_str() } else { "" };
        value.map_or_else(|| NONE.to_owned(), |value| metric.print(value) + marks)
    });
    let alone = point.len() == 1;
    // A sweep's points have a load each, and their records' names are numbers.
    let by_record = alone && first.member.at.is_empty();
    let name = match by_record {
        true => findings_text::name(first, several),
        false => first.plan.name.clone(),
    };
    let taken = first.result.proof.as_ref();
    Line {
        about: if by_record || named { format!("{name}: {load}") } else { load.to_owned() },
        path: first.plan.path.choice.actual.clone(),
        runs: point.len(),
        medians: medians.collect(),
        interval: interval_words(set, &rates),
        within_limit: first.member.within_limit.clone(),
        notes: notes(point, all_disturbed),
        taken: taken.map(|proof| {
            let all = point.iter().flat_map(|row| &row.result.proof);
            let unmeasured = point.iter().any(|row| row.unmeasured().is_some());
            (proof.verdict.words.clone(), Proof::are_as_requested(all), unmeasured)
        }),
        evidence: match (taken, alone) {
            (Some(proof), true) => proof.sentence.clone(),
            (Some(proof), false) => format!("First run: {}", proof.sentence),
            (None, _) => "The record has no evidence of the path that the bytes took.".to_owned(),
        },
    }
}

/// The sentence for all rows, where others disturbed each of them.
fn all_disturbed(rows: &[Row<'_>]) -> Option<String> {
    let others = rows.iter().map(|row| others::of(row.record, row.plan, row.result));
    let worst = others::worst(&others.collect::<Option<Vec<_>>>()?)?.words();
    let all = many(rows.len() as u64, "result was|results were");
    Some(format!("All {all} disturbed; at worst, {worst}."))
}

/// Comparison of a point with ceiling and expectation, and its errors; that others disturbed it,
/// unless a sentence says so of all.
fn notes(point: &[Row<'_>], all_disturbed: bool) -> String {
    let mut notes = Vec::new();
    let percents: Vec<f64> =
        point.iter().flat_map(|row| &row.figures().of_ceiling).map(|of| of.percent).collect();
    if let Some(median) = median(&percents) {
        let kinds = unique(point.iter().filter_map(|row| {
            let of = row.figures().of_ceiling.as_ref()?;
            let rate = row.record.ceiling_rate(of).map(crate::number::throughput);
            let rate = rate.map(|rate| format!(" ({rate})")).unwrap_or_default();
            Some(format!("{}{rate}", ceilings::word(of.kind)))
        }));
        let percent = percent(median);
        notes.push(format!("{percent} % of its lowest ceiling, {}.", kinds.join(" or ")));
    }
    let expected = point.iter().filter_map(|row| row.expected());
    let known: Vec<_> = expected.filter(|one| one.expected.bytes_per_s.is_some()).collect();
    match known.as_slice() {
        [] => {}
        [one] => notes.push(format!("{}.", expected::clause(Some(one)))),
        [first, ..] => {
            let percents: Vec<f64> = known.iter().filter_map(|one| one.percent).collect();
            let mut of_all = (*first).clone();
            of_all.percent = median(&percents);
            notes.push(format!("{}.", expected::clause(Some(&of_all))));
        }
    }
    let early = point.iter().filter(|row| row.result.ended != EndedHow::Complete).count();
    if early > 0 {
        let runs = if point.len() > 1 { format!(" in {}", runs(early)) } else { String::new() };
        notes.push(format!(
            "Did not end as planned{runs}: figures cover only the completed \
            part."
        ));
    }
    let others = point.iter().filter_map(|row| others::of(row.record, row.plan, row.result));
    let others = others::disturbed(&others.collect::<Vec<_>>(), point.len());
    notes.extend(others.filter(|_| !all_disturbed).map(|how| format!("Disturbed{how}.")));
    let failed: u64 = point.iter().map(|row| row.figures().failed).sum();
    if failed > 0 {
        notes.push(format!("{} failed.", many(failed, "I/O")));
    }
    let checks = point.iter().map(|row| row.result.verify.as_ref()).filter(Option::is_some);
    let checks = unique(checks.map(verification::word));
    if !checks.is_empty() {
        notes.push(format!("Verified: {}.", checks.join(", ")));
    }
    notes.join(" ")
}

/// Why there is no expected performance, each reason once.
fn unexpected(points: &[Vec<Row<'_>>]) -> Vec<String> {
    let why = |point: &Vec<Row<'_>>| match point.iter().find_map(|row| row.expected()) {
        None => Some("the record has none (bench computes it; journals have none)".to_owned()),
        Some(one) if one.expected.bytes_per_s.is_some() => None,
        Some(one) => Some(expected::unknown(&one.expected)),
    };
    let all = points.len();
    let line = |(why, times): (String, Vec<()>)| match times.len() {
        times if times == all => format!("Expected performance unknown: {why}."),
        times => format!("Expected performance unknown for {times} of {all} rows: {why}."),
    };
    let reasons = points.iter().filter_map(|point| Some((why(point)?, ())));
    grouped(reasons).into_iter().map(line).collect()
}

fn by_path<'a>(rows: &[Row<'a>]) -> Vec<Vec<Row<'a>>> {
    let key = |row: &Row<'a>| (row.plan.path.choice.actual.clone(), row.direction);
    let groups = grouped(rows.iter().map(|row| (key(row), *row)));
    groups.into_iter().map(|(_, rows)| rows).collect()
}

fn of_path(group: &[Row<'_>]) -> Line {
    let rate = |row: &&Row<'_>| row.figures().bytes_per_s;
    let by = |a: &&Row<'_>, b: &&Row<'_>| rate(a).total_cmp(&rate(b));
    let (low, high) = (group.iter().min_by(by), group.iter().max_by(by));
    let (low, high) = (low.unwrap_or(&group[0]), high.unwrap_or(&group[0]));
    let first = &group[0];
    let (taken, evidence) = taken(group);
    Line {
        about: format!("{}, {}", first.plan.path.choice.actual, first.direction.name()),
        path: first.plan.path.choice.actual.clone(),
        runs: group.len(),
        medians: Vec::new(),
        interval: None,
        within_limit: None,
        notes: format!(
            "Runs of different loads: from {} ({}) to {} ({}) over {}.",
            low.rate(),
            low.load_in_words(),
            high.rate(),
            high.load_in_words(),
            runs(group.len())
        ),
        taken,
        evidence,
    }
}

/// The paths of several runs, and how many took each.
fn taken(group: &[Row<'_>]) -> (Option<Taken>, String) {
    let proofs = || group.iter().filter_map(|row| row.result.proof.as_ref());
    let mut words = grouped(proofs().map(|proof| (proof.verdict.words.as_str(), ())));
    words.sort_by_key(|(_, times)| std::cmp::Reverse(times.len()));
    let known = proofs().count();
    let all = group.len();
    let each: Vec<String> =
        words.iter().map(|(word, times)| format!("{word} in {}", runs(times.len()))).collect();
    let evidence = match each.len() {
        0 => "no record has evidence of the path that the bytes took".to_owned(),
        _ if known < all => format!("{}; unknown in {}", each.join(", "), runs(all - known)),
        _ => each.join(", "),
    };
    let unmeasured = group.iter().all(|row| row.unmeasured().is_some());
    let taken = match words.as_slice() {
        [] => None,
        [(word, _)] if known == all => Some((*word).to_owned()),
        _ => Some("differs".to_owned()),
    };
    let taken = taken.map(|words| (words, Proof::are_as_requested(proofs()), unmeasured));
    (taken, format!("Path taken: {evidence}."))
}

fn runs(number: usize) -> String {
    many(number as u64, "run")
}
