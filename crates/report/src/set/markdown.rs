//! Tables for an issue or a wiki.

use gpuio_record::CpuCost;
use gpuio_units::{markdown, printable_short};

use super::Set;
use super::rows::{Row, rows, software};
use super::summary::{self, Summary};
use super::{conclusion, devices, findings_text};
use crate::ceilings;
use crate::expected;
use crate::number::{NONE, iops, maybe_time};

/// Row limit of the table: a longer one would not help in an issue.
const MOST: usize = 500;

pub(super) fn render(set: &Set) -> String {
    let mut out = String::from("<!-- gpuio report -->\n");
    out.push_str(&format!("# {}\n\n", markdown(&set.title)));
    if software(set) {
        out.push_str(
            "**Software GPU: these runs used no hardware GPU. Never compare these figures with \
             those of a GPU.**\n\n",
        );
    }
    for sentence in conclusion::conclusion(set) {
        out.push_str(&format!("{}\n\n", markdown(&sentence)));
    }
    for (what, text) in findings_text::where_and_how(set) {
        out.push_str(&format!("- {what}: {}\n", markdown(&text)));
    }
    out.push('\n');
    out.push_str(&points(&summary::summary(set)));
    out.push_str(&table(set));
    out.push_str(&device_tables(set));
    let findings = findings_text::findings(set);
    if !findings.is_empty() {
        out.push_str("\n## Findings\n\n");
    }
    for finding in findings {
        let about = match finding.about.as_slice() {
            [] => String::new(),
            names if names.len() > 4 => {
                format!(" ({} and {} more)", markdown(&names[0]), names.len() - 1)
            }
            names => format!(" ({})", markdown(&names.join(", "))),
        };
        out.push_str(&format!("- {}: {}{about}\n", finding.weight.word(), markdown(&finding.text)));
    }
    out.push_str("\n## Environment\n\n");
    for (facts, names) in findings_text::machines(set) {
        for (what, text) in facts {
            out.push_str(&format!("- {what}: {}\n", markdown(&text)));
        }
        out.push_str(&format!("- records: {}\n", names.len()));
    }
    out.push_str("\n## Commands\n\n");
    for member in set.members.iter().take(MOST) {
        let command = findings_text::command(&member.record.command);
        let (name, when) = (markdown(&member.name), markdown(&member.record.started_at));
        out.push_str(&format!("- {name}, {when}: {}\n", code(&command)));
    }
    out
}

/// The summary as a table; below it remarks on single loads, and the evidence behind verdicts.
fn points(summary: &Summary) -> String {
    let mut out = String::new();
    let heads: Vec<&str> = summary::FIGURES.iter().map(|(_, head)| *head).collect();
    if summary.of_points && !summary.lines.is_empty() {
        let heads = heads.join(" | ");
        out.push_str(&format!("| load | path | n | {heads} | 95 % | path taken |\n"));
        let figures = " ---: |".repeat(summary::FIGURES.len() + 1);
        out.push_str(&format!("| --- | --- | ---: |{figures} --- |\n"));
    }
    let mut below = String::new();
    let mut printed: Vec<&str> = Vec::new();
    for line in &summary.lines {
        let taken = match &line.taken {
            Some((words, true)) => format!("**{}**, as requested", markdown(words)),
            Some((words, false)) => format!("**{}**, not as requested", markdown(words)),
            None => "unknown".to_owned(),
        };
        let about = markdown(&line.about);
        if summary.of_points {
            let interval = line.interval.clone().unwrap_or_else(|| NONE.to_owned());
            let figures: Vec<String> = line.medians.iter().map(|cell| markdown(cell)).collect();
            let (path, figures) = (markdown(&line.path), figures.join(" | "));
            let n = line.runs;
            out.push_str(&format!(
                "| {about} | {path} | {n} | {figures} | {interval} | {taken} |\n"
            ));
            if !line.notes.is_empty() {
                below.push_str(&format!("- **{about}**: {}\n", markdown(&line.notes)));
            }
        } else {
            below.push_str(&format!("- **{about}**: {} {taken}.\n", markdown(&line.notes)));
        }
        if !printed.contains(&line.evidence.as_str()) {
            printed.push(&line.evidence);
        }
    }
    if !below.is_empty() {
        out.push_str(&format!("\n{below}"));
    }
    for text in printed.into_iter().chain(summary.below.iter().map(String::as_str)) {
        out.push_str(&format!("\n{}\n", markdown(text)));
    }
    out
}

const HEAD: &str = "\n| record | job | path | path taken | load | throughput | IOPS | p50 | p99 | \
                    p99.9 | µs/MiB | % of ceiling | % of expected |\n\
                    | --- | --- | --- | --- | --- | ---: | ---: | ---: | \
                    ---: | ---: | ---: | ---: | ---: |\n";

fn table(set: &Set) -> String {
    let rows = rows(set);
    let mut out = String::from(HEAD);
    for row in rows.iter().take(MOST) {
        out.push_str(&line(row));
    }
    if rows.len() > MOST {
        let rest = rows.len() - MOST;
        out.push_str(&format!("\n{rest} more rows: use `--format csv` or `html`.\n"));
    }
    out
}

/// Device activity, a table for each kind.
fn device_tables(set: &Set) -> String {
    let Some(sampler) = devices::sampler(set) else { return String::new() };
    let mut out =
        format!("\n## Devices\n\n{} {}\n", markdown(&sampler), markdown(devices::MEANING));
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| markdown(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    for table in devices::tables(set) {
        out.push_str(&format!("\n{}:\n\n{}", devices::title(&table.kind), row(&table.heads)));
        let figures = table.heads.len().saturating_sub(2);
        out.push_str(&format!("| --- | --- |{}\n", " ---: |".repeat(figures)));
        table.rows.iter().take(MOST).for_each(|cells| out.push_str(&row(cells)));
        if table.rows.len() > MOST {
            out.push_str(&format!("\n{} more are in the records.\n", table.rows.len() - MOST));
        }
        if let Some(text) = table.left_out() {
            out.push_str(&format!("\n{text}\n"));
        }
    }
    out
}

fn cost(cpu: &CpuCost) -> String {
    let sign = cpu.scope.sign();
    cpu.us_per_mib.map_or_else(|| "-".to_owned(), |cost| format!("{sign}{cost:.1}"))
}

fn line(row: &Row<'_>) -> String {
    let side = row.side();
    let total = side.latency.as_ref().map(|legs| &legs.total);
    let proof = row.result.proof.as_ref();
    let cells = [
        row.member.name.clone(),
        row.plan.name.clone(),
        row.plan.path.choice.actual.clone(),
        proof.map_or_else(|| "unknown".to_owned(), |proof| proof.verdict.words.clone()),
        row.load(),
        row.rate(),
        iops(side.iops),
        maybe_time(total.map(|summary| summary.p50_ns)),
        maybe_time(total.and_then(|summary| summary.p99_ns)),
        maybe_time(total.and_then(|summary| summary.p99_9_ns)),
        cost(&row.result.cpu),
        ceilings::cell(side.of_ceiling.as_ref()),
        expected::cell(row.expected()),
    ];
    let cells = cells.map(|cell| markdown(&cell));
    format!("| {} |\n", cells.join(" | "))
}

/// A code span that any text fits into: its fence is longer than every run of backquotes in it
/// (CommonMark 0.31, section 6.1).
fn code(text: &str) -> String {
    let text = printable_short(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}
