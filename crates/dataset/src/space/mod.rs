//! Whether there is space, asked before the first byte is written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gpuio_record::{GuardNote, JobPlan, TargetKind};
use rustix::process::{Resource, getrlimit};

use super::directory::{directory_of, existing, free, mount_of};
use super::error::MakeError;
use super::make::Task;

/// Room that is needed on each file system, by its device number.
#[derive(Debug, Default)]
struct Needed(BTreeMap<u64, (PathBuf, u64)>);

impl Needed {
    fn add(&mut self, path: &Path, bytes: u64) {
        let directory = existing(directory_of(path));
        let device = fs::metadata(&directory).map_or(0, |found| found.dev());
        let sum = self.0.entry(device).or_insert((directory, 0));
        sum.1 = sum.1.saturating_add(bytes);
    }

    /// Compression and thin volumes are not foreseen: what is asked of a file system is what its
    /// files would take without them.
    fn check(self, free: impl Fn(&Path) -> Option<u64>) -> Result<(), MakeError> {
        for (directory, needed) in self.0.into_values() {
            if let Some(free) = free(&directory).filter(|free| *free < needed) {
                return Err(MakeError::NoSpace { mount: mount_of(&directory), needed, free });
            }
        }
        Ok(())
    }
}

/// Refuses data sets that cannot fit.
pub(super) fn check(tasks: &[Task]) -> Result<(), MakeError> {
    let limit = getrlimit(Resource::Fsize).current;
    let mut needed = Needed::default();
    for task in tasks {
        let found = fs::symlink_metadata(&task.path).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            continue;
        }
        within_limit(task, limit)?;
        // Where a file has holes is not known, so what is filled may lie in them.
        let more = task.length.saturating_sub(allocated(found.as_ref())).min(task.bytes());
        needed.add(&task.path, more);
    }
    needed.check(free)
}

/// Refuses plans whose files cannot fit, all jobs together: what is made, and what writes may put
/// into holes or behind the end of files that are there. A file that goes on being written needs no
/// more than its length, however long the load runs.
///
/// # Errors
/// [`MakeError::NoSpace`].
pub fn check_plan(jobs: &[JobPlan]) -> Result<(), MakeError> {
    check_plan_with(jobs, free)
}

fn check_plan_with(jobs: &[JobPlan], free: impl Fn(&Path) -> Option<u64>) -> Result<(), MakeError> {
    let mut files: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for job in jobs {
        let writes = job.read_percent < 100;
        // That engine moves no bytes: only what is read is made.
        if job.engine.actual == "null" && job.read_percent == 0 {
            continue;
        }
        for target in job.targets.iter().filter(|target| target.kind == TargetKind::File) {
            if writes || matches!(target.guard, GuardNote::Make | GuardNote::Remake) {
                let path = Path::new(&target.path);
                let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                let holes = target.holes.iter().map(|hole| hole.end.saturating_sub(hole.start));
                let data = target.length_bytes.saturating_sub(holes.sum());
                let length = files.entry(real).or_default();
                *length = data.max(*length);
            }
        }
    }
    let mut needed = Needed::default();
    for (path, length) in files {
        let found = fs::metadata(&path).ok();
        if found.as_ref().is_none_or(fs::Metadata::is_file) {
            needed.add(&path, length.saturating_sub(allocated(found.as_ref())));
        }
    }
    needed.check(free)
}

fn allocated(found: Option<&fs::Metadata>) -> u64 {
    found.map_or(0, |found| found.blocks().saturating_mul(512))
}

/// A write beyond RLIMIT_FSIZE would end the process by SIGXFSZ (setrlimit(2)).
pub(super) fn within_limit(task: &Task, limit: Option<u64>) -> Result<(), MakeError> {
    match limit {
        Some(limit) if task.length > limit => {
            Err(MakeError::FileSizeLimit { path: task.path.clone(), length: task.length, limit })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
