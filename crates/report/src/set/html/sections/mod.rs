//! The page's own text, in the order of the page.

mod detail;
mod devices;
mod ranks;
mod summary;

use std::fmt::Write as _;

use super::super::Set;
use super::super::rows::{Row, software};
use super::super::{conclusion, findings_text, plot};
use crate::number;
use gpuio_base::units::markup;
use gpuio_record::Metric;
use gpuio_record::metric::List;

/// Rows of the table that are shown without a script.
const WITHOUT_SCRIPT: usize = 100;

pub(super) fn body(out: &mut String, set: &Set, rows: &[Row<'_>]) {
    out.push_str("<a class=\"skip\" href=\"#summary\">Skip to the summary</a>\n");
    head(out, set, rows);
    out.push_str("<main>\n");
    summary::section(out, set);
    if !rows.is_empty() {
        out.push_str(PLOTS);
        table(out, set, rows);
    }
    detail::findings(out, set);
    detail::evidence(out, rows);
    ranks::section(out, set);
    devices::section(out, set);
    detail::topology(out, set);
    detail::environment(out, set);
    detail::commands(out, set);
    detail::absent(out, set, rows);
    out.push_str("</main>\n");
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        out,
        "<footer><p>Written by gpuio {version}. This file needs no network and sends nothing. \
         Plots: uPlot 1.6.32, MIT licence, © 2022 Leon Sorokin.</p></footer>\n\
         <div id=\"say\" class=\"unseen\" role=\"status\" aria-live=\"polite\"></div>\n\
         <div id=\"tip\" role=\"tooltip\" hidden></div>\n"
    );
}

fn head(out: &mut String, set: &Set, rows: &[Row<'_>]) {
    let _ = write!(out, "<header>\n<h1>{}</h1>\n", markup(&set.title));
    if software(set) {
        out.push_str(
            "<p class=\"banner\" role=\"note\"><strong>Software GPU.</strong> At least one of \
             these records used no hardware GPU: its figures are those of host memory and CPU \
             threads. Never compare them with those of a GPU.</p>\n",
        );
    }
    for sentence in conclusion::conclusion(set) {
        let _ = writeln!(out, "<p class=\"conclusion\">{}</p>", markup(&sentence));
    }
    out.push_str("<div class=\"first\">\n<dl class=\"where\">\n");
    for (what, text) in findings_text::where_and_how(set) {
        let _ = writeln!(out, "<dt>{what}</dt><dd>{}</dd>", markup(&text));
    }
    let records = match set.members.len() {
        1 => "1 record".to_owned(),
        number => format!("{} records", number::count(number as u64)),
    };
    let jobs = match rows.len() {
        1 => "1 row (a job and direction)".to_owned(),
        many => format!("{} rows (a job and direction each)", number::count(many as u64)),
    };
    let findings = findings_line(set);
    let _ = writeln!(out, "<dt>data</dt><dd>{records}, {jobs}; {findings}</dd>\n</dl>");
    match plot::main(set) {
        Ok(plot) => {
            let _ = writeln!(
                out,
                "<figure class=\"main\"><figcaption>{}</figcaption>{}<p class=\"quiet\">{}</p>\
                 </figure>",
                markup(&plot.title),
                plot::inside(&plot),
                markup(&plot.note)
            );
        }
        Err(why) => {
            let _ = writeln!(out, "<p class=\"quiet\">No plot here: {}.</p>", markup(why));
        }
    }
    out.push_str(
        "</div>\n<div class=\"tools\" hidden>\n\
         <button type=\"button\" id=\"theme\">Theme: as the system</button>\n\
         <button type=\"button\" id=\"print\">Print or PDF</button>\n\
         <button type=\"button\" id=\"save-csv\">Save shown rows (CSV)</button>\n\
         <button type=\"button\" id=\"save-figures\">Save all figures (JSON)</button>\n\
         <button type=\"button\" id=\"save-records\">Save records (JSON)</button>\n</div>\n\
         <noscript><p class=\"note\">Without scripts only the first plot is drawn and there are no \
         filters; summary, table, findings and evidence are all here.</p></noscript>\n</header>\n",
    );
}

/// How many errors and warnings there are, with the way to them.
fn findings_line(set: &Set) -> String {
    let findings = findings_text::findings(set);
    let of = |weight| findings.iter().filter(|finding| finding.weight == weight).count();
    let (bad, warnings) = (of(findings_text::Weight::Bad), of(findings_text::Weight::Warning));
    format!(
        "<a href=\"#findings\">findings</a>: {bad} {}, {warnings} {}",
        if bad == 1 { "error" } else { "errors" },
        if warnings == 1 { "warning" } else { "warnings" }
    )
}

/// Where the scripts insert the filters and plots. Further plots are drawn when their part opens.
const PLOTS: &str = "<section id=\"plots\" aria-labelledby=\"h-plots\" hidden>\n\
<h2 id=\"h-plots\">Plots</h2>\n\
<p class=\"quiet\"><span class=\"screen\">Arrow keys move along the points of a plot that has the \
focus. Below each are its table and buttons that save it.</span><span id=\"depths\"></span></p>\n\
<details id=\"filters\" hidden><summary>Filter rows <span class=\"quiet count\"></span>\
</summary>\n\
<div class=\"chips\"></div></details>\n\
<div class=\"pair\">\n\
<figure class=\"plot\" data-kind=\"axis\" data-figure=\"throughput\"></figure>\n\
<figure class=\"plot\" data-kind=\"axis\" data-figure=\"iops\"></figure>\n\
<figure class=\"plot\" data-kind=\"axis\" data-figure=\"latency\"></figure>\n\
<figure class=\"plot\" data-kind=\"axis\" data-figure=\"cpu\"></figure>\n\
</div>\n\
<details class=\"more paper-too\"><summary>Path against path</summary>\n\
<figure class=\"plot\" data-kind=\"bars\"></figure></details>\n\
<details class=\"more alone paper-too\"><summary>Latency distribution</summary>\n\
<div class=\"pair\">\n\
<figure class=\"plot\" data-kind=\"percentiles\"></figure>\n\
<figure class=\"plot\" data-kind=\"histogram\"></figure>\n\
</div></details>\n\
<details class=\"more alone\"><summary>Over time, with devices</summary>\n\
<figure class=\"plot\" data-kind=\"time\"></figure></details>\n\
<details class=\"more\"><summary>Two axes at once</summary>\n\
<figure class=\"plot\" data-kind=\"heat\"></figure></details>\n\
<details id=\"undrawn\" hidden><summary>Plots that these rows do not allow</summary>\
<ul></ul></details>\n\
</section>\n";

fn table(out: &mut String, set: &Set, rows: &[Row<'_>]) {
    let rows_word =
        format!("All rows <span class=\"quiet\">{}</span>", number::count(rows.len() as u64));
    detail::fold(out, "table", &rows_word, false);
    if rows.len() > WITHOUT_SCRIPT {
        let (all, first) = (number::count(rows.len() as u64), WITHOUT_SCRIPT);
        let _ = writeln!(
            out,
            "<noscript><p class=\"note\">These are the first {first} of {all} rows; all are in the \
             data of this file.</p></noscript>"
        );
    }
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table of all rows\">\n",
    );
    out.push_str(
        "<table id=\"rows\"><caption class=\"unseen\">One row per job and direction</caption>\n\
         <thead><tr>",
    );
    for (key, label) in
        [("name", "job"), ("path", "path"), ("taken", "path taken"), ("loads", "load")]
    {
        let _ = write!(out, "<th scope=\"col\" data-key=\"{key}\">{label}</th>");
    }
    // Columns in which some row has a figure.
    let mut columns = set.metrics(List::Table);
    columns.retain(|metric| rows.iter().any(|row| metric.of(row).is_some()));
    for metric in &columns {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"n\" data-key=\"{}\" title=\"{}\">{}</th>",
            metric.key(),
            markup(&metric.title()),
            metric.label()
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let several = set.members.len() > 1;
    rows.iter().take(WITHOUT_SCRIPT).for_each(|row| line(out, row, several, &columns));
    out.push_str("</tbody></table>\n</div>\n<p class=\"pages\" hidden></p>\n");
    out.push_str(detail::FOLD_END);
}

fn line(out: &mut String, row: &Row<'_>, several: bool, columns: &[Metric]) {
    let proof = row.result.proof.as_ref();
    let taken = proof.map_or_else(|| "unknown".to_owned(), |p| p.verdict.words.clone());
    let words =
        [findings_text::name(row, several), row.plan.path.choice.actual.clone(), taken, row.load()];
    let _ = write!(out, "<tr data-path=\"{}\">", markup(&words[1]));
    let _ = write!(out, "<th scope=\"row\">{}</th>", markup(&words[0]));
    words[1..].iter().for_each(|word| {
        let _ = write!(out, "<td>{}</td>", markup(word));
    });
    for metric in columns {
        let _ = match metric.of(row) {
            Some(value) => {
                let text = metric.print(value);
                write!(out, "<td class=\"n\" title=\"{value}\">{}</td>", markup(&text))
            }
            None => write!(out, "<td class=\"n\">-</td>"),
        };
    }
    out.push_str("</tr>\n");
}
