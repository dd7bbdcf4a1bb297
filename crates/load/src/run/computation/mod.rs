//! Jobs that run while a computation keeps their GPUs busy.
//!
//! A group with one runs twice: first as it is, then with the concurrent computation, and what
//! stands in the record is the second time. The computation is measured alone too, on the same
//! launches: from when the workers are ready until the clock starts, and after it has stopped.

mod launch_spans;
mod outcome;
mod thread;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpuio_gpu::Context;
use gpuio_io::clock::Clock;
use gpuio_record::{JobPlan, JobResult, TimeSpan};

pub(super) use outcome::Learned;
pub(super) use thread::{FIRST_PIECES, LAUNCH_NS, busy_with, share};

use super::data::DataSet;
use super::group::Group;
use super::{Ran, RunError, RunObserver, ceilings, prepare};
use thread::Computing;

/// How long the computation runs before it is measured, so that clock rates have finalized.
const WARM: Duration = Duration::from_millis(500);
/// How long it is measured alone, before the job and after it.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_millis(500);
/// The time after the job that may still be the job's: a kernel of its path that waits for more.
const LINGERS: Duration = Duration::from_millis(20);
/// How often a wait looks whether it is to end early.
const LOOK: Duration = Duration::from_millis(20);

/// Whether the group has a concurrent computation; then all of its jobs have.
pub(super) fn is_wanted(jobs: &[JobPlan]) -> bool {
    jobs.iter().any(|job| job.beside.is_some())
}

/// Refuses GPUs that can't run the computation that is to be concurrent.
pub(super) fn try_out(jobs: &[JobPlan], contexts: &BTreeMap<u32, Context>) -> Result<(), RunError> {
    for job in jobs {
        let Some(beside) = job.beside else { continue };
        for gpu in &job.gpus {
            let Some(context) = contexts.get(&gpu.index) else { continue };
            thread::try_out(context, beside).map_err(|error| RunError::NoComputation {
                job: job.name.clone(),
                index: gpu.index,
                what: error.to_string(),
            })?;
        }
    }
    Ok(())
}

/// Runs the group without its computation, and lays its files out again. The results; nothing where
/// it was interrupted.
pub(super) fn alone(
    group: &Group<'_>,
    data: &mut DataSet<'_>,
    observer: &dyn RunObserver,
    ran: &mut Ran,
) -> Result<Option<Vec<JobResult>>, RunError> {
    let (began, means) = (group.clock.now(), group.means);
    let mut first = Ran::nothing();
    observer.alone(group.jobs);
    let bare = Group { live_page: None, sampler: None, computation: None, ..*group };
    let outcome = bare.run(&ceilings::Ticks(observer), &mut first);
    let wrote = data.finalize(group.jobs, &first.jobs, true);
    outcome?;
    wrote?;
    let whole = first.jobs.len() == group.jobs.len();
    let go_on = whole && !means.stop.load(Ordering::Relaxed);
    if go_on {
        prepare(data, group.jobs, means, observer, ran)?;
    }
    ran.setup.alone_ns += group.clock.now() - began;
    Ok(go_on.then_some(first.jobs))
}

/// The computation that a group runs with, and what its jobs came to without.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computation<'a> {
    pub(super) alone: &'a [JobResult],
}

/// Computations in flight on the GPUs of a group.
pub(super) struct UnderWay {
    gpus: Vec<(u32, Computing)>,
    clock: Clock,
    before: TimeSpan,
}

impl UnderWay {
    /// Starts one on each GPU of the jobs, and measures them while nothing else runs.
    pub(super) fn begin(
        jobs: &[JobPlan],
        contexts: &BTreeMap<u32, Context>,
        clock: Clock,
        stop: &AtomicBool,
    ) -> UnderWay {
        let mut gpus: Vec<(u32, Computing)> = Vec::new();
        for job in jobs {
            let Some(beside) = job.beside else { continue };
            for gpu in &job.gpus {
                let known = gpus.iter().any(|(index, _)| *index == gpu.index);
                if let Some(context) = contexts.get(&gpu.index).filter(|_| !known) {
                    gpus.push((gpu.index, Computing::begin(context, beside, clock)));
                }
            }
        }
        rest(WARM, stop);
        let begin_ns = clock.now();
        rest(BEFORE, stop);
        let before = TimeSpan { begin_ns, end_ns: clock.now() };
        UnderWay { gpus, clock, before }
    }

    /// Measures them again without the jobs, and ends them.
    pub(super) fn end(self, stop: &AtomicBool) -> Learned {
        rest(LINGERS, stop);
        let begin_ns = self.clock.now();
        rest(AFTER, stop);
        let after = TimeSpan { begin_ns, end_ns: self.clock.now() };
        let gpus = self.gpus.into_iter().map(|(index, one)| (index, one.end())).collect();
        Learned { gpus, before: self.before, after }
    }
}

/// Sleeps, unless the run is to end.
fn rest(time: Duration, stop: &AtomicBool) {
    let mut left = time;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let step = left.min(LOOK);
        std::thread::sleep(step);
        left -= step;
    }
}
