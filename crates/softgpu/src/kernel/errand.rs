//! `gpuio_errand(desks, shared, count, launch, idle, stay)`: at each of `count` desks moves a block
//! for each letter that the host writes while the kernel runs, and answers.
//!
//! A desk has 256 bytes. From its beginning on stand the words of a letter: source, destination and
//! length, each of 48 bits, and above them the low 16 bits of the letter's number. With the highest
//! bit of the length the rest of it counts entries of a list at the source, of 32 bytes each, whose
//! first words are source, destination and length of a block. At byte 128 the
//! kernel answers the number of the last letter that it worked off, and begins with the next; at
//! 144 it writes `launch` when it comes, at 136, as its last access, twice `launch`, with the
//! lowest bit set if it stayed for `stay` nanoseconds, and not if no letter came for `idle`.
//!
//! `shared` has two words for the blocks of real hardware. Here one thread goes round all desks,
//! from the last to the first.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

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

/// A desk and the number of the letter that it waits for.
struct Desk {
    at: u64,
    number: u64,
}

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[desks, shared, count, launch, idle, stay] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    memory.on_device(shared, 16)?;
    let began = Instant::now();
    let is_over = |from: Instant, most| from.elapsed() > Duration::from_nanos(most);
    let ats = (0..count).rev().map(|desk| desks.wrapping_add(desk * DESK));
    let mut desks = Vec::new();
    for at in ats {
        word(memory, at.wrapping_add(HERE), |word| word.store(launch, Ordering::SeqCst))?;
        fence(Ordering::SeqCst);
        let answered = word(memory, at.wrapping_add(ANSWER), |word| word.load(Ordering::Acquire))?;
        desks.push(Desk { at, number: answered + 1 });
    }
    let mut last = Instant::now();
    loop {
        let was_old = is_over(began, stay);
        if was_old || is_over(last, idle) {
            let left = launch << 1 | u64::from(was_old);
            for desk in &desks {
                let gone = desk.at.wrapping_add(GONE);
                word(memory, gone, |word| word.store(left, Ordering::Release))?;
            }
            return Ok(());
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
