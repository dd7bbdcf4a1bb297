//! `gpuio_fill(dst, len, key, repeats, offset)`: writes the data rule.

use crate::code::{Answer, ILLEGAL_ADDRESS};
use crate::reach::Reach;

use super::{word, words};

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[dst, len, key, repeats, offset] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    if len == 0 {
        return Ok(());
    }
    let range = memory.on_device(dst, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let len = usize::try_from(len).map_err(|_| ILLEGAL_ADDRESS)?;
    words(offset, len, |number, from, count, at| {
        let bytes = word(key, repeats, number);
        let to = range.at.wrapping_add(at);
        if count == 8 {
            // SAFETY: the eight bytes at `at` lie in the range that `range` was looked up for.
            unsafe { to.cast::<[u8; 8]>().write(bytes) };
            return;
        }
        for (i, byte) in bytes[from..from + count].iter().enumerate() {
            // SAFETY: `i` is less than `count`, and `at + count` is at most `len`.
            unsafe { to.wrapping_add(i).write(*byte) };
        }
    });
    Ok(())
}
