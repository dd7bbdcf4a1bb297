//! Statements of texts beside facts of a machine: figures that tools measured, ports of cards,
//! tests of DCGM, and messages of cuFile.

use gpuio_base::document::{Columns, Document, Look};
use gpuio_capture::{Captured, LogLine, Measured};
use gpuio_record::facts::{Diagnosis, LinkLayer, RdmaFacts, RdmaPort, Verdict};

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
    measured(&mut page, captured);
    let cards = captured.machine.nics.iter().flat_map(|nic| &nic.rdma);
    let ports = cards.flat_map(|card| card.ports.iter().map(move |port| (card, port)));
    let is_known = |(_, port): &(&RdmaFacts, &RdmaPort)| {
        port.state.as_ref().or(port.physical_state.as_ref()).is_some() || port.megabits.is_some()
    };
    let ports: Vec<(&RdmaFacts, &RdmaPort)> = ports.filter(is_known).collect();
    if captured.is_from_texts() && !ports.is_empty() {
        let word = |word: Option<&String>| word.map_or_else(|| "-".to_owned(), String::clone);
        let table = Columns::<(&RdmaFacts, &RdmaPort)>::new()
            .words("device", |row| row.0.name.clone())
            .figures("port", |row| row.1.port.to_string())
            .words("state", move |row| word(row.1.state.as_ref()))
            .words("physical state", move |row| word(row.1.physical_state.as_ref()))
            .words("rate", |row| match row.1.megabits {
                Some(megabits) => format!("{} Gb/s", short(megabits as f64 / 1e3)),
                None => "-".to_owned(),
            })
            .words("carries", |row| match row.1.carries {
                Some(LinkLayer::Infiniband) => "InfiniBand",
                Some(LinkLayer::Ethernet) => "Ethernet",
                None => "-",
            })
            .table("ports", &ports)
            .look(Look::Indented(2));
        page.begin("ports", "PORTS").table(table);
    }
    if !captured.machine.diagnoses.is_empty() {
        let table = Columns::<Diagnosis>::new()
            .words("test", |one| one.test.clone())
            .words("result", |one| match one.verdict {
                Verdict::Pass => "pass",
                Verdict::Fail => "fail",
                Verdict::Warn => "warn",
                Verdict::Skip => "skip",
            })
            .words("of", |one| one.of.clone())
            .words("words", |one| one.words.clone())
            .table("diagnoses", &captured.machine.diagnoses)
            .look(Look::Indented(2));
        page.begin("diagnoses", "TESTS OF DCGM").table(table);
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

fn measured(page: &mut Document, captured: &Captured) {
    let rows: Vec<Row> = captured.measured.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return;
    }
    let figures = match rows.iter().any(|row| row.samples > 1) {
        true => "mean of figures that are not 0, or their least to most",
        false => "figures that are not 0, among others",
    };
    let table = Columns::<Row>::new()
        .words("tool", |row| row.command)
        .words("of", |row| row.of.clone())
        .figures("samples", |row| row.samples.to_string())
        .words(figures, |row| row.figures.clone())
        .table("measured", &rows)
        .look(Look::Indented(2));
    let title = "MEASURED (as printed; nothing is concluded from it here)";
    let section = page.begin("measured", title);
    section.table(table);
    if captured.measured.iter().any(|one| one.first_report > 0) {
        section
            .paragraph("iostat's first report is left out: it is the mean since boot (iostat(1)).");
    }
}

fn rows(table: &Measured) -> Vec<Row> {
    let rows = table.means().into_iter().filter_map(|(of, samples, values)| {
        let named = table.columns.iter().zip(values);
        let figures: Vec<String> = named
            .filter_map(|(column, value)| {
                let mean = value.filter(|mean| mean.value != 0.0)?;
                Some(match mean.is_of_several() {
                    true => format!("{column} {} to {}", short(mean.least), short(mean.most)),
                    false => format!("{column} {}", short(mean.value)),
                })
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
