//! The content of the files that a job reads, by a few blocks of them: storage that compresses,
//! finds copies or leaves out zeros is faster with what repeats.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use gpuio_record::{ContentReading, JobPlan, TargetPlan};
use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, seek};
use rustix::io::Errno;

use crate::evidence::OpenFile;

/// Bytes of a block: what O_DIRECT may want to be aligned to.
const BLOCK: usize = 4096;

/// Blocks that are looked at, of all files together: each may cost an access of the storage.
const BLOCKS: u32 = 32;
/// Files that are looked at.
const MOST_FILES: usize = 32;

/// Looks at blocks past the page cache, which must stay as it is. `None` for a job that reads no
/// file.
///
/// # Errors
/// A reason why they can't be read.
pub(super) fn sampled(job: &JobPlan, open: OpenFile<'_>) -> Result<Option<ContentReading>, String> {
    if job.engine.actual == "null" || job.read_percent == 0 {
        return Ok(None);
    }
    let targets: Vec<(u32, &TargetPlan)> = (0_u32..).zip(&job.targets).collect();
    let step = targets.len().div_ceil(MOST_FILES).max(1);
    let chosen: Vec<_> = targets.into_iter().step_by(step).collect();
    let each = BLOCKS.div_ceil(u32::try_from(chosen.len()).unwrap_or(1).max(1));
    let (mut sum, mut seen) = (ContentReading::default(), HashSet::new());
    for (at, target) in chosen {
        let file = File::from(open(&target.path)?);
        let direct = fcntl_getfl(&file).and_then(|is| fcntl_setfl(&file, is | OFlags::DIRECT));
        direct.map_err(|errno| format!("O_DIRECT, without which none is looked at: {errno}"))?;
        for offset in offsets(used(job, at, target), u64::from(each)) {
            if let Some(block) = block(&file, offset).map_err(|error| error.to_string())? {
                add(&mut sum, &mut seen, &block);
            }
        }
    }
    Ok((sum.blocks > 0).then_some(sum))
}

/// The bytes of its target at this place that a job uses.
pub(super) fn used(job: &JobPlan, at: u32, target: &TargetPlan) -> Range<u64> {
    let regions = job.workers.iter().flat_map(|worker| &worker.regions);
    let of_target = || regions.clone().filter(|one| one.target == at);
    let first = of_target().map(|one| one.offset).min().unwrap_or(target.length_bytes);
    // Behind the last region other ranks may write.
    let end = of_target().map(gpuio_record::Region::end).max().filter(|_| job.is_common());
    first..end.unwrap_or(target.length_bytes).max(first)
}

/// Offsets of whole blocks, spread evenly over a range.
fn offsets(of: Range<u64>, most: u64) -> impl Iterator<Item = u64> {
    let first = of.start.div_ceil(BLOCK as u64);
    let all = (of.end / BLOCK as u64).saturating_sub(first);
    let count = all.min(most);
    (0..count).map(move |nth| {
        // Widened: blocks of a large device times their count pass 64 bits.
        let spread = u128::from(nth) * u128::from(all - 1) / u128::from((count - 1).max(1));
        (first + u64::try_from(spread).unwrap_or(0)) * BLOCK as u64
    })
}

/// A block of a file, of a hole the zeros that its readers get; `None` past the end.
fn block(file: &File, at: u64) -> std::io::Result<Option<Vec<u8>>> {
    let hole = || Ok((at + BLOCK as u64 <= file.metadata()?.len()).then(|| vec![0; BLOCK]));
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) if data > at => return hole(),
        Err(Errno::NXIO) => return hole(),
        // Without holes that it knows, a file system says that all is data.
        Ok(_) | Err(_) => {}
    }
    let mut memory = vec![0; 2 * BLOCK];
    let from = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    let bytes = &mut memory[from..from + BLOCK];
    let read = file.read_at(bytes, at)?;
    Ok((read == BLOCK).then(|| bytes.to_vec()))
}

fn add(sum: &mut ContentReading, seen: &mut HashSet<u64>, block: &[u8]) {
    let words = block.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let (mut count, mut repeated, mut zeros) = (0, 0, 0);
    for word in words {
        count += 1;
        repeated += u64::from(!seen.insert(word));
        zeros += u64::from(word == 0);
    }
    *sum += ContentReading {
        blocks: 1,
        zero_blocks: u64::from(zeros == count),
        words: count,
        repeated_words: repeated,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_whole_blocks_of_the_range_from_its_first_to_its_last() {
        let of = |range, most| offsets(range, most).collect::<Vec<u64>>();
        assert_eq!(of(0..4096, 32), [0]);
        assert_eq!(of(1..8192, 32), [4096]);
        assert_eq!(of(0..40_960, 3), [0, 16_384, 36_864]);
        assert_eq!(of(0..4095, 32), [0_u64; 0]);
        assert_eq!(of(0..u64::MAX, 2).len(), 2);
    }

    #[test]
    fn a_hole_is_looked_at_as_the_zeros_that_it_is_read_as() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * BLOCK as u64).unwrap();
        let of = |nth: u64| block(&file, nth * BLOCK as u64).unwrap();
        assert_eq!([of(0), of(2)], [Some(vec![0; BLOCK]), Some(vec![0; BLOCK])]);
        assert_eq!(of(3), None);
    }

    #[test]
    fn zeros_and_copies_of_a_block_repeat_and_the_pattern_does_not() {
        let key = gpuio_base::pattern::file_key(gpuio_base::pattern::Salt::from(1), 0);
        let random: Vec<u8> =
            (0..512).flat_map(|w| gpuio_base::pattern::word(key, w).to_le_bytes()).collect();
        let of = |blocks: &[&[u8]]| {
            let (mut sum, mut seen) = (ContentReading::default(), HashSet::new());
            blocks.iter().for_each(|block| add(&mut sum, &mut seen, block));
            (sum.zero_blocks, sum.repeated_words, sum.words)
        };
        assert_eq!(of(&[&random]), (0, 0, 512));
        assert_eq!(of(&[&random, &random]), (0, 512, 1024));
        assert_eq!(of(&[&[0; BLOCK], &[0; BLOCK]]), (2, 1023, 1024));
    }
}
