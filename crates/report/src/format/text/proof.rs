//! The actual data path, and its evidence.

use gpuio_record::{Assessment, Evidence, JobPlan, Proof, Record, Route, Source, Verdict};

use super::PARAGRAPH_WIDTH;
use super::table::Words;
use crate::number::{NONE, bytes};
use crate::workload::jobs;
use crate::wrap::paragraph;

/// The verdict as in the table of results.
pub(super) fn cell(proof: Option<&Proof>, words: Words) -> String {
    match (proof, words) {
        (None, _) => NONE.to_owned(),
        (Some(proof), Words::Full) => proof.verdict.words.clone(),
        (Some(proof), Words::Short) => short(&proof.verdict),
    }
}

fn short(verdict: &Verdict) -> String {
    let stop = match (verdict.route, verdict.source) {
        (Route::Direct, _) => return "direct".to_owned(),
        (Route::Unknown, _) => return "unknown".to_owned(),
        (Route::Mixed, _) => return "mixed".to_owned(),
        (Route::HostMemory, Source::PageCache) => return "cache".to_owned(),
        (Route::HostMemory, Source::StorageThroughPageCache) => return "via cache".to_owned(),
        (Route::HostMemory, Source::Holes) => return "holes".to_owned(),
        (Route::HostMemory, Source::Mixed) => return "mixed".to_owned(),
        (Route::HostMemory, Source::Storage | Source::Unknown) => return "unknown".to_owned(),
        (Route::Mapped, _) => return "cache, no copy".to_owned(),
        (Route::BounceHost, _) => "bounce".to_owned(),
        (Route::BounceGpu { gpu }, _) => format!("bounce:GPU{gpu}"),
    };
    match verdict.source {
        Source::Storage => stop,
        Source::StorageThroughPageCache => format!("{stop}:via"),
        Source::PageCache => format!("{stop}:cache"),
        Source::Holes => format!("{stop}:holes"),
        Source::Mixed => format!("{stop}:mixed"),
        Source::Unknown => format!("{stop}:?"),
    }
}

/// Sentence and evidence of each job whose actual path differs from the requested one; of `all`
/// jobs if requested.
pub(super) fn render(record: &Record, width: u16, all: bool) -> String {
    let wide = if all { width } else { width.min(PARAGRAPH_WIDTH) };
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        if let Some(proof) = job.proof.as_ref().filter(|proof| all || !proof.as_requested) {
            out.push_str(&of_job(plan, proof, wide, all));
        }
    }
    if out.is_empty() { out } else { format!("path taken, with evidence:\n{out}") }
}

/// Heading of the bytes that a source counted, and of those that it should have counted.
const COUNTED: &str = "counted of expected";

fn of_job(plan: &JobPlan, proof: &Proof, width: u16, readings: bool) -> String {
    let mut out = paragraph("  ", &format!("{}: {}", plan.name, proof.sentence), width);
    out.push_str(&paragraph("    requested  ", &proof.requested, width));
    out.push_str(&paragraph("    actual     ", &proof.actual, width));
    let longest = |text: fn(&Evidence) -> usize| proof.evidence.iter().map(text).max().unwrap_or(0);
    let name = longest(|item| item.name.chars().count()).max("source".len());
    let moved = longest(|item| amounts(item).chars().count()).max(COUNTED.len());
    let [source, flow, result] = ["source", "I/O", "result"];
    let heading =
        format!("    {source:name$}  {flow:5}  {result:12}  {:>moved$}  reason\n", COUNTED);
    out.push_str(&heading);
    for item in &proof.evidence {
        let assessment = match item.assessment {
            Assessment::Supports => "supports",
            Assessment::Contradicts => "contradicts",
            Assessment::Inconclusive => "inconclusive",
        };
        let (who, flow, figure) = (&item.name, &item.direction, amounts(item));
        let first = format!("    {who:name$}  {flow:5}  {assessment:12}  {figure:>moved$}  ");
        let mut text = item.why.clone();
        if readings && let (Some(before), Some(after)) = (&item.before, &item.after) {
            text.push_str(&format!("; {before} before, {after} after ({})", item.source));
        }
        out.push_str(&paragraph(&first, &text, width));
    }
    out
}

fn amounts(item: &Evidence) -> String {
    let amount = |figure: Option<u64>| figure.map_or_else(|| NONE.to_owned(), bytes);
    match (item.observed_bytes, item.expected_bytes) {
        (None, None) => NONE.to_owned(),
        (moved, of) => format!("{} of {}", amount(moved), amount(of)),
    }
}
