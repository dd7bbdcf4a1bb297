//! `gpuio_resident_copy(slots, shared, count, blocks, started, stream, previous, launch, idle,
//! lifetime, lead)`: polls `count` command slots, executes each command that the host writes there
//! while the kernel runs, and writes its completion.
//!
//! A slot has 256 bytes. It begins with the words of a command: source, destination and length,
//! each of 48 bits, with the low 16 bits of the command's number above them. With the highest bit
//! of the length set, the rest of it counts the entries of a list at the source, of 32 bytes each,
//! whose first words are source, destination and length of a block. At byte 128 the kernel writes
//! the number of the last completed command. At 144 it writes `launch` when it begins, and at 152
//! `lead` nanoseconds before the end of `lifetime`. At 136 it writes four times `launch` when it
//! leaves the slot, plus the reason: 0 if no command came for `idle`, 1 after `lifetime`
//! nanoseconds, 2 if other kernels are on the device, 3 if the word behind the command is not below
//! `launch`.
//!
//! `shared` has words for the blocks of real hardware. Here one thread polls all slots, from the
//! last to the first. The previous launch may still have the first `previous` slots: each is taken
//! over when the word at `shared + 64`, 16 bytes for each slot, says that it was left. The word
//! behind it is the number of the slot's last completed command then.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::others_run;
use super::resident::{copy, word};
use crate::code::{Answer, ILLEGAL_ADDRESS};
use crate::reach::Reach;

/// Bytes of a slot, and the offsets of its words.
const SLOT_LEN: u64 = 256;
const COMPLETED: u64 = 128;
const EXITED: u64 = 136;
const ENTERED: u64 = 144;
const ANNOUNCED: u64 = 152;
/// Bits of a value in a command's word, below the number.
const BITS: u32 = 48;
/// Flag in a command's length: the length counts the entries of a list.
const LISTED: u64 = 1 << 47;
/// Bytes of an entry.
const ENTRY: u64 = 32;
/// The time from command to copy: a program that does not wait for the completion sees old bytes.
const COPY_DELAY: Duration = Duration::from_micros(5);

/// A slot, the address of the word with the launch that has left it, and the number of the next
/// command.
struct CommandSlot {
    at: u64,
    left: u64,
    number: u64,
}

/// Offset, behind the command: launches up to this number must exit.
const EXIT_UP_TO: u64 = 24;
/// Offset in `shared`: for each slot the last launch that has left it, and behind that the number
/// of the last command that was completed then.
const SLOT_EXITED: u64 = 64;
const SLOT_EXITED_LEN: u64 = 16;
const NUMBER: u64 = 8;
/// Why a launch exits.
const IDLE: u64 = 0;
const EXPIRED: u64 = 1;
const GPU_FULL: u64 = 2;
const REQUESTED: u64 = 3;

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[page, shared, count, blocks, _, _, previous, launch, idle, lifetime, lead] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    if count > 64 || blocks > count || count > blocks * 8 {
        return Err(ILLEGAL_ADDRESS);
    }
    memory.on_device(shared, SLOT_EXITED + 64 * SLOT_EXITED_LEN)?;
    let began = Instant::now();
    let has_passed = |from: Instant, most| from.elapsed() > Duration::from_nanos(most);
    let mut slots = take_over(memory, (page, shared, count), previous, launch)?;
    // Real blocks find this out when they begin, too.
    let gpu_is_full = others_run();
    let (mut last, mut announced) = (Instant::now(), false);
    loop {
        let exit_up_to =
            word(memory, page.wrapping_add(EXIT_UP_TO), |word| word.load(Ordering::Acquire))?;
        let reason = match () {
            () if exit_up_to >= launch => Some(REQUESTED),
            () if gpu_is_full => Some(GPU_FULL),
            () if has_passed(began, lifetime) => Some(EXPIRED),
            () if has_passed(last, idle) => Some(IDLE),
            () => None,
        };
        if let Some(reason) = reason {
            for slot in &slots {
                let (gone, left) = (slot.at.wrapping_add(EXITED), launch << 2 | reason);
                word(memory, gone, |word| word.store(left, Ordering::Release))?;
                let completed = slot.number - 1;
                word(memory, slot.left + NUMBER, |word| word.store(completed, Ordering::Relaxed))?;
                word(memory, slot.left, |word| word.store(launch, Ordering::Release))?;
            }
            return Ok(());
        }
        if !announced && has_passed(began, lifetime.saturating_sub(lead)) {
            announced = true;
            for slot in &slots {
                let soon = slot.at.wrapping_add(ANNOUNCED);
                word(memory, soon, |word| word.store(launch, Ordering::Release))?;
            }
        }
        let mut found = Vec::new();
        for slot in &mut slots {
            if let Some(command) = read(memory, slot)? {
                found.push((slot, command));
            }
        }
        if found.is_empty() {
            std::thread::sleep(Duration::from_micros(1));
            continue;
        }
        std::thread::sleep(COPY_DELAY);
        for (slot, [src, dst, len]) in found {
            if len & LISTED != 0 {
                copy_list(memory, src, len & !LISTED)?;
            } else if len > 0 {
                copy(memory, dst, src, len)?;
            }
            let (number, completed) = (slot.number, slot.at.wrapping_add(COMPLETED));
            word(memory, completed, |word| word.store(number, Ordering::Release))?;
            slot.number += 1;
        }
        last = Instant::now();
    }
}

/// Enters the slots, and waits until the previous launch has left each.
fn take_over(
    memory: &Reach<'_>,
    (page, shared, count): (u64, u64, u64),
    previous: u64,
    launch: u64,
) -> Answer<Vec<CommandSlot>> {
    for slot in 0..count {
        let entered = page.wrapping_add(slot * SLOT_LEN + ENTERED);
        word(memory, entered, |word| word.store(launch, Ordering::SeqCst))?;
    }
    fence(Ordering::SeqCst);
    let mut slots = Vec::new();
    for slot in (0..count).rev() {
        let at = page.wrapping_add(slot * SLOT_LEN);
        let left = shared + SLOT_EXITED + slot * SLOT_EXITED_LEN;
        let was_left = || word(memory, left, |word| word.load(Ordering::Acquire) + 1 >= launch);
        while slot < previous && !was_left()? {
            std::thread::sleep(Duration::from_micros(1));
        }
        let completed = word(memory, left + NUMBER, |word| word.load(Ordering::Relaxed))?;
        slots.push(CommandSlot { at, left, number: completed + 1 });
    }
    Ok(slots)
}

fn copy_list(memory: &Reach<'_>, list: u64, count: u64) -> Answer<()> {
    if !list.is_multiple_of(16) {
        return Err(ILLEGAL_ADDRESS);
    }
    for entry in (0..count).map(|number| list.wrapping_add(number * ENTRY)) {
        let at =
            |offset| word(memory, entry.wrapping_add(offset), |word| word.load(Ordering::Relaxed));
        let (src, dst, len) = (at(0)?, at(8)?, at(16)?);
        if len > 0 {
            copy(memory, dst, src, len)?;
        }
    }
    Ok(())
}

/// The next command of the slot, if it is there.
fn read(memory: &Reach<'_>, slot: &CommandSlot) -> Answer<Option<[u64; 3]>> {
    let mut command = [0; 3];
    for (at, value) in (0..).zip(&mut command) {
        let found =
            word(memory, slot.at.wrapping_add(at * 8), |word| word.load(Ordering::Acquire))?;
        if found >> BITS != slot.number & 0xffff {
            return Ok(None);
        }
        *value = found & ((1 << BITS) - 1);
    }
    Ok(Some(command))
}
