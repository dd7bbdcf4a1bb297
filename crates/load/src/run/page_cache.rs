//! The page cache before a group's clock starts: files dropped from it (`invalidate`) or read into
//! it (`pre_read`), so that every job of a comparison finds it alike.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_host::residency;
use gpuio_record::JobPlan;

use super::RunObserver;
use super::error::RunError;
use gpuio_dataset::held::Targets;

/// Bytes of one read: large compared with the cost of a call, and an interrupt is seen within one.
const STEP: usize = 4 << 20;

/// Puts the files of a group into the state that each of its jobs asks for. A file that one job
/// drops and another reads is in the cache in the end.
///
/// # Errors
/// As [`drop_files`] and [`read_in`].
pub(super) fn prepare(
    jobs: &[JobPlan],
    held: &Targets,
    stop: &AtomicBool,
    observer: &dyn RunObserver,
) -> Result<(), RunError> {
    drop_files(jobs, held)?;
    read_in(jobs, held, stop, &|done, of| observer.reading(done, of))
}

/// Drops each file of the jobs that ask for it from the page cache, written back before. Advice, as
/// `posix_fadvise(2)` has it: pages that someone maps stay, and on tmpfs all do; the result says
/// what was there.
///
/// # Errors
/// A file can't be opened, or what is written back does not reach storage.
fn drop_files(jobs: &[JobPlan], held: &Targets) -> Result<(), RunError> {
    let targets = jobs.iter().filter(|job| job.invalidate).flat_map(|job| &job.targets);
    let paths: BTreeSet<&str> = targets.map(|target| target.path.as_str()).collect();
    for path in paths {
        let failed = |what: String| RunError::Open {
            path: path.to_owned(),
            how: " and drop from the page cache (invalidate)".to_owned(),
            what,
        };
        let file = held.read(path).map_err(|error| failed(error.to_string()))?;
        residency::drop_cache(&file).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

/// Reads each file of the jobs that ask for it, once, up to the length that they use. Ends early,
/// without an error, when `stop` is set: the group then sees it too.
///
/// # Errors
/// A file can't be opened or read; the path, offset and the kernel's answer.
fn read_in(
    jobs: &[JobPlan],
    held: &Targets,
    stop: &AtomicBool,
    reading: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), RunError> {
    let mut lengths: BTreeMap<&str, u64> = BTreeMap::new();
    let targets = jobs.iter().filter(|job| job.pre_read).flat_map(|job| &job.targets);
    for target in targets {
        let length = lengths.entry(&target.path).or_default();
        *length = target.length_bytes.max(*length);
    }
    let of = lengths.values().copied().fold(0, u64::saturating_add);
    let mut bytes = vec![0; if of > 0 { STEP } else { 0 }];
    let mut done = 0;
    for (path, length) in lengths {
        let failed = |how: String, what: String| RunError::Open {
            path: path.to_owned(),
            how: format!(" and read into the page cache (pre_read){how}"),
            what,
        };
        let file = held.read(path).map_err(|error| failed(String::new(), error.to_string()))?;
        let mut at = 0;
        while at < length && !stop.load(Ordering::Relaxed) {
            let actual = file.read_at(&mut bytes, at);
            let actual =
                actual.map_err(|error| failed(format!(" at offset {at}"), error.to_string()))?;
            if actual == 0 {
                break;
            }
            at += actual as u64;
            reading((done + at).min(of), of);
        }
        done += length;
    }
    Ok(())
}
