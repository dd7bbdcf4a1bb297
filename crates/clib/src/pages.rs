//! Page-locked memory of the caller, copies of GPU memory into it, and digests.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Mutex;

use gpuio_base::pattern;
use gpuio_gpu::{
    Context, DevPtr, DigestKernel, Digests, Event, GpuError, Range, Registered, Stream, Wait,
};
use gpuio_transfer::uncancelled;

use crate::error::{CallError, run};
use crate::memory::HOST;
use crate::process::{context, gpu, may_use_gpus};

/// `gpuio_copy`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy {
    from: u64,
    to: *mut c_void,
    length: u64,
}

/// `gpuio_digest`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest {
    address: u64,
    length: u64,
    first: u64,
    digest: u64,
}

/// Locks pages of the caller.
///
/// # Safety
/// `address` begins `length` bytes that stay mapped until they are unlocked; `pages` is null or
/// valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_pages_lock(
    device: c_int,
    address: *mut c_void,
    length: u64,
    pages: *mut *mut Registered,
) -> c_int {
    run(|| {
        if pages.is_null() {
            return Err(CallError::null("gpuio_pages_lock", "pages"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { pages.write(std::ptr::null_mut()) };
        let start = NonNull::new(address.cast::<u8>())
            .ok_or_else(|| CallError::null("gpuio_pages_lock", "address"))?;
        let len = usize::try_from(length)
            .map_err(|_| CallError::new(libc::EINVAL, "no memory has so many bytes"))?;
        let context = context(gpu(device)?)?;
        // SAFETY: the caller's promise.
        let locked = context.entered(|| unsafe { Registered::new(&context, start, len) });
        let locked = locked.and_then(|done| done).map_err(|error| {
            let what = format!("gpuio_pages_lock of {length} bytes for GPU {device}");
            CallError::of_gpu(&error).of(&what)
        })?;
        // SAFETY: as above.
        unsafe { pages.write(Box::into_raw(Box::new(locked))) };
        Ok(())
    })
}

/// Unlocks them.
///
/// # Safety
/// `pages` is null or of `gpuio_pages_lock`, and no copy uses them any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_pages_unlock(pages: *mut Registered) {
    if !pages.is_null() && may_use_gpus().is_ok() {
        // SAFETY: from `Box::into_raw`, and unlocked once.
        uncancelled(|| drop(unsafe { Box::from_raw(pages) }));
    }
}

/// A GPU with its digest kernel loaded.
#[derive(Debug, Clone)]
struct Ready {
    context: Context,
    kernel: DigestKernel,
}

/// The GPUs that were used: the driver takes some ten milliseconds to load a kernel.
static READY: Mutex<Vec<Ready>> = Mutex::new(Vec::new());

fn ready(device: u32) -> Result<Ready, CallError> {
    may_use_gpus()?;
    let mut all = READY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.retain(|one| !one.context.is_reset());
    if let Some(one) = all.iter().find(|one| one.context.device() == device) {
        return Ok(one.clone());
    }
    let context = context(device)?;
    let kernel = context.entered(|| DigestKernel::load(&context)).and_then(|loaded| loaded);
    let kernel = kernel.map_err(|error| CallError::of_gpu(&error))?;
    all.push(Ready { context: context.clone(), kernel: kernel.clone() });
    Ok(Ready { context, kernel })
}

/// Copies on a stream, which is waited for also where one fails.
///
/// # Safety
/// The caller's promises of `gpuio_copy_out`.
unsafe fn on_gpu(
    Ready { context, kernel }: &Ready,
    copies: &[Copy],
    digests: &mut [Digest],
) -> Result<(), GpuError> {
    // The program's kernels that made the bytes may be in any stream.
    context.synchronize()?;
    let taken: Option<Digests> = if digests.is_empty() {
        None
    } else {
        let ranges: Vec<Range> = digests
            .iter()
            .map(|one| Range { start: DevPtr(one.address), len: one.length, first: one.first })
            .collect();
        // SAFETY: the caller's promise; the result waits.
        Some(unsafe { kernel.start(&ranges) }?)
    };
    let stream = Stream::new(context)?;
    let event = Event::new(context, Wait::Block)?;
    let put = copies.iter().filter(|copy| copy.length > 0).try_for_each(|copy| {
        let len = usize::try_from(copy.length).unwrap_or(usize::MAX);
        // SAFETY: the caller's promise, and the stream is waited for.
        unsafe { stream.d2h(copy.to.cast(), DevPtr(copy.from), len) }
    });
    let waited = event.record(&stream).and_then(|()| event.sync());
    if waited.is_err() {
        let _ = stream.sync();
    }
    put.and(waited)?;
    if let Some(taken) = taken {
        for (one, digest) in digests.iter_mut().zip(taken.wait()?) {
            one.digest = digest;
        }
    }
    Ok(())
}

/// The same for memory of the host.
///
/// # Safety
/// As [`on_gpu`].
unsafe fn on_host(copies: &[Copy], digests: &mut [Digest]) {
    let place = |address: u64| {
        std::ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap_or(0))
    };
    let bytes = |length: u64| usize::try_from(length).unwrap_or(usize::MAX);
    for copy in copies.iter().filter(|copy| copy.length > 0) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(place(copy.from), copy.to.cast(), bytes(copy.length)) };
    }
    for one in digests {
        let here = if one.length == 0 {
            &[]
        } else {
            // SAFETY: the caller's promise: live bytes that no thread writes meanwhile.
            unsafe { std::slice::from_raw_parts(place(one.address), bytes(one.length)) }
        };
        one.digest = pattern::digest(here, one.first);
    }
}

/// Copies bytes out of a GPU's memory, and takes digests there.
///
/// # Safety
/// Each copy's ranges are live, and so is each digest's; nothing writes the sources or uses the
/// destinations meanwhile. `copies` and `digests` are valid for so many elements.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_copy_out(
    device: c_int,
    copies: *const Copy,
    copy_count: u64,
    digests: *mut Digest,
    digest_count: u64,
) -> c_int {
    run(|| {
        if copies.is_null() && copy_count > 0 {
            return Err(CallError::null("gpuio_copy_out", "copies"));
        }
        if digests.is_null() && digest_count > 0 {
            return Err(CallError::null("gpuio_copy_out", "digests"));
        }
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let copies = if copy_count == 0 {
            &[]
        } else {
            // SAFETY: not null, and the caller's promise.
            unsafe { std::slice::from_raw_parts(copies, count(copy_count)) }
        };
        let digests = if digest_count == 0 {
            &mut []
        } else {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts_mut(digests, count(digest_count)) }
        };
        if copies.iter().any(|copy| copy.length > 0 && (copy.from == 0 || copy.to.is_null()))
            || digests.iter().any(|one| one.length > 0 && one.address == 0)
        {
            return Err(CallError::null("gpuio_copy_out", "the address of a range"));
        }
        if device == HOST {
            // SAFETY: the caller's promise.
            unsafe { on_host(copies, digests) };
            return Ok(());
        }
        let ready = ready(gpu(device)?).map_err(|error| error.of("gpuio_copy_out"))?;
        // SAFETY: the caller's promise.
        let done = ready.context.entered(|| unsafe { on_gpu(&ready, copies, digests) });
        done.and_then(|done| done).map_err(|error| CallError::of_gpu(&error).of("gpuio_copy_out"))
    })
}
