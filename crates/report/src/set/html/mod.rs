//! A self-contained page: no network, no second file.
//!
//! This module writes what is readable without a script: summary, findings, evidence, environment,
//! commands and the first rows of the table. The scripts under `assets/` draw the plots and apply
//! filters, from the blocks of `data`. Everything from a record passes `markup` or `data` on
//! its way into the page; the scripts set text, never markup.

pub(super) mod base64;
mod body;
mod data;
mod pack;

use gpuio_base::document::Page;

use super::Set;
use super::rows::rows;
pub(super) use data::four_digits;

const STYLE: &[&str] = &[
    include_str!("../../../assets/uplot.min.css"),
    include_str!("../../../assets/page.css"),
    include_str!("../../../assets/print.css"),
];

/// In this order: each file uses only those before it.
const SCRIPTS: &[&str] = &[
    include_str!("../../../assets/uplot.min.js"),
    include_str!("../../../assets/format.js"),
    include_str!("../../../assets/data.js"),
    include_str!("../../../assets/hold.js"),
    include_str!("../../../assets/picture.js"),
    include_str!("../../../assets/line.js"),
    include_str!("../../../assets/bar.js"),
    include_str!("../../../assets/axis-plots.js"),
    include_str!("../../../assets/latency.js"),
    include_str!("../../../assets/time.js"),
    include_str!("../../../assets/bars.js"),
    include_str!("../../../assets/heat.js"),
    include_str!("../../../assets/table.js"),
    include_str!("../../../assets/page.js"),
];

/// Beyond its own style: its scripts, and pictures in the page itself.
const ALLOWS: &str = "script-src 'unsafe-inline'; img-src data:";

pub(super) fn render(set: &Set) -> String {
    let set = &*set.for_people();
    let shown = &*set.in_requested_units();
    let rows = rows(shown);
    let mut out = String::with_capacity(1 << 20);
    body::body(&mut out, shown, &rows);
    for (id, text) in data::blocks(shown, &rows) {
        out.push_str(&format!("<script type=\"application/json\" id=\"{id}\">{text}</script>\n"));
    }
    let pack = pack::records(set);
    out.push_str(&format!("<script type=\"text/plain\" id=\"records\">{pack}</script>\n"));
    for script in SCRIPTS {
        out.push_str("<script>\n");
        out.push_str(script);
        out.push_str("</script>\n");
    }
    let generator = concat!("gpuio report ", env!("CARGO_PKG_VERSION"));
    Page { generator, title: &set.title, allows: ALLOWS, styles: STYLE, body: &out }.html()
}
