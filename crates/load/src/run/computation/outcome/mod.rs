//! How much a job and the concurrent computation slow each other. Pure.

use gpuio_base::units::human_ns;
use gpuio_record::{
    ComputationCost, EndedHow, Gpu, GpuComputation, JobAlone, JobPlan, JobResult, TimeSpan,
};

use super::launch_spans::Rate;
use super::thread::Computed;

/// Shares of files in the page cache that differ by more than this make two loads of one.
const CACHE_ALIKE: f64 = 0.05;
/// Speeds of a computation alone that differ by more than this, before and after, are no measure.
const SPEED_ALIKE: f64 = 0.05;
/// Fewer I/Os, or a shorter time, make no rate to divide by: what is slow at the first I/Os of a
/// run is in the one alone, which comes first.
const IOS_LEAST: u64 = 100;
const TIME_LEAST_NS: u64 = 1_000_000_000;
/// A GPU that was busy for less of the time is not what was requested.
const BUSY_LEAST_PERCENT: f64 = 95.0;

/// The measurements of the threads of a group, by GPU.
pub(in crate::run) struct Learned {
    pub(super) gpus: Vec<(u32, Computed)>,
    /// The times in which nothing else ran.
    pub(super) before: TimeSpan,
    pub(super) after: TimeSpan,
}

impl Learned {
    /// How long computations were measured alone after the jobs, nanoseconds.
    pub(in crate::run) fn alone_after_ns(&self) -> u64 {
        self.after.length_ns()
    }

    /// The job's part; `alone` is the same job as it ran before.
    pub(in crate::run) fn of_job(
        &self,
        job: &JobPlan,
        result: &JobResult,
        alone: &JobResult,
    ) -> ComputationCost {
        let mut gpus: Vec<GpuComputation> = Vec::new();
        for Gpu { index, .. } in &job.gpus {
            let known = self.gpus.iter().find(|(gpu, _)| gpu == index);
            if let Some((_, done)) = known.filter(|_| gpus.iter().all(|gpu| gpu.index != *index)) {
                gpus.push(gpu(*index, done, self.before, result.measured, self.after));
            }
        }
        let io = io(&gpus, result, alone);
        ComputationCost {
            gpus,
            alone: JobAlone {
                read: alone.read.clone(),
                write: alone.write.clone(),
                measured: alone.measured,
                resident_before: alone.cache.resident_before,
                failed: alone.failed,
                verify: alone.verify.clone(),
            },
            io_ratio: io.as_ref().ok().copied(),
            io_unknown: io.err(),
        }
    }
}

fn gpu(
    index: u32,
    done: &Computed,
    before: TimeSpan,
    beside: Option<TimeSpan>,
    after: TimeSpan,
) -> GpuComputation {
    let work = done.launch_work as f64;
    let rate = |when: &str, span: Option<TimeSpan>| match (&done.failed, span) {
        (Some(why), _) => Err(format!("the computation failed: {why}")),
        (None, None) => Err("the job ended without a result of every thread".to_owned()),
        (None, Some(span)) => done.spans.rate(span).map_err(|why| format!("{when}: {why}")),
    };
    let rates = [
        rate("before the job", Some(before)),
        rate("beside the job", beside),
        rate("after the job", Some(after)),
    ];
    let per_s = |nth: usize| rates[nth].as_ref().ok().map(|rate| rate.per_s * work);
    let with = rates[1].as_ref().ok();
    let ratio = ratio(&rates);
    GpuComputation {
        index,
        rank: None,
        multiprocessors: done.multiprocessors,
        blocks: done.blocks,
        occupied: done.occupied,
        launch_work: done.launch_work,
        launches: with.map_or(0, |rate| rate.launches),
        busy_percent: with.map(|rate| rate.busy_percent),
        before_per_s: per_s(0),
        beside_per_s: per_s(1),
        after_per_s: per_s(2),
        ratio: ratio.as_ref().ok().copied(),
        unknown: ratio.err(),
        failed: done.failed.is_some(),
        thread_cpu_ns: done.cpu_ns,
    }
}

fn ratio(rates: &[Result<Rate, String>; 3]) -> Result<f64, String> {
    let [before, beside, after] = rates;
    let of =
        |rate: &Result<Rate, String>| rate.as_ref().map(|rate| rate.per_s).map_err(Clone::clone);
    let (before, beside, after) = (of(before)?, of(beside)?, of(after)?);
    let alone = f64::midpoint(before, after);
    if (before - after).abs() > SPEED_ALIKE * alone {
        return Err(format!(
            "its own speed changed by {:+.1} % from before the job to after it",
            (after / before - 1.0) * 100.0
        ));
    }
    Ok(beside / alone)
}

fn io(gpus: &[GpuComputation], beside: &JobResult, alone: &JobResult) -> Result<f64, String> {
    for (which, result) in [("alone", alone), ("beside the computation", beside)] {
        let ios = result.read.ios + result.write.ios;
        let time = result.measured.map_or(0, |span| span.length_ns());
        if result.ended != EndedHow::Complete {
            return Err(format!("{which} the job did not end as planned"));
        }
        if result.failed > 0 {
            return Err(format!("{which} {} of its I/Os failed", result.failed));
        }
        if ios < IOS_LEAST || time < TIME_LEAST_NS {
            let time = human_ns(time as f64);
            return Err(format!("{which} there were {ios} I/Os in {time}; run it longer"));
        }
    }
    let [was, is] = [alone, beside].map(|result| result.cache.resident_before);
    if let (Some(was), Some(is)) = (was, is)
        && (was - is).abs() > CACHE_ALIKE
    {
        return Err(format!(
            "the job alone found {:.0} % of its files in the page cache, and beside the \
             computation {:.0} %; add --pre-read or --invalidate",
            was * 100.0,
            is * 100.0
        ));
    }
    for gpu in gpus.iter() {
        match gpu.busy_percent {
            Some(percent) if percent >= BUSY_LEAST_PERCENT => {}
            Some(percent) => {
                return Err(format!(
                    "GPU {} was busy for {percent:.0} % of the time only: the CPUs had no time for \
                     the thread that keeps it so",
                    gpu.index
                ));
            }
            None => return Err(format!("it is not known how busy GPU {} was", gpu.index)),
        }
    }
    let rate = |result: &JobResult| result.read.bytes_per_s + result.write.bytes_per_s;
    Ok(rate(beside) / rate(alone))
}

#[cfg(test)]
mod tests;
