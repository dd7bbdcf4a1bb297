//! Tables for an issue or a wiki.

use gpuio_base::stat::Percentile;
use gpuio_base::units::MarkdownPage;
use gpuio_record::CpuCost;

use super::Set;
use super::rows::{Row, rows, software};
use super::summary::{self, Summary, Taken};
use super::{conclusion, devices, findings_text};
use crate::ceilings;
use crate::expected;
use crate::number::{NONE, iops, maybe_time};

/// Row limit of the table: a longer one would not help in an issue.
const MOST: usize = 500;

pub(super) fn render(set: &Set) -> String {
    let mut page = MarkdownPage::default();
    page.markup("<!-- gpuio report -->\n# ").text(&set.title).markup("\n\n");
    if software(set) {
        page.markup(
            "**Software GPU: these runs used no hardware GPU. Never compare these figures with \
             those of a GPU.**\n\n",
        );
    }
    for sentence in conclusion::conclusion(set) {
        page.text(&sentence).markup("\n\n");
    }
    for (what, text) in findings_text::where_and_how(set) {
        item(&mut page, &[what, ": ", &text]);
    }
    page.markup("\n");
    points(&mut page, &summary::summary(set));
    table(&mut page, set);
    device_tables(&mut page, set);
    findings(&mut page, set);
    page.markup("\n## Environment\n\n");
    for (facts, names) in findings_text::machines(set) {
        for (what, text) in facts {
            item(&mut page, &[what, ": ", &text]);
        }
        item(&mut page, &["records: ", &names.len().to_string()]);
    }
    page.markup("\n## Commands\n\n");
    for member in set.members.iter().take(MOST) {
        let command = findings_text::command(&member.record.command);
        page.markup("- ").text(&member.name).markup(", ").text(&member.record.started_at);
        page.markup(": ").code(&command).markup("\n");
    }
    page.finish()
}

/// A line of a list.
fn item(page: &mut MarkdownPage, texts: &[&str]) {
    page.markup("- ").text(&texts.concat()).markup("\n");
}

fn findings(page: &mut MarkdownPage, set: &Set) {
    let findings = findings_text::findings(set);
    if !findings.is_empty() {
        page.markup("\n## Findings\n\n");
    }
    for finding in findings {
        let about = match finding.about.as_slice() {
            [] => String::new(),
            names if names.len() > 4 => format!("{} and {} more", names[0], names.len() - 1),
            names => names.join(", "),
        };
        page.markup("- ").text(finding.weight.word()).markup(": ").text(&finding.text);
        if !about.is_empty() {
            page.markup(" (").text(&about).markup(")");
        }
        page.markup("\n");
    }
}

/// The summary as a table; below it remarks on single loads, and the evidence behind verdicts.
fn points(page: &mut MarkdownPage, summary: &Summary) {
    if summary.of_points && !summary.lines.is_empty() {
        let heads = summary.heads.iter().map(String::as_str);
        page.row(["load", "path", "n"].into_iter().chain(heads).chain(["95 %", "path taken"]));
        page.markup("| --- | --- | ---: |");
        rule(page, summary.heads.len() + 1);
        page.markup(" --- |\n");
    }
    let mut below = MarkdownPage::default();
    let mut printed: Vec<&str> = Vec::new();
    for line in &summary.lines {
        if summary.of_points {
            let n = line.runs.to_string();
            let first = [line.about.as_str(), &line.path, &n];
            let interval = line.interval.as_deref().unwrap_or(NONE);
            let figures = line.medians.iter().map(String::as_str).chain([interval]);
            page.markup("|");
            for cell in first.into_iter().chain(figures) {
                page.markup(" ").text(cell).markup(" |");
            }
            taken(page.markup(" "), line.taken.as_ref());
            page.markup(" |\n");
            if !line.notes.is_empty() {
                below.markup("- **").text(&line.about).markup("**: ").text(&line.notes);
                below.markup("\n");
            }
        } else {
            below.markup("- **").text(&line.about).markup("**: ").text(&line.notes).markup(" ");
            taken(&mut below, line.taken.as_ref());
            below.markup(".\n");
        }
        if !printed.contains(&line.evidence.as_str()) {
            printed.push(&line.evidence);
        }
    }
    if !below.is_empty() {
        page.markup("\n").append(&below);
    }
    for text in printed.into_iter().chain(summary.below.iter().map(String::as_str)) {
        page.markup("\n").text(text).markup("\n");
    }
}

/// The path that was taken, and whether it is the requested one.
fn taken(page: &mut MarkdownPage, taken: Option<&Taken>) {
    match taken {
        Some((words, as_requested)) => {
            page.markup("**").text(words).markup("**, ");
            page.markup(if *as_requested { "as requested" } else { "not as requested" });
        }
        None => {
            page.markup("unknown");
        }
    }
}

/// Columns of figures in the rule below a table's heads.
fn rule(page: &mut MarkdownPage, columns: usize) {
    for _ in 0..columns {
        page.markup(" ---: |");
    }
}

/// Columns behind the load: rates and percentiles, then costs and shares.
fn table(page: &mut MarkdownPage, set: &Set) {
    let percentiles = Percentile::shown(&set.percentiles(), &Percentile::TABLE);
    let heads = percentiles.iter().map(|at| at.label());
    let heads = ["throughput", "IOPS"].map(str::to_owned).into_iter().chain(heads);
    let heads = heads.chain(["µs/MiB", "% of ceiling", "% of expected"].map(str::to_owned));
    let heads: Vec<String> = heads.collect();
    let first = ["record", "job", "path", "path taken", "load"];
    page.markup("\n").row(first.into_iter().chain(heads.iter().map(String::as_str)));
    page.markup("| --- | --- | --- | --- | --- |");
    rule(page, heads.len());
    page.markup("\n");
    let rows = rows(set);
    for row in rows.iter().take(MOST) {
        page.row(cells(row, &percentiles));
    }
    if rows.len() > MOST {
        let rest = (rows.len() - MOST).to_string();
        page.markup("\n").text(&rest).markup(" more rows: use `--format csv` or `html`.\n");
    }
}

/// Device activity, a table for each kind.
fn device_tables(page: &mut MarkdownPage, set: &Set) {
    let Some(sampler) = devices::sampler(set) else { return };
    page.markup("\n## Devices\n\n").text(&sampler).markup(" ").text(devices::MEANING);
    page.markup("\n");
    for table in devices::tables(set) {
        page.markup("\n").text(&devices::title(&table.kind)).markup(":\n\n").row(&table.heads);
        page.markup("| --- | --- |");
        rule(page, table.heads.len().saturating_sub(2));
        page.markup("\n");
        for cells in table.rows.iter().take(MOST) {
            page.row(cells);
        }
        if table.rows.len() > MOST {
            let rest = (table.rows.len() - MOST).to_string();
            page.markup("\n").text(&rest).markup(" more are in the records.\n");
        }
        if let Some(text) = table.left_out() {
            page.markup("\n").text(&text).markup("\n");
        }
    }
}

fn cost(cpu: &CpuCost) -> String {
    let sign = cpu.scope.sign();
    cpu.us_per_mib.map_or_else(|| "-".to_owned(), |cost| format!("{sign}{cost:.1}"))
}

fn cells(row: &Row<'_>, percentiles: &[Percentile]) -> Vec<String> {
    let figures = row.figures();
    let total = figures.latency.as_ref().map(|legs| &legs.total);
    let proof = row.result.proof.as_ref();
    let mut cells = vec![
        row.member.name.clone(),
        row.plan.name.clone(),
        row.plan.path.choice.actual.clone(),
        proof.map_or_else(|| "unknown".to_owned(), |proof| proof.verdict.words.clone()),
        row.load(),
        row.rate(),
        iops(figures.iops),
    ];
    cells
        .extend(percentiles.iter().map(|at| maybe_time(total.and_then(|all| all.percentile(*at)))));
    cells.extend([
        cost(&row.result.cpu),
        ceilings::cell(figures.of_ceiling.as_ref()),
        expected::cell(row.expected()),
    ]);
    cells
}
