//! The writer's side: one page per process, one worker slot per thread.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gpuio_host::Root;
use gpuio_host::process::{self, Identity};
use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstat, openat, statat, unlinkat,
};
use rustix::io::{Errno, pwrite};
use rustix::time::{ClockId, clock_gettime};

use crate::page::bucket::{Latencies, size_class};
use crate::page::layout::{
    Cells, FIRST_GPU, HEADER_BYTES, LIBRARY_NUMBERS, MAGIC, MAX_WORKER_SLOTS, NO_GPU, NOT_COUNTED,
    OF_LIBRARY, REGISTERED, SHARED, SLOT_BYTES, Side, UNUSED, VERSION, header, page_bytes,
};
use crate::page::mapping::Mapping;
use crate::page::page_root::{LivePageError, LivePageRoot};
use crate::page::read;

/// The GPU, path and engine of a worker slot's I/Os.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Index of the GPU whose memory is the destination; none for host memory.
    pub gpu: Option<u32>,
    /// Its PCI address, `0000:34:00.0`; empty for host memory.
    pub pci: String,
    /// Name of the path; 24 bytes are kept.
    pub path: String,
    /// Name of the engine; 16 bytes are kept.
    pub engine: String,
    /// Whether a library registers buffers for this slot and does not report how many: readers see
    /// "unknown" and not 0.
    pub registrations_unknown: bool,
}

/// Reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a file.
    Read,
    /// To a file.
    Write,
}

/// This process's page. It is removed with the last of its clones and worker slots.
#[derive(Debug, Clone)]
pub struct LivePage {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mapping: Mapping,
    file: OwnedFd,
    directory: OwnedFd,
    name: CString,
    path: PathBuf,
    /// The process that made it: in a child of fork(2) the page is still its parent's.
    maker: u32,
    /// Number of slots of one thread each; those after them are shared.
    alone: u32,
    /// The holders of each slot.
    given: Mutex<Vec<Given>>,
}

#[derive(Debug, Clone, Default)]
struct Given {
    key: Option<Key>,
    holders: u32,
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of a slot's times.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

impl LivePage {
    /// Creates the page of this process with a slot for each of `threads` threads, and removes
    /// pages that processes of this user left when they were killed. `began_ns` is now, nanoseconds
    /// since 1970.
    ///
    /// # Errors
    /// [`LivePageError`]: no shared memory, no space in it, a directory of another user, or no
    /// `/proc`. A program then continues without a page.
    pub fn create(
        pages: &LivePageRoot,
        threads: u32,
        program: &str,
        began_ns: u64,
    ) -> Result<LivePage, LivePageError> {
        let root = Root::live();
        let own = process::own(&root)
            .map_err(|error| LivePageError::Unidentified(error.to_string()))?
            .ok_or_else(|| LivePageError::Unidentified("it is not mounted".to_owned()))?;
        let uid = rustix::process::geteuid().as_raw();
        let (directory, path) = pages.make(uid)?;
        // Old pages that can't be removed stay for the next process; they do not prevent a page.
        let _ = read::list(pages, &root);
        let path = path.join(own.pid.to_string());
        let name = CString::new(own.pid.to_string()).unwrap_or_default();
        let failed = |call| {
            let path = path.clone();
            move |errno: Errno| LivePageError::call(call, &path, errno)
        };
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&directory, &name, flags, mode).map_err(|errno| match errno {
            Errno::EXIST => {
                let there = read::find(pages, &root, own.pid).found;
                let is_own = |found: &read::Found| {
                    found.path == path && found.page.is_ok() && found.owner == read::Owner::Runs
                };
                let why = match there.iter().any(is_own) {
                    true => {
                        "exists already, by another library of gpuio in this process, and has what \
                         goes through that alone. To see all, start without that library \
                         (LD_LIBRARY_PATH, LD_PRELOAD)"
                    }
                    false => {
                        "exists already, perhaps from a process with this number in another \
                         container"
                    }
                };
                LivePageError::refused(&path, why)
            }
            errno => failed("openat")(errno),
        })?;
        let alone = threads.clamp(1, MAX_WORKER_SLOTS - SHARED);
        let worker_slots = alone + SHARED;
        let made = fill(&file, worker_slots, uid, &own, (began_ns, program)).and_then(|()| {
            // The error carries an errno, which is what mmap(2) gave.
            Mapping::new(file.as_fd(), worker_slots)
                .map_err(|error| ("mmap", Errno::from_io_error(&error).unwrap_or(Errno::IO)))
        });
        let mapping = match made {
            Ok(mapping) => mapping,
            Err((call, errno)) => {
                // It holds nothing; a reader would remove it too.
                let _ = unlinkat(&directory, &name, AtFlags::empty());
                return Err(failed(call)(errno));
            }
        };
        let given = Mutex::new(vec![Given::default(); worker_slots as usize]);
        let maker = std::process::id();
        let inner = Inner { mapping, file, directory, name, path, maker, alone, given };
        Ok(LivePage { inner: Arc::new(inner) })
    }

    /// The file.
    pub fn path(&self) -> &std::path::Path {
        &self.inner.path
    }

    /// A worker slot for the calling thread; `None` when all are taken and no shared one has
    /// this key. A slot that was returned keeps counting for the next thread with the same key.
    #[must_use]
    pub fn worker_slot(&self, key: &Key) -> Option<WorkerSlot> {
        self.take(key, 1, 0)
    }

    /// One more for a thread that has a slot: the process's threads are counted once.
    #[must_use]
    pub fn further_slot(&self, key: &Key) -> Option<WorkerSlot> {
        self.take(key, 1, 1)
    }

    /// A slot for a program's registrations, of no thread: [`WorkerSlot::holds`].
    #[must_use]
    pub fn registrations(&self, gpu: Option<u32>, pci: &str) -> Option<WorkerSlot> {
        self.take(&without_ios(gpu, pci, REGISTERED), 0, 0)
    }

    /// A slot for NVIDIA's library's statistics of a GPU, or without one for their state:
    /// [`WorkerSlot::of_library`].
    #[must_use]
    pub fn library(&self, gpu: Option<u32>, pci: &str) -> Option<WorkerSlot> {
        self.take(&without_ios(gpu, pci, OF_LIBRARY), 0, 0)
    }

    fn take(&self, key: &Key, threads: u64, again: u64) -> Option<WorkerSlot> {
        let inner = &self.inner;
        let mut given = inner.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (alone, shared) = given.split_at(inner.alone as usize);
        let same = |one: &Given| one.key.as_ref() == Some(key);
        let freed = |one: &Given| one.holders == 0 && same(one);
        let fresh = |one: &Given| one.key.is_none();
        let behind = alone.len();
        let at = alone
            .iter()
            .position(freed)
            .or_else(|| alone.iter().position(fresh))
            .or_else(|| shared.iter().position(same).map(|at| at + behind))
            .or_else(|| shared.iter().position(fresh).map(|at| at + behind))?;
        let number = u32::try_from(at).ok()?;
        let cells = inner.mapping.worker_slot(number)?;
        let one = given.get_mut(at)?;
        one.holders += 1;
        if one.key.is_none() {
            one.key = Some(key.clone());
            write_key(cells, key);
        }
        drop(given);
        cells.threads.fetch_add(threads, Ordering::Relaxed);
        cells.spare.fetch_add(again, Ordering::Relaxed);
        let shared = number >= inner.alone;
        Some(WorkerSlot { inner: Arc::clone(inner), number, shared, slots: 0, threads, again })
    }
}

/// The key of a slot that counts no I/Os.
fn without_ios(gpu: Option<u32>, pci: &str, path: &str) -> Key {
    let (pci, path) = (pci.to_owned(), path.to_owned());
    Key { gpu, pci, path, engine: String::new(), registrations_unknown: false }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let here = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let same = match (here, fstat(&self.file)) {
            (Ok(here), Ok(own)) => here.st_ino == own.st_ino && here.st_dev == own.st_dev,
            _ => false,
        };
        if same {
            // The next reader recognises and removes a page that stays.
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// Gives the file its length, all of it allocated (a write to a hole of a full tmpfs would be a
/// SIGBUS, tmpfs(5)), and its header, the magic last.
fn fill(
    file: &OwnedFd,
    worker_slots: u32,
    uid: u32,
    own: &Identity,
    began: (u64, &str),
) -> Result<(), (&'static str, Errno)> {
    let length = page_bytes(worker_slots) as u64;
    fallocate(file, FallocateFlags::empty(), 0, length).map_err(|errno| ("fallocate", errno))?;
    let bytes = header_of(worker_slots, uid, own, began);
    let (magic, rest) = bytes.split_at(MAGIC.len());
    for (part, at) in [(rest, MAGIC.len()), (magic, 0)] {
        // tmpfs writes so few bytes at once or not at all.
        pwrite(file, part, at as u64).map_err(|errno| ("pwrite", errno))?;
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "sizes of the layout, below 10,000")]
fn header_of(
    worker_slots: u32,
    uid: u32,
    own: &Identity,
    began: (u64, &str),
) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(header::MAGIC, &MAGIC);
    put(header::VERSION, &VERSION.to_le_bytes());
    put(header::HEADER_BYTES, &(HEADER_BYTES as u32).to_le_bytes());
    put(header::SLOT_BYTES, &(SLOT_BYTES as u32).to_le_bytes());
    put(header::WORKER_SLOTS, &worker_slots.to_le_bytes());
    put(header::PID, &own.pid.to_le_bytes());
    put(header::UID, &uid.to_le_bytes());
    put(header::START_TICKS, &own.start_ticks.to_le_bytes());
    put(header::NAMESPACE, &own.namespace.to_le_bytes());
    put(header::BEGAN_REAL_NS, &began.0.to_le_bytes());
    put(header::BEGAN_MONOTONIC_NS, &monotonic_ns().to_le_bytes());
    put(header::BOOT, cut(&own.boot, header::BOOT_BYTES));
    put(header::PROGRAM, cut(began.1, header::PROGRAM_BYTES));
    put(header::RELEASE, cut(env!("CARGO_PKG_VERSION"), header::RELEASE_BYTES));
    bytes
}

/// The first bytes of a text.
fn cut(text: &str, most: usize) -> &[u8] {
    let bytes = text.as_bytes();
    bytes.get(..most).unwrap_or(bytes)
}

/// Writes the key, then marks the slot as used.
fn write_key(cells: &Cells, key: &Key) {
    let put = |words: &[AtomicU64], text: &str| {
        for (word, part) in words.iter().zip(text.as_bytes().chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    };
    put(&cells.path, &key.path);
    put(&cells.engine, &key.engine);
    put(&cells.pci, &key.pci);
    if key.registrations_unknown {
        cells.registered.store(NOT_COUNTED, Ordering::Relaxed);
    }
    let state = key.gpu.map_or(NO_GPU, |gpu| u64::from(gpu) + FIRST_GPU);
    debug_assert_ne!(state, UNUSED);
    cells.state.store(state, Ordering::Release);
}

/// One thread's counters. Calls cost nanoseconds and never wait.
#[derive(Debug)]
pub struct WorkerSlot {
    inner: Arc<Inner>,
    number: u32,
    /// Whether other threads write it too.
    shared: bool,
    slots: u64,
    /// Threads that it counts as: 1, or 0 for a slot of registrations.
    threads: u64,
    /// Those of them that another slot has counted.
    again: u64,
}

impl WorkerSlot {
    /// The slot's counters. `LivePage::worker_slot` checked that they exist.
    #[inline]
    fn cells(&self) -> Option<&Cells> {
        self.inner.mapping.worker_slot(self.number)
    }

    /// A counter of one writer needs no locked instruction.
    #[inline]
    fn raise(&self, counter: &AtomicU64, by: u64) {
        if self.shared {
            counter.fetch_add(by, Ordering::Relaxed);
        } else {
            let sum = counter.load(Ordering::Relaxed).wrapping_add(by);
            counter.store(sum, Ordering::Relaxed);
        }
    }

    /// Counts an I/O that completed in full: its bytes, its latency in nanoseconds, and whether
    /// offset or length were not multiples of 4 KiB.
    #[inline]
    pub fn add(&self, direction: Direction, bytes: u64, latency_ns: u64, unaligned: bool) {
        let Some(cells) = self.cells() else { return };
        let side: &Side = &cells.sides[direction as usize];
        self.raise(&side.bytes, bytes);
        self.raise(&side.latency_ns, latency_ns);
        self.raise(&side.sizes[size_class(bytes)], 1);
        self.raise(&side.latencies[Latencies::of(latency_ns)], 1);
        if unaligned {
            self.raise(&side.unaligned, 1);
        }
    }

    /// Counts an I/O that failed.
    pub fn fail(&self, direction: Direction) {
        if let Some(cells) = self.cells() {
            self.raise(&cells.sides[direction as usize].failed, 1);
        }
    }

    /// Counts files that were opened.
    pub fn opened(&self, files: u64) {
        if let Some(cells) = self.cells() {
            self.raise(&cells.files, files);
        }
    }

    /// Sets how many files and buffers are registered now, on a slot of
    /// [`LivePage::registrations`].
    pub fn holds(&self, files: u64, buffers: u64) {
        if let Some(cells) = self.cells() {
            cells.files.store(files, Ordering::Relaxed);
            cells.registered.store(buffers, Ordering::Relaxed);
        }
    }

    /// Sets the numbers of NVIDIA's library, on a slot of [`LivePage::library`].
    pub fn of_library(&self, sides: &[[u64; LIBRARY_NUMBERS]; 2]) {
        let Some(cells) = self.cells() else { return };
        for (side, numbers) in cells.sides.iter().zip(sides) {
            for (cell, number) in side.sizes.iter().zip(numbers) {
                cell.store(*number, Ordering::Relaxed);
            }
        }
    }

    /// Sets how many I/Os this thread can have in flight, and when it started (`CLOCK_MONOTONIC`).
    pub fn begin(&mut self, slots: u64, at_ns: u64) {
        self.slots = slots;
        if let Some(cells) = self.cells() {
            cells.slots.fetch_add(slots, Ordering::Relaxed);
        }
        self.began(at_ns);
    }

    /// An I/O began at this time (`CLOCK_MONOTONIC`). The earliest counts, in whichever order they
    /// are counted: several threads, or runs, may have one slot.
    #[inline]
    pub fn began(&self, at_ns: u64) {
        let Some(cells) = self.cells() else { return };
        let earlier = |first: u64| (first == 0 || at_ns < first).then_some(at_ns);
        let _ = cells.first_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earlier);
    }

    /// Sets when the last I/O completed (`CLOCK_MONOTONIC`), and how many are in flight. On a
    /// shared slot the number is that of the last caller.
    #[inline]
    pub fn now(&self, last_ns: u64, in_flight: u64) {
        let Some(cells) = self.cells() else { return };
        cells.in_flight.store(in_flight, Ordering::Relaxed);
        if self.shared {
            cells.last_ns.fetch_max(last_ns, Ordering::Relaxed);
        } else {
            cells.last_ns.store(last_ns, Ordering::Relaxed);
        }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if self.inner.maker != std::process::id() {
            return;
        }
        if let Some(cells) = self.cells() {
            cells.in_flight.store(0, Ordering::Relaxed);
            cells.slots.fetch_sub(self.slots, Ordering::Relaxed);
            cells.threads.fetch_sub(self.threads, Ordering::Relaxed);
            cells.spare.fetch_sub(self.again, Ordering::Relaxed);
        }
        let mut given = self.inner.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = given.get_mut(self.number as usize) {
            one.holders -= 1;
        }
    }
}
