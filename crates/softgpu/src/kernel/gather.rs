//! `gpuio_gather(list, count)`: copies `count` pieces, each an entry of 32 bytes, four `u64`:
//! source, destination, length in bytes, unused.
//!
//! The entries are worked off from the last to the first. On hardware they have no order, so a
//! program that counts on the list's order is to see wrong bytes here.

use crate::code::{Answer, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use crate::reach::Reach;

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
    let first = entries.at.cast::<[u64; 4]>();
    let count = usize::try_from(count).map_err(|_| ILLEGAL_ADDRESS)?;
    for number in (0..count).rev() {
        let entry = first.wrapping_add(number);
        // SAFETY: the whole list was looked up, and `number` is less than its count; a range has
        // its address's alignment up to 512, so 16 here.
        let [src, dst, len, _] = unsafe { entry.read() };
        copy(memory, src, dst, len)?;
    }
    Ok(())
}

/// Copies one piece, between addresses that the device reaches.
fn copy(memory: &Reach<'_>, src: u64, dst: u64, len: u64) -> Answer<()> {
    if len == 0 {
        return Ok(());
    }
    let from = memory.on_device(src, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let to = memory.on_device(dst, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let len = usize::try_from(len).map_err(|_| ILLEGAL_ADDRESS)?;
    to.copy_from(&from, len)
}
