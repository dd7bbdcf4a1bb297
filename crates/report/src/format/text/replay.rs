//! Lines about recorded calls that were made again.

use gpuio_record::{Record, ReplayPace};

use super::detail::{line, mark, name_width};
use crate::number::{many, throughput, time};
use crate::workload::{jobs, replay};

/// Three lines per job: what was repeated, what came of it, and what the trace does not have.
pub(super) fn render(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let lines = jobs(record).filter_map(|(plan, job)| {
        let (of, done) = (plan.replay.as_ref()?, job.replay.as_ref()?);
        let first = format!("  {:name$}  {}", plan.name, mark(record));
        let mut text = line(&first, &replay(of), width);
        let indent = " ".repeat(name + 4);
        let whole = done.calls == of.calls;
        let took = time(job.last_done_ns);
        let made = match whole {
            true => format!("made all {} in {took}", many(of.calls, "call")),
            false => format!("MADE ONLY {} of {} in {took}", done.calls, many(of.calls, "call")),
        };
        let moved = (job.read.bytes + job.write.bytes, job.last_done_ns);
        let recorded = match of.recorded_ns {
            None => "the trace has no durations".to_owned(),
            Some(recorded) => format!(
                "recorded in {} ({}; now {})",
                time(recorded),
                throughput(per_second((of.read_bytes + of.written_bytes, recorded))),
                throughput(per_second(moved))
            ),
        };
        let waited = format!("threads waited {} for one another", time(done.waited_ns));
        text += &line(&indent, &format!("{made}, {recorded}; {waited}"), width);
        if of.pace == ReplayPace::Recorded && whole {
            let words =
                "with the recorded pauses, a rate says little of the path; compare latencies";
            text += &line(&indent, words, width);
        }
        if let Some(missing) = &of.missing {
            text += &line(&indent, &format!("the trace: {missing}"), width);
        }
        Some(text)
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("replay:\n{lines}") }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second((bytes, ns): (u64, u64)) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 / (ns as f64 / 1e9) }
}
