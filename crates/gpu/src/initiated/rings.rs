//! Rings for the kernels of a program: any number of threads of any kernel start I/O and wait for
//! it (`gpuio_ring` in `kernels/gpuio_device.cuh`, which has the device's half; a model of it is
//! `tools/model/tests/rings.rs`).
//!
//! **Memory.** For each ring two pages, as in the module above; its buffers, page-locked and
//! registered with the ring; and a state in device memory: the tickets of entries, what was
//! published and taken, and a word for each buffer's result. The descriptions of all rings lie
//! behind each other in device memory.
//!
//! **Growing.** Tables of files and buffers are made sparse, at their full size; places are filled
//! later. The addresses of all buffers are reserved at once, so that a buffer is found by its
//! number; memory is taken, locked and registered when [`Rings::grow`] asks for it.
//!
//! **Progress.** Who owns the rings calls [`Rings::look`] again after the time that it answers: it
//! wakes threads of the operating system that sleep and have entries.
//!
//! **The device's failure.** A kernel that fails takes its context along. I/O that it had started
//! ends all the same, into the rings' own buffers. Closing waits for it.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpuio_base::catalog::MemoryKind;

use super::uring::Uring;
use super::waking::{Polled, look};
use super::{DRAIN, ENTRIES, EXIT_PAUSE, MAX_FILES, MAX_LEN, RingError};
use crate::DevPtr;
use crate::context::Context;
use crate::locked::{Growing, Locked, PageSize};
use crate::memory::DeviceBuf;
use crate::stream::Stream;

/// The most rings: far more than machines have processors for their threads.
pub const MAX_RINGS: u32 = 1024;
/// The most buffers of a ring, which io_uring registers (`IORING_MAX_REG_BUFFERS`, Linux 6.6).
pub const MAX_BUFFERS: u32 = 1 << 14;

/// Bytes of a description (`gpuio_ring`), and the place of the number of buffers in it.
const DESCRIPTION_LEN: usize = 12 * 8;
const BUFFER_COUNT: u64 = 10 * 8;
/// Bytes of a ring's state before the results, each of 8 bytes (`GPUIO_RESULTS`).
const STATE_LEN: usize = 384;

/// The operating system's thread sleeps no sooner than so long after it took an entry, less what a
/// look may come too late.
const AWAKE: Duration = Duration::from_millis(40);
/// The time from look to look: the longest while there is I/O, while there was some in the last
/// second, and else.
const BUSY: Duration = Duration::from_millis(20);
const QUIET: Duration = Duration::from_micros(250);
const IDLE: Duration = Duration::from_millis(1);
const QUIET_FOR: Duration = Duration::from_secs(1);

/// The needs of a set of rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingsRequest {
    /// Rings, 1 to [`MAX_RINGS`].
    pub rings: u32,
    /// Threads of the operating system that serve them, 1 to `rings`.
    pub poll_threads: u32,
    /// Buffers of each ring at first, 1 to `max_buffers`.
    pub buffers: u32,
    /// The most buffers of each ring, up to [`MAX_BUFFERS`].
    pub max_buffers: u32,
    /// Bytes of a buffer: a multiple of 4096, at most [`MAX_LEN`].
    pub buffer_len: u64,
    /// The most files, 1 to [`MAX_FILES`].
    pub max_files: u32,
}

/// A set of rings over the same files. Every method may be called on any thread.
#[derive(Debug)]
pub struct Rings {
    // Closed before their memory goes.
    urings: Vec<Uring>,
    pages: Locked,
    device: DeviceBuf,
    context: Context,
    stream: Stream,
    request: RingsRequest,
    tables: Mutex<Tables>,
    watched: Mutex<Watched>,
}

/// Files and buffers that there are.
#[derive(Debug)]
struct Tables {
    files: Vec<bool>,
    buffers: Growing,
    count: u32,
}

/// The state of the last look.
#[derive(Debug)]
struct Watched {
    published: Vec<u32>,
    at: Instant,
    /// The last look that found something published.
    active: Instant,
}

impl Rings {
    /// Makes the rings, without a file.
    ///
    /// # Errors
    /// io_uring's refusal with its remedy, the driver's, or a request beyond the limits.
    pub fn new(context: &Context, request: RingsRequest) -> Result<Self, RingError> {
        check(&request)?;
        let page = rustix::param::page_size();
        let count = request.rings as usize;
        let pages = Locked::new(context, 2 * page * count, PageSize::Plain)?;
        let mut urings: Vec<Uring> = Vec::with_capacity(count);
        for nth in 0..count {
            let served_by = urings.get(nth % request.poll_threads as usize);
            // SAFETY: inside the pages: two for each ring.
            let at = unsafe { pages.as_ptr().add(2 * page * nth) };
            // SAFETY: fresh pages of zeros at a multiple of a page, unmapped after the ring is
            // closed, by the order of the fields.
            let uring = unsafe { Uring::new(at, page, served_by) };
            let uring = uring.map_err(|error| RingError::setup(&error))?;
            uring.register_tables(request.max_files, request.max_buffers)?;
            urings.push(uring);
        }
        let room = u64::from(request.max_buffers) * request.buffer_len * u64::from(request.rings);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        // Kernels for the software GPU are threads of the host, built from the same header: they
        // reach what both reach.
        let software = context.driver().is_software();
        let kind = if software { MemoryKind::Pinned } else { MemoryKind::Device };
        let device = DeviceBuf::alloc(context, kind, device_len(&request))?;
        let rings = Self {
            urings,
            device,
            context: context.clone(),
            stream: Stream::new(context)?,
            request,
            tables: Mutex::new(Tables {
                files: vec![false; request.max_files as usize],
                buffers: Growing::new(context, room)?,
                count: 0,
            }),
            watched: Mutex::new(Watched {
                published: vec![0; count],
                at: Instant::now(),
                active: Instant::now(),
            }),
            pages,
        };
        rings.grow(request.buffers)?;
        Ok(rings)
    }

    /// The device's address of the first ring's description; the others lie behind it.
    pub fn address(&self) -> DevPtr {
        self.device.ptr()
    }

    /// The request.
    pub fn request(&self) -> RingsRequest {
        self.request
    }

    /// Buffers that each ring has.
    pub fn buffers(&self) -> u32 {
        self.tables().count
    }

    /// Adds a file, and answers its number: the lowest that is free. The rings have the file from
    /// then on, also when the descriptor is closed.
    ///
    /// # Errors
    /// No number is free, or io_uring does not take the file.
    pub fn add_file(&self, fd: RawFd) -> Result<u32, RingError> {
        let mut tables = self.tables();
        let free = tables.files.iter().position(|used| !used);
        let place = free.and_then(|place| u32::try_from(place).ok()).ok_or_else(|| {
            RingError::Request(format!(
                "the rings have {} files, and were opened for no more",
                self.request.max_files
            ))
        })?;
        for (nth, uring) in self.urings.iter().enumerate() {
            if let Err(error) = uring.set_file(place, Some(fd)) {
                for before in &self.urings[..nth] {
                    // It was set there a moment ago; a refusal would leave it to the rings' end.
                    let _ = before.set_file(place, None);
                }
                return Err(error);
            }
        }
        tables.files[place as usize] = true;
        Ok(place)
    }

    /// Takes a file out, whose number is free then. I/O that was taken by the operating system
    /// still ends; later entries of that number have the result -EBADF.
    ///
    /// # Errors
    /// No file has this number, or io_uring refuses.
    pub fn remove_file(&self, number: u32) -> Result<(), RingError> {
        let mut tables = self.tables();
        let used = tables.files.get_mut(number as usize).filter(|used| **used);
        let Some(used) = used else {
            return Err(RingError::Request(format!("the rings have no file {number}")));
        };
        self.urings.iter().try_for_each(|uring| uring.set_file(number, None))?;
        *used = false;
        Ok(())
    }

    /// Raises the number of buffers of each ring to `count`; nothing if there are so many.
    ///
    /// # Errors
    /// More than were reserved, no memory to lock, or the refusal of io_uring or the driver.
    /// Buffers of before stay.
    pub fn grow(&self, count: u32) -> Result<(), RingError> {
        let mut tables = self.tables();
        let RingsRequest { max_buffers, buffer_len, .. } = self.request;
        if count > max_buffers {
            let what = format!("{count} buffers: the rings were opened for {max_buffers} at most");
            return Err(RingError::Request(what));
        }
        let more = count.saturating_sub(tables.count);
        if more == 0 {
            return Ok(());
        }
        let len = usize::try_from(buffer_len).unwrap_or(usize::MAX);
        let Tables { buffers, count: before, .. } = &mut *tables;
        let (kept, first) = (buffers.parts(), *before);
        let mut add = |(nth, uring): (usize, &Uring)| {
            let begin = (nth * max_buffers as usize + first as usize) * len;
            let start = buffers.lock(begin, more as usize * len)?;
            // SAFETY: just mapped, and unmapped after the rings are closed.
            unsafe { uring.set_buffers(first, start, len, more) }
        };
        if let Err(error) = self.urings.iter().enumerate().try_for_each(&mut add) {
            // No kernel knows of them. A ring that has some keeps their pages until it gets others.
            buffers.unlock_behind(kept);
            return Err(error);
        }
        *before = count;
        if first == 0 { self.describe(&tables) } else { self.describe_count(count) }
    }

    /// I/O that was started and has not ended.
    pub fn in_flight(&self) -> u64 {
        self.urings.iter().map(|uring| u64::from(uring.unfinished())).sum()
    }

    /// Wakes the threads of the operating system that sleep.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn wake(&self) -> Result<(), RingError> {
        self.watched().active = Instant::now();
        let woken = self.urings.iter().try_for_each(Uring::wake);
        woken.map_err(|error| RingError::kernel_stopped(&error))
    }

    /// Wakes the threads of the operating system that sleep and have entries, and answers after
    /// which time to look again.
    pub fn look(&self) -> Duration {
        let mut watched = self.watched();
        let now = Instant::now();
        let before = std::mem::replace(&mut watched.at, now);
        let mut is_busy = false;
        look(&self.urings, &mut watched.published, |_| is_busy = true);
        if is_busy {
            watched.active = now;
            // Something was published after `before`, so no thread sleeps sooner than that much
            // later.
            (before + AWAKE).saturating_duration_since(now).clamp(QUIET, BUSY)
        } else if now.duration_since(watched.active) < QUIET_FOR {
            QUIET
        } else {
            IDLE
        }
    }

    /// Waits for I/O in flight, for half a minute at most, before the rings are dropped. No kernel
    /// may use them any more.
    ///
    /// # Errors
    /// So many I/Os have not ended. The pages of their buffers are the operating system's until
    /// they have, also when the rings are dropped.
    pub fn drain(&self) -> Result<(), u64> {
        let began = Instant::now();
        while self.in_flight() > 0 && began.elapsed() < DRAIN && self.wake().is_ok() {
            std::thread::sleep(EXIT_PAUSE);
        }
        match self.in_flight() {
            0 => Ok(()),
            left => Err(left),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the descriptions, and states of zeros.
    fn describe(&self, tables: &Tables) -> Result<(), RingError> {
        let page = rustix::param::page_size();
        let RingsRequest { rings, max_buffers, buffer_len, .. } = self.request;
        let of_ring = u64::from(max_buffers) * buffer_len;
        let states = self.device.ptr().0 + (rings as usize * DESCRIPTION_LEN) as u64;
        let mut bytes = Vec::with_capacity(self.device.len());
        for (nth, uring) in (0u64..).zip(&self.urings) {
            let layout = uring.layout();
            let pages = self.pages.ptr().byte_add(nth * 2 * page as u64);
            let seen = |at: usize| pages.byte_add(at as u64).0;
            let words: [u64; DESCRIPTION_LEN / 8] = [
                seen(layout.sq_tail),
                seen(layout.cq_head),
                seen(layout.cq_tail),
                seen(page),
                seen(layout.completions),
                u64::from(layout.entry_mask),
                u64::from(layout.completion_mask),
                tables.buffers.ptr().0 + nth * of_ring,
                tables.buffers.as_ptr().addr().get() as u64 + nth * of_ring,
                buffer_len,
                u64::from(tables.count),
                states + nth * state_len(max_buffers) as u64,
            ];
            bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
        }
        bytes.resize(self.device.len(), 0);
        self.write(0, &bytes)
    }

    fn describe_count(&self, count: u32) -> Result<(), RingError> {
        for nth in 0..u64::from(self.request.rings) {
            let at = nth * DESCRIPTION_LEN as u64 + BUFFER_COUNT;
            self.write(at, &u64::from(count).to_le_bytes())?;
        }
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), RingError> {
        let to = self.device.ptr().byte_add(at);
        let copied = self.context.entered(|| {
            // SAFETY: a range of the device memory, and bytes that live until the wait is over.
            unsafe { self.stream.h2d(to, bytes.as_ptr(), bytes.len()) }?;
            self.stream.sync()
        });
        Ok(copied.and_then(|done| done)?)
    }
}

fn state_len(max_buffers: u32) -> usize {
    (STATE_LEN + max_buffers as usize * 8).next_multiple_of(128)
}

fn device_len(request: &RingsRequest) -> usize {
    request.rings as usize * (DESCRIPTION_LEN + state_len(request.max_buffers))
}

fn check(request: &RingsRequest) -> Result<(), RingError> {
    let RingsRequest { rings, poll_threads, buffers, max_buffers, buffer_len, max_files } =
        *request;
    let what = if !(1..=MAX_RINGS).contains(&rings) {
        format!("{rings} rings: 1 to {MAX_RINGS} work")
    } else if !(1..=rings).contains(&poll_threads) {
        format!("{poll_threads} threads for {rings} rings: 1 for each at most")
    } else if !(1..=MAX_BUFFERS).contains(&max_buffers) {
        format!("{max_buffers} buffers: a ring takes 1 to {MAX_BUFFERS}")
    } else if !(1..=max_buffers).contains(&buffers) {
        format!("{buffers} buffers at first of {max_buffers} at most")
    } else if buffer_len == 0 || buffer_len > MAX_LEN || !buffer_len.is_multiple_of(4096) {
        format!("buffers of {buffer_len} bytes: a ring takes multiples of 4096 up to {MAX_LEN}")
    } else if !(1..=MAX_FILES).contains(&(max_files as usize)) {
        format!("{max_files} files: 1 to {MAX_FILES} work")
    } else {
        return Ok(());
    };
    Err(RingError::Request(what))
}

/// The header for kernels, `gpuio_device.cuh`: the source text.
pub const DEVICE_HEADER: &str = include_str!("../../kernels/gpuio_device.cuh");

const _: () = assert!(ENTRIES >= 32, "a warp starts 32 I/Os at once");
