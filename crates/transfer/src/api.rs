//! The public entry point: [`Transfer`].

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use gpuio_gpu::{GpuError, MapError};

use crate::Op;
use crate::batch::Batch;
use crate::call::CallRequest;
use crate::device::small::{self, InlineRequest};
use crate::fault::{Fault, FileError};
use crate::file::{File, kept};
use crate::fork::PerProcess;
use crate::mapped::{FileMapping, MappingError};
use crate::memory::MemoryLocation;
use crate::settings::Settings;
use crate::state::State;
use crate::stream::Streams;
use crate::transferred::Transferred;

/// Transfers that are about to begin: see [`Transfer::prepare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Calls of up to `len` bytes on this thread.
    Calls {
        /// Bytes.
        len: usize,
    },
    /// A batch.
    Batches,
    /// So many transfers of up to `len` bytes each in streams at once.
    Streams {
        /// Bytes.
        len: usize,
        /// How many.
        count: u32,
    },
}

/// Moves bytes between files and callers' memory. Cloning is cheap. The crate's page explains how.
#[derive(Debug, Clone)]
pub struct Transfer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    process: PerProcess<Process>,
}

/// All that one process keeps for a transfer. It is never freed: our threads may use it until the
/// process exits, and the driver must not be called at exit to free what it allocated.
#[derive(Debug)]
struct Process {
    state: State,
    streams: Streams,
}

impl Process {
    fn new(settings: &Settings, forked: bool) -> Self {
        Self { state: State::new(settings, forked), streams: Streams::new(settings) }
    }
}

impl Transfer {
    /// Creates a transfer. Calls no driver: [`Transfer::locate`] loads it on first use.
    ///
    /// Threads, page-locked memory and the driver stay allocated until the process ends, so a
    /// process creates one.
    pub fn new(settings: Settings) -> Self {
        if !settings.files_outlast_calls {
            kept::keep_table();
        }
        let process = PerProcess::with(Process::new(&settings, false));
        Self(Arc::new(Shared { settings, process }))
    }

    pub(crate) fn state(&self) -> &'static State {
        &self.process().state
    }

    /// The state of this process for transfers in streams.
    pub(crate) fn streams(&self) -> &'static Streams {
        &self.process().streams
    }

    fn process(&self) -> &'static Process {
        let make = || Process::new(&self.0.settings, true);
        self.0.process.get(|process| &process.state.mark, make)
    }

    /// Whether this process is a child of the one that made the transfer (`fork(2)`): memory of a
    /// GPU can't be used in it.
    pub fn is_forked(&self) -> bool {
        self.state().forked
    }

    /// Opens a file by the caller's descriptor. The descriptor is duplicated; the caller may close
    /// it.
    ///
    /// # Errors
    /// The descriptor is not open, or is neither a regular file nor a block device.
    pub fn file(&self, fd: BorrowedFd<'_>) -> Result<File, FileError> {
        let file = File::open(fd, self.0.settings.uncached, self.0.settings.bypass_cache);
        if crate::file::are_fixed_too_many() {
            self.state().mapped.return_descriptors_soon();
        }
        file
    }

    /// Queries what kind of memory an address is. The first call loads the driver, which takes some
    /// hundred milliseconds; without a driver all memory is host memory. Later calls take less than
    /// a microsecond. The calling thread needs no context.
    ///
    /// # Errors
    /// The driver's error.
    pub fn locate(&self, address: u64) -> Result<MemoryLocation, GpuError> {
        let state = self.state();
        if state.forked {
            // GPU addresses stay reserved in the child, but there is no memory behind them.
            return Ok(MemoryLocation::host());
        }
        let Some(driver) = state.devices.driver() else {
            return Ok(MemoryLocation::host());
        };
        let query =
            || MemoryLocation::query(driver, address, |device| state.devices.device(device));
        match query() {
            Err(error) if error.is_reset() => {
                let renewed = error.device.is_some_and(|index| state.devices.renew(index));
                if renewed { query() } else { Err(error) }
            }
            result => result,
        }
    }

    /// Makes now what the first transfers on memory of this location would make, as far as settings
    /// and system allow: page-locked memory, and what the calling thread keeps. Threads are still
    /// started on demand. Does nothing for host memory.
    pub fn prepare(&self, location: &MemoryLocation, ahead: Ahead) {
        let state = self.state();
        let Some(index) = location.device().filter(|_| !state.forked) else {
            return;
        };
        // A device that is refused here is requested again by the transfers, which report it.
        let Ok(device) = state.devices.device(index) else {
            return;
        };
        match ahead {
            Ahead::Calls { len } if len as u64 <= small::SMALL => small::prepare(device),
            Ahead::Calls { .. } | Ahead::Batches => device.add_ring(),
            Ahead::Streams { len, count } => {
                self.streams().prepare(&state.devices, index, len as u64, count);
            }
        }
    }

    /// Whether a location may still be valid. It is not if the device was reset since the query.
    pub fn is_current(&self, location: &MemoryLocation) -> bool {
        let Some(index) = location.device() else {
            return true;
        };
        let state = self.state();
        !state.forked
            && state.devices.current(index).is_some_and(|it| it.serial() == location.serial)
    }

    /// Moves `len` bytes between `offset` of the file and the memory at `address`. `location` is
    /// the result of [`Transfer::locate`] for this address, or for another one of the same
    /// allocation.
    ///
    /// A read returns when the bytes are visible to the host and to later work of any stream. Where
    /// the file ends early, GPU memory beyond the end is left unchanged; host memory may be changed
    /// up to `len` bytes, as by any read with `O_DIRECT`. Before a write the caller synchronizes
    /// its own streams: writes to the memory that are still running may be missed.
    ///
    /// A call is repeated once if the device turns out to have been reset: there may be new memory
    /// at the same address.
    ///
    /// # Errors
    /// The first failure by offset. The content of the memory is then undefined, of a write how
    /// much of the rest was written.
    ///
    /// # Safety
    /// Until the call returns, `len` bytes at `address` are live memory of that location. Nothing
    /// else uses them during a read, or writes them during a write.
    pub unsafe fn call(
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
                let request = InlineRequest { op, file: &file.0, location, address, len, offset };
                let device = state.devices.device(device)?;
                if let Some(done) = state.read_mapped(device, &request) {
                    return done;
                }
                if let Some(done) = small::run(device, &request) {
                    if op == Op::Read
                        && let Ok(done) = &done
                        && (done.route.direct == 0 || file.0.is_in_memory())
                    {
                        state.mapped.observe_small(&file.0, device, offset, done.bytes as u64);
                    }
                    return done;
                }
            }
            let request =
                CallRequest { op, file: file.clone(), location, address, len: len as u64, offset };
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

    /// Maps bytes of a file for the program's own kernels on a device. They are brought into the
    /// page cache first, and stay in memory until the mapping is dropped. The file must be one that
    /// no process can change meanwhile (docs/dropin.md, "Files that are read again").
    ///
    /// Like a call, this is repeated once if the device turns out to have been reset.
    ///
    /// # Errors
    /// [`MappingError`] says which condition fails.
    pub fn map(
        &self,
        file: &File,
        range: Range<u64>,
        device: u32,
    ) -> Result<FileMapping, MappingError> {
        let state = self.state();
        if state.forked {
            return Err(MappingError::NoWatcher);
        }
        if state.devices.driver().is_none() {
            return Err(MappingError::NoDriver);
        }
        let once = || {
            let device = state.devices.device(device).map_err(MapError::Gpu)?;
            state.mapped.map(&file.0, device, range.clone())
        };
        match once() {
            Err(MappingError::Map(MapError::Gpu(error)))
                if error.is_reset() && state.devices.renew(device) =>
            {
                once()
            }
            result => result,
        }
    }

    /// Creates an empty batch for at most `capacity` entries at a time.
    #[must_use]
    pub fn batch(&self, capacity: u32) -> Batch {
        Batch::new(self.state(), capacity)
    }
}
