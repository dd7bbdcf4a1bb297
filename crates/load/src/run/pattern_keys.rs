//! The keys of the patterns that a job's data has.

use gpuio_base::pattern::{Key, Repeats, Salt, file_key};
use gpuio_record::JobPlan;

/// The salt of a job's data.
pub(super) fn salt(job: &JobPlan) -> Salt {
    let repeats = job.compressible.and_then(|it| Repeats::new(it.percent, it.chunk_bytes));
    Salt { number: job.salt, repeats: repeats.unwrap_or_default() }
}

/// A key that no file has, of data that repeats as a job's does.
pub(super) fn random_key(job: &JobPlan, seed: u64) -> Key {
    Key { seed, repeats: salt(job).repeats }
}

/// The key of a target's pattern.
pub(super) fn key(job: &JobPlan, target: u32) -> Key {
    file_key(salt(job), job.targets[target as usize].file_number)
}
