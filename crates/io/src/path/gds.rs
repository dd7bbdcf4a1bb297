//! `gds`: cuFile moves the bytes between file and GPU memory. gdsio's `-x 0`.
//!
//! Each `cuFileRead` and `cuFileWrite` blocks, and inside the library the way through host memory
//! (compatibility mode), if it is taken, can't be told from the way past it: the whole time is the
//! file leg's and there is no GPU leg. One handle per file and one registered buffer per worker.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use gpuio_cufile::{Buffer, Driver, Handle, IoError};
use gpuio_gpu::{DeviceBuf, GpuError};

use super::judge::{Judge, Place};
use super::memory::{refused, stride};
use super::{
    ANY_MEMORY, Config, CufileSide, Fault, GpuSide, Landed, Mismatch, Mover, Opened, Path,
    PathError, Request, Row, Start,
};
use crate::clock::Clock;
use crate::engine::monitor::{self, LegCounters};
use crate::engine::{EngineFile, IoFault, Op};

const NAME: &str = "gds";

pub(super) const ROW: Row = Row {
    name: NAME,
    gdsio: Some(0),
    gdsio_name: "GPUD",
    summary: "NVIDIA's cuFile library moves the bytes between file and GPU memory",
    needs_gpu: true,
    via_gpu: false,
    buffered_only: false,
    buffered_because: None,
    mover: Mover::Cufile,
    batches: false,
    memory: ANY_MEMORY,
    open,
};

struct Gds {
    // Drop order: handles and registration go before the memory, which cuFile must not lose.
    handles: Vec<Handle>,
    _registered: Option<Buffer>,
    judge: Judge,
    destination: DeviceBuf,
    stride: usize,
    counters: Arc<LegCounters>,
    ready: Vec<Landed>,
}

fn setup(what: impl Into<String>) -> PathError {
    PathError::Setup { path: NAME, what: what.into() }
}

fn broken(source: GpuError) -> PathError {
    PathError::Gpu { path: NAME, source }
}

/// The sides of a configuration that this path needs.
fn sides(config: &Config) -> Result<(&GpuSide, &CufileSide), PathError> {
    let gpu = config.gpu.as_ref().ok_or_else(|| {
        setup("this path needs a GPU; name one with --gpu, or --gpu software to try it")
    })?;
    let cufile = config.cufile.as_ref().ok_or_else(|| {
        setup("this path needs the cuFile library, which was not opened; see gpuio list")
    })?;
    if config.inject.is_some() {
        return Err(setup("faults are injected at an engine's door, and this path has no engine"));
    }
    Ok((gpu, cufile))
}

/// Opened on the worker's thread, which from then on has the GPU's context current.
fn open(config: Config) -> Result<Opened, PathError> {
    let (gpu, cufile) = sides(&config)?;
    gpu.context.make_current().map_err(broken)?;
    let stride = stride(config.block_max);
    let len = stride * config.slots as usize;
    let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
        .map_err(|source| refused(NAME, &config, gpu.memory, source))?;
    let judge = Judge::new(gpu, &destination).map_err(broken)?;
    // Host memory has nothing to register: the library reads and writes it as it is.
    let register = cufile.register && !destination.is_host();
    let registered = register.then(|| {
        // SAFETY: one allocation, which `Gds` drops after the registration.
        unsafe { Buffer::register(&cufile.driver, destination.ptr().0, len) }
    });
    let registered = registered.transpose().map_err(|error| setup(error.to_string()))?;
    let handles = config.files.iter().map(|file| handle(&cufile.driver, file));
    let handles = handles.collect::<Result<Vec<Handle>, PathError>>()?;
    let (host_bytes, device_bytes) =
        if destination.is_host() { (len as u64, 0) } else { (0, len as u64) };
    let engine_got = engine_got(&cufile.driver);
    let path = Gds {
        handles,
        _registered: registered,
        judge,
        destination,
        stride,
        counters: Arc::clone(&config.counters),
        ready: Vec::with_capacity(config.slots as usize),
    };
    Ok(Opened {
        path: Box::new(path),
        engine_got,
        steps_down: Vec::new(),
        host_bytes,
        device_bytes,
    })
}

fn handle(driver: &Driver, file: &EngineFile) -> Result<Handle, PathError> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.fd));
    let name = name.map_or(format!("descriptor {}", file.fd), |path| path.display().to_string());
    // SAFETY: the worker keeps its files open as long as the path (`Config::files`).
    let fd = unsafe { BorrowedFd::borrow_raw(file.fd) };
    Handle::register(driver, fd, &name).map_err(|error| setup(error.to_string()))
}

/// What stands in the record in an engine's place.
fn engine_got(driver: &Driver) -> String {
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

/// What cuFile answered, as a request's fault.
fn fault(error: IoError) -> Fault {
    match error {
        IoError::Errno(errno) => Fault::File(IoFault::Errno(errno)),
        IoError::Code(code) => Fault::Cufile(code),
    }
}

impl Gds {
    fn place(&self, slot: u32, len: u32) -> Place {
        let at = slot as usize * self.stride;
        let inside = len as usize <= self.stride && at + self.stride <= self.destination.len();
        assert!(inside, "a block of {len} bytes does not fit slot {slot}");
        Place { at, len }
    }

    /// Moves all bytes of a request, going on where cuFile stopped short, which it documents for
    /// the end of a file only.
    fn transfer(&self, request: &Request) -> Result<(), Fault> {
        let place = self.place(request.slot, request.len);
        let handle = &self.handles[request.file as usize];
        let base = self.destination.ptr().0;
        let len = request.len as usize;
        let mut done = 0;
        let mut short = false;
        while done < len {
            let (at, offset) = ((place.at + done) as u64, request.offset + done as u64);
            let moved = match request.op {
                // SAFETY: `at` and the rest of the length lie in this slot's own part of the
                // destination, which lives and which nothing uses until this returns.
                Op::Read => unsafe { handle.read(base, at, len - done, offset) },
                // SAFETY: as above; what filled the slot was waited for.
                Op::Write => unsafe { handle.write(base, at, len - done, offset) },
            };
            let moved = moved.map_err(fault)?;
            if moved == 0 {
                // Below `len`, which is a u32.
                let got = u32::try_from(done).unwrap_or(u32::MAX);
                return Err(Fault::File(IoFault::EndOfFile(got)));
            }
            done += moved;
            if done < len && !short {
                short = true;
                monitor::add(&self.counters.short_ios, 1);
            }
        }
        Ok(())
    }

    fn count(&self, request: &Request, result: Result<(), Fault>) {
        let counters = self.counters.of(request.op);
        if result.is_ok() {
            monitor::add(&counters.ios, 1);
            monitor::add(&counters.bytes, u64::from(request.len));
        } else {
            monitor::add(&counters.faults, 1);
        }
    }
}

impl Path for Gds {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        let result = self.transfer(&request);
        let ended = clock.now();
        self.count(&request, result);
        let file_ns = ended.saturating_sub(request.started);
        self.ready.push(Landed { request, result, ended, file_ns, gpu_ns: 0 });
        Start::Taken
    }

    fn advance(
        &mut self,
        _clock: &Clock,
        landed: &mut Vec<Landed>,
        _wait: bool,
    ) -> Result<(), PathError> {
        landed.append(&mut self.ready);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.ready.len()
    }

    fn synchronous(&self) -> bool {
        true
    }

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        let place = self.place(slot, len);
        // SAFETY: the slot's own part of the destination; no transfer outlives `start`.
        let filled = unsafe { self.judge.fill(place, key, offset) };
        filled.map_err(broken)
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        let place = self.place(slot, len);
        // SAFETY: as for `generate`; its read has landed.
        let found = unsafe { self.judge.check(place, key, offset) };
        let found = found.map_err(broken)?;
        Ok(found.map(|m| Mismatch {
            offset: m.first_offset,
            expected: m.expected,
            found: m.found,
            bad_words: m.bad_words,
            leg: None,
        }))
    }
}
