//! The page's own text, in the order of the page.

use std::fmt::Write as _;

use gpuio_base::units::markup;

use super::super::rows::{Row, software};
use super::super::{Set, conclusion, document, findings_text, plot};
use crate::number;

pub(super) fn body(out: &mut String, set: &Set, rows: &[Row<'_>]) {
    out.push_str("<a class=\"skip\" href=\"#summary\">Skip to the summary</a>\n");
    head(out, set, rows);
    let [above, below] = document::of_page(set, rows);
    out.push_str("<main>\n");
    out.push_str(&above);
    if !rows.is_empty() {
        out.push_str(PLOTS);
        out.push_str(&document::first_rows(set, rows));
    }
    out.push_str(&below);
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
    if let Some((command, more)) = findings_text::made_by(set) {
        let _ = writeln!(out, "<p class=\"sub\"><code>{}</code>{more}</p>", markup(&command));
    }
    if software(set) {
        out.push_str(
            "<p class=\"banner\" role=\"note\"><strong>Software GPU.</strong> At least one of \
             these records used no hardware GPU: its figures are those of host memory and CPU \
             threads. Never compare them with those of a GPU.</p>\n",
        );
    }
    // Where there are records, the findings have it.
    let none = set.incomplete().filter(|_| set.members.is_empty());
    for text in [none, set.doubt(), set.scaled()].into_iter().flatten() {
        let _ = writeln!(out, "<p class=\"banner\" role=\"note\">{}</p>", markup(&text));
    }
    for sentence in conclusion::conclusion(set) {
        let _ = writeln!(out, "<p class=\"conclusion\">{}</p>", markup(&sentence));
    }
    out.push_str("<div class=\"first\">\n<dl class=\"where\">\n");
    for (what, text) in findings_text::where_and_how(set) {
        let _ = writeln!(out, "<dt>{what}</dt><dd>{}</dd>", markup(&text));
    }
    let records = number::many(set.members.len() as u64, "record");
    let jobs = match rows.len() {
        1 => "1 row (a job and direction)".to_owned(),
        many => format!("{} rows (a job and direction each)", number::count(many as u64)),
    };
    let counts = document::counts(set);
    let _ = writeln!(
        out,
        "<dt>data</dt><dd>{records}, {jobs}; <a href=\"#findings\">findings</a>: {counts}</dd>\n\
         </dl>"
    );
    match plot::main(set) {
        Ok(plot) => {
            let _ = writeln!(
                out,
                "<figure class=\"main\"><figcaption>{}</figcaption>{}<p class=\"quiet\">{}</p>\
                 </figure>",
                markup(&plot.title),
                plot::inside(&plot),
                markup(&plot.note_with("below"))
            );
        }
        Err(why) => {
            let _ = writeln!(out, "<p class=\"quiet\">No plot here: {}.</p>", markup(why));
        }
    }
    out.push_str(TOOLS);
}

/// Where the scripts insert the filters and plots. Further plots are drawn when their part opens.
const PLOTS: &str = include_str!("../../../assets/plots.html");

/// Buttons, and what stands without scripts, behind the first plot.
const TOOLS: &str = include_str!("../../../assets/tools.html");
