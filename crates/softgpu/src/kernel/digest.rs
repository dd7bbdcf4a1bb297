//! `gpuio_digest(list, count)`: adds the digest of `count` ranges, each an entry of 32 bytes, four
//! `u64`: address, bytes, the number of the first word, and the address of its sum.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::code::{Answer, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use crate::reach::Reach;

use super::word;

/// The length of an entry in bytes.
const ENTRY: u64 = 32;

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[list, count] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    if count == 0 {
        return Ok(());
    }
    if !list.is_multiple_of(16) {
        return Err(MISALIGNED_ADDRESS);
    }
    let bytes = count.checked_mul(ENTRY).ok_or(ILLEGAL_ADDRESS)?;
    let entries = memory.on_device(list, bytes).map_err(|_| ILLEGAL_ADDRESS)?;
    let entries = entries.at.cast::<[u64; 4]>();
    for number in 0..usize::try_from(count).map_err(|_| ILLEGAL_ADDRESS)? {
        let entry = entries.wrapping_add(number);
        // SAFETY: the whole list was looked up, and `number` is less than its count; a range has
        // its address's alignment up to 512, so 16 here.
        let [address, len, first, sum] = unsafe { entry.read() };
        let total = memory.on_device(sum, 8).map_err(|_| ILLEGAL_ADDRESS)?.at.cast::<u64>();
        if !total.is_aligned() {
            return Err(MISALIGNED_ADDRESS);
        }
        let digest = digest(memory, address, len, first)?;
        // SAFETY: aligned, and the 8 bytes were looked up; kernels use them atomically.
        unsafe { AtomicU64::from_ptr(total) }.fetch_add(digest, Ordering::Relaxed);
    }
    Ok(())
}

fn digest(memory: &Reach<'_>, address: u64, len: u64, first: u64) -> Answer<u64> {
    if len == 0 {
        return Ok(0);
    }
    let range = memory.on_device(address, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let mut sum = 0_u64;
    let mut number = first;
    let mut left = usize::try_from(len).map_err(|_| ILLEGAL_ADDRESS)?;
    let mut from = range.at;
    while left > 0 {
        let count = left.min(8);
        let mut value = [0; 8];
        // SAFETY: `count` bytes of the range are left, and `value` has room for 8.
        unsafe { std::ptr::copy_nonoverlapping(from.cast_const(), value.as_mut_ptr(), count) };
        number = number.wrapping_add(1);
        sum = sum.wrapping_add(u64::from_le_bytes(word(u64::from_le_bytes(value), 0, number)));
        from = from.wrapping_add(count);
        left -= count;
    }
    Ok(sum)
}
