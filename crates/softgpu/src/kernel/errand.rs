//! `gpuio_errand(desks, shared, count, blocks, arrived, half, before, launch, idle, stay, lead)`:
//! at each of `count` desks moves a block for each letter that the host writes while the kernel
//! runs, and answers.
//!
//! A desk has 256 bytes. From its beginning on stand the words of a letter: source, destination and
//! length, each of 48 bits, and above them the low 16 bits of the letter's number. With the highest
//! bit of the length the rest of it counts entries of a list at the source, of 32 bytes each, whose
//! first words are source, destination and length of a block. At byte 128 the
//! kernel answers the number of the last letter that it worked off, and begins with the next. At
//! 144 it writes twice `launch` when it comes to the desk, with the lowest bit set from `lead`
//! nanoseconds before the end of `stay` on. At 136 it writes four times `launch` when it leaves the
//! desk, and why: 0 if no letter came for `idle`, 1 if it stayed for `stay` nanoseconds, 2 if other
//! kernels are on the device, 3 if the word behind the letter is not below `launch`.
//!
//! `shared` has words for the blocks of real hardware. Here one thread goes round all desks, from
//! the last to the first. The launch before may still have the first `before` desks: each is taken
//! over when the word at `shared + 64`, 8 bytes for each desk, says that it was left.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::others_run;
use super::resident::{copy, word};
use crate::code::{Answer, ILLEGAL_ADDRESS};
use crate::reach::Reach;

/// Bytes of a desk, and where its words lie.
const DESK: u64 = 256;
const ANSWER: u64 = 128;
const GONE: u64 = 136;
const HERE: u64 = 144;
/// Bits of a letter's word below its number.
const BITS: u32 = 48;
/// In a letter's length: it counts the entries of a list.
const LISTED: u64 = 1 << 47;
/// Bytes of an entry.
const ENTRY: u64 = 32;
/// From letter to copy: a program that does not wait for the answer is to see old bytes.
const LATE: Duration = Duration::from_micros(5);

/// A desk, the word that says which launch has left it, and the number of the letter that it waits
/// for.
struct Desk {
    at: u64,
    left: u64,
    number: u64,
}

/// Behind a letter: launches up to this number shall leave.
const LEAVE: u64 = 24;
/// In `shared`: the last launch that has left each desk.
const LEFT: u64 = 64;
/// Why a launch leaves.
const IDLE: u64 = 0;
const OLD: u64 = 1;
const CROWDED: u64 = 2;
const TOLD: u64 = 3;

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[page, shared, count, blocks, _, _, before, launch, idle, stay, lead] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    if count > 64 || blocks > count || count > blocks * 8 {
        return Err(ILLEGAL_ADDRESS);
    }
    memory.on_device(shared, LEFT + 64 * 8)?;
    let began = Instant::now();
    let is_over = |from: Instant, most| from.elapsed() > Duration::from_nanos(most);
    let mut desks = take_over(memory, (page, shared, count), before, launch)?;
    // Real blocks find that out when they begin, too.
    let is_crowded = others_run();
    let (mut last, mut announced) = (Instant::now(), false);
    loop {
        let told = word(memory, page.wrapping_add(LEAVE), |word| word.load(Ordering::Acquire))?;
        let why = match () {
            () if told >= launch => Some(TOLD),
            () if is_crowded => Some(CROWDED),
            () if is_over(began, stay) => Some(OLD),
            () if is_over(last, idle) => Some(IDLE),
            () => None,
        };
        if let Some(why) = why {
            for desk in &desks {
                let (gone, left) = (desk.at.wrapping_add(GONE), launch << 2 | why);
                word(memory, gone, |word| word.store(left, Ordering::Release))?;
                word(memory, desk.left, |word| word.store(launch, Ordering::Release))?;
            }
            return Ok(());
        }
        if !announced && is_over(began, stay.saturating_sub(lead)) {
            announced = true;
            for desk in &desks {
                let here = desk.at.wrapping_add(HERE);
                word(memory, here, |word| word.store(launch << 1 | 1, Ordering::SeqCst))?;
            }
        }
        let mut found = Vec::new();
        for desk in &mut desks {
            if let Some(letter) = read(memory, desk)? {
                found.push((desk, letter));
            }
        }
        if found.is_empty() {
            std::thread::sleep(Duration::from_micros(1));
            continue;
        }
        std::thread::sleep(LATE);
        for (desk, [src, dst, len]) in found {
            if len & LISTED != 0 {
                copy_list(memory, src, len & !LISTED)?;
            } else if len > 0 {
                copy(memory, dst, src, len)?;
            }
            let (number, answer) = (desk.number, desk.at.wrapping_add(ANSWER));
            word(memory, answer, |word| word.store(number, Ordering::Release))?;
            desk.number += 1;
        }
        last = Instant::now();
    }
}

/// Comes to the desks, each once the launch before has left it.
fn take_over(
    memory: &Reach<'_>,
    (page, shared, count): (u64, u64, u64),
    before: u64,
    launch: u64,
) -> Answer<Vec<Desk>> {
    let mut desks = Vec::new();
    for desk in (0..count).rev() {
        let at = page.wrapping_add(desk * DESK);
        let left = shared + LEFT + desk * 8;
        let is_left = || word(memory, left, |word| word.load(Ordering::Acquire) + 1 >= launch);
        while desk < before && !is_left()? {
            std::thread::sleep(Duration::from_micros(1));
        }
        word(memory, at.wrapping_add(HERE), |word| word.store(launch << 1, Ordering::SeqCst))?;
        fence(Ordering::SeqCst);
        let answered = word(memory, at.wrapping_add(ANSWER), |word| word.load(Ordering::Acquire))?;
        desks.push(Desk { at, left, number: answered + 1 });
    }
    Ok(desks)
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

/// The letter that the desk waits for, if it is there.
fn read(memory: &Reach<'_>, desk: &Desk) -> Answer<Option<[u64; 3]>> {
    let mut letter = [0; 3];
    for (at, value) in (0..).zip(&mut letter) {
        let found =
            word(memory, desk.at.wrapping_add(at * 8), |word| word.load(Ordering::Acquire))?;
        if found >> BITS != desk.number & 0xffff {
            return Ok(None);
        }
        *value = found & ((1 << BITS) - 1);
    }
    Ok(Some(letter))
}
