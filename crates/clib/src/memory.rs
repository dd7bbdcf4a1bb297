//! Memory on a GPU or in the host that a caller and its tensors share, and reads into any memory.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use gpuio_gpu::{Context, DeviceBuf, MemoryKind, Stream};
use gpuio_transfer::{Transferred, uncancelled};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{CallError, run};
use crate::process::{context, driver, file, gpu, may_use_gpus, path, read, transfer};

/// `GPUIO_HOST`: the device of host memory.
pub(crate) const HOST: c_int = -1;

/// `gpuio_memory`. It is freed with its last owner: the caller, or a tensor.
pub(crate) struct Memory {
    bytes: Bytes,
    pub(crate) device: c_int,
}

enum Bytes {
    /// Nothing to free.
    None,
    Gpu(DeviceBuf, Context),
    Host(Pages),
}

/// Anonymous pages, which the kernel gives back zeroed.
struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its pages as a Box<[u8]> does.
unsafe impl Send for Pages {}
// SAFETY: through a shared reference only the address can be had.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(len: usize) -> Result<Self, CallError> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) };
        let start = start.map_err(|error| {
            let text = format!("the kernel has no memory for {len} bytes: {error}");
            CallError::new(libc::ENOMEM, text)
        })?;
        let start = NonNull::new(start.cast()).ok_or_else(|| {
            CallError::new(libc::ENOMEM, "the kernel mapped memory at address 0".to_owned())
        })?;
        Ok(Self { start, len })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nothing uses any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl Memory {
    fn new(device: c_int, length: u64) -> Result<Self, CallError> {
        let len = usize::try_from(length)
            .map_err(|_| CallError::new(libc::ENOMEM, "no address space holds so many bytes"))?;
        let bytes = if device == HOST {
            if len == 0 { Bytes::None } else { Bytes::Host(Pages::new(len)?) }
        } else {
            let context = context(gpu(device)?)?;
            if len == 0 {
                Bytes::None
            } else {
                let buffer = DeviceBuf::alloc(&context, MemoryKind::Device, len)
                    .map_err(|error| CallError::of_gpu(&error))?;
                Bytes::Gpu(buffer, context)
            }
        };
        Ok(Self { bytes, device })
    }

    /// Its first byte; 0 for no bytes.
    pub(crate) fn address(&self) -> u64 {
        match &self.bytes {
            Bytes::None => 0,
            Bytes::Gpu(buffer, _) => buffer.ptr().0,
            Bytes::Host(pages) => pages.start.addr().get() as u64,
        }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        match &self.bytes {
            Bytes::None => 0,
            Bytes::Gpu(buffer, _) => buffer.len(),
            Bytes::Host(pages) => pages.len,
        }
    }

    /// Whether these bytes are in it.
    pub(crate) fn holds(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.len() as u64)
    }

    /// Copies bytes of it to host memory.
    ///
    /// # Safety
    /// `to` is valid for the write of `len` bytes, which are in the memory from `offset` on.
    unsafe fn copy_out(&self, offset: u64, to: *mut u8, len: usize) -> Result<(), CallError> {
        match &self.bytes {
            Bytes::None => Ok(()),
            Bytes::Host(pages) => {
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                // SAFETY: inside the pages, by the caller's promise.
                let from = unsafe { pages.start.as_ptr().add(offset) };
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy(from, to, len) };
                Ok(())
            }
            Bytes::Gpu(buffer, context) => {
                may_use_gpus()?;
                let copied = context.entered(|| {
                    let stream = Stream::new(context)?;
                    // SAFETY: the caller's promise, and the stream is waited for.
                    unsafe { stream.d2h(to, buffer.ptr().byte_add(offset), len) }?;
                    stream.sync()
                });
                copied.and_then(|done| done).map_err(|error| CallError::of_gpu(&error))
            }
        }
    }
}

/// How many GPUs the driver has.
///
/// # Safety
/// `software` is null or valid for the write of an int.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_gpus(software: *mut c_int) -> c_int {
    let mut count = 0;
    let code = run(|| {
        let driver = driver().map_err(|error| error.of("gpuio_gpus"))?;
        count = c_int::try_from(driver.device_count()).unwrap_or(c_int::MAX);
        if !software.is_null() {
            // SAFETY: not null, and the caller's promise.
            unsafe { software.write(c_int::from(driver.is_software())) };
        }
        Ok(())
    });
    if code == 0 { count } else { code }
}

/// Allocates memory.
///
/// # Safety
/// `memory` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_memory_new(
    device: c_int,
    length: u64,
    memory: *mut *const Memory,
) -> c_int {
    run(|| {
        if memory.is_null() {
            return Err(CallError::null("gpuio_memory_new", "memory"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { memory.write(std::ptr::null()) };
        let made = Memory::new(device, length).map_err(|error| {
            let on = if device == HOST { "the host".into() } else { format!("GPU {device}") };
            error.of(&format!("gpuio_memory_new of {length} bytes on {on}"))
        })?;
        // SAFETY: as above.
        unsafe { memory.write(Arc::into_raw(Arc::new(made))) };
        Ok(())
    })
}

/// Its first byte; null for null or no bytes.
///
/// # Safety
/// `memory` is null or of `gpuio_memory_new`, and not released.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_memory_address(memory: *const Memory) -> *mut c_void {
    // SAFETY: the caller's promise.
    let address = unsafe { memory.as_ref() }.map_or(0, Memory::address);
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// Its bytes; 0 for null.
///
/// # Safety
/// As [`gpuio_memory_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_memory_length(memory: *const Memory) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { memory.as_ref() }.map_or(0, |memory| memory.len() as u64)
}

/// Copies bytes of it to host memory.
///
/// # Safety
/// As [`gpuio_memory_address`]; `to` is valid for the write of `length` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_memory_copy_out(
    memory: *const Memory,
    offset: u64,
    to: *mut c_void,
    length: u64,
) -> c_int {
    run(|| {
        // SAFETY: the caller's promise.
        let memory = unsafe { memory.as_ref() }
            .ok_or_else(|| CallError::null("gpuio_memory_copy_out", "memory"))?;
        if to.is_null() && length > 0 {
            return Err(CallError::null("gpuio_memory_copy_out", "to"));
        }
        let len = usize::try_from(length).ok().filter(|_| memory.holds(offset, length));
        let Some(len) = len else { return Err(outside(memory, offset, length)) };
        // SAFETY: the caller's promise, and inside the memory.
        unsafe { memory.copy_out(offset, to.cast(), len) }
            .map_err(|error| error.of("gpuio_memory_copy_out"))
    })
}

/// A range that leaves the memory.
pub(crate) fn outside(memory: &Memory, offset: u64, length: u64) -> CallError {
    let text = format!(
        "{length} bytes at {offset} are not in a memory of {} bytes. Take a range inside it",
        memory.len()
    );
    CallError::new(libc::EINVAL, text)
}

/// Gives up the caller's share.
///
/// # Safety
/// As [`gpuio_memory_address`]; the caller does not use `memory` any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_memory_release(memory: *const Memory) {
    if !memory.is_null() {
        // SAFETY: from `Arc::into_raw`, and released once.
        uncancelled(|| drop(unsafe { Arc::from_raw(memory) }));
    }
}

/// `gpuio_bytes`: what a read moved.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    bytes: u64,
    cached: u64,
    direct: u64,
    gpu: u64,
}

impl Moved {
    pub(crate) fn add(&mut self, more: &Moved) {
        let Moved { bytes, cached, direct, gpu } = more;
        self.bytes += bytes;
        self.cached += cached;
        self.direct += direct;
        self.gpu += gpu;
    }

    /// The bytes of a read of which only so many are wanted.
    pub(crate) fn of_some(done: Transferred, wanted: u64) -> Self {
        let Moved { bytes, cached, direct, .. } = Moved::from(done);
        let share = |part: u64| u128::from(part) * u128::from(wanted) / u128::from(bytes.max(1));
        // A part is at most all of it.
        let share = |part| u64::try_from(share(part)).unwrap_or(wanted);
        let from_cache = share(cached);
        let direct = share(cached + direct) - from_cache;
        Self { bytes: wanted, cached: from_cache, direct, gpu: wanted }
    }
}

impl From<Transferred> for Moved {
    fn from(done: Transferred) -> Self {
        // The routes also have bytes behind an end of file that came during the read.
        let bytes = done.bytes as u64;
        let direct = done.route.direct.min(bytes);
        let cached = done.route.cached.min(bytes - direct);
        let gpu = (done.route.by_kernel + done.route.by_copy).min(bytes);
        Self { bytes, cached, direct, gpu }
    }
}

/// Reads bytes of a file into memory.
///
/// # Safety
/// `address` is valid for the write of `length` bytes, on a GPU or in the host, and nothing else
/// uses them meanwhile; `moved` is null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_read(
    fd: c_int,
    offset: u64,
    address: *mut c_void,
    length: u64,
    moved: *mut Moved,
) -> c_int {
    run(|| {
        let named = |error: CallError| {
            let what = format!("gpuio_read of {length} bytes at {offset} of {}", path(fd));
            error.of(&what)
        };
        if address.is_null() && length > 0 {
            return Err(CallError::null("gpuio_read", "address"));
        }
        let len = usize::try_from(length)
            .map_err(|_| named(CallError::new(libc::EINVAL, "no memory has so many bytes")))?;
        let file = file(fd).map_err(named)?;
        let address = address.expose_provenance() as u64;
        let location =
            transfer().locate(address).map_err(|error| named(CallError::of_gpu(&error)))?;
        // SAFETY: the caller's promise.
        let done = unsafe { read(&file, location, address, len, offset) };
        let done = done.map_err(|fault| named(CallError::of_fault(&fault)))?;
        if !moved.is_null() {
            // SAFETY: not null, and the caller's promise.
            unsafe { moved.write(done.into()) };
        }
        Ok(())
    })
}
