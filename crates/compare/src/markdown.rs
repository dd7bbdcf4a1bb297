//! A comparison as Markdown, for a comment on a change or a page of results.

use gpuio_base::units::MarkdownPage;

use crate::comparison::Comparison;
use crate::table::{cells, legend, remarks, runs, threshold};

/// The comparison with one table for all pairs; results beyond the threshold are above it.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut page = MarkdownPage::default();
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let (baseline, others) = names.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
    page.markup("**");
    for (nth, name) in others.iter().enumerate() {
        page.markup(if nth == 0 { "" } else { ", " }).code(name);
    }
    page.markup("** against baseline ").code(baseline).markup("\n\n");
    for line in threshold(comparison) {
        page.markup("- ").text(&line).markup("\n");
    }
    if comparison.threshold.is_some() {
        page.markup("\n");
    }
    page.markup("| Load | Runs | | Baseline | Other | Ratio | 95 % interval | Verdict |\n");
    page.markup("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    for pair in &comparison.pairs {
        page.markup("| ").text(&pair.baseline);
        if pair.other != pair.baseline {
            page.markup("<br>").text(&pair.other);
        }
        if comparison.sides.len() > 2 {
            page.markup("<br>against ").text(&comparison.sides[pair.side].name);
        }
        page.markup(" | ").text(&runs(pair)).markup(" ");
        for (nth, row) in pair.rows.iter().enumerate() {
            page.markup(if nth == 0 { "" } else { "| | " }).row(cells(row));
        }
    }
    list(&mut page, comparison);
    page.finish()
}

/// Notes of the pairs, results without a partner, the basis of the intervals.
fn list(page: &mut MarkdownPage, comparison: &Comparison) {
    let mut lines: Vec<String> = Vec::new();
    for pair in &comparison.pairs {
        let remarks = remarks(pair, &comparison.metrics);
        lines.extend(remarks.iter().map(|line| format!("{}: {line}", pair.baseline)));
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
        page.markup("\n");
    }
    for line in lines {
        page.markup("- ").text(&line).markup("\n");
    }
}
