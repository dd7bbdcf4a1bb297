//! Files read into the page cache before a group's clock starts (`pre_read`), so that every job of
//! a comparison finds the cache alike.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_record::JobPlan;

use super::error::RunError;

/// Bytes of one read: large beside the cost of a call, and an interrupt is seen within one.
const STEP: usize = 4 << 20;

/// Reads each file of the jobs that ask for it, once, up to the length that they use. Ends early,
/// without an error, when `stop` is set: the group then sees it too.
///
/// # Errors
/// A file can't be opened or read; the path, offset and the kernel's answer.
pub(super) fn run(
    jobs: &[JobPlan],
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
        let failed = |how: String, error: std::io::Error| RunError::Open {
            path: path.to_owned(),
            how: format!(" and read into the page cache (pre_read){how}"),
            what: error.to_string(),
        };
        let file = File::open(path).map_err(|error| failed(String::new(), error))?;
        let mut at = 0;
        while at < length && !stop.load(Ordering::Relaxed) {
            let got = file.read_at(&mut bytes, at);
            let got = got.map_err(|error| failed(format!(" at offset {at}"), error))?;
            if got == 0 {
                break;
            }
            at += got as u64;
            reading((done + at).min(of), of);
        }
        done += length;
    }
    Ok(())
}
