//! The summary: a row per load, or per path if there are many loads.

use std::fmt::Write as _;

use super::super::super::Set;
use super::super::super::summary::{self, Line, Summary, Taken};
use crate::number::NONE;
use gpuio_base::units::markup;

pub(super) fn section(out: &mut String, set: &Set) {
    super::detail::section(out, "summary", "Summary");
    let summary = summary::summary(set);
    if !summary.lines.is_empty() {
        table(out, &summary);
    }
    for text in &summary.below {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", markup(text));
    }
    out.push_str("</section>\n");
}

fn table(out: &mut String, summary: &Summary) {
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"summary\">\n\
         <table class=\"summary\"><thead><tr>",
    );
    let (what, n) = if summary.of_points { ("load", "n") } else { ("path", "runs") };
    let _ = write!(
        out,
        "<th scope=\"col\">{what}</th><th scope=\"col\" class=\"n\" title=\"runs\">{n}</th>"
    );
    if summary.of_points {
        for head in &summary.heads {
            let _ = write!(out, "<th scope=\"col\" class=\"n\">{head}</th>");
        }
        out.push_str("<th scope=\"col\" class=\"n\">95 %</th>");
    }
    out.push_str("<th scope=\"col\">path taken</th></tr></thead>\n<tbody>\n");
    summary.lines.iter().for_each(|one| line(out, one, summary.of_points));
    out.push_str("</tbody></table>\n</div>\n");
}

fn line(out: &mut String, line: &Line, of_points: bool) {
    let notes = match line.notes.as_str() {
        "" => String::new(),
        notes => format!("<p class=\"quiet\">{}</p>", markup(notes)),
    };
    // The label of a path's line begins with the path.
    let path = if of_points { format!("{} ", markup(&line.path)) } else { String::new() };
    let _ = write!(
        out,
        "<tr data-path=\"{}\"><th scope=\"row\"><span class=\"dot\"></span>{path}\
         <span class=\"quiet\">{}</span>{notes}</th><td class=\"n\">{}</td>",
        markup(&line.path),
        markup(&line.about),
        line.runs
    );
    for cell in &line.medians {
        let _ = write!(out, "<td class=\"n\">{}</td>", markup(cell));
    }
    if of_points {
        let interval = line.interval.as_deref().unwrap_or(NONE);
        let _ = write!(out, "<td class=\"n\">{}</td>", markup(interval));
    }
    let _ = writeln!(
        out,
        "<td title=\"{}\">{}</td></tr>",
        markup(&line.evidence),
        badge(line.taken.as_ref())
    );
}

fn badge(taken: Option<&Taken>) -> String {
    match taken {
        Some((words, true)) => {
            format!("<span class=\"badge good\" title=\"as requested\">✓ {}</span>", markup(words))
        }
        Some((words, false)) => {
            format!("<span class=\"badge bad\">✗ {}, not as requested</span>", markup(words))
        }
        None => "<span class=\"badge\">path unknown</span>".to_owned(),
    }
}
