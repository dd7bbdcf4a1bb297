//! The keys of the patterns that a job's data has.

use gpuio_base::pattern::{Key, Repeats, Salt, file_key};
use gpuio_record::{Fill, JobPlan};

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

/// The key of zeros, for blocks that end within the first GiB: word 0 is 0 by the pattern's rule,
/// and all words of its chunk repeat it.
pub(super) fn zeros() -> Key {
    Key { seed: 0, repeats: Repeats::new(100, 1 << 30).unwrap_or_default() }
}

/// Where in the pattern a block lies that is written to this offset of its file.
pub(super) fn offset(job: &JobPlan, offset: u64) -> u64 {
    if job.fill == Fill::Zero { 0 } else { offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros() {
        let mut bytes = vec![7_u8; 1 << 20];
        gpuio_base::pattern::fill(&mut bytes, zeros(), 0);
        assert!(bytes.iter().all(|byte| *byte == 0));
    }
}
