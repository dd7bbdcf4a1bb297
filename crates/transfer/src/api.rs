//! The door.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use gpuio_io::engine::Op;

use crate::batch::Batch;
use crate::device::Devices;
use crate::device::small::{self, SmallRequest};
use crate::fault::{Fault, FileError, LocationError};
use crate::file::File;
use crate::fork::{PerProcess, ProcessMark};
use crate::job::{Job, LARGE, Request};
use crate::memory::MemoryLocation;
use crate::pool::{CopyMethod, WorkerPool};
use crate::settings::Settings;
use crate::stream::Streams;
use crate::transferred::Transferred;

/// Moves bytes between files and memory of callers. Cloning is cheap. See the crate's page.
#[derive(Debug, Clone)]
pub struct Transfer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    state: PerProcess<State>,
}

/// What one process keeps for a transfer. It is never freed: threads of ours may use it until the
/// process is gone, and the driver must not be called to free what it gave.
#[derive(Debug)]
pub(crate) struct State {
    mark: ProcessMark,
    pub(crate) settings: Settings,
    pub(crate) devices: Devices,
    pub(crate) pool: WorkerPool,
    pub(crate) streams: Streams,
    /// In a child of the process in which the transfer was made.
    pub(crate) forked: bool,
}

impl State {
    fn new(settings: &Settings, forked: bool) -> Self {
        Self {
            mark: ProcessMark::new(),
            devices: Devices::new(settings),
            pool: WorkerPool::new(settings),
            streams: Streams::new(settings),
            settings: settings.clone(),
            forked,
        }
    }
}

impl Transfer {
    /// Makes one. No call of the driver: it is loaded when the first address is asked about.
    ///
    /// What it takes of the machine (threads, page-locked memory, the driver) stays taken until the
    /// process ends, so a process makes one.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let state = PerProcess::with(State::new(&settings, false));
        Self(Arc::new(Shared { settings, state }))
    }

    /// The state of this process.
    pub(crate) fn state(&self) -> &'static State {
        self.0.state.get(|state| &state.mark, || State::new(&self.0.settings, true))
    }

    /// A file, by the caller's descriptor, which is duplicated and may be closed afterwards.
    ///
    /// # Errors
    ///
    /// The descriptor is not open, or no regular file and no block device.
    pub fn file(&self, fd: BorrowedFd<'_>) -> Result<File, FileError> {
        File::open(fd, self.0.settings.uncached, self.0.settings.bypass_cache)
    }

    /// What the memory at an address is. The first question loads the driver, which takes some
    /// hundred milliseconds; where there is none, all memory is the host's. Later ones take less
    /// than a microsecond. The calling thread needs no context.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn locate(&self, address: u64) -> Result<MemoryLocation, LocationError> {
        let state = self.state();
        if state.forked {
            // Addresses of GPU memory are reserved in the child too and hold nothing.
            return Ok(MemoryLocation::host());
        }
        let Some(driver) = state.devices.driver() else {
            return Ok(MemoryLocation::host());
        };
        let query =
            || MemoryLocation::query(driver, address, |device| state.devices.device(device));
        match query() {
            Err(LocationError::Gpu(error)) if error.is_reset() => {
                let renewed = error.device.is_some_and(|index| state.devices.renew(index));
                if renewed { query() } else { Err(error.into()) }
            }
            result => result,
        }
    }

    /// Whether what was told of an address may still hold: not where the device was reset since.
    #[must_use]
    pub fn is_current(&self, location: &MemoryLocation) -> bool {
        let Some(index) = location.device() else {
            return true;
        };
        let state = self.state();
        !state.forked
            && state.devices.current(index).is_some_and(|it| it.serial() == location.serial)
    }

    /// Reads `len` bytes at `offset` of the file into the memory at `address`, which `place` was
    /// asked for (its own address, or another of the same allocation). Returns when they are there:
    /// later work of any stream, and the host, see them. Where the file ends before `len` bytes, a
    /// GPU's memory behind them is left as it was; the host's may be changed up to `len` bytes, as
    /// by any read with `O_DIRECT`.
    ///
    /// # Errors
    ///
    /// What failed first, by offset. What the memory then holds is not defined.
    ///
    /// # Safety
    ///
    /// Until the call returns, `len` bytes at `address` are live memory of that place that nobody
    /// else uses.
    pub unsafe fn read(
        &self,
        file: &File,
        location: MemoryLocation,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Transferred, Fault> {
        self.call(Op::Read, file, location, address, len, offset)
    }

    /// Writes `len` bytes from the memory at `address` to `offset` of the file. What other threads
    /// and streams wrote to that memory before the call counts, whether or not anybody waited for
    /// it, only if it is done: the caller waits for its own streams.
    ///
    /// # Errors
    ///
    /// What failed first, by offset. How much of the rest was written is not defined.
    ///
    /// # Safety
    ///
    /// Until the call returns, `len` bytes at `address` are live memory of that place that nobody
    /// else writes.
    pub unsafe fn write(
        &self,
        file: &File,
        location: MemoryLocation,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Transferred, Fault> {
        self.call(Op::Write, file, location, address, len, offset)
    }

    /// Makes a call, and once more where it finds out that the device was reset: its memory may be
    /// new memory at the same address.
    fn call(
        &self,
        op: Op,
        file: &File,
        location: MemoryLocation,
        address: u64,
        len: usize,
        offset: u64,
    ) -> Result<Transferred, Fault> {
        let state = self.state();
        let once = |location: MemoryLocation| {
            if let Some(device) = location.device()
                && (1..=small::SMALL).contains(&(len as u64))
                && offset <= i64::MAX.cast_unsigned() - small::SMALL
                && !state.is_forked()
            {
                let request = SmallRequest { op, file: &file.0, location, address, len, offset };
                if let Some(done) = small::run(state.devices.device(device)?, &request) {
                    return done;
                }
            }
            let request =
                Request { op, file: file.clone(), location, address, len: len as u64, offset };
            state.run(request)
        };
        match once(location) {
            Err(Fault::Gpu(error)) if error.is_reset() => {
                let renewed = location.device().is_some_and(|index| state.devices.renew(index));
                let again =
                    self.locate(address).ok().filter(|now| now.device() == location.device());
                match again.filter(|_| renewed) {
                    Some(location) => once(location),
                    None => Err(Fault::Gpu(error)),
                }
            }
            done => done,
        }
    }

    /// An empty batch for at most `capacity` entries at once.
    #[must_use]
    pub fn batch(&self, capacity: u32) -> Batch {
        Batch::new(self.state(), capacity)
    }
}

impl State {
    /// Whether this is the process that the state belongs to.
    pub(crate) fn is_here(&self) -> bool {
        self.mark.is_here()
    }

    /// Whether it is that of a child of `fork(2)`.
    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Runs one call to its end.
    pub(crate) fn run(&'static self, request: Request) -> Result<Transferred, Fault> {
        self.run_by(request, true, WorkerPool::run)
    }

    /// As [`State::run`], for a thread that has a turn.
    pub(crate) fn run_with_permit(&'static self, request: Request) -> Result<Transferred, Fault> {
        self.run_by(request, false, WorkerPool::run_with_permit)
    }

    fn run_by(
        &'static self,
        request: Request,
        sleeps: bool,
        run: impl FnOnce(&'static WorkerPool, &'static Devices, &Arc<Job>),
    ) -> Result<Transferred, Fault> {
        let Some(request) = self.fitting(request)? else {
            return Ok(Transferred::default());
        };
        let bottleneck = request.file.0.bottleneck(request.op, request.len >= LARGE);
        let method = match request.location.device() {
            None => CopyMethod::Host,
            Some(index) if self.devices.device(index)?.uses_copy_engines() => {
                CopyMethod::CopyEngines
            }
            Some(_) => CopyMethod::Kernel,
        };
        let most = self.settings.max_piece() as u64;
        let (executors, piece) = self.pool.split(request.len, bottleneck, method, sleeps, most);
        let job = Arc::new(Job::new(request, executors, piece));
        run(&self.pool, &self.devices, &job);
        job.outcome()
    }

    /// The call as far as the file can go: nothing where it is empty, an error where it begins
    /// beyond the largest offset, a shorter one where it ends there or far behind the file.
    fn fitting(&self, mut request: Request) -> Result<Option<Request>, Fault> {
        if self.forked && request.location.device().is_some() {
            return Err(Fault::Forked);
        }
        let most = i64::MAX.cast_unsigned();
        let room = most.saturating_sub(request.offset);
        let call = if request.op == Op::Read { "pread" } else { "pwrite" };
        let outside = match request.op {
            Op::Read => request.offset > most,
            Op::Write => request.len > room,
        };
        if outside {
            let Request { offset, len, file, .. } = request;
            let failed = crate::fault::Failed { call, errno: libc::EINVAL, offset, len };
            return Err(file.0.fault(failed));
        }
        request.len = request.len.min(room);
        // One question for the size saves as many empty reads as there are pieces behind the end.
        // A file that has no size to tell (of proc, of FUSE) says 0 and is read as it is.
        let chunk = self.settings.max_piece() as u64;
        if request.op == Op::Read && request.len > chunk {
            let size = request.file.0.size().filter(|size| *size > request.offset);
            if let Some(size) = size {
                request.len = request.len.min((size - request.offset).saturating_add(1));
            }
        }
        Ok((request.len > 0).then_some(request))
    }
}
