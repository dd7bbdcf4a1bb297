//! Engines move bytes between files and host memory, and nothing else.
//!
//! All engines have one interface: [`Engine::push`] answers *taken*, *full* or *done*, and a failed
//! I/O comes back whole, with its errno, in a [`Done`]. "Full" is not an error. A new engine is one
//! file here and one row in [`ENGINES`].
//!
//! [`build`] puts the decorators on an engine, innermost first: [`throttle`] and [`fault`] when
//! requested, then [`whole`] (short transfers are continued), then [`monitor`] (live counters).
//! Each of them is an [`Engine`] over a `Box<dyn Engine>`, so the caller sees one interface.

pub mod fault;
mod io_slab;
mod libaio;
mod mmap;
pub mod monitor;
mod null;
mod pool;
mod psync;
mod sigbus;
pub mod throttle;
mod uring;
pub mod whole;

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

pub use gpuio_base::catalog::{EngineInfo, Inject, Op};
pub use monitor::LegCounters;

/// Host memory that an engine may touch until it hands the I/O back.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    ptr: NonNull<u8>,
    len: u32,
}

// SAFETY: a Span is an address and a length; the promise that the memory is there and that nobody
// else touches it while the I/O is out is made by `Span::new`'s caller and holds on any thread.
unsafe impl Send for Span {}

impl Span {
    /// Names `len` bytes at `ptr`.
    ///
    /// # Safety
    /// The bytes stay allocated, and no reference to them is used, from the moment that an [`Io`]
    /// with this span is pushed until it comes back in a [`Done`] or a `Full`.
    pub unsafe fn new(ptr: NonNull<u8>, len: u32) -> Span {
        Span { ptr, len }
    }

    /// First byte.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the span holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part that begins `done` bytes in; `done` is at most the length.
    pub fn rest(&self, done: u32) -> Span {
        debug_assert!(done <= self.len);
        let by = done.min(self.len);
        // SAFETY: `by` is at most `len`, so the result stays inside (or one past) the same span.
        let ptr = unsafe { self.ptr.add(by as usize) };
        Span { ptr, len: self.len - by }
    }

    /// The first `len` bytes; `len` is at most the length.
    pub fn first(&self, len: u32) -> Span {
        debug_assert!(len <= self.len);
        Span { ptr: self.ptr, len: len.min(self.len) }
    }
}

/// One file operation. `file` indexes [`EngineConfig::files`]; `token` is the caller's and comes
/// back.
#[derive(Debug, Clone, Copy)]
pub struct Io {
    /// Read or write.
    pub op: Op,
    /// Index into the engine's files.
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// The memory side.
    pub span: Span,
    /// The caller's mark: the slot number.
    pub token: u32,
}

/// Why an I/O failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoFault {
    /// The kernel's answer, errno(3), always positive.
    Errno(i32),
    /// The file ended after this many bytes of the I/O: it is shorter than the plan says.
    EndOfFile(u32),
}

/// An I/O handed back: the bytes moved, or why not.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// The I/O as it was pushed.
    pub io: Io,
    /// Bytes moved (may be short, see [`whole`]) or the fault.
    pub result: Result<u32, IoFault>,
}

/// The result of pushing an I/O.
#[derive(Debug, Clone, Copy)]
pub enum Push {
    /// The engine has accepted it; [`Engine::reap`] returns it.
    Taken,
    /// No space now; here it is again. Reap, then push it once more.
    Full(Io),
    /// It ran inside the call.
    Done(Done),
}

/// Moves bytes between files and host memory. Driven by one thread.
///
/// Dropping an engine with I/Os out first waits for them: the kernel may still write into their
/// memory.
pub trait Engine {
    /// Offers one I/O. A synchronous engine runs it here.
    fn push(&mut self, io: Io) -> Push;

    /// Hands everything pushed so far to the kernel. Cheap when there is nothing.
    ///
    /// # Errors
    /// The engine itself broke (not an I/O): the run can't go on with it.
    fn submit(&mut self) -> Result<(), EngineError>;

    /// Appends finished I/Os to `done`. Waits until there are `at_least` of them, or all that are
    /// in flight if these are fewer. Implies [`Engine::submit`]. Order is the order of
    /// completion.
    ///
    /// # Errors
    /// As for [`Engine::submit`].
    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError>;

    /// Sleeps until an I/O may have come back, which [`Engine::reap`] then returns, at most
    /// `timeout`. Returns sooner, or at once, where nothing is out or the engine can't wait for a
    /// time: it is never a promise. Implies [`Engine::submit`].
    ///
    /// # Errors
    /// As for [`Engine::submit`].
    fn wait_timeout(&mut self, _timeout: Duration) -> Result<(), EngineError> {
        self.submit()
    }

    /// I/Os taken and not yet handed back.
    fn in_flight(&self) -> usize;

    /// Whether [`Engine::push`] itself does the I/O (and so always answers `Done`).
    fn synchronous(&self) -> bool {
        false
    }
}

/// The engine itself failed, as opposed to one I/O.
#[derive(Debug, Clone, thiserror::Error)]
#[error("engine {engine}: {call}: {what}; {hint}")]
pub struct EngineError {
    /// Engine name.
    pub engine: &'static str,
    /// The system call that failed.
    pub call: &'static str,
    /// The answer in words, errno included.
    pub what: String,
    /// The next step for the user.
    pub hint: String,
}

/// One file of a worker, open.
#[derive(Debug, Clone)]
pub struct EngineFile {
    /// The descriptor; it stays open as long as the engine lives.
    pub fd: RawFd,
    /// Bytes from the file's start that the plan uses; the mmap engine maps this much.
    pub len: u64,
    /// Whether writes will come.
    pub writable: bool,
}

/// Everything an engine is opened with.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Most I/Os out at once, at least 1.
    pub depth: u32,
    /// The worker's files, by index.
    pub files: Vec<EngineFile>,
    /// The memory in which all spans lie, if they lie in one piece: an engine may register it.
    pub region: Option<HostRegion>,
    /// Whether the files are open with O_DIRECT.
    pub direct: bool,
    /// Bytes of which offsets and lengths of direct I/O are multiples: the logical block size of
    /// what is behind the files, 512 or 4096 as a rule. Means nothing without `direct`.
    pub direct_alignment: u32,
}

/// A piece of host memory: address and bytes. Who puts one in an [`EngineConfig`] keeps the memory
/// mapped for as long as the engine lives: io_uring pins its pages.
#[derive(Debug, Clone, Copy)]
pub struct HostRegion {
    /// First byte.
    pub ptr: NonNull<u8>,
    /// Length in bytes.
    pub len: usize,
}

// SAFETY: an address and a length, nothing is reached through it without an unsafe promise.
unsafe impl Send for HostRegion {}

impl EngineError {
    /// The error for a system call that failed with `err`.
    fn new(
        engine: &'static str,
        call: &'static str,
        err: &io::Error,
        hint: impl Into<String>,
    ) -> EngineError {
        EngineError { engine, call, what: err.to_string(), hint: hint.into() }
    }
}

/// An open engine and what it actually is.
pub struct OpenedEngine {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// The engine that runs, e.g. `io_uring (fixed buffers, fixed files)` or `pool (32 threads)`.
    pub actual: String,
    /// One line for each fallback from the request, with the reason.
    pub steps_down: Vec<String>,
    /// Kernel's numbers (gettid(2)) of the threads that the engine has of its own. They live as
    /// long as the engine, so that their CPU time can be read until then.
    pub helpers: Vec<i32>,
}

impl std::fmt::Debug for OpenedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedEngine").field("actual", &self.actual).finish_non_exhaustive()
    }
}

/// One engine of the table.
#[derive(Debug, Clone, Copy)]
pub struct EngineEntry {
    /// Its properties; the plan decides by these.
    pub info: EngineInfo,
    /// Whether it can run on this machine now; the text says why not.
    pub available: fn() -> Result<(), String>,
    /// Opens it. To be called on the thread that will drive it: io_uring's ring belongs to its
    /// opener, and the pool's threads inherit that thread's CPU affinity.
    pub open: fn(&EngineConfig) -> Result<OpenedEngine, EngineError>,
}

/// Every engine, in the order in which they are listed to the user.
pub const ENGINES: &[EngineEntry] = &[
    EngineEntry {
        info: EngineInfo {
            name: "psync",
            summary: "pread(2)/pwrite(2) on the worker's thread, one I/O at a time",
            asynchronous: false,
            unseen_threads: false,
        },
        available: || Ok(()),
        open: psync::open,
    },
    EngineEntry {
        info: EngineInfo {
            name: "io_uring",
            summary: "io_uring(7) with registered files and memory (kernel 5.1, best from 6.1)",
            asynchronous: true,
            unseen_threads: true,
        },
        available: uring::available,
        open: uring::open,
    },
    EngineEntry {
        info: EngineInfo {
            name: "io_uring-iopoll",
            summary: "the same with completions that the kernel polls for; O_DIRECT on a device \
                      with poll queues",
            asynchronous: true,
            unseen_threads: true,
        },
        available: uring::available,
        open: uring::open_iopoll,
    },
    EngineEntry {
        info: EngineInfo {
            name: "io_uring-sqpoll",
            summary: "the same with a kernel thread that submits",
            asynchronous: true,
            unseen_threads: true,
        },
        available: uring::available,
        open: uring::open_sqpoll,
    },
    EngineEntry {
        info: EngineInfo {
            name: "libaio",
            summary: "io_submit(2); truly asynchronous only on O_DIRECT files",
            asynchronous: true,
            unseen_threads: false,
        },
        available: libaio::available,
        open: libaio::open,
    },
    EngineEntry {
        info: EngineInfo {
            name: "mmap",
            summary: "memcpy from and to a mapping of the file, always through the page cache",
            asynchronous: false,
            unseen_threads: false,
        },
        available: || Ok(()),
        open: mmap::open,
    },
    EngineEntry {
        info: EngineInfo {
            name: "null",
            summary: "moves no byte: the cost of gpuio itself",
            asynchronous: true,
            unseen_threads: false,
        },
        available: || Ok(()),
        open: null::open,
    },
    EngineEntry {
        info: EngineInfo {
            name: "pool",
            summary: "pread(2)/pwrite(2) on up to 64 threads behind the worker's",
            asynchronous: true,
            unseen_threads: false,
        },
        available: || Ok(()),
        open: pool::open,
    },
];

/// The row of that name.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    ENGINES.iter().find(|row| row.info.name == name)
}

/// Opens an engine and stacks the decorators on it. Call it on the thread that will drive the
/// engine. `counters` is written by that thread only.
///
/// # Errors
/// The engine can't be opened; see [`EngineEntry::open`].
pub fn build(
    row: &EngineEntry,
    config: &EngineConfig,
    inject: Option<&Inject>,
    counters: Arc<LegCounters>,
) -> Result<OpenedEngine, EngineError> {
    let OpenedEngine { mut engine, mut actual, steps_down, helpers } = (row.open)(config)?;
    if let Some(inject) = inject {
        if inject.throttles() {
            engine = Box::new(throttle::Throttle::new(engine, inject.rate, inject.iops));
        }
        engine = Box::new(fault::FaultInjector::new(engine, inject, config, Arc::clone(&counters)));
        actual.push_str(" with injected faults");
    }
    let alignment = config.direct.then_some(config.direct_alignment);
    let engine = Box::new(whole::Whole::new(engine, alignment, Arc::clone(&counters)));
    let engine = Box::new(monitor::Monitor::new(engine, counters));
    Ok(OpenedEngine { engine, actual, steps_down, helpers })
}
