//! What cuFile's paths work on: registered files, and GPU memory that the slots share.

use std::os::fd::BorrowedFd;

use gpuio_cufile::{Buffer, Direction, Driver, Handle, IoError, Piece};
use gpuio_gpu::{Context, DeviceBuf, GpuError};

use crate::engine::{EngineFile, IoFault, Op};
use crate::path::memory::{refused, stride};
use crate::path::verifier::{self, BlockLocation, Verifier};
use crate::path::{
    CufileSide, Fault, GpuSide, Mismatch, OpenedPath, Path, PathConfig, PathError, Request,
};

/// Slots begin at multiples of this: the pages that a GPU maps for others (GPUDirect RDMA, "BAR
/// sizes"), so that no page is registered twice.
const GPU_PAGE: usize = 64 << 10;

/// Each slot is a buffer of its own to the library. With one buffer for all, I/Os in flight at
/// once in several streams get one another's bytes: seen with release 1.15 in compatibility mode
/// (BENCHMARKS.md), where a base that is not registered must also be the place itself.
pub(in crate::path) struct GdsBuffers {
    // Drop order: handles and registrations go before the memory, which cuFile must not lose.
    handles: Vec<Handle>,
    registered: Vec<Buffer>,
    verifier: Verifier,
    destination: DeviceBuf,
    context: Context,
    stride: usize,
    path: &'static str,
}

pub(in crate::path) fn setup(path: &'static str, what: impl Into<String>) -> PathError {
    PathError::Setup { path, what: what.into() }
}

/// What cuFile answered, as a request's fault.
pub(in crate::path) fn fault(error: IoError) -> Fault {
    match error {
        IoError::Errno(errno) => Fault::File(IoFault::Errno(errno)),
        IoError::Code(code) => Fault::Cufile(code),
    }
}

/// The direction of a request's bytes.
pub(in crate::path) fn direction(op: Op) -> Direction {
    match op {
        Op::Read => Direction::Read,
        Op::Write => Direction::Write,
    }
}

/// The sides of a configuration that a path of cuFile needs.
pub(in crate::path) fn sides<'a>(
    path: &'static str,
    config: &'a PathConfig,
) -> Result<(&'a GpuSide, &'a CufileSide), PathError> {
    let gpu = config.gpu.as_ref().ok_or_else(|| {
        setup(path, "this path needs a GPU; name one with --gpu, or --gpu software to try it")
    })?;
    let cufile = config.cufile.as_ref().ok_or_else(|| {
        setup(path, "this path needs the cuFile library, which was not opened; see gpuio list")
    })?;
    if config.inject.is_some() {
        let what = "faults are injected at an engine's door, and this path has no engine";
        return Err(setup(path, what));
    }
    Ok((gpu, cufile))
}

fn handle(path: &'static str, driver: &Driver, file: &EngineFile) -> Result<Handle, PathError> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.fd));
    let name = name.map_or(format!("descriptor {}", file.fd), |path| path.display().to_string());
    // SAFETY: the worker keeps its files open as long as the path (`PathConfig::files`).
    let fd = unsafe { BorrowedFd::borrow_raw(file.fd) };
    Handle::register(driver, fd, &name).map_err(|error| setup(path, error.to_string()))
}

/// What the record shows instead of an engine.
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

/// What a path of cuFile reports when it is open.
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
        let broken = |source: GpuError| PathError::Gpu { path, source };
        gpu.context.make_current().map_err(broken)?;
        let stride = stride(config.block_max).next_multiple_of(GPU_PAGE);
        let len = stride * config.slots as usize;
        let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
            .map_err(|source| refused(path, config, gpu.memory, source))?;
        let verifier = Verifier::new(gpu, &destination).map_err(broken)?;
        // Host memory has nothing to register: the library reads and writes it as it is.
        let register = cufile.register && !destination.is_host();
        let slots = if register { config.slots } else { 0 };
        let registered = (0..slots).map(|slot| {
            let base = destination.ptr().byte_add(u64::from(slot) * stride as u64);
            // SAFETY: a part of one allocation, which `GdsBuffers` drops after the registration.
            unsafe { Buffer::register(&cufile.driver, base.0, stride) }
        });
        let registered = registered.collect::<Result<Vec<Buffer>, _>>();
        let registered = registered.map_err(|error| setup(path, error.to_string()))?;
        let handles = config.files.iter().map(|file| handle(path, &cufile.driver, file));
        let handles = handles.collect::<Result<Vec<Handle>, PathError>>()?;
        let context = gpu.context.clone();
        Ok(GdsBuffers { handles, registered, verifier, destination, context, stride, path })
    }

    /// For the record: which library moves the bytes, and where the memory is.
    pub(in crate::path) fn open_info(&self, driver: &Driver) -> OpenInfo {
        let len = self.destination.len() as u64;
        let host = self.destination.is_host();
        let (host_bytes, device_bytes) = if host { (len, 0) } else { (0, len) };
        OpenInfo { actual_engine: actual_engine(driver), host_bytes, device_bytes }
    }

    fn location(&self, slot: u32, len: u32) -> BlockLocation {
        let at = slot as usize * self.stride;
        let inside = len as usize <= self.stride && at + self.stride <= self.destination.len();
        assert!(inside, "a block of {len} bytes does not fit slot {slot}");
        BlockLocation { offset: at, len }
    }

    /// What is left of a request of which `done` bytes have moved: all of it in the slot's own part
    /// of the destination.
    pub(in crate::path) fn rest(&self, request: &Request, done: u32) -> Piece {
        let location = self.location(request.slot, request.len);
        let base = self.destination.ptr().byte_add(location.offset as u64);
        let left = (request.len - done) as usize;
        let done = u64::from(done);
        let (base, at) =
            if self.registered.is_empty() { (base.byte_add(done), 0) } else { (base, done) };
        Piece { base: base.0, at, len: left, offset: request.offset + done }
    }

    pub(in crate::path) fn handle(&self, request: &Request) -> &Handle {
        &self.handles[request.file as usize]
    }

    /// Waits for everything on the GPU, also for copies that the library has in streams of its own.
    pub(in crate::path) fn quiet(&self) -> Result<(), PathError> {
        let waited = self.context.synchronize();
        waited.map_err(|source| PathError::Gpu { path: self.path, source })
    }

    /// See [`Path::generate`]; the slot is idle.
    pub(in crate::path) fn generate(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<(), PathError> {
        let location = self.location(slot, len);
        // SAFETY: the slot's own part of the destination; the slot is idle, so nothing uses it.
        let filled = unsafe { self.verifier.fill(location, key, offset) };
        filled.map_err(|source| PathError::Gpu { path: self.path, source })
    }

    /// See [`Path::check`]; the slot's read has completed.
    pub(in crate::path) fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        let location = self.location(slot, len);
        // SAFETY: as for `generate`; its read has completed.
        let found = unsafe { self.verifier.check(location, key, offset) };
        let found = found.map_err(|source| PathError::Gpu { path: self.path, source })?;
        Ok(found.map(|m| verifier::locate_mismatch(m, None, key, offset)))
    }
}
