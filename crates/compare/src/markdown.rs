//! A comparison as Markdown, for a comment on a change or a page of results.

use std::fmt::Write as _;

use gpuio_units::{markdown, printable_short};

use crate::comparison::Comparison;
use crate::table::{cells, legend, remarks, runs, threshold};

/// The comparison with one table for all pairs; results beyond the threshold are above it.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let (baseline, others) = names.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
    let others: Vec<String> = others.iter().map(|name| format!("`{}`", code(name))).collect();
    let _ = writeln!(out, "**{}** against baseline `{}`\n", others.join(", "), code(baseline));
    for line in threshold(comparison) {
        let _ = writeln!(out, "- {}", markdown(&line));
    }
    if comparison.threshold.is_some() {
        out.push('\n');
    }
    out.push_str("| Load | Runs | | Baseline | Other | Ratio | 95 % interval | Verdict |\n");
    out.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    for pair in &comparison.pairs {
        let mut label = markdown(&pair.baseline);
        if pair.other != pair.baseline {
            let _ = write!(label, "<br>{}", markdown(&pair.other));
        }
        if comparison.sides.len() > 2 {
            let _ = write!(label, "<br>against {}", markdown(&comparison.sides[pair.side].name));
        }
        let mut head = format!("| {label} | {} |", runs(pair));
        for row in &pair.rows {
            let [metric, rest @ ..] = cells(row);
            let _ = writeln!(out, "{head} {metric} | {} |", rest.join(" | "));
            head = "| | |".to_owned();
        }
    }
    list(&mut out, comparison);
    out
}

/// Notes of the pairs, results without a partner, the basis of the intervals.
fn list(out: &mut String, comparison: &Comparison) {
    let mut lines: Vec<String> = Vec::new();
    for pair in &comparison.pairs {
        lines.extend(remarks(pair).iter().map(|line| format!("{}: {line}", pair.baseline)));
    }
    for alone in &comparison.alone {
        let own = &comparison.sides[alone.side].name;
        let lacks = &comparison.sides[alone.not_in].name;
        lines.push(format!("without a partner: {} in {own}, not in {lacks}", alone.what));
    }
    for side in &comparison.sides {
        lines.extend(side.notes.iter().map(|note| format!("{}: {note}", side.name)));
    }
    lines.extend(legend(comparison));
    if !lines.is_empty() {
        out.push('\n');
    }
    for line in lines {
        let _ = writeln!(out, "- {}", markdown(&line));
    }
}

/// Text between backticks: contains no markup, and can't end them.
fn code(text: &str) -> String {
    printable_short(text).replace(['`', '|'], " ")
}
