//! The habits that fio's job files add to a job's load: pauses, flushes, counts, logs, and the
//! order of jobs.

use std::borrow::Cow;

use gpuio_record::{FlushPlan, LogPlan, Stop, ThinkPlan};

use super::PlanError;
use super::defaults::mix_and_order;
use super::regions::Ground;
use crate::spec::{JobSpec, Spec, take_writes};

pub(super) fn think(job: &JobSpec) -> Option<ThinkPlan> {
    let pause_ns = job.think_ns.filter(|time| *time > 0)?;
    let spin_ns = job.think_spin_ns.unwrap_or(0).min(pause_ns);
    Some(ThinkPlan { pause_ns, spin_ns, every_ios: job.think_ios.unwrap_or(1) })
}

/// The request with the values of its own direction, of lists that have reads and writes apart. A
/// mix has one value for both here.
pub(super) fn of_directions(spec: &Spec) -> Result<Cow<'_, Spec>, PlanError> {
    if spec.jobs.iter().all(|job| lists(job).next().is_none()) {
        return Ok(Cow::Borrowed(spec));
    }
    let jobs: Result<_, _> = spec.jobs.iter().map(of_direction).collect();
    Ok(Cow::Owned(Spec { jobs: jobs?, ..spec.clone() }))
}

/// Fields that may have come from such a list.
fn lists(job: &JobSpec) -> impl Iterator<Item = &'static str> {
    job.requested.iter().filter(|(_, set)| set.value.contains(',')).map(|(field, _)| *field)
}

pub(super) fn of_direction(requested: &JobSpec) -> Result<JobSpec, PlanError> {
    let mut job = requested.clone();
    let reads = mix_and_order(&job).0;
    for field in lists(requested).filter(|_| reads < 100) {
        take_writes(&mut job, field);
        if reads > 0 && job != *requested {
            let what = "in a mix one value is for reads and writes; use one job for each direction";
            return Err(PlanError::usage(requested, field, what));
        }
    }
    Ok(job)
}

/// fio takes the first of fsync and fdatasync that is due; here one count rules.
pub(super) fn flush(job: &JobSpec) -> Option<FlushPlan> {
    if mix_and_order(job).0 == 100 {
        return None;
    }
    let some = |count: Option<u64>| count.filter(|count| *count > 0);
    let (whole, data) = (some(job.fsync_ios), some(job.fdatasync_ios));
    let at_end = job.end_fsync == Some(true);
    let plan = FlushPlan {
        every_ios: whole.or(data),
        data_only: whole.is_none() && data.is_some(),
        at_end,
    };
    (plan.every_ios.is_some() || at_end).then_some(plan)
}

pub(super) fn logs(job: &JobSpec) -> Option<LogPlan> {
    let (bw, lat, iops) = (job.bw_log.clone(), job.lat_log.clone(), job.iops_log.clone());
    let any = bw.is_some() || lat.is_some() || iops.is_some();
    any.then_some(LogPlan { bw, lat, iops, line_ns: job.log_ns })
}

/// fio takes a block of each file in turn, unless it is told otherwise.
pub(super) fn files_in_turn(job: &JobSpec, ground: &Ground) -> bool {
    let several = ground.files_of_a_thread() > 1;
    let in_order = mix_and_order(job).1 == gpuio_record::Order::Sequential;
    several && in_order && job.files_in_turn.unwrap_or(job.is_fio())
}

/// A number of I/Os as bytes, beside which other bounds stay.
pub(super) fn counted(job: &JobSpec, stop: Stop) -> Result<Stop, PlanError> {
    let Some(ios) = job.number_ios else { return Ok(stop) };
    let blocks = super::defaults::blocks(job, &mix_and_order(job).1);
    let [block] = blocks.as_slice() else { return Err(sizes(job)) };
    if block.min_bytes != block.max_bytes {
        return Err(sizes(job));
    }
    let bytes = ios.saturating_mul(block.max_bytes);
    // fio's count does not make a job longer than its size. Ours is the bound, where no other was
    // requested.
    let most = if job.is_fio() || job.io_size.is_some() || job.loops.is_some() {
        stop.bytes_per_thread.unwrap_or(u64::MAX)
    } else {
        u64::MAX
    };
    let runtime_ns = stop.runtime_ns.filter(|_| job.runtime_ns.is_some());
    Ok(Stop { runtime_ns, bytes_per_thread: Some(bytes.min(most)), wear_out: false })
}

fn sizes(job: &JobSpec) -> PlanError {
    let what = "I/Os of several sizes are not counted but measured in bytes; use io_size=, or one \
                block size";
    PlanError::usage(job, "number_ios", what)
}

/// Whether a job begins a new group, because it waits for a job of the current one. All of a group
/// end before the next begins.
pub(super) fn waits(jobs: &[JobSpec], at: usize, group_began_at: usize) -> Result<bool, PlanError> {
    let job = &jobs[at];
    let Some(name) = &job.wait_for else { return Ok(false) };
    let named = |job: &JobSpec| job.name == *name;
    let Some(found) = jobs[..at].iter().rposition(named) else {
        let what = format!("there is no job '{name}' above it to wait for; name one of them");
        return Err(PlanError::usage(job, "wait_for", what));
    };
    if found < group_began_at {
        return Ok(false);
    }
    if let Some(other) = jobs[group_began_at..at].iter().find(|job| !named(job)) {
        let what = format!(
            "job '{}' runs at the same time as '{name}', and would be waited for too; use \
             stonewall for all of them, or put '{name}' into a group of its own",
            other.name
        );
        return Err(PlanError::usage(job, "wait_for", what));
    }
    Ok(true)
}
