//! A comparison as text for people.

use std::fmt::Write as _;

use gpuio_base::units::paragraph;

use crate::comparison::{Comparison, Pair};
use crate::table::{cells, legend, remarks, runs, threshold};

/// The comparison in lines of at most `width` characters, if words allow it: the sides, a table for
/// each pair, results without a partner, the basis of the intervals, and the threshold.
#[must_use]
pub fn render(comparison: &Comparison, width: usize) -> String {
    let mut out = String::new();
    for (nth, side) in comparison.sides.iter().enumerate() {
        let role = if nth == 0 { "baseline: " } else { "against:  " };
        let files = match side.files.as_slice() {
            [one] if *one == side.name => String::new(),
            files => format!(" ({})", files.join(", ")),
        };
        wrap(&mut out, role, &format!("{}{files}", side.name), width);
        for note in &side.notes {
            wrap(&mut out, "          ", note, width);
        }
    }
    for pair in &comparison.pairs {
        one(&mut out, comparison, pair, width);
    }
    if !comparison.alone.is_empty() {
        out.push_str("\nwithout a partner:\n");
    }
    for alone in &comparison.alone {
        let name = |side: usize| comparison.sides[side].name.as_str();
        let (own, lacks) = (name(alone.side), name(alone.not_in));
        wrap(&mut out, "  ", &format!("{}: in {own}, not in {lacks}", alone.what), width);
    }
    let ends = [legend(comparison), threshold(comparison)];
    for lines in ends.iter().filter(|lines| !lines.is_empty()) {
        out.push('\n');
        for line in lines {
            wrap(&mut out, "", line, width);
        }
    }
    out
}

/// Both labels if they differ.
fn head(comparison: &Comparison, pair: &Pair) -> String {
    let labels = if pair.baseline == pair.other {
        pair.baseline.clone()
    } else {
        format!("{} | {}", pair.baseline, pair.other)
    };
    let against = match comparison.sides.len() {
        0..=2 => String::new(),
        _ => format!(", against {}", comparison.sides[pair.side].name),
    };
    format!("{labels}{against} ({})", runs(pair))
}

fn one(out: &mut String, comparison: &Comparison, pair: &Pair, width: usize) {
    out.push('\n');
    wrap(out, "", &head(comparison, pair), width);
    let heads = ["", "baseline", "other", "ratio", "95 % interval", "result"].map(str::to_owned);
    let mut lines = vec![heads];
    lines.extend(pair.rows.iter().map(cells));
    let widths: Vec<usize> = (0..6)
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    for line in lines {
        let mut text = format!("  {:<1$}", line[0], widths[0]);
        for (cell, width) in line[1..5].iter().zip(&widths[1..5]) {
            let _ = write!(text, "  {cell:>width$}");
        }
        let _ = write!(text, "  {}", line[5]);
        let _ = writeln!(out, "{}", text.trim_end());
    }
    for remark in remarks(pair, &comparison.metrics) {
        wrap(out, "  ", &remark, width);
    }
}

/// Prints `text`, which may come from outside, after `head`; further lines are indented by two
/// more.
fn wrap(out: &mut String, head: &str, text: &str, width: usize) {
    out.push_str(&paragraph(head, head.chars().count() + 2, text, width));
}
