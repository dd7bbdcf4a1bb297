//! Statements of texts beside facts of a machine: figures that tools measured, and messages of
//! cuFile.

use gpuio_base::document::{Columns, Document, Look};
use gpuio_capture::{Captured, LogLine, Measured};

/// Rows of one tool that are shown.
const MOST_ROWS: usize = 64;

/// A device's figures in one tool's text.
struct Row {
    command: &'static str,
    of: String,
    samples: usize,
    figures: String,
}

/// Adds sections with them above the notes, where there are any.
pub(crate) fn add(whole: &mut Document, captured: &Captured) {
    let mut page = Document::new("");
    let rows: Vec<Row> = captured.measured.iter().flat_map(rows).collect();
    if !rows.is_empty() {
        let table = Columns::<Row>::new()
            .words("tool", |row| row.command)
            .words("of", |row| row.of.clone())
            .figures("samples", |row| row.samples.to_string())
            .words("mean of each figure that is not 0", |row| row.figures.clone())
            .table("measured", &rows)
            .look(Look::Indented(2));
        page.begin("measured", "MEASURED (as printed; nothing is concluded from it here)")
            .table(table);
    }
    if !captured.log.is_empty() {
        let table = Columns::<LogLine>::new()
            .words("level", |line| line.level)
            .figures("times", |line| line.count.to_string())
            .words("message", |line| line.message.clone())
            .words("meaning", |line| line.meaning().unwrap_or("-"))
            .table("cufile_log", &captured.log)
            .look(Look::Indented(2));
        page.begin("cufile_log", "MESSAGES OF CUFILE AND THE KERNEL").table(table);
    }
    let notes = whole.sections.iter().position(|section| section.key == "notes");
    let at = notes.unwrap_or(whole.sections.len());
    whole.sections.splice(at..at, page.sections);
}

fn rows(table: &Measured) -> Vec<Row> {
    let rows = table.means().into_iter().filter_map(|(of, samples, values)| {
        let named = table.columns.iter().zip(values);
        let figures: Vec<String> = named
            .filter_map(|(column, value)| {
                let value = value.filter(|value| *value != 0.0)?;
                Some(format!("{column} {}", short(value)))
            })
            .collect();
        // A device without work is listed with the drives.
        let command = table.command;
        (!figures.is_empty()).then(|| Row {
            command,
            of: of.to_owned(),
            samples,
            figures: figures.join(", "),
        })
    });
    rows.take(MOST_ROWS).collect()
}

/// A figure with three digits behind the point at most.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
