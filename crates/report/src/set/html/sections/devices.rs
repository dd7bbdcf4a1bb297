//! Device activity during the jobs, over whole groups.

use std::fmt::Write as _;

use super::super::super::{Set, devices};
use super::detail;
use gpuio_base::units::markup;

pub(super) fn section(out: &mut String, set: &Set) {
    let Some(sampler) = devices::sampler(set) else { return };
    detail::fold(out, "devices", "Devices during the jobs", false);
    let _ = writeln!(
        out,
        "<p>{}</p>\n<p class=\"quiet\">{}</p>",
        markup(&sampler),
        markup(devices::MEANING)
    );
    for table in devices::tables(set) {
        table_of(out, &table);
    }
    out.push_str(detail::FOLD_END);
}

fn table_of(out: &mut String, table: &devices::Table) {
    let title = devices::title(&table.kind);
    let _ = writeln!(out, "<h3>{}</h3>", markup(&title));
    detail::cut(out, table.rows.len());
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\
         <thead><tr>",
        markup(&title)
    );
    let class = |nth: usize| if nth < 2 { "" } else { " class=\"n\"" };
    for (nth, head) in table.heads.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(nth), markup(head));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in table.rows.iter().take(detail::MOST) {
        out.push_str("<tr>");
        for (nth, cell) in row.iter().enumerate() {
            let cell = markup(cell);
            let _ = match nth {
                1 => write!(out, "<th scope=\"row\">{cell}</th>"),
                _ => write!(out, "<td{}>{cell}</td>", class(nth)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if let Some(text) = table.left_out() {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", markup(&text));
    }
}
