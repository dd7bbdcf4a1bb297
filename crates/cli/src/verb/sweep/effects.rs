//! Which keys have an effect on which points.
//!
//! A key that no point uses is refused before anything runs. The run of a point that does not use a
//! key does not get it, so that the command in its record can be run by hand.

use std::path::Path;

use gpuio_io::CATALOG;
use gpuio_job::plan::{AUTO, path_names, unused};
use gpuio_job::spec::{self, CUFILE_PREFIX, JobSpec, Origin, Requested};
use gpuio_job::sweep::{Axis, Preset};

use crate::args::Work;
use crate::failure::Failure;
use crate::jobs;
use crate::ranks::Place;

/// The axis whose values are directories, files or devices.
pub(super) const TARGET: &str = "target";
/// The axis whose values are numbers of ranks.
pub(super) const RANKS: &str = "ranks";
/// Flags under which keys of a point are given.
const SET: &str = "--set";
const VARY: &str = "--vary";
const LIBRARY: &str = "--cufile-lib";

/// Key and value of a job for a value of an axis.
pub(super) fn keyed(key: &str, value: &str) -> (String, String) {
    let value = &jobs::local_gpu(key, value);
    if key != TARGET {
        return (key.to_owned(), value.to_owned());
    }
    if Path::new(value).is_dir() {
        return ("directory".to_owned(), spec::one_name(value));
    }
    ("filename".to_owned(), spec::one_name(value))
}

/// Removes the user's keys from the preset's own.
pub(super) fn forget(job: &mut JobSpec, preset: Option<&Preset>, work: &Work) {
    let built_in = preset.map_or(&[][..], |preset| preset.keys);
    let own = |key: &str| work.keys().iter().any(|given| same(&given.key, key));
    for (key, _) in built_in.iter().filter(|(key, _)| !own(key)) {
        job.requested
            .retain(|_, setting| setting.origin != Origin::Flag(SET) || !same(setting.key, key));
    }
}

/// Whether two names are of one key.
fn same(one: &str, two: &str) -> bool {
    let name = |word: &str| gpuio_job::spec::find(word).map(|key| key.name);
    one == two || (name(one).is_some() && name(one) == name(two))
}

/// The job of a point; `None` if a value is wrong, which was reported before.
pub(super) fn at(job: &JobSpec, axes: &[Axis], values: &[String]) -> Option<JobSpec> {
    let mut job = job.clone();
    for (axis, value) in axes.iter().zip(values).filter(|(axis, _)| axis.key != RANKS) {
        let (key, value) = keyed(&axis.key, value);
        jobs::set(&mut job, &key, &Place::alone().fill(&value), VARY).ok()?;
    }
    spec::speak_fio(&mut job);
    Some(job)
}

/// The value of an axis at a point, with a mark where it has no effect there: that load is another
/// one than its name says (`depth=8` with an engine that waits for each I/O).
pub(super) fn marked(job: &JobSpec, axes: &[Axis], point: &[String], nth: usize) -> String {
    let value = point.get(nth).cloned().unwrap_or_default();
    match ran(job, axes, point, nth) {
        Some(ran) if ran == value => value,
        Some(ran) => format!("{ran} ({value} has no effect)"),
        None => format!("{value} (no effect)"),
    }
}

/// The value of an axis with which a point runs: another depth than the one that was given, or
/// nothing, where that has no effect there.
pub(super) fn ran(job: &JobSpec, axes: &[Axis], point: &[String], nth: usize) -> Option<String> {
    let value = point.get(nth).cloned();
    let (Some(axis), Some(job)) = (axes.get(nth), at(job, axes, point)) else { return value };
    let idle =
        |setting: &Requested| setting.origin == Origin::Flag(VARY) && same(setting.key, &axis.key);
    if !unused::unused_here(&job, CATALOG).iter().any(idle) {
        return value;
    }
    let is_depth = spec::find(&axis.key).and_then(spec::Key::field) == Some("depth");
    let depth = is_depth.then(|| unused::depth_here(&job, CATALOG)).flatten();
    depth.map(|depth| depth.to_string())
}

/// Refuses keys that none of the points uses.
pub(super) fn all(
    job: &JobSpec,
    axes: &[Axis],
    points: &[Vec<String>],
    (work, preset): (&Work, Option<&Preset>),
) -> Result<(), Failure> {
    let jobs: Vec<JobSpec> = points.iter().filter_map(|values| at(job, axes, values)).collect();
    unused::none_uses(&jobs, CATALOG)?;
    if jobs.iter().any(may_take_cufile) {
        return Ok(());
    }
    let setting = jobs.iter().flat_map(|job| job.cufile.keys()).next();
    let setting = setting.map(|key| format!("{CUFILE_PREFIX}{key}"));
    // Without the path that a preset prefers, the library has decided that.
    let tried = preset.is_some_and(|preset| !preset.fallbacks.is_empty());
    let named = work.own.cufile.cufile_lib.is_some() && !tried;
    let library = named.then(|| LIBRARY.to_owned());
    match setting.or(library) {
        None => Ok(()),
        Some(what) => Err(Failure::Usage(format!(
            "{what}: it has no effect here: it only concerns cuFile paths, and no point uses one; \
             add --path gds, or leave it out"
        ))),
    }
}

fn may_take_cufile(job: &JobSpec) -> bool {
    let cufiles = |name: &str| {
        let row = CATALOG.path(name);
        name == AUTO || name == "all" || row.is_some_and(|row| row.uses_cufile())
    };
    path_names(job).0.into_iter().any(cufiles)
}

/// The arguments of a point without those that have no effect on it.
pub(super) fn used(words: Vec<String>, job: Option<&JobSpec>) -> Vec<String> {
    let Some(job) = job else { return words };
    let unused = unused::unused_here(job, CATALOG);
    let by_flag = |word: &str| {
        unused.iter().any(|setting| {
            matches!(setting.origin, Origin::Flag(SET | VARY)) && same(setting.key, word)
        })
    };
    let no_cufile = !may_take_cufile(job);
    let mut used = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let value = words.peek().map(String::as_str).unwrap_or_default();
        let key = value.split('=').next().unwrap_or_default();
        let idle = match word.as_str() {
            SET => by_flag(key) || (no_cufile && key.starts_with(CUFILE_PREFIX)),
            LIBRARY => no_cufile,
            _ => false,
        };
        if idle {
            words.next();
        } else {
            used.push(word);
        }
    }
    used
}
