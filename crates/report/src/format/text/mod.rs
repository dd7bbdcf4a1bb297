//! Text for people.

mod detail;
mod header;
mod table;
mod trouble;

use gpuio_record::Record;

use crate::wrap::paragraph;

/// What marks a line of results that no hardware made.
pub(crate) const SOFTWARE_GPU: &str = "software GPU";

/// Paragraphs are not wider than this even where tables may be: long lines read badly.
const PARAGRAPH_WIDTH: u16 = 100;

/// The record for people, `width` columns wide (below 80 the tables need more and take it).
///
/// Order: what ran, when and where; whether the run is whole; one table with a row per job and
/// direction and a total per group of several jobs (latencies in a table of their own where one
/// does not fit); the legs of paths that have more than one, and when workers were done; failures
/// and mismatches; times outside the clock; warnings. Reads from the record alone; ends in a line
/// feed. No colours and no control characters but the line feed.
#[must_use]
pub fn render_text(record: &Record, width: u16) -> String {
    let mut out = header::render(record, width);
    out.push('\n');
    out.push_str(&table::render(record, width));
    for part in [
        detail::legs(record, width),
        detail::workers(record, width),
        detail::cache(record, width),
        trouble::failures(record, width),
        trouble::verification(record, width),
        detail::outside_the_clock(record),
        warnings(record, width),
    ] {
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    visible(&out)
}

/// Names come from users and devices: control characters in them must not reach a terminal.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn warnings(record: &Record, width: u16) -> String {
    let mut out = String::new();
    for warning in &record.warnings {
        let about = match &warning.job {
            Some(job) => format!("{job}: "),
            None => String::new(),
        };
        let text = format!("{about}{}", warning.text);
        out.push_str(&paragraph("warning: ", &text, width.min(PARAGRAPH_WIDTH)));
    }
    out
}
