//! Rings for file I/O that a program's kernels start. `include/gpuio.h` is the contract of each
//! function; `gpuio_device.cuh` is the device's half.

use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use gpuio_gpu::initiated::{DEVICE_HEADER, RingError, Rings, RingsRequest};
use gpuio_transfer::spawn_thread;

use crate::error::{CallError, run};
use crate::process::{context, file, gpu, may_use_gpus, path};

/// `gpuio_rings_options`. 0 is the default of each.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options {
    rings: u32,
    poll_threads: u32,
    buffers: u32,
    max_buffers: u32,
    max_files: u32,
    reserved: u32,
    buffer_length: u64,
}

/// The defaults, where they are no other option.
const BUFFERS: u32 = 64;
const FILES: u32 = 64;
const BUFFER_LENGTH: u64 = 64 << 10;

/// `gpuio_rings`.
pub(crate) struct Open {
    rings: Arc<Rings>,
    watcher: Arc<Watcher>,
}

/// The thread that wakes those of the operating system, as its owner sees it.
#[derive(Debug, Default)]
struct Watcher {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Runs,
    /// It looks at once.
    Looks,
    /// It ends.
    Ends,
    /// It has ended, and has none of the rings.
    Gone,
}

impl Watcher {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: State) {
        *self.lock() = to;
        self.changed.notify_all();
    }

    /// The thread's work. It has the rings only while it looks, so that their last owner is the
    /// caller who closes them.
    fn watch(&self, rings: &Weak<Rings>) {
        while let Some(pause) = rings.upgrade().map(|rings| rings.look()) {
            let state = self.lock();
            let runs = |state: &mut State| *state == State::Runs;
            let waited = self.changed.wait_timeout_while(state, pause, runs);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            match *state {
                State::Runs => {}
                State::Looks => *state = State::Runs,
                State::Ends | State::Gone => break,
            }
        }
        self.set(State::Gone);
    }

    fn end(&self) {
        self.set(State::Ends);
        let is_there = |state: &mut State| *state != State::Gone;
        drop(self.changed.wait_while(self.lock(), is_there));
    }
}

impl CallError {
    fn of_rings(error: &RingError) -> Self {
        let errno = match error {
            RingError::Gpu(error) => return Self::of_gpu(error),
            RingError::Request(_) => libc::EINVAL,
            RingError::Kernel { errno, .. } => match *errno {
                libc::EMFILE | libc::ENFILE => libc::EMFILE,
                errno @ (libc::ENOMEM | libc::EBADF | libc::EAGAIN) => errno,
                libc::EPERM | libc::ENOSYS | libc::EINVAL => libc::EOPNOTSUPP,
                _ => libc::EIO,
            },
            _ => libc::EIO,
        };
        Self::new(errno, error.to_string())
    }
}

fn request(options: Options) -> Result<RingsRequest, CallError> {
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    if options.reserved != 0 {
        let text = "gpuio_rings_options: `reserved` is not 0. Set fields that are not used to 0";
        return Err(CallError::new(libc::EINVAL, text));
    }
    let rings = or(options.rings, 1);
    let buffers = or(options.buffers, BUFFERS);
    Ok(RingsRequest {
        rings,
        poll_threads: or(options.poll_threads, rings),
        buffers,
        max_buffers: or(options.max_buffers, buffers),
        max_files: or(options.max_files, FILES),
        buffer_len: if options.buffer_length == 0 { BUFFER_LENGTH } else { options.buffer_length },
    })
}

fn open(device: c_int, options: Options) -> Result<Open, CallError> {
    let request = request(options)?;
    let context = context(gpu(device)?)?;
    let rings = Rings::new(&context, request).map_err(|error| CallError::of_rings(&error))?;
    let (rings, watcher) = (Arc::new(rings), Arc::new(Watcher::default()));
    let (seen, own) = (Arc::downgrade(&rings), Arc::clone(&watcher));
    if !spawn_thread("gpuio-rings", move || own.watch(&seen)) {
        let text = "no thread can be started that watches the rings. Raise the limit (ulimit -u)";
        return Err(CallError::new(libc::EAGAIN, text));
    }
    Ok(Open { rings, watcher })
}

/// Runs a call on rings that are no null, in a process that may use them.
///
/// # Safety
/// `rings` is null or open.
unsafe fn with(
    call: &str,
    rings: *const Open,
    body: impl FnOnce(&Open) -> Result<(), CallError>,
) -> c_int {
    run(|| {
        // SAFETY: the caller's promise.
        let open = unsafe { rings.as_ref() }.ok_or_else(|| CallError::null(call, "rings"))?;
        may_use_gpus().map_err(|error| error.of(call))?;
        body(open)
    })
}

/// Opens rings.
///
/// # Safety
/// `options` is null or valid, `rings` null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_open(
    device: c_int,
    options: *const Options,
    rings: *mut *mut Open,
) -> c_int {
    run(|| {
        if rings.is_null() {
            return Err(CallError::null("gpuio_rings_open", "rings"));
        }
        // SAFETY: not null, and the caller's promise.
        unsafe { rings.write(std::ptr::null_mut()) };
        // SAFETY: the caller's promise.
        let options = unsafe { options.as_ref() }.copied().unwrap_or_default();
        let opened = open(device, options)
            .map_err(|error| error.of(&format!("gpuio_rings_open for GPU {device}")))?;
        // SAFETY: as above.
        unsafe { rings.write(Box::into_raw(Box::new(opened))) };
        Ok(())
    })
}

/// The device's address of the first ring; 0 for null.
///
/// # Safety
/// `rings` is null or open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_rings_address(rings: *const Open) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { rings.as_ref() }.map_or(0, |open| open.rings.address().0)
}

/// How many rings there are; 0 for null.
///
/// # Safety
/// As [`gpuio_rings_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_rings_count(rings: *const Open) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { rings.as_ref() }.map_or(0, |open| open.rings.request().rings)
}

/// I/O without an end; 0 for null, and in a child of `fork(2)`, which has no memory of the rings.
///
/// # Safety
/// As [`gpuio_rings_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpuio_rings_in_flight(rings: *const Open) -> u64 {
    // SAFETY: the caller's promise.
    let open = unsafe { rings.as_ref() };
    open.filter(|_| may_use_gpus().is_ok()).map_or(0, |open| open.rings.in_flight())
}

/// Adds a file.
///
/// # Safety
/// As [`gpuio_rings_address`]; `number` is null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_add_file(
    rings: *const Open,
    fd: c_int,
    number: *mut u32,
) -> c_int {
    let body = |open: &Open| {
        if number.is_null() {
            return Err(CallError::null("gpuio_rings_add_file", "number"));
        }
        // Refuses what is neither a regular file nor a block device.
        file(fd)?;
        let added = open.rings.add_file(fd).map_err(|error| {
            CallError::of_rings(&error).of(&format!("gpuio_rings_add_file of {}", path(fd)))
        })?;
        // SAFETY: not null, and the caller's promise.
        unsafe { number.write(added) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with("gpuio_rings_add_file", rings, body) }
}

/// Takes a file out.
///
/// # Safety
/// As [`gpuio_rings_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_remove_file(
    rings: *const Open,
    number: u32,
) -> c_int {
    let remove = |open: &Open| open.rings.remove_file(number).map_err(|e| CallError::of_rings(&e));
    // SAFETY: the caller's promise.
    unsafe { with("gpuio_rings_remove_file", rings, remove) }
}

/// Raises the number of buffers.
///
/// # Safety
/// As [`gpuio_rings_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_grow(rings: *const Open, buffers: u32) -> c_int {
    let grow = |open: &Open| open.rings.grow(buffers).map_err(|error| CallError::of_rings(&error));
    // SAFETY: the caller's promise.
    unsafe { with("gpuio_rings_grow", rings, grow) }
}

/// Wakes the rings' threads.
///
/// # Safety
/// As [`gpuio_rings_address`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_wake(rings: *const Open) -> c_int {
    let wake = |open: &Open| {
        open.watcher.set(State::Looks);
        open.rings.wake().map_err(|error| CallError::of_rings(&error))
    };
    // SAFETY: the caller's promise.
    unsafe { with("gpuio_rings_wake", rings, wake) }
}

/// Waits for what is in flight, and gives all back.
///
/// # Safety
/// `rings` is null or open, and nothing uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn gpuio_rings_close(rings: *mut Open) -> c_int {
    run(|| {
        if rings.is_null() {
            return Err(CallError::null("gpuio_rings_close", "rings"));
        }
        may_use_gpus().map_err(|error| error.of("gpuio_rings_close"))?;
        // SAFETY: from `Box::into_raw` in `gpuio_rings_open`, and closed once.
        let open = unsafe { Box::from_raw(rings) };
        open.watcher.end();
        open.rings.drain().map_err(|left| {
            let text = format!(
                "gpuio_rings_close: {left} I/Os have not ended in half a minute. The rings are \
                 closed; a write may or may not be in its file. Look at the storage (dmesg)"
            );
            CallError::new(libc::EIO, text)
        })
    })
}

/// The text of `gpuio_device.cuh`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gpuio_device_header() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    // It has no NUL.
    TEXT.get_or_init(|| CString::new(DEVICE_HEADER).unwrap_or_default()).as_ptr()
}
