//! The figures of finished runs.

use gpuio_base::document::unique;
use gpuio_base::stat::{Percentile, Summary};
use gpuio_record::{Arrivals, JobPlan, JobResult, Proof, Record};
use gpuio_report::{FastEnough, doubts_of_record, fast_enough, marks_of_record};

/// The figures of a finished run, reads and writes together. A latency is NaN if too few I/Os
/// completed for it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) bytes_per_s: f64,
    pub(super) iops: f64,
    pub(super) median_ns: f64,
    /// The percentile of tables.
    pub(super) tail_ns: f64,
    /// The percentile that a search limits.
    pub(super) limited_ns: f64,
    pub(super) max_ns: f64,
    pub(super) cores: f64,
    pub(super) of_ceiling: Option<f64>,
    pub(super) software_gpu: bool,
    pub(super) warned: bool,
    /// The marks behind its rate, as in every table.
    pub(super) marks: String,
    /// Why its figures are not those of a whole run of storage alone, each with its name, as in a
    /// report.
    pub(super) doubts: Vec<(&'static str, String)>,
    /// Others used the drive or the processors (`other_traffic`, `other_cpu_time`).
    pub(super) disturbed: bool,
    /// The paths that its bytes took, each once; none where the record has no verdict.
    pub(super) taken: Vec<String>,
    /// Whether they are those that were requested; unknown where that could not be proved.
    pub(super) as_requested: Option<bool>,
    /// The load was to become steady and did not.
    pub(super) unsteady: bool,
    /// The share of a requested rate that was reached, where that is less than 99 %.
    pub(super) short_of_rate: Option<f64>,
    /// The result of a training feed.
    pub(super) feed: Option<Feed>,
}

/// The result of a training feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feed {
    pub(super) samples_per_s: f64,
    /// Share of their time in which accelerators waited for batches, per cent; NaN where it is
    /// unknown.
    pub(super) stalled: f64,
    /// Accelerator utilisation in per cent; NaN where it is unknown.
    pub(super) utilisation: f64,
    /// Whether storage is fast enough; absent where nothing is computed.
    pub(super) enough: Option<&'static str>,
}

/// Bytes and I/Os per second of all jobs: over the time in which all of a group ran; without such a
/// time, or with several groups, from their first start to their last end.
fn rates(record: &Record) -> (f64, f64) {
    let or_none = |rate: Option<f64>| rate.unwrap_or(0.0);
    if let [total] = &record.totals[..]
        && (total.read.bytes_per_s.is_some() || total.write.bytes_per_s.is_some())
    {
        let (read, write) = (&total.read, &total.write);
        return (
            or_none(read.bytes_per_s) + or_none(write.bytes_per_s),
            or_none(read.iops) + or_none(write.iops),
        );
    }
    let sides = || record.jobs.iter().flat_map(|job| [&job.read, &job.write]);
    let ns: u64 = record.totals.iter().map(|total| total.last_done_ns).sum();
    let per_second = |count: u64| if ns > 0 { count as f64 * 1e9 / ns as f64 } else { 0.0 };
    (
        per_second(sides().map(|side| side.bytes).sum()),
        per_second(sides().map(|side| side.ios).sum()),
    )
}

/// The figures of a record; `limited` is the percentile that a search limits.
pub(super) fn figures(record: &Record, limited: Percentile) -> Run {
    let (bytes_per_s, iops) = rates(record);
    let slower = |of: &dyn Fn(&Summary) -> Option<u64>| -> f64 {
        let directions = record.jobs.iter().flat_map(|job| [&job.read, &job.write]);
        let all = directions.filter_map(|direction| direction.latency.as_ref());
        // If one latency is unknown, the maximum is unknown too.
        let known: Option<Vec<f64>> = all.map(|latency| Some(of(&latency.total)? as f64)).collect();
        known.and_then(|known| known.into_iter().reduce(f64::max)).unwrap_or(f64::NAN)
    };
    let directions = record.jobs.iter().flat_map(|job| [&job.read, &job.write]);
    let proofs = || record.jobs.iter().filter_map(|job| job.proof.as_ref());
    Run {
        bytes_per_s,
        iops,
        median_ns: slower(&|all| Some(all.p50_ns)),
        tail_ns: slower(&|all| all.percentile(Percentile::TAIL)),
        limited_ns: slower(&|all| all.percentile(limited)),
        max_ns: slower(&|all| Some(all.max_ns)),
        software_gpu: record.plan.software_gpu,
        warned: !record.warnings.is_empty(),
        marks: marks_of_record(record),
        doubts: doubts_of_record(record),
        disturbed: record.warnings.iter().any(|one| one.kind.is_of_others()),
        taken: unique(proofs().map(|proof| proof.verdict.words.clone())),
        as_requested: Proof::are_as_requested(proofs()),
        unsteady: record
            .jobs
            .iter()
            .any(|job| job.steady.is_some_and(|steady| steady.attained_at_ns.is_none())),
        short_of_rate: record
            .plan
            .jobs
            .iter()
            .zip(&record.jobs)
            .filter_map(short_of_rate)
            .reduce(f64::min),
        feed: record
            .plan
            .jobs
            .iter()
            .zip(&record.jobs)
            .find_map(|(plan, job)| feed(record, plan, job)),
        cores: record.jobs.iter().map(|job| job.cpu.cores_busy).sum(),
        of_ceiling: directions
            .filter_map(|direction| direction.of_ceiling.as_ref())
            .map(|of| of.percent)
            .reduce(f64::min),
    }
}

/// The share of its rate that a job reached, where more than 1 % is missing. One I/O of each thread
/// may be in flight at the end, and arrivals at random differ from their mean by chance.
fn short_of_rate((plan, job): (&JobPlan, &JobResult)) -> Option<f64> {
    const MISSING: f64 = 0.01;
    let reached = plan.share_of_due(job)?;
    let ios = (job.read.ios + job.write.ios) as f64;
    if ios == 0.0 {
        return Some(0.0);
    }
    let asked = ios / reached;
    let by_chance = match plan.pacing?.arrivals {
        Arrivals::Steady => 0.0,
        Arrivals::Poisson => 3.0 * asked.sqrt(),
    };
    let allowed = (MISSING * asked).max(job.workers.len() as f64 + by_chance);
    (asked - ios > allowed).then_some(reached)
}

fn feed(record: &Record, of: &JobPlan, job: &JobResult) -> Option<Feed> {
    let (plan, found) = (of.feed.as_ref()?, job.feed.as_ref()?);
    Some(Feed {
        samples_per_s: found.samples_per_s,
        stalled: found.stall_percent(plan).unwrap_or(f64::NAN),
        utilisation: found.utilisation_percent.unwrap_or(f64::NAN),
        enough: fast_enough(record, of, job).as_ref().map(FastEnough::word),
    })
}
