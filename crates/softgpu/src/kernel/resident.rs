//! `gpuio_resident(commands, mask, completions, host, device, stride, first, launch, idle,
//! lifetime)`: copies a block for each command that the host writes while the kernel runs.
//!
//! A command is one word: bits 0 to 31 the length in bytes (0 ends the kernel), 32 to 46 the slot,
//! 47 the direction, 48 to 63 the low bits of its number. Command `n` is word `n & mask`. The
//! number of the last completed command goes to `completions`, `launch` to 128 bytes behind it as
//! the kernel's last access. It also exits after `idle` nanoseconds without a command, and after
//! `lifetime` altogether.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::code::{Answer, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use crate::reach::Reach;

/// The time from command to copy: a program that does not wait for the completion sees old bytes.
const COPY_DELAY: Duration = Duration::from_micros(20);

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[commands, mask, completions, host, device, stride, first, launch, idle, lifetime] = args
    else {
        return Err(ILLEGAL_ADDRESS);
    };
    let began = Instant::now();
    let mut number = first;
    loop {
        let at = commands.wrapping_add((number & mask).wrapping_mul(8));
        let mut since = None;
        // Checked also while commands never pause.
        let is_expired = number & 63 == 0 && began.elapsed() > Duration::from_nanos(lifetime);
        let command = loop {
            if is_expired {
                break 0;
            }
            let command = word(memory, at, |word| word.load(Ordering::Acquire))?;
            if command >> 48 == number & 0xffff {
                break command;
            }
            let since = *since.get_or_insert_with(Instant::now);
            let is_over = |from: Instant, most| from.elapsed() > Duration::from_nanos(most);
            if is_over(since, idle) || is_over(began, lifetime) {
                break 0;
            }
            std::thread::sleep(Duration::from_micros(1));
        };
        let len = command & 0xffff_ffff;
        if len == 0 {
            let exited = completions.wrapping_add(128);
            return word(memory, exited, |word| word.store(launch, Ordering::Release));
        }
        let skip = (command >> 32 & 0x7fff).wrapping_mul(stride);
        let (near, far) = (device.wrapping_add(skip), host.wrapping_add(skip));
        let out = command >> 47 & 1 == 1;
        std::thread::sleep(COPY_DELAY);
        let (to, from) = if out { (far, near) } else { (near, far) };
        copy(memory, to, from, len)?;
        word(memory, completions, |word| word.store(number, Ordering::Release))?;
        number += 1;
    }
}

/// Works on the word at an address that the device reaches.
pub(super) fn word<T>(
    memory: &Reach<'_>,
    at: u64,
    work: impl FnOnce(&AtomicU64) -> T,
) -> Answer<T> {
    if !at.is_multiple_of(8) {
        return Err(MISALIGNED_ADDRESS);
    }
    let range = memory.on_device(at, 8).map_err(|_| ILLEGAL_ADDRESS)?;
    // SAFETY: 8 bytes that were just looked up, kept by the share in `range` or by the caller of
    // the driver; aligned, since a range has its address's alignment up to 512. The host's accesses
    // are atomic by the kernel's contract.
    let word = unsafe { AtomicU64::from_ptr(range.at.cast()) };
    Ok(work(word))
}

/// Copies one block, between addresses that the device reaches.
pub(super) fn copy(memory: &Reach<'_>, to: u64, from: u64, len: u64) -> Answer<()> {
    let from = memory.on_device(from, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let to = memory.on_device(to, len).map_err(|_| ILLEGAL_ADDRESS)?;
    let len = usize::try_from(len).map_err(|_| ILLEGAL_ADDRESS)?;
    to.copy_from(&from, len)
}
