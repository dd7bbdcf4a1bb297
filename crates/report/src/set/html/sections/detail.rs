//! The details: findings, evidence, environment, commands.

use std::fmt::Write as _;

use gpuio_record::Evidence;

use super::super::super::rows::Row;
use super::super::super::{Picture, Set};
use super::super::super::{devices, findings_text};
use super::super::base64::base64;
use crate::number;
use gpuio_base::units::markup;

/// Limits of the jobs whose evidence is listed, and of the records whose command is.
pub(super) const MOST: usize = 100;

pub(super) fn section(out: &mut String, id: &str, title: &str) {
    let _ = writeln!(
        out,
        "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>"
    );
}

/// Begins a section that is folded until the reader opens it; ends with [`FOLD_END`].
pub(super) fn fold(out: &mut String, id: &str, title: &str, open: bool) {
    let open = if open { " open" } else { "" };
    let _ = writeln!(
        out,
        "<details class=\"fold\" id=\"{id}\"{open}><summary><h2>{title}</h2></summary>"
    );
}

/// The end of a folded section.
pub(super) const FOLD_END: &str = "</details>\n";

/// Reports what was cut, if anything.
pub(super) fn cut(out: &mut String, all: usize) {
    if all > MOST {
        let (all, most) = (number::count(all as u64), MOST);
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {most} of {all}; the others are in the records.</p>"
        );
    }
}

/// The picture, as an image: nothing in it can run.
pub(super) fn topology(out: &mut String, set: &Set) {
    fold(out, "topology", "Topology", false);
    match &set.topology {
        Picture::Absent(why) => {
            let _ = writeln!(out, "<p>No picture: {}.</p>", markup(why));
        }
        Picture::Svg { svg, about } => {
            let _ = writeln!(
                out,
                "<figure><img alt=\"PCIe tree of the machine\" \
                 src=\"data:image/svg+xml;base64,{}\"></figure>\n<p class=\"quiet\">{}</p>",
                base64(svg.as_bytes()),
                markup(about)
            );
        }
    }
    out.push_str(FOLD_END);
}

pub(super) fn findings(out: &mut String, set: &Set) {
    let findings = findings_text::findings(set);
    let of = |weight| findings.iter().filter(|finding| finding.weight == weight).count();
    let (bad, warnings) = (of(findings_text::Weight::Bad), of(findings_text::Weight::Warning));
    let title = format!(
        "Findings <span class=\"quiet\">{bad} {}, {warnings} {}</span>",
        if bad == 1 { "error" } else { "errors" },
        if warnings == 1 { "warning" } else { "warnings" }
    );
    fold(out, "findings", &title, bad > 0);
    if findings.is_empty() {
        out.push_str("<p>The records have no errors and no warnings.</p>\n");
        out.push_str(FOLD_END);
        return;
    }
    out.push_str("<ul class=\"findings\">\n");
    for finding in &findings {
        let word = finding.weight.word();
        let _ =
            write!(out, "<li class=\"{word}\"><strong>{word}</strong> {}", markup(&finding.text));
        match finding.about.as_slice() {
            [] => {}
            [one] => {
                let _ = write!(out, " <span class=\"quiet\">{}</span>", markup(one));
            }
            many => {
                let shown = many.iter().take(MOST).map(|name| markup(name));
                let names = shown.collect::<Vec<_>>().join(", ");
                let rest = many.len().saturating_sub(MOST);
                let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                let _ = write!(
                    out,
                    "<details><summary>{} jobs</summary><p class=\"quiet\">{names}{rest}</p>\
                     </details>",
                    many.len()
                );
            }
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
    out.push_str(FOLD_END);
}

pub(super) fn evidence(out: &mut String, rows: &[Row<'_>]) {
    let proofs = findings_text::proofs(rows);
    if proofs.is_empty() {
        return;
    }
    fold(out, "evidence", "Evidence: which path the bytes took", false);
    cut(out, proofs.len());
    let several = rows.iter().any(|row| row.nth > 0);
    for (row, proof) in proofs.iter().take(MOST) {
        let class = if proof.as_requested { "good" } else { "bad" };
        let _ = writeln!(
            out,
            "<details{}><summary>{}: <span class=\"badge {class}\">{}</span></summary>\n<p>{}</p>\n\
             <dl><dt>requested</dt><dd>{}</dd><dt>actual</dt><dd>{}</dd></dl>",
            if proof.as_requested { "" } else { " open" },
            markup(&findings_text::name(row, several)),
            markup(&proof.verdict.words),
            markup(&proof.sentence),
            markup(&proof.requested),
            markup(&proof.actual)
        );
        evidence_table(out, &proof.evidence);
        out.push_str("</details>\n");
    }
    out.push_str(FOLD_END);
}

fn evidence_table(out: &mut String, evidence_table: &[Evidence]) {
    if evidence_table.is_empty() {
        out.push_str("<p class=\"quiet\">No evidence.</p>\n");
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">evidence source</th>\
         <th scope=\"col\">direction</th><th scope=\"col\" class=\"n\">observed</th>\
         <th scope=\"col\" class=\"n\">of</th>\
         <th scope=\"col\">result</th><th scope=\"col\">why</th></tr></thead><tbody>\n",
    );
    let bytes = |amount: Option<u64>| amount.map_or_else(|| "-".to_owned(), number::bytes);
    for item in evidence_table {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\" title=\"{}\">{}</th><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>",
            markup(&item.source),
            markup(&item.name),
            markup(&item.direction),
            bytes(item.observed_bytes),
            bytes(item.expected_bytes),
            findings_text::assessment_text(item),
            markup(&item.why)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

pub(super) fn environment(out: &mut String, set: &Set) {
    fold(out, "environment", "Environment", false);
    let machines = findings_text::machines(set);
    let several = machines.len() > 1;
    cut(out, machines.len());
    for (facts, names) in machines.iter().take(MOST) {
        if several {
            let first = names.first().map_or("", String::as_str);
            let more = names.len().saturating_sub(1);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(out, "<h3>{}{more}</h3>", markup(first));
        }
        out.push_str("<dl>\n");
        for (what, text) in facts {
            let _ = writeln!(out, "<dt>{what}</dt><dd>{}</dd>", markup(text));
        }
        out.push_str("</dl>\n");
    }
    out.push_str(FOLD_END);
}

pub(super) fn commands(out: &mut String, set: &Set) {
    fold(out, "commands", "Commands", false);
    for sweep in &set.sweeps {
        let _ = writeln!(
            out,
            "<p>Sweep {}, begun {}:</p><pre>{}</pre>",
            markup(&sweep.name),
            markup(&sweep.started_at),
            markup(&findings_text::command(&sweep.command))
        );
    }
    cut(out, set.members.len());
    for member in set.members.iter().take(MOST) {
        let record = &member.record;
        let _ = writeln!(
            out,
            "<details{}><summary>{} <span class=\"quiet\">{}</span></summary>\n<pre>{}</pre>\n\
             <p class=\"quiet\">The resolved plan, as a job file that repeats the run:</p>\n\
             <pre>{}</pre></details>",
            if set.members.len() == 1 { " open" } else { "" },
            markup(&member.name),
            markup(&record.started_at),
            markup(&findings_text::command(&record.command)),
            lines(&record.plan_text)
        );
    }
    out.push_str(FOLD_END);
}

/// A text of several lines as markup: `markup` alone makes signs of line feeds.
fn lines(text: &str) -> String {
    text.trim_end().lines().map(markup).collect::<Vec<_>>().join("\n")
}

/// What the report does not contain, and why.
pub(super) fn absent(out: &mut String, set: &Set, rows: &[Row<'_>]) {
    let mut lines: Vec<String> = Vec::new();
    let none = |test: fn(&Row<'_>) -> bool| !rows.iter().any(test);
    if rows.is_empty() {
        lines.push("Figures: no job of these records has a result.".to_owned());
    }
    if none(|row| row.figures().of_ceiling.is_some()) {
        lines.push("Percentage of ceilings: none was measured (bench --ceilings).".to_owned());
    }
    if none(|row| row.result.proof.is_some()) {
        lines.push("Path taken: these records are too old to have it.".to_owned());
    }
    if none(|row| !row.result.series.is_empty()) {
        lines.push("Time series: no record has points.".to_owned());
    }
    lines.extend(devices::absent(set));
    if none(|row| !row.plan.gpus.is_empty()) {
        lines.push("GPU × drive: no job used a GPU.".to_owned());
    }
    lines.push(
        "Latency distributions cover the whole I/O, from due to completed, in a coarser \
         resolution than the records; percentiles of the legs are among the figures."
            .to_owned(),
    );
    fold(out, "absent", "Not in this report", false);
    out.push_str("<ul>\n");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", markup(&line));
    }
    out.push_str(
        "<li id=\"no-records\" hidden>The records themselves: compressed, they exceed the limit \
         of this page (report --embed-limit). All figures are in it.</li>\n",
    );
    out.push_str("</ul>\n");
    out.push_str(FOLD_END);
}
