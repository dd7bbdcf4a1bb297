//! `gpuio_busy_compute(state, pieces, blocks)` and `gpuio_busy_memory(state, pieces, blocks,
//! memory, held, first)`: work whose rate is known. A piece takes a multiprocessor 20 microseconds
//! of the device's time, whatever the host is doing; nothing is computed, and the memory stays as
//! it is.

use std::time::Duration;

use crate::code::{Answer, ILLEGAL_ADDRESS};
use crate::reach::Reach;

/// The time that a piece takes on one multiprocessor.
const PIECE: Duration = Duration::from_micros(20);
/// Bytes of a piece of memory.
const PIECE_LEN: u64 = 256 << 10;
/// Bytes of the state, and where in it multiprocessors leave their bits.
const STATE_LEN: u64 = 384;
const SEEN_AT: usize = 256;

pub(super) fn compute(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[state, _, blocks] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    let range = memory.on_device(state, STATE_LEN).map_err(|_| ILLEGAL_ADDRESS)?;
    for number in 0..at_work(memory, blocks) {
        let word = range.at.wrapping_add(SEEN_AT + number as usize / 64 * 8).cast::<u64>();
        // SAFETY: one of the 16 words behind byte 256, in the 384 bytes that were looked up.
        let bits = unsafe { word.read_unaligned() };
        // SAFETY: as above.
        unsafe { word.write_unaligned(bits | 1 << (number % 64)) };
    }
    Ok(())
}

pub(super) fn memory(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[state, pieces, blocks, start, held, _] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    let len = held.checked_mul(PIECE_LEN).filter(|&len| len > 0).ok_or(ILLEGAL_ADDRESS)?;
    memory.on_device(start, len).map_err(|_| ILLEGAL_ADDRESS)?;
    compute(memory, &[state, pieces, blocks])
}

/// The pieces are shared by the multiprocessors that have a block.
pub(super) fn lasts(memory: &Reach<'_>, args: &[u64]) -> Duration {
    let (pieces, blocks) = (args.get(1).copied(), args.get(2).copied());
    let rounds = pieces.unwrap_or(0).div_ceil(u64::from(at_work(memory, blocks.unwrap_or(1))));
    PIECE.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX))
}

/// Multiprocessors with a block; the state has bits for 1024.
fn at_work(memory: &Reach<'_>, blocks: u64) -> u32 {
    let sms = memory.multiprocessors;
    u32::try_from(blocks).unwrap_or(u32::MAX).clamp(1, sms)
}
