//! Whether there is room, asked before the first byte is written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::failure::MakeError;
use super::make::Task;

/// Bytes free for this user on the file system of `directory` (statvfs(3), `f_bavail`); `None`
/// where it does not say, as some network file systems do not.
pub(super) fn free(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Refuses data sets that cannot fit. Compression and thin volumes are not foreseen: what is asked
/// of a file system is what its files would take without them.
pub(super) fn check(tasks: &[Task]) -> Result<(), MakeError> {
    let limit = getrlimit(Resource::Fsize).current;
    let mut needed: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for task in tasks {
        let found = fs::symlink_metadata(&task.path).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            continue;
        }
        within_limit(task, limit)?;
        let there = found.map_or(0, |found| found.blocks().saturating_mul(512));
        let directory = directory_of(&task.path);
        let device = fs::metadata(directory).map_or(0, |found| found.dev());
        let sum = needed.entry(device).or_insert_with(|| (directory.to_owned(), 0));
        // Where a file has holes is not known, so what is filled may lie in them.
        let more = task.length.saturating_sub(there).min(task.bytes());
        sum.1 = sum.1.saturating_add(more);
    }
    for (directory, needed) in needed.into_values() {
        if let Some(free) = free(&directory).filter(|free| *free < needed) {
            return Err(MakeError::NoSpace { directory, needed, free });
        }
    }
    Ok(())
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

/// The directory that holds a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
