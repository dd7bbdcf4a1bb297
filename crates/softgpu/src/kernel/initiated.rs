//! `gpuio_initiated(description, state, first, completed, launch, idle, lifetime)`: starts the I/O
//! of files by itself, through an io_uring ring in memory of the program.
//!
//! The description has 20 words, each an address or a number: the ring's tail of entries, head and
//! tail of completions, its entries and completions, the masks of both, the first buffer as the
//! device and as the operating system know it, the length and the number of buffers; then the
//! destination of entry 0, the bytes to the next one's, commands, results, the word that counts
//! results, the two words that an exit writes; and the first byte, the blocks' length and the
//! number of the blocks of a chain, which is none where that is 0.
//!
//! A command is three words with the low 16 bits of its number on top: length (0 ends the kernel),
//! entry in bits 32 to 37, direction in bit 38 (1: a write); the byte in the file; the first byte
//! in the buffer, the file's number in bits 32 to 47. A result is two: entry and bytes moved or a
//! negative error number; time of the I/O and time of the copy, nanoseconds; a third is the byte in
//! the file. In a chain one I/O is in flight, and the block that a command names is moved on by the
//! first word of the block before, unless the command is for the rest of one. The kernel exits
//! after `idle` nanoseconds with nothing in flight, and after `lifetime` in any case: `state` has
//! what the next launch needs of I/O in flight, and behind that the chain's word.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::resident::{copy, word};
use crate::code::{Answer, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS};
use crate::reach::Reach;

const WORDS: usize = 20;
/// Commands, and results, in their memory.
const COMMANDS: u64 = 128;
/// Entries; the bytes of what is kept of each, and of a result.
const ENTRIES: u64 = 64;
const KEPT: u64 = 32;
const RESULT: u64 = 32;
/// The longest time that a result holds.
const LONGEST: u64 = 0xffff_ffff;
/// Operations of io_uring with registered buffers (`linux/io_uring.h`).
const READ_FIXED: u64 = 4;
const WRITE_FIXED: u64 = 5;
/// The time from completion to copy: a program that does not wait for the result sees old bytes.
const COPY_DELAY: Duration = Duration::from_micros(20);

/// The description of a launch.
struct Ring<'a> {
    memory: &'a Reach<'a>,
    words: [u64; WORDS],
    tail: u32,
    head: u32,
}

struct Command {
    len: u64,
    entry: u64,
    is_write: bool,
    offset: u64,
    skip: u64,
    file: u64,
}

pub(super) fn run(memory: &Reach<'_>, args: &[u64]) -> Answer<()> {
    let &[description, state, first, completed, launch, idle, lifetime] = args else {
        return Err(ILLEGAL_ADDRESS);
    };
    let mut words = [0; WORDS];
    for (at, value) in (0..).zip(&mut words) {
        *value = word(memory, description + at * 8, |word| word.load(Ordering::Relaxed))?;
    }
    let mut ring = Ring { memory, words, tail: 0, head: 0 };
    ring.tail = ring.half(0, 0, |word| word.load(Ordering::Relaxed))?;
    ring.head = ring.half(1, 0, |word| word.load(Ordering::Relaxed))?;
    let (mut next, mut completed) = (first, completed);
    let began = Instant::now();
    let mut last_work = began;
    loop {
        let one = ring.words[19] != 0;
        let may = |command: &Command| !one || command.len == 0 || next - 1 == completed;
        let command = ring.command(next)?.filter(may);
        let stops = command.as_ref().is_some_and(|command| command.len == 0);
        if let Some(command) = command.filter(|_| !stops) {
            ring.start(state, &ring.chained(state, command)?)?;
            next += 1;
            last_work = Instant::now();
        }
        let ended = ring.completions(state, &mut completed)?;
        let in_flight = next - 1 - completed;
        if ended || in_flight > 0 {
            last_work = Instant::now();
        } else {
            std::thread::sleep(Duration::from_micros(1));
        }
        let is_over = |from: Instant, most| from.elapsed() > Duration::from_nanos(most);
        if stops || is_over(last_work, idle) || is_over(began, lifetime) {
            let exited = ring.words[16];
            word(memory, exited, |word| word.store(next, Ordering::Release))?;
            return word(memory, exited + 8, |word| word.store(launch, Ordering::Release));
        }
    }
}

impl Ring<'_> {
    /// Works on a word of 32 bits: of the description's address number `which`, and so many bytes
    /// on.
    fn half<T>(&self, which: usize, on: u64, work: impl FnOnce(&AtomicU32) -> T) -> Answer<T> {
        let at = self.words[which].wrapping_add(on);
        if !at.is_multiple_of(4) {
            return Err(MISALIGNED_ADDRESS);
        }
        let range = self.memory.on_device(at, 4).map_err(|_| ILLEGAL_ADDRESS)?;
        // SAFETY: 4 bytes that were just looked up, aligned; the operating system and the program
        // access them as a whole.
        let word = unsafe { AtomicU32::from_ptr(range.at.cast()) };
        Ok(work(word))
    }

    /// The command of this number, if it is there.
    fn command(&self, number: u64) -> Answer<Option<Command>> {
        let at = self.words[13].wrapping_add(number % COMMANDS * 32);
        let mut found = [0; 3];
        for (place, value) in (0..).zip(&mut found) {
            *value = word(self.memory, at + place * 8, |word| word.load(Ordering::Acquire))?;
            if *value >> 48 != number & 0xffff {
                return Ok(None);
            }
        }
        let [first, second, third] = found;
        Ok(Some(Command {
            len: first & 0xffff_ffff,
            entry: first >> 32 & 0x3f,
            is_write: first >> 38 & 1 == 1,
            offset: second & 0xffff_ffff_ffff,
            skip: third & 0xffff_ffff,
            file: third >> 32 & 0xffff,
        }))
    }

    /// The command, with the byte that the block before decides where it is of a chain.
    fn chained(&self, state: u64, command: Command) -> Answer<Command> {
        let [begin, len, count] = [self.words[17], self.words[18], self.words[19]];
        if count == 0 || command.skip > 0 {
            return Ok(command);
        }
        let before = state.wrapping_add(ENTRIES * KEPT);
        let moved = word(self.memory, before, |word| word.load(Ordering::Relaxed))?;
        let block = command.offset.wrapping_sub(begin) / len;
        Ok(Command { offset: begin + block.wrapping_add(moved) % count * len, ..command })
    }

    /// Where an entry's bytes are, from `skip` on: in the ring's buffer and in the destination.
    fn places(&self, entry: u64, skip: u64) -> (u64, u64) {
        let buffer = self.words[7].wrapping_add(entry.wrapping_mul(self.words[9]));
        let destination = self.words[11].wrapping_add(entry.wrapping_mul(self.words[12]));
        (buffer.wrapping_add(skip), destination.wrapping_add(skip))
    }

    /// Writes the entry of a command, a write's bytes first, and makes it known.
    fn start(&mut self, state: u64, command: &Command) -> Answer<()> {
        let Command { len, entry, is_write, offset, skip, file } = *command;
        let (buffer, destination) = self.places(entry, skip);
        let began = now();
        if is_write {
            std::thread::sleep(COPY_DELAY);
            copy(self.memory, buffer, destination, len)?;
        }
        let published = now();
        let copied = if is_write { (published - began).min(LONGEST) } else { 0 };
        let known = [published, skip | copied << 32, u64::from(!is_write), offset];
        for (at, value) in (0..).zip(known) {
            let place = state.wrapping_add(entry * KEPT + at * 8);
            word(self.memory, place, |word| word.store(value, Ordering::Relaxed))?;
        }
        let operation = if is_write { WRITE_FIXED } else { READ_FIXED };
        let there = self.words[8].wrapping_add(entry.wrapping_mul(self.words[9]) + skip);
        let words = [operation | 1 << 8 | file << 32, offset, there, len, entry, entry, 0, 0];
        let at = self.words[3].wrapping_add((u64::from(self.tail) & self.words[5]) * 64);
        for (place, value) in (0..).zip(words) {
            word(self.memory, at + place * 8, |word| word.store(value, Ordering::Relaxed))?;
        }
        self.tail = self.tail.wrapping_add(1);
        self.half(0, 0, |word| word.store(self.tail, Ordering::Release))
    }

    /// Takes the completions that there are; whether there was one.
    fn completions(&mut self, state: u64, completed: &mut u64) -> Answer<bool> {
        let there = self.half(2, 0, |word| word.load(Ordering::Acquire))?;
        let any = there != self.head;
        while self.head != there {
            let at = (u64::from(self.head) & self.words[6]) * 16;
            let answer = self.words[4].wrapping_add(at);
            let entry = word(self.memory, answer, |word| word.load(Ordering::Relaxed))? & 0x3f;
            let moved = self.half(4, at + 8, |word| word.load(Ordering::Relaxed))?;
            let place = state.wrapping_add(entry * KEPT);
            let known = |at| word(self.memory, place + at, |word| word.load(Ordering::Relaxed));
            let (published, second, is_read) = (known(0)?, known(8)?, known(16)? == 1);
            let file_ns = (now() - published).min(LONGEST);
            let mut gpu_ns = second >> 32;
            if is_read && moved.cast_signed() > 0 {
                let (buffer, destination) = self.places(entry, second & 0xffff_ffff);
                let began = now();
                std::thread::sleep(COPY_DELAY);
                copy(self.memory, destination, buffer, u64::from(moved))?;
                gpu_ns = (now() - began).min(LONGEST);
                if second & 0xffff_ffff == 0 {
                    let first =
                        word(self.memory, destination, |word| word.load(Ordering::Relaxed))?;
                    let chain = state.wrapping_add(ENTRIES * KEPT);
                    word(self.memory, chain, |word| word.store(first, Ordering::Relaxed))?;
                }
            }
            let result = self.words[14].wrapping_add(*completed % COMMANDS * RESULT);
            let words = [entry | u64::from(moved) << 32, file_ns | gpu_ns << 32, known(24)?];
            for (place, value) in (0..).zip(words) {
                word(self.memory, result + place * 8, |word| word.store(value, Ordering::Relaxed))?;
            }
            *completed += 1;
            self.head = self.head.wrapping_add(1);
            self.half(1, 0, |word| word.store(self.head, Ordering::Release))?;
            word(self.memory, self.words[15], |word| word.store(*completed, Ordering::Release))?;
        }
        Ok(any)
    }
}

/// The device's clock, nanoseconds.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
