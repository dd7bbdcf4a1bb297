//! Latency against throughput, with the knee: of loads that push harder and harder.

use gpuio_base::document::{grouped, unique};
use gpuio_base::stat::Percentile;
use gpuio_base::stat::infer::median_of_all;
use gpuio_base::units::human_ns;
use gpuio_record::Metric;

use super::super::axes::{Column, Role, columns};
use super::super::knee::{self, Knee, Step};
use super::super::rows::{Row, rows};
use super::super::{Set, colours, fix};
use super::ticks::{counts, times, wide};
use super::{
    Axis, Line, Mark, Plot, Quantity, Shape, axis, beyond, common, left, parted, places, rates,
};
use crate::number::{iops, throughput};
use crate::workload::block_bounds;

/// Blocks from this size on are compared by bytes, smaller ones by I/Os.
const BY_BYTES: u64 = 64 << 10;
/// Ticks of the horizontal axis, about.
const TICKS: f64 = 7.0;

/// The load that is drawn, of several: others have knees of their own.
fn load_of(choice: &fix::Choice, columns: &[Column]) -> String {
    let all = choice.fixed.iter().map(|fixed| (&columns[fixed.column], fixed.place));
    all.filter(|(column, _)| column.role == Role::Load)
        .map(|(column, place)| format!(", {} {}", column.label, column.words[place]))
        .collect()
}

/// The plot, and its knees in sentences; `None` where no path has loads enough.
pub(in crate::set) fn curve(set: &Set) -> Option<(Plot, Vec<String>)> {
    let rows = rows(set);
    let columns = columns(set, &rows);
    let across = axis(&knee::KEYS.map(str::to_owned), &rows, &columns)?;
    let all: Vec<usize> = (0..rows.len()).collect();
    let shown = [across.key.as_str(), "path", "direction"];
    let choice = fix::fix(&columns, &all, &shown, &[]);
    let drawn: Vec<Row<'_>> = choice.rows.iter().map(|row| rows[*row]).collect();
    let by_bytes = drawn.iter().any(|row| block_bounds(row.plan.sizes()).1 >= BY_BYTES);
    let known = colours::of_paths(&rows);
    let (mut lines, mut words, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let named = |row: &usize| {
        let row = &rows[*row];
        (row.plan.path.choice.actual.as_str(), row.direction)
    };
    let groups = grouped(choice.rows.iter().map(|row| (named(row), *row)));
    let fixed = load_of(&choice, &columns);
    let directions = groups.iter().any(|((_, direction), _)| *direction != groups[0].0.1);
    for (nth, ((path, direction), of)) in groups.iter().enumerate() {
        let about = match directions {
            true => format!("{path}, {}", direction.name()),
            false => (*path).to_owned(),
        };
        let steps = steps(&rows, across, of)?;
        let load = format!("{about}{fixed}");
        let Some(sentence) = knee::sentence(&load, &across.key, &steps) else { continue };
        words.push(sentence);
        parts.extend(parted(&rows, (&columns, across), of));
        let first: Vec<Vec<(&str, usize)>> = places(across, of)
            .values()
            .map(|row| beyond(&rows, (&columns, across), *row))
            .collect();
        let own = known.iter().find(|(name, _)| name == path).map_or(0, |(_, colour)| *colour);
        let colour = if directions { nth % colours::PALETTE } else { own };
        lines.extend(Percentile::SHORT.iter().enumerate().map(|(nth, at)| Line {
            label: format!("{about}, {}", at.label()),
            colour,
            marks: marks(&steps, nth, by_bytes, *at, &first),
            dots: true,
            dashed: nth > 0,
        }));
    }
    if words.is_empty() {
        return None;
    }
    words.push(knee::rule(&across.key));
    lines.retain(|line| !line.marks.is_empty());
    let marks = || lines.iter().flat_map(|line| &line.marks);
    let (low, high) = marks()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), mark| (low.min(mark.x), high.max(mark.x)));
    let log = wide(marks().map(|mark| mark.x));
    let from = if log { low } else { 0.0 };
    let ticks = if by_bytes { rates } else { counts };
    let unit = if by_bytes { "throughput" } else { "IOPS" };
    let apart = match unique(parts) {
        parts if parts.is_empty() => String::new(),
        parts => format!(" Marks that also differ in {} are not joined.", parts.join(", ")),
    };
    let ring = if marks().any(|mark| mark.is_knee) { " Ring: the knee." } else { "" };
    let plot = Plot {
        title: format!("Latency against {unit}: {}", common(&drawn, &across.key)),
        note: format!("Numbers at the dots: {}.{ring}{apart}", across.label),
        left: left(rows.len() - drawn.len()),
        shape: Shape::Lines {
            x: Axis { label: unit.to_owned(), log, ticks: ticks(from, high, log, TICKS) },
            log: wide(marks().map(|mark| mark.y)),
            of: Quantity("latency", times),
            lines,
        },
    };
    (high > 0.0).then_some((plot, words))
}

/// The loads of a path, ascending.
fn steps(rows: &[Row<'_>], across: &Column, of: &[usize]) -> Option<Vec<Step>> {
    let numbers = across.numbers.as_ref()?;
    let places = of.iter().map(|row| across.of[*row]).collect::<std::collections::BTreeSet<_>>();
    let step = |place: usize| {
        let here: Vec<&Row<'_>> =
            of.iter().filter(|row| across.of[**row] == place).map(|row| &rows[*row]).collect();
        let middle = |value: &dyn Fn(&Row<'_>) -> Option<f64>| {
            median_of_all(here.iter().map(|row| value(row)))
        };
        Some(Step {
            load: numbers[place],
            word: across.words[place].clone(),
            rates: here.iter().map(|row| row.figures().bytes_per_s).collect(),
            iops: middle(&|row| Some(row.figures().iops))?,
            latency: Percentile::SHORT.map(|at| middle(&|row| Metric::percentile(at).of(row))),
        })
    };
    places.into_iter().map(step).collect()
}

/// The `nth` percentile of each step that has it. Numbers stand at the upper line.
/// `beyond` has what each step has beyond its load: a line joins those alike.
fn marks(
    steps: &[Step],
    nth: usize,
    by_bytes: bool,
    at: Percentile,
    beyond: &[Vec<(&str, usize)>],
) -> Vec<Mark> {
    let found = knee::knee(steps);
    let mark = |(place, step): (usize, &Step)| {
        let y = step.latency[nth]?;
        let upper = step.latency.iter().rposition(Option::is_some) == Some(nth);
        let (rate, ios) = (throughput(step.bytes_per_s()), iops(step.iops));
        Some(Mark {
            x: if by_bytes { step.bytes_per_s() } else { step.iops },
            y,
            low: y,
            high: y,
            words: format!("{}: {rate}, {ios} IOPS, {} {}", step.word, at.label(), human_ns(y)),
            number: upper.then(|| step.word.clone()),
            is_knee: found == Some(Knee::At(place)),
            joined: place == 0 || beyond.get(place) == beyond.get(place - 1),
            doubts: String::new(),
        })
    };
    steps.iter().enumerate().filter_map(mark).collect()
}
