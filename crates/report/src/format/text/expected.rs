//! Expected performance by the hardware's figures, and how much of it was reached.

use gpuio_base::document::{List, Section, grouped, unique};
use gpuio_record::metric::percent;
use gpuio_record::{JobExpected, Record};

use crate::number::throughput;

/// A line per expectation; jobs with the same one share a line. Unknown ones are listed only with
/// evidence, because most drives have no public figures.
pub(super) fn section(record: &Record, evidence: bool) -> Section {
    let shown = |one: &&JobExpected| one.expected.bytes_per_s.is_some() || evidence;
    let several = record.expected.len() > 1;
    let each = record.expected.iter().filter(shown).map(|one| (words(one), reached(one, several)));
    let line = |(words, names): (String, Vec<String>)| {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.is_empty() { words } else { format!("{words}; {}", names.join(", ")) }
    };
    let lines: Vec<String> = grouped(each).into_iter().map(line).collect();
    let mut section = Section::new("", "expected from published figures of the parts on the path:");
    if !lines.is_empty() {
        section.list(List::of(2, lines));
        // The figures behind them, each once.
        let figures = record.expected.iter().flat_map(|one| &one.expected.because);
        section.list(List::of(4, unique(figures.filter(|_| evidence).map(String::as_str))));
    }
    section
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
