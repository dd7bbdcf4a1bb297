//! gpuio's library core (crate `transfer`) as the paths `library*` use it: as our `libcufile.so.0`
//! does, with its settings where no configuration changes them. It maps no files: that is path
//! `mapped`.
//!
//! A process has one core for each CUDA driver. Its threads, page-locked memory and kernels stay
//! until the process ends and wait for the next path, as in a program that uses the library.
//! Resources that a path itself opened end with the path: files, batches, streams and the slots'
//! memory.
//!
//! The core starts its threads on demand and shares them between all its callers, so none belongs
//! to one worker: their CPU time is that of the process ([`super::super::OpenedPath::helpers`] is
//! empty).

use std::os::fd::BorrowedFd;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gpuio_gpu::{Driver, Which};
use gpuio_transfer::{Ahead, File, MemoryLocation, RouteBytes, Settings, Transfer, Transferred};

use crate::engine::{IoFault, Op};
use crate::path::destination::Destination;
use crate::path::grouped::Buffers;
use crate::path::{Fault, OpenedPath, Path, PathConfig, PathError, Request, slot_buffers};

/// Slots begin at whole pages, as those of the paths with an engine do.
const ALIGNMENT: usize = 4096;

/// Bytes of one direction by route, as the core counted them.
#[derive(Debug, Default)]
pub struct LibraryOpCounters {
    /// Between file and page-locked memory, through the page cache.
    pub cached: AtomicU64,
    /// The same, past the page cache.
    pub direct: AtomicU64,
    /// Between page-locked memory and the GPU, by a kernel of gpuio.
    pub by_kernel: AtomicU64,
    /// The same, by copies of the driver.
    pub by_copy: AtomicU64,
}

/// The counts of the core for one worker. Any thread of the core adds, any thread reads, with
/// [`Ordering::Relaxed`]. Aligned to two cache lines, so that workers do not slow each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LibraryCounters {
    /// File to memory.
    pub read: LibraryOpCounters,
    /// Memory to file.
    pub write: LibraryOpCounters,
}

impl LibraryCounters {
    fn add(&self, op: Op, route: &RouteBytes) {
        let bytes = match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
        };
        let add = |counter: &AtomicU64, by: u64| {
            if by > 0 {
                counter.fetch_add(by, Ordering::Relaxed);
            }
        };
        add(&bytes.cached, route.cached);
        add(&bytes.direct, route.direct);
        add(&bytes.by_kernel, route.by_kernel);
        add(&bytes.by_copy, route.by_copy);
    }

    /// Counts what a request moved, and takes its outcome as a path does.
    pub(in crate::path) fn outcome(
        &self,
        op: Op,
        outcome: Result<Transferred, gpuio_transfer::Fault>,
    ) -> Result<usize, Fault> {
        match outcome {
            Ok(moved) => {
                self.add(op, &moved.route);
                Ok(moved.bytes)
            }
            Err(error) => Err(fault(&error)),
        }
    }
}

/// Why the core failed for a reason that is neither the file nor the GPU. Each is a bug in gpuio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryFault {
    /// A thread of the core panicked.
    Panicked,
    /// The core refused the transfer.
    Refused,
    /// The stream has passed the transfer, and no result was reported.
    Unreported,
}

impl LibraryFault {
    /// In words, without a full stop.
    pub fn words(self) -> &'static str {
        match self {
            Self::Panicked => "a thread of the library core panicked, which is a bug in gpuio",
            Self::Refused => "the library core refused the transfer, which is a bug in gpuio",
            Self::Unreported => {
                "the library core reported no result of the transfer, which is a bug in gpuio"
            }
        }
    }
}

/// The core's answer, as a request's fault.
pub(in crate::path) fn fault(fault: &gpuio_transfer::Fault) -> Fault {
    match fault {
        gpuio_transfer::Fault::File { errno, .. } => Fault::File(IoFault::Errno(*errno)),
        gpuio_transfer::Fault::Gpu(error) => Fault::Gpu(error.code),
        gpuio_transfer::Fault::Panicked => Fault::Library(LibraryFault::Panicked),
        _ => Fault::Library(LibraryFault::Refused),
    }
}

fn transfer(driver: &Driver) -> Transfer {
    static CORES: Mutex<Vec<(PathBuf, Transfer)>> = Mutex::new(Vec::new());
    let file: &FilePath = driver.library_path_hint();
    let mut cores = CORES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, transfer)) = cores.iter().find(|(known, _)| known == file) {
        return transfer.clone();
    }
    let mut settings = Settings::default();
    settings.driver = Which::Library(file.to_owned());
    // Reads that need no host memory are path `mapped`.
    settings.max_mapped_bytes = Some(0);
    let transfer = Transfer::new(settings);
    cores.push((file.to_owned(), transfer.clone()));
    transfer
}

/// The files and memory of the core's calls: files, and the memory of the slots.
pub(in crate::path) struct LibraryBuffers {
    pub(in crate::path) transfer: Transfer,
    files: Vec<File>,
    pub(in crate::path) location: MemoryLocation,
    destination: Destination,
    pub(in crate::path) counters: Arc<LibraryCounters>,
}

impl Buffers for LibraryBuffers {
    fn destination(&mut self) -> &mut Destination {
        &mut self.destination
    }
}

/// The rest of a request: its address, length in bytes, and offset in the file.
#[derive(Clone, Copy)]
pub(in crate::path) struct Rest {
    pub(in crate::path) address: u64,
    pub(in crate::path) len: usize,
    pub(in crate::path) offset: u64,
}

impl LibraryBuffers {
    /// Memory for all slots, and the files. Makes the GPU's context current in this thread, which
    /// drives the path from then on. Resources that the first calls would make are made here:
    /// `ahead`.
    ///
    /// # Errors
    /// Refusals of the driver or the kernel; faults to inject, for which there is no engine.
    pub(in crate::path) fn open(
        path: &'static str,
        config: &PathConfig,
        ahead: Ahead,
    ) -> Result<LibraryBuffers, PathError> {
        let setup = |what: String| PathError::Setup { path, what };
        let gpu = slot_buffers::gpu(path, config)?;
        let destination = Destination::open(path, config, gpu, ALIGNMENT)?;
        let transfer = transfer(gpu.context.driver());
        let location = transfer.locate(destination.block(0, 0).0);
        let location = location.map_err(|error| setup(error.to_string()))?;
        let file = |fd| {
            // SAFETY: the worker keeps its files open as long as the path (`PathConfig::files`).
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            transfer.file(fd).map_err(|error| setup(error.to_string()))
        };
        let files = config.files.iter().map(|open| file(open.fd)).collect::<Result<_, _>>()?;
        transfer.prepare(&location, ahead);
        let counters = Arc::clone(&config.library);
        Ok(LibraryBuffers { transfer, files, location, destination, counters })
    }

    pub(in crate::path) fn file(&self, request: &Request) -> &File {
        &self.files[request.file as usize]
    }

    /// The rest of a request of which `done` bytes have moved: all of it in the slot's own part of
    /// the destination.
    pub(in crate::path) fn rest(&self, request: &Request, done: u32) -> Rest {
        let base = self.destination.block(request.slot, request.len);
        let (len, done) = ((request.len - done) as usize, u64::from(done));
        Rest { address: base.byte_add(done).0, len, offset: request.offset + done }
    }

    /// The report of a path of the core when it is open; `open` makes it of these buffers.
    pub(in crate::path) fn opened(
        self,
        open: impl FnOnce(LibraryBuffers) -> Box<dyn Path>,
    ) -> OpenedPath {
        let (host_bytes, device_bytes) = self.destination.bytes();
        OpenedPath {
            path: open(self),
            actual_engine: "gpuio's library core".to_owned(),
            steps_down: Vec::new(),
            host_bytes,
            device_bytes,
            helpers: Vec::new(),
        }
    }
}
