//! The software GPU's calls, found in the loaded object.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};

/// The object, by the end of its name.
const OBJECT: &[u8] = b"libgpuio_softgpu.so";
/// `cuStreamCreate`: no implicit order with the default stream.
const NON_BLOCKING: c_uint = 1;
/// The CUDA driver's code for "not initialised": no driver is loaded.
pub(crate) const NOT_INITIALIZED: c_int = 3;

type Stream = *mut c_void;

/// The driver calls that a copy needs.
pub(crate) struct Cuda {
    create: unsafe extern "C" fn(*mut Stream, c_uint) -> c_int,
    destroy: unsafe extern "C" fn(Stream) -> c_int,
    sync: unsafe extern "C" fn(Stream) -> c_int,
    copy: unsafe extern "C" fn(u64, u64, usize, Stream) -> c_int,
    pop: unsafe extern "C" fn(*mut Context) -> c_int,
    push: unsafe extern "C" fn(Context) -> c_int,
    set: unsafe extern "C" fn(Context) -> c_int,
    call: unsafe extern "C" fn(Stream, HostFunction, *mut c_void) -> c_int,
}

/// A function that a stream can call.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// A context of the driver's, to be made current in another thread.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context(*mut c_void);

// SAFETY: a name that any thread may make current.
unsafe impl Send for Context {}

impl Context {
    /// None, until one is known.
    pub(crate) fn none() -> Context {
        Context(std::ptr::null_mut())
    }
}

impl Cuda {
    /// The calls, if the software GPU is loaded in this process. It is kept loaded from then on.
    pub(crate) fn find() -> Option<Cuda> {
        let mut name: Option<CString> = None;
        // SAFETY: the callback gets `name`, which lives during the call, and keeps no pointer.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut name).cast()) };
        let name = name?;
        // SAFETY: RTLD_NOLOAD runs no code: the object is loaded.
        let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        if object.is_null() {
            return None;
        }
        Some(Cuda {
            // SAFETY: the types here and below are those of the driver API's manual.
            create: unsafe { function(object, c"cuStreamCreate") }?,
            // SAFETY: as above.
            destroy: unsafe { function(object, c"cuStreamDestroy_v2") }?,
            // SAFETY: as above.
            sync: unsafe { function(object, c"cuStreamSynchronize") }?,
            // SAFETY: as above.
            copy: unsafe { function(object, c"cuMemcpyAsync") }?,
            // SAFETY: as above; a context is a pointer in a structure of its own size.
            pop: unsafe { function(object, c"cuCtxPopCurrent_v2") }?,
            // SAFETY: as above.
            push: unsafe { function(object, c"cuCtxPushCurrent_v2") }?,
            // SAFETY: as above.
            set: unsafe { function(object, c"cuCtxSetCurrent") }?,
            // SAFETY: as above.
            call: unsafe { function(object, c"cuLaunchHostFunc") }?,
        })
    }

    /// The context that is current in this thread.
    pub(crate) fn context(&self) -> Result<Context, c_int> {
        let mut context = Context::none();
        // SAFETY: `context` is valid for the write of one pointer.
        ok(unsafe { (self.pop)(&raw mut context) })?;
        // SAFETY: the driver's own handle.
        ok(unsafe { (self.push)(context) })?;
        Ok(context)
    }

    /// Makes a context current in this thread.
    pub(crate) fn enter(&self, context: Context) -> Result<(), c_int> {
        // SAFETY: a handle that the driver gave.
        ok(unsafe { (self.set)(context) })
    }

    /// Makes a stream call a function when it reaches it.
    ///
    /// # Safety
    /// The function may be called once with `data`, in any thread.
    pub(crate) unsafe fn call_in_stream(
        &self,
        stream: *mut c_void,
        function: HostFunction,
        data: *mut c_void,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's promise; the driver knows its streams.
        ok(unsafe { (self.call)(stream, function, data) })
    }

    /// Copies between any two addresses and waits; the error is the driver's code.
    ///
    /// # Safety
    /// Host addresses are valid for `len` bytes; the driver checks its own.
    pub(crate) unsafe fn copy(&self, to: u64, from: u64, len: usize) -> Result<(), c_int> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: `stream` is valid for the write of one pointer.
        ok(unsafe { (self.create)(&raw mut stream, NON_BLOCKING) })?;
        // SAFETY: the addresses as the caller promised; the stream is waited for below.
        let copied = ok(unsafe { (self.copy)(to, from, len, stream) });
        // SAFETY: the stream was created above.
        let done = ok(unsafe { (self.sync)(stream) });
        // SAFETY: created above and destroyed once.
        let _ = unsafe { (self.destroy)(stream) };
        copied.and(done)
    }
}

fn ok(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// A function of the object.
///
/// # Safety
/// `F` is a pointer to a function of the symbol's type.
unsafe fn function<F: Copy>(object: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the object is open and the name ends.
    let found = unsafe { libc::dlsym(object, name.as_ptr()) };
    // SAFETY: not null, of a pointer's size, and of that type by the caller's promise.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Records the object's name if it is the right one.
unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description for the time of the call.
    let name = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: not null, and a string of the loader's.
    let name = unsafe { CStr::from_ptr(name) };
    if !name.to_bytes().ends_with(OBJECT) {
        return 0;
    }
    // SAFETY: `find` passed its own variable, which nothing else uses during the call.
    unsafe { *found.cast::<Option<CString>>() = Some(name.to_owned()) };
    1
}
