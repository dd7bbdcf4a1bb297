//! Expected performance by the hardware's figures, and how much of it was reached.

use gpuio_record::metric::percent;
use gpuio_record::{JobExpected, Record};

use super::PARAGRAPH_WIDTH;
use crate::number::throughput;
use crate::wrap::paragraph;

/// A line per expectation; jobs with the same one share a line. Unknown ones are listed only with
/// evidence, because most drives have no public figures.
pub(super) fn render(record: &Record, width: u16, evidence: bool) -> String {
    let shown = |one: &&JobExpected| one.expected.bytes_per_s.is_some() || evidence;
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for one in record.expected.iter().filter(shown) {
        let words = words(one);
        let name = reached(one, record.expected.len() > 1);
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => groups.push((words, vec![name])),
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = String::from("expected from the data sheets of the parts on the path:\n");
    for (words, names) in groups {
        let names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let who = if names.is_empty() { words } else { format!("{words}; {}", names.join(", ")) };
        out.push_str(&paragraph("  ", &who, wide));
    }
    if evidence {
        out.push_str(&figures(record, wide));
    }
    out
}

fn words(one: &JobExpected) -> String {
    let prefix = format!("{}s", one.direction.name());
    let expected = &one.expected;
    let bottleneck = expected.bottleneck.as_ref();
    let bottleneck = bottleneck.map(|part| format!("; bottleneck {part}")).unwrap_or_default();
    match (expected.bytes_per_s, &expected.unknown) {
        (Some(rate), _) => format!("{prefix} {}{bottleneck}", throughput(rate)),
        (None, Some(why)) => {
            let most = expected.at_most.map(throughput);
            let most = most.map(|most| format!(", at most {most}{bottleneck}")).unwrap_or_default();
            format!("{prefix} unknown: {why}{most}")
        }
        (None, None) => format!("{prefix} unknown"),
    }
}

/// `reached 95 %`, with the job's name where there are several.
fn reached(one: &JobExpected, several: bool) -> String {
    match (one.percent, several) {
        (Some(reached), true) => format!("{} reached {} %", one.job, percent(reached)),
        (Some(reached), false) => format!("reached {} %", percent(reached)),
        (None, true) => one.job.clone(),
        (None, false) => String::new(),
    }
}

/// The figures behind the expectations, each once.
fn figures(record: &Record, width: u16) -> String {
    let mut known: Vec<&str> = Vec::new();
    for line in record.expected.iter().flat_map(|one| &one.expected.because) {
        if !known.contains(&line.as_str()) {
            known.push(line);
        }
    }
    known.iter().map(|line| paragraph("    ", line, width)).collect()
}
