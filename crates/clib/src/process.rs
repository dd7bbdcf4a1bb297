//! The objects that one process has once: the driver that the environment names, and the transfer.

use std::os::fd::BorrowedFd;
use std::sync::{Once, OnceLock};

use gpuio_base::safetensors::loader;
use gpuio_gpu::{Context, Driver, Which};
use gpuio_guard::objects::environment;
use gpuio_transfer::live_page::{self, CompletedCall};
use gpuio_transfer::{Fault, File, MemoryLocation, Op, Settings, Transfer, Transferred};

use crate::error::CallError;

/// The driver's name, read from the environment once.
pub(crate) fn which() -> &'static Which {
    static WHICH: OnceLock<Which> = OnceLock::new();
    WHICH.get_or_init(|| Which::from_variable(environment::variable("GPUIO_CUFILE_DRIVER")))
}

/// The driver. One that does not load is tried again by the next call.
pub(crate) fn driver() -> Result<&'static Driver, CallError> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let loaded =
        Driver::load(which()).map_err(|absent| CallError::new(libc::ENODEV, absent.to_string()))?;
    Ok(DRIVER.get_or_init(|| loaded))
}

/// Refuses memory of a GPU in a child of the process that used the driver first (`fork(2)`).
pub(crate) fn may_use_gpus() -> Result<(), CallError> {
    if transfer().is_forked() { Err(CallError::of_fault(&Fault::Forked)) } else { Ok(()) }
}

/// The primary context of a GPU.
pub(crate) fn context(device: u32) -> Result<Context, CallError> {
    may_use_gpus()?;
    Context::new(driver()?, device).map_err(|error| CallError::of_gpu(&error))
}

pub(crate) fn transfer() -> &'static Transfer {
    static TRANSFER: OnceLock<Transfer> = OnceLock::new();
    TRANSFER.get_or_init(|| {
        let mut settings = Settings::default();
        let spare = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1;
        let spare = u32::try_from(spare).unwrap_or(u32::MAX).min(loader::THREADS);
        settings.max_workers = settings.max_workers.max(spare);
        settings.workers_per_gpu = loader::THREADS;
        settings.max_piece_bytes = loader::PIECE_BYTES;
        settings.files_outlast_calls = false;
        settings.driver = which().clone();
        Transfer::new(settings)
    })
}

/// The file of a caller's descriptor, which is duplicated.
pub(crate) fn file(fd: i32) -> Result<File, CallError> {
    if fd < 0 {
        return Err(CallError::new(
            libc::EBADF,
            "no descriptor has a negative number: see open(2)",
        ));
    }
    // SAFETY: the caller's descriptor, open during the call by the interface; a closed one is
    // refused by the kernel.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(transfer().file(fd)?)
}

/// Reads by the transfer, and counts it for `gpuio stats`.
///
/// # Safety
/// As [`Transfer::call`].
pub(crate) unsafe fn read(
    file: &File,
    location: MemoryLocation,
    address: u64,
    len: usize,
    offset: u64,
) -> Result<Transferred, Fault> {
    let began_ns = live_page::monotonic_ns();
    // SAFETY: the caller's promise.
    let done = unsafe { transfer().call(Op::Read, file, location, address, len, offset) };
    count(began_ns, location, (offset, len as u64), &done);
    done
}

/// Counts a read that has ended.
pub(crate) fn count(
    began_ns: u64,
    location: MemoryLocation,
    range: (u64, u64),
    done: &Result<Transferred, Fault>,
) {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let driver = driver().ok();
        let gpus = driver.and_then(|driver| driver.devices().ok()).unwrap_or_default();
        live_page::begin("gpuio", &gpus, driver.is_some_and(Driver::is_software));
    });
    let done = done.as_ref().ok();
    let bytes = done.map(|done| done.bytes as u64);
    let call = CompletedCall::now(Op::Read, location.device(), range, began_ns, bytes);
    live_page::count(&call, done.map(|done| &done.route));
}

pub(crate) fn gpu(device: i32) -> Result<u32, CallError> {
    u32::try_from(device).map_err(|_| {
        CallError::new(libc::ENODEV, "no GPU has a negative number. The first one is 0")
    })
}

/// The file of a descriptor, for messages.
pub(crate) fn path(fd: i32) -> String {
    let link = format!("/proc/self/fd/{fd}");
    match rustix::fs::readlink(&link, Vec::new()) {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => format!("descriptor {fd}"),
    }
}
