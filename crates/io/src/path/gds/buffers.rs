//! The files and memory of cuFile's paths: registered files, and GPU memory that the slots share.

use std::os::fd::BorrowedFd;

use gpuio_drivers::cufile::{Buffer, Driver, Handle, IoError, IoRange};
use gpuio_gpu::DevPtr;

use crate::engine::{EngineFile, IoFault};
use crate::path::destination::Destination;
use crate::path::grouped::Buffers;
use crate::path::{
    CufileSide, Fault, GpuSide, OpenedPath, Path, PathConfig, PathError, Request, slot_buffers,
};

/// Slots begin at multiples of this: the pages that a GPU maps for others (GPUDirect RDMA, "BAR
/// sizes"), so that no page is registered twice.
const GPU_PAGE: usize = 64 << 10;

/// Each slot is a buffer of its own to the library. With one buffer for all, I/Os in flight at
/// once in several streams get one another's bytes: seen with release 1.15 in compatibility mode
/// (docs/lab-book/right-bytes.md), where a base that is not registered must also be the place
/// itself.
pub(in crate::path) struct GdsBuffers {
    // Drop order: handles and registrations go before the memory, which cuFile must not lose.
    handles: Vec<Handle>,
    registered: Vec<Buffer>,
    destination: Destination,
}

impl Buffers for GdsBuffers {
    fn destination(&mut self) -> &mut Destination {
        &mut self.destination
    }
}

pub(in crate::path) fn setup(path: &'static str, what: impl Into<String>) -> PathError {
    PathError::Setup { path, what: what.into() }
}

/// cuFile's answer, as a request's fault.
pub(in crate::path) fn fault(error: IoError) -> Fault {
    match error {
        IoError::Errno(errno) => Fault::File(IoFault::Errno(errno)),
        IoError::Code(code) => Fault::Cufile(code),
    }
}

/// The sides of a configuration that a path of cuFile needs.
pub(in crate::path) fn sides<'a>(
    path: &'static str,
    config: &'a PathConfig,
) -> Result<(&'a GpuSide, &'a CufileSide), PathError> {
    let gpu = slot_buffers::gpu(path, config)?;
    let cufile = config.cufile.as_ref().ok_or_else(|| {
        setup(path, "this path needs the cuFile library, which was not opened; see gpuio list")
    })?;
    Ok((gpu, cufile))
}

fn handle(path: &'static str, driver: &Driver, file: &EngineFile) -> Result<Handle, PathError> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.fd));
    let name = name.map_or(format!("descriptor {}", file.fd), |path| path.display().to_string());
    // SAFETY: the worker keeps its files open as long as the path (`PathConfig::files`).
    let fd = unsafe { BorrowedFd::borrow_raw(file.fd) };
    Handle::register(driver, fd, &name).map_err(|error| setup(path, error.to_string()))
}

/// The text that the record shows instead of an engine.
fn actual_engine(driver: &Driver) -> String {
    let facts = driver.facts();
    let version = match facts.version {
        Some((major, minor)) => format!("cuFile {major}.{minor}"),
        None => "cuFile".to_owned(),
    };
    if driver.is_stand_in() {
        return format!("{version}, gpuio's stand-in");
    }
    match facts.nvidia_fs {
        Some((major, minor)) => format!("{version}, nvidia-fs {major}.{minor}"),
        None => format!("{version}, without nvidia-fs"),
    }
}

/// The report of a path of cuFile when it is open.
pub(in crate::path) struct OpenInfo {
    actual_engine: String,
    host_bytes: u64,
    device_bytes: u64,
}

impl OpenInfo {
    pub(in crate::path) fn of(self, path: Box<dyn Path>) -> OpenedPath {
        let OpenInfo { actual_engine, host_bytes, device_bytes } = self;
        let (steps_down, helpers) = (Vec::new(), Vec::new());
        OpenedPath { path, actual_engine, steps_down, host_bytes, device_bytes, helpers }
    }
}

impl GdsBuffers {
    /// Memory for all slots and a handle for each file. Makes the GPU's context current in this
    /// thread, which drives the path from then on.
    ///
    /// # Errors
    /// A side that is missing, or what the driver or the library refused.
    pub(in crate::path) fn open(
        path: &'static str,
        config: &PathConfig,
    ) -> Result<GdsBuffers, PathError> {
        let (gpu, cufile) = sides(path, config)?;
        let destination = Destination::open(path, config, gpu, GPU_PAGE)?;
        // Host memory has nothing to register: the library reads and writes it as it is.
        let register = cufile.register && !destination.is_host();
        let slots = if register { config.slots } else { 0 };
        let registered = (0..slots).map(|slot| {
            let base = destination.block(slot, 0);
            // SAFETY: a part of one allocation, which `GdsBuffers` drops after the registration.
            unsafe { Buffer::register(&cufile.driver, base.0, destination.stride()) }
        });
        let registered = registered.collect::<Result<Vec<Buffer>, _>>();
        let registered = registered.map_err(|error| setup(path, error.to_string()))?;
        let handles = config.files.iter().map(|file| handle(path, &cufile.driver, file));
        let handles = handles.collect::<Result<Vec<Handle>, PathError>>()?;
        Ok(GdsBuffers { handles, registered, destination })
    }

    /// For the record: which library moves the bytes, and where the memory is.
    pub(in crate::path) fn open_info(&self, driver: &Driver) -> OpenInfo {
        let (host_bytes, device_bytes) = self.destination.bytes();
        OpenInfo { actual_engine: actual_engine(driver), host_bytes, device_bytes }
    }

    /// The rest of a request of which `done` bytes have moved: all of it in the slot's own part of
    /// the destination.
    pub(in crate::path) fn rest(&self, request: &Request, done: u32) -> IoRange {
        let base = self.destination.block(request.slot, request.len);
        let left = (request.len - done) as usize;
        let done = u64::from(done);
        let (base, at): (DevPtr, u64) =
            if self.registered.is_empty() { (base.byte_add(done), 0) } else { (base, done) };
        IoRange { base: base.0, at, len: left, offset: request.offset + done }
    }

    pub(in crate::path) fn handle(&self, request: &Request) -> &Handle {
        &self.handles[request.file as usize]
    }
}
