//! Values that were given and have no effect: which those are, and what becomes of them.
//!
//! No value is accepted and ignored. A row of the table of keys says when its field has no
//! effect on a job, and why, seen from the key, the path and the plan that came of it. A value
//! that says what happens anyway is in effect (`refill=0`, `depth=1`, the default seed), and so
//! is a permission that nothing needs (`--overwrite`). One source may apply to several jobs: a
//! line of `[global]`, a flag in addition to a job file, a job on several paths. It is refused
//! only where none of them uses it, with exit code 2 and the source. Jobs that don't use it are
//! planned as if it had not been said, so that a plan holds nothing without effect and its text
//! can be run again; of depth, threads and rates, by which loads are compared, a note says so.
//!
//! A job file that fio or gdsio runs is run here too: where a section says `ioengine`, or has
//! keys of gdsio's, the tool's own keys without effect are left out and noted, as it leaves
//! them out in silence. So it is with a line of a job file that a flag takes the effect from
//! (`job.ini --rw read`), and with the points of a sweep ([`JobSpec::one_of_many`]), which were
//! checked together beforehand ([`none_uses`]).

mod many;

use std::collections::BTreeMap;

use super::PlanError;
use crate::spec::{Dialect, JobSpec, Key, KeyContext, Origin, Requested, Status, keys};

pub use many::{depth_here, none_uses, planned, unused_here};

/// A value without an effect on one job on one path.
#[derive(Debug)]
pub(super) struct Unused {
    /// The row of the table that says so.
    key: &'static Key,
    /// Index of the job in the spec.
    job: usize,
    requested: Requested,
    why: String,
}

/// Who set the field by a key of its own. Some fields follow from another key in a dialect: gdsio's
/// running time starts over, and that was not requested.
fn requested_by<'a>(job: &'a JobSpec, field: &str) -> Option<&'a Requested> {
    let requested = job.requested.get(field)?;
    let key = crate::spec::find(requested.key)?;
    matches!(key.status, Status::Supported(setter) if setter.fields().contains(&field))
        .then_some(requested)
}

/// The values of a job that have no effect on this path.
pub(super) fn of_job(seen: &KeyContext<'_>, job: usize) -> Vec<Unused> {
    let one = |key: &'static Key| {
        let why = key.unused?;
        let requested = requested_by(seen.requested, key.field()?)?.clone();
        Some(Unused { key, job, requested, why: why(seen)? })
    };
    keys().filter_map(one).collect()
}

/// The job without the values that have no effect on it, and with notes on those only noted, and on
/// those of how much is in flight or due: of several jobs or paths, some may have it.
pub(super) fn without(job: &JobSpec, unused: &[Unused]) -> JobSpec {
    let mut job = job.clone();
    for one in unused {
        if let Status::Supported(setter) = one.key.status {
            setter.clear(&mut job);
        }
        let Requested { key, origin, .. } = &one.requested;
        // A user did not set what a preset did.
        let is_theirs = !matches!(origin, Origin::Preset(_));
        if is_theirs && (is_noted(&job, &one.requested) || one.key.raises.is_some()) {
            job.notes.push(format!("'{key}' ({origin}) has no effect here: {}", one.why));
        }
    }
    job
}

/// Whether a value without effect is noted, and never refused.
fn is_noted(job: &JobSpec, requested: &Requested) -> bool {
    let of = crate::spec::find(requested.key).map(|key| key.dialect);
    let theirs = match of {
        Some(Dialect::Fio) => job.is_fio(),
        Some(Dialect::Gdsio) => job.is_gdsio(),
        Some(Dialect::All) => job.is_fio() || job.is_gdsio(),
        Some(Dialect::Native) | None => false,
    };
    let by_flag = |requested: &Requested| matches!(requested.origin, Origin::Flag(_));
    let in_file = !by_flag(requested);
    // A command line of fio's is like a file of it.
    let of_fio = job.is_fio() && job.requested.values().all(by_flag);
    job.one_of_many || in_file && changed_by_flag(job) || theirs && (in_file || of_fio)
}

/// Whether a flag says what decides over the effect of others.
fn changed_by_flag(job: &JobSpec) -> bool {
    let by_flag = |field: &str| matches!(job.origin(field), Some(Origin::Flag(_)));
    keys().filter(|key| key.decides).filter_map(Key::field).any(by_flag)
}

/// An error for each value that no job with the same source uses, with the reason.
pub(super) fn refused(jobs: &[JobSpec], planned: &[(usize, Vec<Unused>)]) -> Vec<PlanError> {
    let mut errors: BTreeMap<String, PlanError> = BTreeMap::new();
    for one in planned.iter().flat_map(|(_, unused)| unused) {
        let job = &jobs[one.job];
        let Some(field) = one.key.field().filter(|_| !is_noted(job, &one.requested)) else {
            continue;
        };
        let says = |job: &JobSpec| requested_by(job, field) == Some(&one.requested);
        let uses = |(at, unused): &(usize, Vec<Unused>)| {
            says(&jobs[*at]) && !unused.iter().any(|other| other.key.field() == Some(field))
        };
        if !planned.iter().any(uses) {
            let what = format!("it has no effect here: {}", one.why);
            let error = || PlanError::usage(job, field, what);
            errors.entry(one.requested.to_string()).or_insert_with(error);
        }
    }
    errors.into_values().collect()
}
