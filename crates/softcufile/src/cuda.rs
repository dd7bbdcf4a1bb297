//! The software GPU's calls, found in the object that is loaded already.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};

/// The object that is looked for, by the end of its name.
const OBJECT: &[u8] = b"libgpuio_softgpu.so";
/// `cuStreamCreate`: no implicit order with the default stream.
const NON_BLOCKING: c_uint = 1;
/// The CUDA driver's code for "not initialised": no driver is loaded.
pub(crate) const NOT_INITIALIZED: c_int = 3;

type Stream = *mut c_void;

/// What a copy needs.
pub(crate) struct Cuda {
    create: unsafe extern "C" fn(*mut Stream, c_uint) -> c_int,
    destroy: unsafe extern "C" fn(Stream) -> c_int,
    sync: unsafe extern "C" fn(Stream) -> c_int,
    copy: unsafe extern "C" fn(u64, u64, usize, Stream) -> c_int,
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
        let (create, destroy) = (symbol(object, c"cuStreamCreate")?, c"cuStreamDestroy_v2");
        let destroy = symbol(object, destroy)?;
        let (sync, copy) =
            (symbol(object, c"cuStreamSynchronize")?, symbol(object, c"cuMemcpyAsync")?);
        Some(Cuda {
            // SAFETY: the type is that of the function in the CUDA driver API's manual.
            create: unsafe {
                // tidy: long line, rustfmt keeps the types of a transmute together
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Stream, c_uint) -> c_int>(
                    create,
                )
            },
            // SAFETY: as above.
            destroy: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Stream) -> c_int>(destroy)
            },
            // SAFETY: as above.
            sync: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Stream) -> c_int>(sync)
            },
            // SAFETY: as above.
            copy: unsafe {
                std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(u64, u64, usize, Stream) -> c_int,
                >(copy)
            },
        })
    }

    /// Copies between any two addresses and returns once it is done, or the driver's code.
    ///
    /// # Safety
    /// Host addresses are valid for `len` bytes; the driver knows its own.
    pub(crate) unsafe fn copy(&self, to: u64, from: u64, len: usize) -> Result<(), c_int> {
        let ok = |code: c_int| if code == 0 { Ok(()) } else { Err(code) };
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

fn symbol(object: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the object is open and the name ends.
    let found = unsafe { libc::dlsym(object, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Notes the object's name if it is the one.
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
    // SAFETY: `find` passed its own variable, which nobody else uses meanwhile.
    unsafe { *found.cast::<Option<CString>>() = Some(name.to_owned()) };
    1
}
