//! The library's counts of its transfers, laid out as release 1.15 does.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::Answer;
use crate::error::{CallError, code};
use crate::machine::Direction;

/// Bytes of the structures of levels 1 to 3.
const SIZES: [usize; 3] = [512, 1024, 5000];
/// Offsets in them: totals, histograms, the number of GPUs and the one entry.
const READ_BYTES: usize = 96;
const WRITE_BYTES: usize = 104;
const READ_SIZES: usize = 512;
const WRITE_SIZES: usize = 768;
const GPUS: usize = 1024;
const ENTRY: usize = 1032;
/// Offsets in an entry where a direction begins.
const READS: usize = 16;
const WRITES: usize = 120;

#[derive(Debug, Clone, Copy, Default)]
struct DirectionCounts {
    bytes: u64,
    transfers: u64,
    unaligned: u64,
    /// By size: class 0 below 4 KiB, each further one twice as large.
    sizes: [u64; 32],
}

/// Counters, their level and whether they run.
#[derive(Debug, Default)]
struct Counts {
    level: c_int,
    running: bool,
    read: DirectionCounts,
    write: DirectionCounts,
}

/// Statistics of the process.
#[derive(Debug, Default)]
pub(crate) struct Stats(Mutex<Counts>);

impl Stats {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a transfer of `bytes` to or from `offset`, if it is to count.
    pub(crate) fn count(&self, direction: Direction, bytes: usize, offset: u64) {
        let mut counts = self.lock();
        if counts.level == 0 || !counts.running {
            return;
        }
        let direction = match direction {
            Direction::Read => &mut counts.read,
            Direction::Write => &mut counts.write,
        };
        let bytes = bytes as u64;
        let class = (bytes >> 11).max(1).ilog2().min(31) as usize;
        direction.bytes += bytes;
        direction.transfers += 1;
        direction.unaligned += u64::from(!(bytes | offset).is_multiple_of(4096));
        direction.sizes[class] += 1;
    }

    fn set_level(&self, level: c_int) -> Result<(), CallError> {
        if !(0..=3).contains(&level) {
            return Err(code::INVALID_VALUE.into());
        }
        self.lock().level = level;
        Ok(())
    }

    /// The structure of `level`, as words. Refused when less is counted or nothing.
    fn words(&self, level: usize) -> Result<Vec<u64>, CallError> {
        let counts = self.lock();
        if !counts.running || usize::try_from(counts.level).unwrap_or(0) < level {
            return Err(code::INVALID_VALUE.into());
        }
        let mut words = vec![0; SIZES[level - 1] / 8];
        let mut put = |at: usize, value: u64| {
            if let Some(word) = words.get_mut(at / 8) {
                *word = value;
            }
        };
        put(READ_BYTES, counts.read.bytes);
        put(WRITE_BYTES, counts.write.bytes);
        for (at, sizes) in [(READ_SIZES, counts.read.sizes), (WRITE_SIZES, counts.write.sizes)] {
            sizes.iter().enumerate().for_each(|(nth, count)| put(at + nth * 8, *count));
        }
        put(GPUS, 1);
        for (at, of) in [(ENTRY + READS, counts.read), (ENTRY + WRITES, counts.write)] {
            put(at, of.bytes);
            put(at + 32, of.transfers);
            // All through host memory: none by peer-to-peer DMA, none by nvidia-fs.
            put(at + 56, of.transfers);
            put(at + 64, of.unaligned);
        }
        Ok(words)
    }
}

fn answer(call: &str, body: impl FnOnce(&Stats) -> Result<(), CallError>) -> Answer {
    crate::api::answer(call, |machine| body(&machine.stats))
}

/// # Safety
/// `stats` is null or valid for the structure of `level`.
unsafe fn put(call: &str, level: usize, stats: *mut u64) -> Answer {
    answer(call, |counted| {
        let words = counted.words(level)?;
        if stats.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise; `words` is as long as the structure.
        unsafe { stats.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileSetStatsLevel(level: c_int) -> Answer {
    answer("cuFileSetStatsLevel", |stats| stats.set_level(level))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetStatsLevel(level: *mut c_int) -> Answer {
    answer("cuFileGetStatsLevel", |stats| {
        if level.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { level.write(stats.lock().level) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileStatsStart() -> Answer {
    answer("cuFileStatsStart", |stats| {
        stats.lock().running = true;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileStatsStop() -> Answer {
    answer("cuFileStatsStop", |stats| {
        stats.lock().running = false;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuFileStatsReset() -> Answer {
    answer("cuFileStatsReset", |stats| {
        let mut counts = stats.lock();
        (counts.read, counts.write) = (DirectionCounts::default(), DirectionCounts::default());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetStatsL1(stats: *mut u64) -> Answer {
    // SAFETY: the caller's promise by the guide.
    unsafe { put("cuFileGetStatsL1", 1, stats) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetStatsL2(stats: *mut u64) -> Answer {
    // SAFETY: the caller's promise by the guide.
    unsafe { put("cuFileGetStatsL2", 2, stats) }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileGetStatsL3(stats: *mut u64) -> Answer {
    // SAFETY: the caller's promise by the guide.
    unsafe { put("cuFileGetStatsL3", 3, stats) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_while_it_is_to_and_each_transfer_once() {
        let stats = Stats::default();
        stats.count(Direction::Read, 4096, 0);
        assert!(stats.words(1).is_err());
        stats.set_level(3).unwrap();
        stats.lock().running = true;
        stats.count(Direction::Read, 4096, 0);
        stats.count(Direction::Read, 100, 8192);
        stats.count(Direction::Write, 1 << 20, 0);
        let words = stats.words(3).unwrap();
        let at = |offset: usize| words[offset / 8];
        assert_eq!((words.len(), at(1024)), (625, 1));
        assert_eq!((at(96), at(104)), (4196, 1 << 20));
        assert_eq!((at(1048), at(1080), at(1104), at(1112)), (4196, 2, 2, 1));
        assert_eq!((at(1152), at(1184), at(1208)), (1 << 20, 1, 1));
        // Classes as release 1.15 counts them: 1000 bytes in the first, 1 MiB in the tenth.
        assert_eq!((at(512), at(520), at(768 + 72)), (1, 1, 1));
        assert!(stats.set_level(4).is_err());
        stats.set_level(1).unwrap();
        assert!(stats.words(1).is_ok() && stats.words(2).is_err());
    }
}
