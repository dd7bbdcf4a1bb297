//! The plot that shows a set's main result: chosen here, drawn in `svg`.
//!
//! Throughput against what was varied, a line per path; of loads that no number tells apart, a bar
//! each; of a single load, its rate over time. As every figure it is of one load: `fix::fix`
//! decides which rows it draws.

mod curve;
mod svg;
mod ticks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gpuio_base::stat::infer::median;
use gpuio_record::{JobPlan, JobResult};

use super::Set;
use super::axes::{Column, columns, own_key, varied};
use super::fix;
use super::rows::{Row, rows};
use super::summary::told_apart;
use super::{chosen, colours};
use crate::number::{float, many, throughput};
use crate::standing;
use crate::workload::{jobs, own_question, rw_of, sizes_short};
pub(super) use curve::curve;
pub(super) use ticks::rates;
use ticks::{Tick, wide};

/// In the first bytes of a picture.
pub(super) const MARK: &str = "<svg data-generator=\"gpuio report\"";

/// Bars at most: more are no picture.
pub(super) const MOST_BARS: usize = 16;
/// A line has so many marks at least, or each load has a bar. The page's plots do the same.
pub(super) const LEAST: usize = 3;
/// The axis that a depth which gpuio chose has no number on.
const DEPTH: &str = "depth";
/// Runs at most whose rates over time are drawn.
const MOST_RUNS: usize = 5;

pub(super) struct Plot {
    /// The figure and the load that it draws.
    pub(super) title: String,
    /// How to read it.
    pub(super) note: String,
    /// The rows that it leaves out, as the start of a sentence; empty where it has all.
    left: String,
    shape: Shape,
}

impl Plot {
    /// The note, with the place of the rows that the plot leaves out; a picture alone has none.
    pub(super) fn note_with(&self, place: &str) -> String {
        match self.left.as_str() {
            "" => self.note.clone(),
            left => format!("{} {left} {place}.", self.note),
        }
    }
}

/// A quantity on the vertical axis: its name, and what makes its ticks.
struct Quantity(&'static str, fn(f64, f64, bool, f64) -> Vec<Tick>);

enum Shape {
    /// Values by `x`; `log` is of the values.
    Lines {
        x: Axis,
        log: bool,
        of: Quantity,
        lines: Vec<Line>,
    },
    Bars(Vec<Bar>),
}

struct Axis {
    label: String,
    log: bool,
    /// Places with a label; for time, none: they are chosen when drawn.
    ticks: Vec<(f64, String)>,
}

struct Line {
    label: String,
    colour: usize,
    marks: Vec<Mark>,
    /// Whether each value has a dot.
    dots: bool,
    dashed: bool,
}

/// A value with the range of its runs.
#[derive(Clone)]
struct Mark {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
    words: String,
    /// Stands beside its dot.
    number: Option<String>,
    is_knee: bool,
    /// Whether a line joins it with the mark before: both differ in nothing but the axis.
    joined: bool,
    /// The marks behind its rate ([`standing::MARKS`]): with some it is drawn hollow.
    doubts: String,
}

struct Bar {
    label: String,
    colour: usize,
    value: f64,
    /// The range of its runs.
    low: f64,
    high: f64,
    runs: usize,
    /// As of a [`Mark`].
    doubts: String,
}

/// The marks behind the rates of some rows.
fn doubts<'r>(rows: impl Iterator<Item = &'r Row<'r>>) -> String {
    standing::together(rows.map(Row::marks))
}

/// The meaning of what is drawn hollow, as a sentence behind a note; empty where nothing is.
fn hollow<'d>(doubts: impl Iterator<Item = &'d str>) -> String {
    let line = standing::legend_line(&standing::together(doubts));
    line.map_or_else(String::new, |words| format!(" Drawn hollow: {words}."))
}

/// The plot of a set, or why there is none.
pub(super) fn main(set: &Set) -> Result<Plot, &'static str> {
    let rows = rows(set);
    if set.members.is_empty() && !set.lacks.is_empty() {
        return Err("there is no record of a run that gpuio made");
    }
    if rows.is_empty() {
        return Err("no job of these records has a result");
    }
    let columns = columns(set, &rows);
    let records: Vec<usize> = rows.iter().map(|row| row.nth).collect();
    let searched = if set.x.is_none() { searched(set) } else { None };
    if let Some(plot) = searched.or_else(|| by_axis(set, &rows, &columns, &records)) {
        return Ok(plot);
    }
    let points = fix::points(&columns, &records);
    match points.as_slice() {
        [one] => over_time(&rows, one).ok_or("its only load has no series"),
        several if own_names(&rows, several) => {
            Err("its loads answer different questions, and are not compared")
        }
        several if several.len() <= MOST_BARS => Ok(bars(&rows, &columns, several)),
        _ => Err("its loads differ in more than a picture shows"),
    }
}

/// The plot inside a page, whose style sheet it uses.
pub(super) fn inside(plot: &Plot) -> String {
    svg::wide_and_narrow(plot)
}

/// The plot as a picture of its own, with what must not be overlooked and the curve of latencies
/// below it; of a set without one, its reason.
pub(super) fn render(set: &Set) -> String {
    let set = &*set.for_people();
    let mut plot = main(set).unwrap_or_else(|why| Plot {
        title: "No plot".to_owned(),
        note: format!("No plot: {why}."),
        left: String::new(),
        shape: Shape::Bars(Vec::new()),
    });
    // A picture travels without its page.
    let mut note = set.banners();
    note.extend(super::conclusion::caution(&rows(set)));
    note.push(plot.note_with("not drawn"));
    plot.note = note.join(" ");
    match curve(set) {
        Some((curve, words)) => {
            let note = format!("{} {}", words.join(" "), curve.note_with("not drawn"));
            svg::one_above(&plot, &Plot { note, ..curve }, &set.title) + "\n"
        }
        None => svg::alone(&plot, &set.title) + "\n",
    }
}

/// The first of these axes that has numbers, on which a path's rows differ.
fn axis<'c>(keys: &[String], rows: &[Row<'_>], columns: &'c [Column]) -> Option<&'c Column> {
    let within = |column: &&Column| {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        rows.iter().zip(&column.of).any(|(row, place)| {
            let path = row.plan.path.choice.actual.as_str();
            first.entry(path).or_insert(*place) != place
        })
    };
    let numbers = |column: &&Column| column.numbers.is_some() && within(column);
    let find = |key: &String| columns.iter().find(|column| column.key == *key).filter(numbers);
    keys.iter().find_map(find)
}

/// The axis of this name, as job files or tables have it, if a plot can have it across; else those
/// that it can.
pub(super) fn across(set: &Set, name: &str) -> Result<String, Vec<String>> {
    let rows = rows(set);
    let columns = columns(set, &rows);
    let can = |key: &&Column| axis(std::slice::from_ref(&key.key), &rows, &columns).is_some();
    named(name, columns.iter().filter(can))
}

/// The axis of this name on which rows differ, so that each of its values can have a line; else
/// those on which they do.
pub(super) fn parting(set: &Set, name: &str) -> Result<String, Vec<String>> {
    let columns = columns(set, &rows(set));
    named(name, columns.iter().filter(|one| one.filter && one.words.len() > 1))
}

/// The key of the column of this name, or the keys of all.
fn named<'c>(name: &str, all: impl Iterator<Item = &'c Column>) -> Result<String, Vec<String>> {
    let keys: Vec<String> = all.map(|one| one.key.clone()).collect();
    let key = own_key(name);
    if keys.iter().any(|one| one == key) { Ok(key.to_owned()) } else { Err(keys) }
}

/// Utilisation by accelerators, of the record of a search for most of them.
fn searched(set: &Set) -> Option<Plot> {
    let [member] = set.members.as_slice() else { return None };
    let found = |(plan, job): (&'_ JobPlan, &'_ JobResult)| {
        Some((plan.name.clone(), job.feed.as_ref()?.search.clone()?))
    };
    let (job, search) = jobs(&member.record).find_map(found)?;
    let mut known: Vec<(u32, f64, &str)> = search
        .tries
        .iter()
        .filter_map(|one| Some((one.accelerators, one.utilisation_percent?, &*one.verdict)))
        .collect();
    known.sort_by_key(|(accelerators, ..)| *accelerators);
    let (first, last) = (known.first()?.0, known.last()?.0);
    let mark = |accelerators: u32, percent: f64, words: String| Mark {
        x: f64::from(accelerators),
        y: percent,
        low: percent,
        high: percent,
        words,
        number: None,
        is_knee: false,
        joined: true,
        doubts: String::new(),
    };
    let tries = known.iter().map(|(accelerators, percent, verdict)| {
        let words = format!("{accelerators}: utilisation {percent:.1} % ({verdict})");
        mark(*accelerators, *percent, words)
    });
    let least = search.least_utilisation_percent;
    let to_keep = [first, last].map(|at| mark(at, least, format!("to keep: {least} %")));
    let unknown = match search.tries.len() - known.len() {
        0 => String::new(),
        runs => format!(" Utilisation is unknown of {}.", many(runs as u64, "run")),
    };
    let tick = |(accelerators, ..): &(u32, f64, &str)| {
        (f64::from(*accelerators), accelerators.to_string())
    };
    let line = |label: &str, marks: Vec<Mark>, dashed: bool| {
        let colour = usize::from(dashed);
        Line { label: label.to_owned(), colour, marks, dots: !dashed, dashed }
    };
    let lines =
        vec![line("utilisation", tries.collect(), false), line("to keep", to_keep.to_vec(), true)];
    (first < last).then(|| Plot {
        title: format!("Accelerator utilisation against accelerators: {job}"),
        note: format!("One run of each number (n = 1).{unknown}"),
        left: String::new(),
        shape: Shape::Lines {
            x: Axis {
                label: "accelerators".to_owned(),
                log: last / first >= 8,
                ticks: known.iter().map(tick).collect(),
            },
            log: false,
            of: Quantity("utilisation", ticks::percents),
            lines,
        },
    })
}

/// A sweep's second axis, which has a line for each value, where these are not too many.
fn second<'c>(set: &Set, columns: &'c [Column], across: &Column) -> Option<&'c Column> {
    let keys = varied(set).into_iter().filter(|key| *key != across.key && key != "path");
    let few = |one: &&Column| one.filter && (2..=colours::PALETTE).contains(&one.words.len());
    keys.filter_map(|key| columns.iter().find(|one| one.key == key)).find(few)
}

fn by_axis(set: &Set, rows: &[Row<'_>], columns: &[Column], records: &[usize]) -> Option<Plot> {
    // The keys that sweeps varied, then the load's.
    let mut keys: Vec<String> = set.x.iter().cloned().chain(varied(set)).collect();
    keys.extend(["block", "threads", "depth"].map(str::to_owned));
    let across = axis(&keys, rows, columns)?;
    let numbers = across.numbers.as_ref()?;
    let all: Vec<usize> = (0..rows.len()).collect();
    let parting = set.lines.as_ref().and_then(|key| columns.iter().find(|one| one.key == *key));
    let parting = parting.or_else(|| second(set, columns, across));
    let mut shown = vec![across.key.as_str(), "path", "direction"];
    shown.extend(parting.map(|column| column.key.as_str()));
    let choice = fix::fix(columns, &all, &shown, &[]);
    let drawn: Vec<Row<'_>> = choice.rows.iter().map(|row| rows[*row]).collect();
    let directions = drawn.iter().any(|row| row.direction != drawn[0].direction);
    let label = |row: usize| {
        let path = &rows[row].plan.path.choice.actual;
        let direction = directions.then(|| rows[row].direction.name().to_owned());
        let part = parting.map(|one| format!("{} {}", one.label, one.words[one.of[row]]));
        let words = [Some(path.clone()), direction, part].into_iter().flatten();
        words.collect::<Vec<String>>().join(", ")
    };
    let groups = gpuio_base::document::grouped(choice.rows.iter().map(|row| (label(*row), *row)));
    let known = colours::of_paths(rows);
    let single = groups.len() <= known.len();
    let mut apart: Vec<&str> = Vec::new();
    let line = |(nth, (label, of)): (usize, (String, Vec<usize>))| {
        let path = &rows[of[0]].plan.path.choice.actual;
        let own = known.iter().find(|(name, _)| name == path).map_or(0, |(_, colour)| *colour);
        let colour = if single { own } else { nth % colours::PALETTE };
        apart.extend(parted(rows, (columns, across), &of));
        Line {
            marks: marks(rows, (columns, across), numbers, &of, &label),
            label,
            colour,
            dots: true,
            dashed: false,
        }
    };
    let lines: Vec<Line> = groups.into_iter().enumerate().map(line).collect();
    let mut places: Vec<usize> = choice.rows.iter().map(|row| across.of[*row]).collect();
    places.sort_unstable();
    places.dedup();
    let (first, last) = (numbers[*places.first()?], numbers[*places.last()?]);
    let points = fix::points(columns, records);
    let longest = lines.iter().map(|line| line.marks.len()).max()?;
    let asked = set.x.as_ref() == Some(&across.key);
    if longest < 2 || !asked && longest < LEAST && points.len() <= MOST_BARS {
        return None;
    }
    let common = common(&drawn, &across.key);
    Some(Plot {
        title: format!("Throughput against {}: {common}{}", across.label, fixed(&choice, columns)),
        note: note(
            &drawn,
            (columns, across),
            (&shown, &choice.rows),
            &gpuio_base::document::unique(apart),
        ) + &hollow(
            lines.iter().flat_map(|line| &line.marks).map(|mark| mark.doubts.as_str()),
        ),
        left: left(rows.len() - drawn.len()),
        shape: Shape::Lines {
            x: Axis {
                label: across.label.clone(),
                log: first > 0.0 && last / first >= 8.0,
                ticks: places.iter().map(|at| (numbers[*at], across.words[*at].clone())).collect(),
            },
            of: Quantity("throughput", rates),
            log: wide(lines.iter().flat_map(|line| &line.marks).flat_map(|m| [m.low, m.high])),
            lines,
        },
    })
}

/// The values at which a plot is fixed, beyond those that its title has in words.
fn fixed(choice: &fix::Choice, columns: &[Column]) -> String {
    let others = ["load", "block", "threads", "depth", "path", "direction"];
    let words = choice.fixed.iter().filter_map(|fixed| {
        let column = &columns[fixed.column];
        let named = others.contains(&column.key.as_str());
        (!named).then(|| format!(", {} {}", column.label, column.words[fixed.place]))
    });
    words.collect()
}

/// Values of a row beyond the axis and the line of a plot, each with its name: rows with other
/// values are not joined.
fn beyond<'c>(
    rows: &[Row<'_>],
    (columns, across): (&'c [Column], &Column),
    row: usize,
) -> Vec<(&'c str, usize)> {
    let along = columns.iter().filter(|column| column.parts_lines());
    let mut all: Vec<_> = along.map(|column| (column.label.as_str(), column.of[row])).collect();
    if across.key != DEPTH {
        all.push(("depth per thread", rows[row].plan.depth as usize));
    }
    all
}

/// The places of some rows on an axis, ascending, each with its first row.
fn places(across: &Column, of: &[usize]) -> BTreeMap<usize, usize> {
    let mut places = BTreeMap::new();
    for row in of {
        places.entry(across.of[*row]).or_insert(*row);
    }
    places
}

/// In what neighbouring marks of a line differ beyond its axis.
fn parted<'c>(
    rows: &[Row<'_>],
    by: (&'c [Column], &Column),
    of: &[usize],
) -> impl Iterator<Item = &'c str> {
    let all: Vec<_> = places(by.1, of).values().map(|row| beyond(rows, by, *row)).collect();
    let pairs = all.windows(2).flat_map(|two| two[0].iter().zip(&two[1]));
    let names = pairs.filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0);
    names.collect::<Vec<_>>().into_iter()
}

/// The rows of a line as one mark per place, ascending.
fn marks(
    rows: &[Row<'_>],
    (columns, across): (&[Column], &Column),
    numbers: &[f64],
    of: &[usize],
    label: &str,
) -> Vec<Mark> {
    let mut before = None;
    let mark = |(place, first): (usize, usize)| {
        let own = beyond(rows, (columns, across), first);
        let joined = before.replace(own.clone()).is_none_or(|before| before == own);
        let here = || of.iter().filter(|row| across.of[**row] == place);
        let rates: Vec<f64> = here().map(|row| rows[*row].figures().bytes_per_s).collect();
        let y = median(&rates)?;
        let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rates.iter().copied().fold(0.0, f64::max);
        let print = throughput;
        let range = match rates.len() {
            1 => String::new(),
            many => format!(", median of {many}, {} to {}", print(low), print(high)),
        };
        let depth = here().next().filter(|row| chosen::depth_is_ours(&rows[**row]));
        let depth =
            depth.map_or(String::new(), |row| format!(", at depth {}", rows[*row].plan.depth));
        let words = format!(
            "{label}, {} {}: {}{range}{depth}",
            across.label,
            across.words[place],
            print(y)
        );
        let (x, number, is_knee) = (numbers[place], None, false);
        let doubts = doubts(here().map(|row| &rows[*row]));
        let words = words + &doubts;
        Some(Mark { x, y, low, high, words, number, is_knee, joined, doubts })
    };
    places(across, of).into_iter().filter_map(mark).collect()
}

/// The words that rows have in common: direction and order, block, threads, depth.
fn common(rows: &[Row<'_>], except: &str) -> String {
    let first = &rows[0];
    let mut words: Vec<String> = Vec::new();
    let mut same = |key: &str, of: &dyn Fn(&Row<'_>) -> String| {
        let word = of(first);
        if key != except && rows.iter().all(|row| of(row) == word) {
            words.push(word);
        }
    };
    same("load", &|row| rw_of(row.plan, row.direction));
    same("block", &|row| sizes_short(row.plan));
    same("threads", &|row| many(row.plan.threads.into(), "thread"));
    same("depth", &|row| match chosen::depth_is_ours(row) {
        true => "automatic depth".to_owned(),
        false => format!("depth {}", row.plan.depth),
    });
    words.join(", ")
}

/// The meaning of whiskers and of their absence, by the number of runs of each mark.
fn spread_words(runs: impl IntoIterator<Item = usize>) -> &'static str {
    let runs: Vec<usize> = runs.into_iter().collect();
    let single = |one: &usize| *one == 1;
    match (runs.iter().all(single), runs.iter().any(single)) {
        (true, _) => "One run of each load (n = 1): the spread is unknown.",
        (false, false) => {
            "Medians of the runs of one load; whiskers show the lowest and the highest."
        }
        (false, true) => {
            "Medians of the runs of one load; whiskers show the lowest and the highest. A load \
             with one run (n = 1) has an unknown spread."
        }
    }
}

/// How to read lines of these rows, whose marks are parted by some properties.
fn note(
    drawn: &[Row<'_>],
    (columns, across): (&[Column], &Column),
    (shown, of): (&[&str], &[usize]),
    apart: &[&str],
) -> String {
    let shown = |row: &usize| {
        let columns = columns.iter().filter(|one| shown.contains(&one.key.as_str()));
        let mut mark: Vec<usize> = columns.map(|column| column.of[*row]).collect();
        mark.push(across.of[*row]);
        mark
    };
    let marks = gpuio_base::document::grouped(of.iter().map(|row| (shown(row), ())));
    let mut note = spread_words(marks.iter().map(|(_, runs)| runs.len())).to_owned();
    if !apart.is_empty() {
        let ours = apart.contains(&"depth per thread") && drawn.iter().any(chosen::depth_is_ours);
        let ours = if ours { " (depths are automatic)" } else { "" };
        let apart = apart.join(", ");
        let _ = write!(note, " Marks that also differ in {apart} are not joined{ours}.");
    }
    note
}

/// That rows are left out, as the start of a sentence.
fn left(rows: usize) -> String {
    match rows as u64 {
        0 => String::new(),
        rows => many(rows, "row of another load is|rows of other loads are"),
    }
}

/// Whether points are of loads that have questions of their own, and not the same.
fn own_names(rows: &[Row<'_>], points: &[Vec<usize>]) -> bool {
    let name = |point: &Vec<usize>| own_question(rows[point[0]].plan);
    points.iter().any(|point| name(point) != name(&points[0]))
}

/// Letters of a bar's label at most, where a name can stand for it: more would be squeezed.
const LABEL_MOST: usize = 60;

/// The name of each point's bar: that of the load where questions differ, else path and load, of
/// one load for all the path; where several would be equal with what differs, or else with who
/// chose the depth and with their jobs, where those have different names. Where that is too long,
/// the names of jobs or records, by whichever they differ.
pub(super) fn labels(rows: &[Row<'_>], columns: &[Column], points: &[Vec<usize>]) -> Vec<String> {
    let same = points.iter().all(|point| rows[point[0]].load() == rows[points[0][0]].load());
    let own = own_names(rows, points);
    let path = |nth: usize| &rows[nth].plan.path.choice.actual;
    let paths = points.iter().any(|point| path(point[0]) != path(points[0][0]));
    let words = |row: &Row<'_>| {
        let path = &row.plan.path.choice.actual;
        match own_question(row.plan).filter(|_| own) {
            Some(name) if paths => format!("{path} {name}"),
            Some(name) => name.to_owned(),
            None if same => path.clone(),
            None => format!("{path} {}", row.load()),
        }
    };
    let labels = told_apart(points, (rows, columns), None, words);
    let mut once: BTreeSet<&str> = BTreeSet::new();
    let again: BTreeSet<&str> =
        labels.iter().map(String::as_str).filter(|label| !once.insert(label)).collect();
    let named = rows.iter().any(|row| row.plan.name != rows[0].plan.name);
    let label = |(point, label): (&Vec<usize>, &String)| {
        let row = &rows[point[0]];
        let again = again.contains(label.as_str());
        let ours = if again && chosen::depth_is_ours(row) { " (automatic)" } else { "" };
        let name = if again && named { format!(", {}", row.plan.name) } else { String::new() };
        format!("{label}{ours}{name}")
    };
    let labels: Vec<String> = points.iter().zip(&labels).map(label).collect();
    if labels.iter().all(|label| label.chars().count() <= LABEL_MOST) {
        return labels;
    }
    let names = |of: fn(&Row<'_>) -> String| {
        let names: Vec<String> = points.iter().map(|point| of(&rows[point[0]])).collect();
        let differ = names.iter().collect::<BTreeSet<_>>().len() == names.len();
        let fit = names.iter().all(|name| name.chars().count() <= LABEL_MOST);
        (differ && fit).then_some(names)
    };
    let named = names(|row| row.plan.name.clone());
    named.or_else(|| names(|row| row.member.name.clone())).unwrap_or(labels)
}

/// A bar per point, in the order of the summary.
fn bars(rows: &[Row<'_>], columns: &[Column], points: &[Vec<usize>]) -> Plot {
    let known = colours::of_paths(rows);
    let first = &rows[points[0][0]];
    let same = points.iter().all(|point| rows[point[0]].load_in_words() == first.load_in_words());
    let bar = |(point, label): (&Vec<usize>, String)| {
        let path = &rows[point[0]].plan.path.choice.actual;
        let rates: Vec<f64> = point.iter().map(|row| rows[*row].figures().bytes_per_s).collect();
        Bar {
            label,
            colour: known.iter().find(|(name, _)| name == path).map_or(0, |(_, colour)| *colour),
            value: median(&rates).unwrap_or(0.0),
            low: rates.iter().copied().fold(f64::INFINITY, f64::min),
            high: rates.iter().copied().fold(0.0, f64::max),
            runs: rates.len(),
            doubts: doubts(point.iter().map(|row| &rows[*row])),
        }
    };
    let bars: Vec<Bar> = points.iter().zip(labels(rows, columns, points)).map(bar).collect();
    Plot {
        title: match same {
            true => format!("Throughput by path: {}", first.load_in_words()),
            false => "Throughput of each load (block, threads×depth)".to_owned(),
        },
        note: spread_words(points.iter().map(Vec::len)).to_owned()
            + &hollow(bars.iter().map(|bar| bar.doubts.as_str())),
        left: String::new(),
        shape: Shape::Bars(bars),
    }
}

/// The rate of one load in each interval of its runs.
fn over_time(rows: &[Row<'_>], point: &[usize]) -> Option<Plot> {
    let some: Vec<&Row<'_>> = point
        .iter()
        .map(|row| &rows[*row])
        .filter(|row| row.result.series.len() > 2)
        .take(MOST_RUNS)
        .collect();
    let first = some.first()?;
    let line = |(nth, row): (usize, &&Row<'_>)| {
        let mark = |point: &gpuio_record::Point| {
            let x = point.at_ns as f64 / 1e9;
            let y = float(point.bytes(row.direction)) * 1e9 / float(point.span_ns);
            let words = format!("{x:.2} s: {}", throughput(y));
            let (number, is_knee, joined, doubts) = (None, false, true, String::new());
            Mark { x, y, low: y, high: y, words, number, is_knee, joined, doubts }
        };
        let series = row.result.series.iter().filter(|point| point.span_ns > 0);
        let label = if some.len() > 1 { format!("run {}", nth + 1) } else { String::new() };
        Line { label, colour: nth, marks: series.map(mark).collect(), dots: false, dashed: false }
    };
    let more = point.len() - some.len();
    let left = match more as u64 {
        0 => String::new(),
        more => many(more, "more run is|more runs are"),
    };
    Some(Plot {
        title: format!(
            "Throughput over time: {}, {}",
            first.plan.path.choice.actual,
            first.load_in_words()
        ),
        note: "One value per interval of the record, at its end; before 0 is the ramp.".to_owned(),
        left,
        shape: Shape::Lines {
            x: Axis { label: "seconds after the ramp".to_owned(), log: false, ticks: Vec::new() },
            // A pause is to be seen: from 0.
            log: false,
            of: Quantity("throughput", rates),
            lines: some.iter().enumerate().map(line).collect(),
        },
    })
}
