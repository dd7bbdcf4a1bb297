//! `gpuio_check(src, len, key, repeats, offset, report)`: compares with the data rule, adds to
//! `report[0]` the words that differ and lowers `report[1]` to the least byte offset of one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::code::{Answer, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use crate::reach::Reach;

use super::{word, words};

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[src, len, key, repeats, offset, report] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    if len == 0 {
        return Ok(());
    }
    let range = memory.on_device(src, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let report = memory.on_device(report, 16).map_err(|_| ILLEGAL_ADDRESS)?;
    let len = usize::try_from(len).map_err(|_| ILLEGAL_ADDRESS)?;
    let count = report.at.cast::<u64>();
    if !count.is_aligned() {
        return Err(MISALIGNED_ADDRESS);
    }
    let mut bad = 0_u64;
    let mut first = u64::MAX;
    words(offset, len, |number, from, count, at| {
        let start = range.at.wrapping_add(at);
        let right = word(key, repeats, number);
        let same = if count == 8 {
            // SAFETY: the eight bytes at `at` lie in the range that `range` was looked up for.
            unsafe { start.cast::<[u8; 8]>().read() == right }
        } else {
            (0..count).all(|i| {
                // SAFETY: `i` is less than `count`, and `at + count` is at most `len`.
                unsafe { start.wrapping_add(i).read() == right[from + i] }
            })
        };
        if !same {
            bad += 1;
            first = first.min(number * 8);
        }
    });
    if bad != 0 {
        // SAFETY: aligned, 8 bytes of the 16 that were looked up; kernels use them atomically.
        let total = unsafe { AtomicU64::from_ptr(count) };
        total.fetch_add(bad, Ordering::Relaxed);
        // SAFETY: the other 8 bytes.
        let least = unsafe { AtomicU64::from_ptr(count.wrapping_add(1)) };
        least.fetch_min(first, Ordering::Relaxed);
    }
    Ok(())
}
