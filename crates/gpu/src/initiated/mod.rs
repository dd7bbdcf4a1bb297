//! File I/O that a kernel starts by itself, through io_uring.
//!
//! The device writes entries into a ring in page-locked memory of ours, and a thread of the
//! operating system (`SQPOLL`) takes and serves them, from any file system. The device polls the
//! completions and moves the bytes between the ring's buffers and its memory. No kernel module, no
//! root, no thread of ours for a block. It needs Linux 6.6: the ring in our memory and entries in
//! their order. `kernels/gpuio_device.cuh` has the ring's protocol for any kernel;
//! `kernels/initiated.cu` is the kernel of `bench`, which takes the blocks from commands of the
//! host; this module makes the ring ([`Ring::new`]) and gives the commands. [`Rings`] are for the
//! kernels of a program, which decide by themselves what they read and write.
//!
//! **Chains.** With [`Chain`] the device starts one I/O at a time, and the bytes of each decide
//! about the next one's offset: the block that a command names is moved on by the first word of the
//! block before, modulo the chain's blocks. The host has commands ready, and learns the offset with
//! the result. This is the load of a search in a graph or a list on the GPU.
//!
//! **Memory.** Six parts, all registered with the driver: a page with the ring's words and
//! completions; a page with [`ENTRIES`] entries; a control page (a description of all this for the
//! device, the count of results, what a launch left); a page of commands; one of results; a buffer
//! for each entry, registered with the ring. Each part of the ring is one page, for kernels that
//! take no more. The ring holds the pages itself: what is in flight after a teardown never writes
//! into memory that has another owner.
//!
//! **Order.** A command is three words, each with the low bits of its number, so that it is there
//! as a whole or not at all. The device stores an entry, then the tail with release at system
//! scope; the kernel's thread loads the tail with acquire. The other way the same: completion, then
//! tail with release; the device loads with acquire before it looks at the completion and the
//! bytes. Results for the host are stored before their count, again release and acquire. Each word
//! has one writer.
//!
//! **Limits.** At most one command in flight for an entry, so at most [`ENTRIES`] I/Os. The ring
//! has as many entries and twice as many completions, so neither can be full, also when the device
//! takes none for a while. [`MAX_FILES`] files, 2^48 bytes in each.
//!
//! **Progress.** The operating system's thread sleeps after 50 ms without an entry, and the device
//! can't wake it. The owner of a [`Ring`] does, in [`Ring::take`]: it looks at the flag while
//! anything is in flight. The owner must therefore call it until it has all results; while it does
//! something else, I/Os may rest and none is lost.
//!
//! **The kernel's end.** It exits when it had nothing to do for `IDLE`, and after `LIFETIME` in any
//! case, also with I/O in flight: what it knows of that is in device memory, and the next launch
//! goes on with it. So whoever waits for the whole device waits no longer than that, and an I/O
//! that never ends keeps no kernel alive. Where the driver reports a failure, nothing that was in
//! flight has a result; the ring is emptied by the host, and goes on if the device does.
//!
//! **Results.** Bytes moved, which may be fewer than wanted (the end of a file, or a signal), 0 at
//! the end of a file, or an error number of the I/O. Nothing is retried here.
//!
//! **Teardown.** The kernel is ended; then I/O in flight is waited for, `DRAIN` at most; then the
//! ring is closed, which ends the operating system's thread. A write that had no result by then may
//! or may not be in its file.
//!
//! **After `fork`** the child has none of the memory (`MADV_DONTFORK`), and must use no ring of its
//! parent. While it holds the descriptor (until `exec`, or its end) the parent's ring stays, with
//! its locked memory.

mod refusal;
mod rings;
mod uring;
mod waking;

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuio_base::catalog::{MemoryKind, RING_ENTRIES, RingAnswer};

use crate::DevPtr;
use crate::code;
use crate::context::Context;
use crate::error::GpuError;
use crate::locked::{Locked, PageSize};
use crate::memory::DeviceBuf;
use crate::module::{Arg, Kernel, Module};
use crate::stream::Stream;
pub use refusal::RingError;
pub use rings::{DEVICE_HEADER, MAX_BUFFERS, MAX_RINGS, Rings, RingsRequest};
use uring::Uring;
use waking::Polled;

/// Entries of a ring, and the most I/Os in flight: as many as a page holds.
pub const ENTRIES: u32 = RING_ENTRIES;
/// The most files of a ring: a command has 16 bits for one.
pub const MAX_FILES: usize = 1 << 16;
/// Bytes of a file that commands reach: 48 bits.
const OFFSETS: u64 = 1 << 48;
/// The longest buffer in bytes: io_uring registers no longer one.
pub const MAX_LEN: u64 = 1 << 30;

/// The kernel exits after so long without anything to do.
const IDLE: Duration = Duration::from_millis(2);
/// The kernel exits after so long in any case.
const LIFETIME: Duration = crate::resident::LIFETIME;
/// How long a teardown waits for I/O in flight.
const DRAIN: Duration = Duration::from_secs(30);
/// Threads of the kernel's one block.
const THREADS: u32 = 512;
/// Commands, and results, that their memory holds: more than can be in flight, and one for the end.
const COMMANDS: u64 = 128;
/// Bytes of a command and of a result.
const COMMAND_LEN: usize = 32;
const RESULT_LEN: usize = 32;
/// Bytes of what a launch leaves for the next, in device memory.
const STATE_LEN: usize = ENTRIES as usize * 32 + 16;
/// Places in the control page, in bytes.
const COUNT: usize = 512;
const EXITED: usize = 640;
/// Polls without a result before the driver is asked whether the kernel failed, and before a look
/// at whether the operating system's thread sleeps.
const POLLS_PER_QUERY: u32 = 20_000;
const POLLS_PER_WAKE: u32 = 16;
/// How often, and with what pauses, the exit word is polled when the driver does not report whether
/// the kernel ended: for more than three times [`LIFETIME`].
const EXIT_POLLS: u32 = 30_000;
const EXIT_PAUSE: Duration = Duration::from_micros(50);

/// The direction of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file to the device.
    Read,
    /// From the device to the file.
    Write,
}

/// The needs of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The files, by descriptors that are open as long as the ring.
    pub files: &'a [RawFd],
    /// Entries that are used: 1 to [`ENTRIES`].
    pub entries: u32,
    /// Bytes of an entry's buffer: a multiple of 4096, at most [`MAX_LEN`].
    pub len: u64,
    /// Entry 0's part of the destination, in memory that a kernel reaches.
    pub destination: DevPtr,
    /// Bytes from there to the next entry's part.
    pub stride: u64,
    /// The blocks of a chain, where the I/Os are one.
    pub chain: Option<Chain>,
}

/// Blocks of a file of which each decides which is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// The first byte.
    pub begin: u64,
    /// Bytes of a block, 8 at least.
    pub len: u32,
    /// How many there are, at least 1.
    pub count: u64,
}

/// An I/O for the device to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The entry, which has none in flight.
    pub entry: u32,
    /// Its direction.
    pub direction: Direction,
    /// The file, by its place in [`Request::files`].
    pub file: u32,
    /// The first byte in the file.
    pub offset: u64,
    /// The first byte in the entry's part of the destination.
    pub skip: u32,
    /// Bytes to move.
    pub len: u32,
}

/// The result of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its entry, which is free again.
    pub entry: u32,
    /// Bytes moved, or the error number.
    pub result: Result<u32, i32>,
    /// From the entry's writing until its completion was seen, by the device's clock, nanoseconds;
    /// at most 4.29 s.
    pub file_ns: u32,
    /// The copy between buffer and destination, by the device's clock, nanoseconds.
    pub gpu_ns: u32,
    /// The first byte in the file: the command's, or what a chain made of it.
    pub offset: u64,
}

/// A ring, its buffers, and the kernel that uses it. One thread owns it; the context must be
/// current there.
#[derive(Debug)]
pub struct Ring {
    kernel: Kernel,
    stream: Stream,
    // Closed before its memory goes.
    uring: Uring,
    pages: Locked,
    buffers: Locked,
    state: DeviceBuf,
    page: usize,
    request: (u32, u64),
    /// The numbers of the last submitted command, and of results that were taken.
    submitted: u64,
    taken: u64,
    /// How often the kernel was launched, and whether the last launch may still run.
    launches: u64,
    is_running: bool,
    /// Polls without a result since the last one.
    polls: u32,
    /// Entries that the operating system has completed, by its own count.
    completed: u64,
    last_completed: u32,
    /// I/O that did not end in time holds entries of the ring.
    is_broken: bool,
}

/// Whether a ring can be made on this machine, by this process; why not, and the remedy.
///
/// # Errors
/// The kernel's refusal.
pub fn available() -> Result<(), RingError> {
    uring::tried().map_err(|error| RingError::setup(&error))
}

/// The kernel's answer to who wants such a ring, on this machine and of this process: it is tried.
pub fn answer() -> RingAnswer {
    uring::tried().map_or_else(|error| refusal::answer(&error), |()| RingAnswer::Made)
}

impl Ring {
    /// Makes the ring and loads the kernel, which is launched with the first command.
    ///
    /// # Errors
    /// io_uring's refusal with its remedy, the driver's, or a request beyond the limits.
    pub fn new(context: &Context, request: &Request<'_>) -> Result<Self, RingError> {
        check(request)?;
        let page = rustix::param::page_size();
        let pages = Locked::new(context, 5 * page, PageSize::Plain)?;
        let room = usize::try_from(request.len * u64::from(request.entries)).unwrap_or(usize::MAX);
        let buffers = Locked::new(context, room, PageSize::Plain)?;
        // SAFETY: fresh pages of zeros at a multiple of a page, of which the ring gets the first
        // two; they are unmapped after the ring is closed, by the order of the fields.
        let uring = unsafe { Uring::new(pages.as_ptr(), page, None) };
        let uring = uring.map_err(|error| RingError::setup(&error))?;
        uring.register_files(request.files)?;
        let len = room / request.entries as usize;
        // SAFETY: memory of the ring's own, unmapped after it is closed.
        unsafe { uring.register_buffers(buffers.as_ptr(), len, request.entries) }?;
        let kernel = Module::built_in(context, &code::INITIATED)?.kernel(c"gpuio_initiated")?;
        let ring = Self {
            kernel,
            stream: Stream::new(context)?,
            last_completed: uring.completed(),
            uring,
            pages,
            buffers,
            state: DeviceBuf::alloc(context, MemoryKind::Device, STATE_LEN)?,
            page,
            request: (request.entries, request.len),
            submitted: 0,
            taken: 0,
            launches: 0,
            is_running: false,
            polls: 0,
            completed: 0,
            is_broken: false,
        };
        ring.describe(request);
        Ok(ring)
    }

    /// Bytes of host memory: of the ring, and of its buffers.
    pub fn bytes(&self) -> u64 {
        (self.pages.len() + self.buffers.len()) as u64
    }

    /// The operating system's thread that serves the ring, by the kernel's number, where it is
    /// known.
    pub fn thread(&self) -> Option<i32> {
        self.uring.thread()
    }

    /// How often the kernel was launched.
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Commands whose results were not taken yet.
    pub fn in_flight(&self) -> u64 {
        self.submitted - self.taken
    }

    /// Entries of the ring that the operating system had completed, by its own count there, when
    /// results were last taken. The host writes no entry, so the device has started all that I/O.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Gives the device an I/O to start.
    ///
    /// # Errors
    /// The driver refused to launch the kernel: the command is withdrawn. Or I/O of before a
    /// failure has not ended.
    ///
    /// # Panics
    /// An entry that is not there, a block that is empty or does not fit its buffer, a file's
    /// number or byte beyond the limits.
    ///
    /// # Safety
    /// The destination is as [`Request`] says and lives as long as the ring. Until the result was
    /// taken, nothing else writes the entry's bytes on the source side, or uses those of its
    /// destination; and no other command names the entry.
    pub unsafe fn submit(&mut self, command: &Command) -> Result<(), RingError> {
        let Command { entry, direction, file, offset, skip, len } = *command;
        let (entries, room) = self.request;
        assert!(entry < entries, "entry {entry} of {entries}");
        assert!(self.in_flight() < u64::from(entries), "more commands than entries");
        let fits = len > 0 && u64::from(skip) + u64::from(len) <= room;
        assert!(fits, "{len} bytes from {skip} on do not fit a buffer of {room}");
        assert!((file as usize) < MAX_FILES && offset < OFFSETS, "file {file}, byte {offset}");
        if self.is_broken {
            let what = "I/O of before a failure of the GPU has not ended".to_owned();
            return Err(RingError::Request(what));
        }
        let write = u64::from(direction == Direction::Write);
        let first = write << 38 | u64::from(entry) << 32 | u64::from(len);
        self.command([first, offset, u64::from(file) << 32 | u64::from(skip)]);
        if !self.is_running {
            self.launch(self.submitted + 1)?;
        }
        self.submitted += 1;
        Ok(())
    }

    /// Appends what has come to an end, in any order, and wakes the operating system's thread where
    /// it sleeps. Never blocks.
    ///
    /// # Errors
    /// The kernel failed, or could not be launched again, or the ring can't go on: nothing in
    /// flight will have a result, and none is in flight any more.
    pub fn take(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), RingError> {
        if self.collect(outcomes) || self.in_flight() == 0 {
            self.polls = 0;
            return Ok(());
        }
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS_PER_WAKE)
            && let Err(error) = self.uring.wake()
        {
            self.give_up();
            return Err(RingError::kernel_stopped(&error));
        }
        self.check_kernel(outcomes).map_err(|error| {
            self.give_up();
            RingError::Gpu(error)
        })
    }

    /// Takes the results that there are; whether there was one.
    fn collect(&mut self, outcomes: &mut Vec<Outcome>) -> bool {
        let count = self.control(COUNT).load(Ordering::Acquire);
        if count == self.taken {
            return false;
        }
        for number in self.taken..count {
            // At most COMMANDS less one.
            let at = usize::try_from(number % COMMANDS).unwrap_or(0) * RESULT_LEN;
            let load = |on: usize| self.word(4 * self.page + at + on).load(Ordering::Relaxed);
            let (what, times, offset) = (load(0), load(8), load(16));
            let [entry, result] = halves(what);
            let [file_ns, gpu_ns] = halves(times);
            let result = u32::try_from(result.cast_signed()).map_err(|_| -result.cast_signed());
            outcomes.push(Outcome { entry, result, file_ns, gpu_ns, offset });
        }
        self.taken = count;
        let completed = self.uring.completed();
        self.completed += u64::from(completed.wrapping_sub(self.last_completed));
        self.last_completed = completed;
        true
    }

    /// Without a result: checks whether the kernel exited or failed.
    fn check_kernel(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), GpuError> {
        let exited = self.has_exited();
        if !exited && self.polls < POLLS_PER_QUERY {
            return Ok(());
        }
        self.polls = 0;
        let over = if exited { self.stream.sync().map(|()| true) } else { self.stream.query() };
        if !over? {
            return Ok(());
        }
        self.is_running = false;
        self.collect(outcomes);
        if self.in_flight() > 0 {
            let next = self.control(EXITED).load(Ordering::Acquire);
            self.launch(next)?;
        }
        Ok(())
    }

    fn has_exited(&self) -> bool {
        self.control(EXITED + 8).load(Ordering::Acquire) == self.launches
    }

    /// After a failure: nothing is in flight any more, and the ring is empty, or broken.
    fn give_up(&mut self) {
        self.stop();
        self.is_broken |= !self.drain();
        self.uring.discard();
        self.taken = self.submitted;
        // The next results are counted from here.
        self.control(COUNT).store(self.submitted, Ordering::Release);
    }

    /// Ends the kernel, and waits for its end.
    fn stop(&mut self) {
        if !self.is_running {
            return;
        }
        self.is_running = false;
        self.command([0; 3]);
        if self.stream.sync().is_ok() {
            return;
        }
        // The error may be the kernel's failure, which is its end, or a refusal to wait: then the
        // exit word decides. A lost device writes none.
        for _ in 0..EXIT_POLLS {
            if self.has_exited() {
                return;
            }
            std::thread::sleep(EXIT_PAUSE);
        }
    }

    /// Waits for the I/Os in flight, without the device; whether all ended.
    fn drain(&self) -> bool {
        let began = Instant::now();
        while self.uring.unfinished() > 0 {
            if began.elapsed() > DRAIN || self.uring.wake().is_err() {
                return false;
            }
            std::thread::sleep(EXIT_PAUSE);
        }
        true
    }

    fn launch(&mut self, first: u64) -> Result<(), GpuError> {
        let args = [
            Arg::Ptr(self.pages.ptr().byte_add(2 * self.page as u64)),
            Arg::Ptr(self.state.ptr()),
            Arg::U64(first),
            Arg::U64(self.control(COUNT).load(Ordering::Acquire)),
            Arg::U64(self.launches + 1),
            Arg::nanoseconds(IDLE),
            Arg::nanoseconds(LIFETIME),
        ];
        // SAFETY: the types are the kernel's. Pages, buffers and state live until `drop` has seen
        // the kernel's end, and the destination by the promise to `submit`.
        unsafe { self.stream.launch(&self.kernel, 1, THREADS, &args) }?;
        self.launches += 1;
        self.is_running = true;
        Ok(())
    }

    /// Writes the description that the kernel reads; see `Description` in `kernels/initiated.cu`.
    fn describe(&self, request: &Request<'_>) {
        let layout = self.uring.layout();
        let seen = |at: usize| self.pages.ptr().byte_add(at as u64).0;
        let words = [
            seen(layout.sq_tail),
            seen(layout.cq_head),
            seen(layout.cq_tail),
            seen(self.page),
            seen(layout.completions),
            u64::from(layout.entry_mask),
            u64::from(layout.completion_mask),
            self.buffers.ptr().0,
            self.buffers.as_ptr().addr().get() as u64,
            request.len,
            u64::from(request.entries),
            request.destination.0,
            request.stride,
            seen(3 * self.page),
            seen(4 * self.page),
            seen(2 * self.page + COUNT),
            seen(2 * self.page + EXITED),
            request.chain.map_or(0, |chain| chain.begin),
            request.chain.map_or(0, |chain| chain.len.into()),
            request.chain.map_or(0, |chain| chain.count),
        ];
        for (at, word) in words.into_iter().enumerate() {
            self.control(at * 8).store(word, Ordering::Release);
        }
    }

    /// Writes the next command. The word that the device waits for comes last.
    fn command(&self, words: [u64; 3]) {
        let number = self.submitted + 1;
        // At most COMMANDS less one.
        let at = 3 * self.page + usize::try_from(number % COMMANDS).unwrap_or(0) * COMMAND_LEN;
        for (place, word) in words.into_iter().enumerate().rev() {
            self.word(at + place * 8).store(number << 48 | word, Ordering::Release);
        }
    }

    /// A word of the control page.
    fn control(&self, at: usize) -> &AtomicU64 {
        self.word(2 * self.page + at)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at >= 2 * self.page && at + 8 <= self.pages.len(), "byte {at} of the pages");
        // SAFETY: inside the pages by the assertion.
        let ptr = unsafe { self.pages.as_ptr().add(at) };
        // SAFETY: a multiple of 8 from a page's start, behind the two that are the ring's, live as
        // long as `self`; on this side every access is atomic, and the kernel's are single words.
        unsafe { AtomicU64::from_ptr(ptr.as_ptr().cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.stop();
        self.drain();
    }
}

fn check(request: &Request<'_>) -> Result<(), RingError> {
    let Request { files, entries, len, chain, .. } = *request;
    let what = if entries == 0 || entries > ENTRIES {
        format!("{entries} I/Os in flight: a ring takes 1 to {ENTRIES}")
    } else if files.is_empty() || files.len() > MAX_FILES {
        format!("{} files: a ring takes 1 to {MAX_FILES}", files.len())
    } else if len == 0 || len > MAX_LEN || !len.is_multiple_of(4096) {
        format!("buffers of {len} bytes: a ring takes multiples of 4096 up to {MAX_LEN}")
    } else if chain.is_some_and(|chain| chain.len < 8 || chain.count == 0) {
        "a chain of blocks has at least one, of 8 bytes at least".to_owned()
    } else {
        return Ok(());
    };
    Err(RingError::Request(what))
}

/// The low and the high half of a word.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}
