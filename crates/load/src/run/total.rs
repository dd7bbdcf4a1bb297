//! All jobs of a group together.
//!
//! Its rates are over the time in which all jobs of the group ran.

use gpuio_base::stat::{Histogram, LiveTotals};
use gpuio_base::units::{human_ns, per_second};
use gpuio_io::clock::Nanos;
use gpuio_record::{
    CpuScope, DirectionResult, DirectionTotal, JobPlan, JobResult, Latency, RunTotals, TimeSpan,
};

use super::rusage::Usage;

/// The facts about a group in addition to the results of its jobs.
pub(super) struct GroupParts<'a> {
    pub(super) jobs: &'a [JobPlan],
    /// When the window of the group's readings began, on the run's clock.
    pub(super) from: Nanos,
    /// The process's use from then on.
    pub(super) usage: &'a Usage,
    /// The totals of all workers when the last job began to count.
    pub(super) before_all: LiveTotals,
    /// When the first job was done, and what all workers had moved by then.
    pub(super) first_end: Option<(Nanos, LiveTotals)>,
}

/// The bytes moved while all jobs ran and counted.
struct Together {
    span: TimeSpan,
    moved: LiveTotals,
}

/// The total of a group. I/Os, bytes and latencies are those of all jobs; a rate is over the time
/// in which all of them ran. Where there was no such time there is no rate: jobs that ran one after
/// the other never reached the sum of theirs.
pub(super) fn total(parts: &GroupParts<'_>, results: &[JobResult]) -> RunTotals {
    let together = together(parts, results);
    let spans = || results.iter().filter_map(|job| job.measured);
    let begin = spans().map(|span| span.begin_ns).min().unwrap_or(parts.from);
    let end = spans().map(|span| span.end_ns).max().unwrap_or(begin);
    let first_done = |job: &JobResult| Some(job.measured?.begin_ns + job.first_done_ns - begin);
    let read = sum(results.iter().map(|job| &job.read));
    let write = sum(results.iter().map(|job| &job.write));
    // I/Os of a ramp that are in flight when the window begins, and ramps of jobs that began later,
    // take time in it, and their bytes do not count.
    let before = parts.jobs.iter().map(JobPlan::measured_from_ns).max().unwrap_or(0);
    // The reading that begins the window ends a little after it where I/Os are under way.
    let elapsed = end.saturating_sub(parts.from.min(begin));
    let mut cpu = parts.usage.cost(CpuScope::Process, elapsed, read.bytes + write.bytes);
    if before > 0 {
        cpu.us_per_mib = None;
    }
    let rates = |of: fn(&LiveTotals) -> (u64, u64)| {
        let together = together.as_ref().ok()?;
        let (bytes, ios) = of(&together.moved);
        let length = together.span.length_ns();
        Some((per_second(bytes, length), per_second(ios, length)))
    };
    let reads = rates(|moved| (moved.read_bytes, moved.read_ios));
    let writes = rates(|moved| (moved.write_bytes, moved.write_ios));
    RunTotals {
        group: parts.jobs.first().map_or(0, |job| job.group),
        read: DirectionTotal { bytes_per_s: reads.map(|r| r.0), iops: reads.map(|r| r.1), ..read },
        write: DirectionTotal {
            bytes_per_s: writes.map(|r| r.0),
            iops: writes.map(|r| r.1),
            ..write
        },
        first_done_ns: results.iter().filter_map(first_done).min().unwrap_or(0),
        last_done_ns: end.saturating_sub(begin),
        common: together.as_ref().ok().map(|together| together.span),
        why_no_rate: together.err(),
        cpu,
    }
}

/// The time in which all jobs ran, or why there was none. A job by itself is its own total.
fn together(parts: &GroupParts<'_>, results: &[JobResult]) -> Result<Together, String> {
    let lost = |name: &str| format!("job '{name}' ended without a result of every worker");
    let mut spans = Vec::with_capacity(results.len());
    for (plan, result) in parts.jobs.iter().zip(results) {
        spans.push((plan.name.as_str(), result.measured.ok_or_else(|| lost(&plan.name))?));
    }
    if let ([(_, span)], [result]) = (&spans[..], results) {
        let moved = LiveTotals {
            read_bytes: result.read.bytes,
            write_bytes: result.write.bytes,
            read_ios: result.read.ios,
            write_ios: result.write.ios,
            ..LiveTotals::default()
        };
        return Ok(Together { span: *span, moved });
    }
    let last = spans.iter().max_by_key(|(_, span)| span.begin_ns);
    let first = spans.iter().min_by_key(|(_, span)| span.end_ns);
    let (Some((late, begins)), Some((early, ends))) = (last, first) else {
        return Err("no job ran".to_owned());
    };
    if ends.end_ns <= begins.begin_ns {
        let apart = human_ns((begins.begin_ns - ends.end_ns) as f64);
        return Err(format!(
            "its jobs never ran all at once: '{late}' began to count {apart} after '{early}' had \
             ended"
        ));
    }
    let (end_ns, by_then) = parts.first_end.ok_or_else(|| lost(early))?;
    let span = TimeSpan { begin_ns: begins.begin_ns, end_ns };
    Ok(Together { span, moved: by_then.since(&parts.before_all) })
}

/// Counts and latencies of all jobs.
fn sum<'a>(parts: impl Iterator<Item = &'a DirectionResult> + Clone) -> DirectionTotal {
    let add = |of: fn(&DirectionResult) -> u64| parts.clone().map(of).sum::<u64>();
    let (ios, bytes, failed) = (add(|d| d.ios), add(|d| d.bytes), add(|d| d.failed));
    let mut legs: [Histogram; 4] = Default::default();
    for latency in parts.clone().filter_map(|part| part.latency.as_ref()) {
        let all = [&latency.queue, &latency.file, &latency.gpu, &Some(latency.total.clone())];
        for (leg, summary) in legs.iter_mut().zip(all) {
            if let Some(summary) = summary {
                leg.merge(&Histogram::from_summary(summary));
            }
        }
    }
    let [queue, file, gpu, total] = legs;
    DirectionTotal {
        ios,
        bytes,
        failed,
        bytes_per_s: None,
        iops: None,
        latency: total.summary().map(|total| Latency {
            queue: queue.summary(),
            file: file.summary(),
            gpu: gpu.summary(),
            total,
        }),
    }
}
