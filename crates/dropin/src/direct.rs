//! The transfers that `auto` leaves to NVIDIA's library: those for which it has a direct path
//! between drive and GPU, without a copy in host memory.
//!
//! That it registers a file proves nothing, because in compatibility mode it accepts any file
//! ("cuFile API Reference Guide", "cuFile Compatibility Mode"). So that mode is switched off first,
//! and all of these must hold:
//!
//! - nvidia-fs is loaded. Without it the library is not even searched for: opening it probes
//!   devices and may write a log.
//! - The library opens, reports that compatibility mode is neither allowed nor forced (settings of
//!   the machine may override ours), and reports a version of nvidia-fs above 0.0 and a kind of
//!   storage that it supports.
//! - The descriptor is open with `O_DIRECT`, by which a program requests the direct path
//!   ("GPUDirect Storage O_DIRECT Requirements Guide"); no document says what happens to others.
//! - The library registers the file.
//! - The memory is a GPU's, and is not managed.
//!
//! A transfer that fails there is repeated by `transfer`, which then moves that file from then on:
//! a program sees an error only if ours fails too.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_host::Root;
use gpuio_transfer::{KeptFd, MemoryLocation, Op};
use rustix::fs::OFlags;

use crate::abi::{CufileError, Descriptor, DescriptorUnion, Handle, OPAQUE_FD, Properties};
use crate::environment::{self, Backend};
use crate::fork;
use crate::log::{self, Level};
use crate::nvidia::NvidiaLibrary;
use crate::nvidia_stats;
use crate::request::UncheckedRequest;

/// The file of nvidia-fs, while it is loaded.
const NVIDIA_FS: &str = "proc/driver/nvidia-fs/version";
/// The parameters that allow and force compatibility mode (`CUFileBoolConfigParameter_t`).
const ALLOW_COMPAT: c_int = 1;
const FORCE_COMPAT: c_int = 2;
/// The parameter that names the log file (`CUFileStringConfigParameter_t`).
const LOG_FILE: c_int = 1;

/// The functions of NVIDIA's library that are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct {
    register: unsafe extern "C" fn(*mut Handle, *mut Descriptor) -> CufileError,
    deregister: unsafe extern "C" fn(Handle),
    read: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
    write: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
    register_buffer: unsafe extern "C" fn(u64, usize, c_int) -> CufileError,
    deregister_buffer: unsafe extern "C" fn(u64) -> CufileError,
    /// The fork generation of the process that opened the library. Its functions are undefined in a
    /// child of fork(2) ("cuFile API Reference Guide", "Usage").
    generation: u32,
}

/// NVIDIA's library with compatibility mode off, if there may be files with a direct path.
pub(crate) fn find() -> Option<Direct> {
    static FOUND: OnceLock<Option<(NvidiaLibrary, Direct)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let environment = environment::get();
        // A library that is named explicitly is always tried, for tests.
        let wanted = environment.library.is_some() || Root::live().exists(NVIDIA_FS);
        if environment.backend != Backend::Auto || !wanted {
            return None;
        }
        let library = NvidiaLibrary::load(environment)?;
        match Direct::open(&library) {
            Ok(direct) => {
                nvidia_stats::begin(&library, crate::library::get().gpus());
                Some((library, direct))
            }
            Err(why) => {
                log::line(Level::Info, || format!("NVIDIA's library moves no files: {why}"));
                None
            }
        }
    });
    let direct = found.as_ref().map(|(_, direct)| *direct);
    direct.filter(|direct| direct.generation == fork::generation())
}

/// Larger than the structure, for releases that add fields.
#[repr(C)]
struct PropertiesBuffer {
    found: Properties,
    _more: [u64; 16],
}

impl Direct {
    /// Opens the library with compatibility mode off. The error says why no file can have a direct
    /// path.
    fn open(library: &NvidiaLibrary) -> Result<Direct, String> {
        let direct = Self::functions(library).ok_or("a function of the interface is missing")?;
        // SAFETY: the type is that of the interface, here and below.
        let set: Option<unsafe extern "C" fn(c_int, bool) -> CufileError> =
            unsafe { library.function(c"cuFileSetParameterBool") };
        // SAFETY: as above.
        let open: Option<unsafe extern "C" fn() -> CufileError> =
            unsafe { library.function(c"cuFileDriverOpen") };
        // SAFETY: as above.
        let close: Option<unsafe extern "C" fn() -> CufileError> =
            unsafe { library.function(c"cuFileDriverClose_v2") };
        let (Some(set), Some(open), Some(close)) = (set, open, close) else {
            return Err("releases before 1.14 have no settings to change".to_owned());
        };
        suppress_log(library);
        // SAFETY: takes two numbers.
        check("cuFileSetParameterBool", unsafe { set(ALLOW_COMPAT, false) })?;
        // SAFETY: takes nothing.
        check("cuFileDriverOpen", unsafe { open() })?;
        supports(library).inspect_err(|_| {
            // Its GPU memory would be of no use. SAFETY: takes nothing; nothing was registered
            // there.
            let _ = unsafe { close() };
        })?;
        Ok(direct)
    }

    fn functions(library: &NvidiaLibrary) -> Option<Direct> {
        Some(Direct {
            // SAFETY: types of the interface, here and below.
            register: unsafe { library.function(c"cuFileHandleRegister") }?,
            // SAFETY: as above.
            deregister: unsafe { library.function(c"cuFileHandleDeregister") }?,
            // SAFETY: as above.
            read: unsafe { library.function(c"cuFileRead") }?,
            // SAFETY: as above.
            write: unsafe { library.function(c"cuFileWrite") }?,
            // SAFETY: as above.
            register_buffer: unsafe { library.function(c"cuFileBufRegister") }?,
            // SAFETY: as above.
            deregister_buffer: unsafe { library.function(c"cuFileBufDeregister") }?,
            generation: fork::generation(),
        })
    }

    /// Registers a file with the library, if that has a direct path for it. The error says why not.
    pub(crate) fn register(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<NvidiaFile, String> {
        if !flags.contains(OFlags::DIRECT) {
            return Err("the file is open without O_DIRECT".to_owned());
        }
        // The program may close its own, and the kernel then gives the number to another file.
        let own =
            KeptFd::duplicate(fd).map_err(|errno| format!("fcntl(F_DUPFD_CLOEXEC): {errno}"))?;
        let mut descriptor = Descriptor {
            kind: OPAQUE_FD,
            fd: DescriptorUnion { handle: std::ptr::null_mut() },
            operations: std::ptr::null(),
        };
        descriptor.fd.fd = own.raw();
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: both are valid for the call, and the descriptor is open.
        let error = unsafe { (self.register)(&raw mut handle, &raw mut descriptor) };
        check("NVIDIA's cuFileHandleRegister", error)?;
        let (direct, given_up) = (*self, AtomicBool::new(false));
        Ok(NvidiaFile { handle, direct, given_up, own })
    }
}

/// Registers a file with NVIDIA's library, if that has a direct path for it, and logs who moves its
/// bytes.
pub(crate) fn register_file(fd: BorrowedFd<'_>, flags: OFlags) -> Option<NvidiaFile> {
    let registered = find()?.register(fd, flags);
    log::line(Level::Info, || match &registered {
        Ok(_) => format!("{}: moved by NVIDIA's library", name(fd)),
        Err(why) => format!("{}: moved by gpuio: {why}", name(fd)),
    });
    registered.ok()
}

/// Whether a direct path can lead to this kind of memory.
pub(crate) fn supports_memory(location: &MemoryLocation) -> bool {
    location.device().is_some() && !location.is_managed()
}

/// Registers a buffer with NVIDIA's library, if that moves files. It then pins the buffer and needs
/// none of its own. It has a limit for that; a refusal costs only speed.
pub(crate) fn register_buffer(base: u64, len: usize, flags: c_int) {
    if let Some(direct) = find() {
        // SAFETY: numbers; the memory is the program's until it deregisters it, by the interface.
        let _ = unsafe { (direct.register_buffer)(base, len, flags) };
    }
}

/// Undoes [`register_buffer`].
pub(crate) fn deregister_buffer(base: u64) {
    if let Some(direct) = find() {
        // SAFETY: a number. A refusal means that there was nothing to undo.
        let _ = unsafe { (direct.deregister_buffer)(base) };
    }
}

/// The kernel's name of a descriptor's file.
fn name(fd: BorrowedFd<'_>) -> String {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::read_link(&link).map_or(link, |path| path.display().to_string())
}

/// Prevents a log in the working directory of a program that configured none.
fn suppress_log(library: &NvidiaLibrary) {
    if log::has_file() {
        return;
    }
    // SAFETY: the type of the interface.
    let name: Option<unsafe extern "C" fn(c_int, *const c_char) -> CufileError> =
        unsafe { library.function(c"cuFileSetParameterString") };
    let dev_null: &CStr = c"/dev/null";
    // SAFETY: a NUL-terminated string. If refused, the log is written, and nothing else happens.
    let _ = name.map(|name| unsafe { name(LOG_FILE, dev_null.as_ptr()) });
}

/// Whether the opened library can have a direct path for any file. The error says why not.
fn supports(library: &NvidiaLibrary) -> Result<(), String> {
    // SAFETY: the type is that of the interface; its booleans are bytes, 0 or 1.
    let get: Option<unsafe extern "C" fn(c_int, *mut u8) -> CufileError> =
        unsafe { library.function(c"cuFileGetParameterBool") };
    // SAFETY: as above.
    let get_properties: Option<unsafe extern "C" fn(*mut Properties) -> CufileError> =
        unsafe { library.function(c"cuFileDriverGetProperties") };
    let (Some(get), Some(get_properties)) = (get, get_properties) else {
        return Err("a function of the interface is missing".to_owned());
    };
    for (parameter, does) in [(ALLOW_COMPAT, "allow"), (FORCE_COMPAT, "force")] {
        let mut value = 1;
        // SAFETY: valid for the write of one byte.
        check("cuFileGetParameterBool", unsafe { get(parameter, &raw mut value) })?;
        if value != 0 {
            return Err(format!("the library's settings {does} compatibility mode"));
        }
    }
    let mut buffer = PropertiesBuffer { found: Properties::default(), _more: [0; 16] };
    // SAFETY: valid for the write of the structure, and of one with more fields.
    check("cuFileDriverGetProperties", unsafe { get_properties(&raw mut buffer.found) })?;
    let Properties { nvidia_fs_major: major, nvidia_fs_minor: minor, status_flags, .. } =
        buffer.found;
    if (major, minor) == (0, 0) {
        return Err("the library reports no version of nvidia-fs".to_owned());
    }
    if status_flags == 0 {
        return Err("the library reports no storage that nvidia-fs supports".to_owned());
    }
    log::line(Level::Info, || {
        format!("NVIDIA's library moves files with a direct path: nvidia-fs {major}.{minor}")
    });
    Ok(())
}

fn check(call: &str, error: CufileError) -> Result<(), String> {
    match error {
        CufileError { code: 0, .. } => Ok(()),
        CufileError { code, cuda: 0 } => Err(format!("{call} returned {code}")),
        CufileError { code, cuda } => Err(format!("{call} returned {code}, CUDA driver {cuda}")),
    }
}

/// A file that is registered with NVIDIA's library. Dropping it deregisters it.
pub(crate) struct NvidiaFile {
    handle: Handle,
    direct: Direct,
    /// A transfer failed there that ours could do.
    given_up: AtomicBool,
    /// The library's descriptor, closed after deregistration.
    own: KeptFd,
}

// SAFETY: the library's handles may be used from any thread.
unsafe impl Send for NvidiaFile {}
// SAFETY: as above.
unsafe impl Sync for NvidiaFile {}

/// Why the library moved fewer bytes than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortTransfer {
    /// It failed: its result, and errno at that time.
    Failed(isize, c_int),
    /// It reported no reason; the file may end there.
    Silent,
}

impl fmt::Display for ShortTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShortTransfer::Failed(-1, errno) => write!(f, "it returned -1 with errno {errno}"),
            ShortTransfer::Failed(code, _) => write!(f, "it returned {code}"),
            ShortTransfer::Silent => f.write_str("it moved too few bytes"),
        }
    }
}

impl NvidiaFile {
    /// Whether the library is to move bytes between the file and this memory.
    pub(crate) fn moves(&self, location: &MemoryLocation) -> bool {
        supports_memory(location)
            && !self.given_up.load(Ordering::Relaxed)
            && self.direct.generation == fork::generation()
            // NVIDIA's library looks at nothing.
            && self.own.is_ours()
    }

    /// NVIDIA's `cuFileRead` or `cuFileWrite`: how many bytes from the start of the range were
    /// moved, and why not all.
    ///
    /// # Safety
    /// As the interface requires of its callers.
    pub(crate) unsafe fn transfer(
        &self,
        request: &UncheckedRequest,
    ) -> (usize, Option<ShortTransfer>) {
        let call = match request.op {
            Op::Read => self.direct.read,
            Op::Write => self.direct.write,
        };
        let (base, len) = (request.base, request.len);
        // SAFETY: the caller's promise.
        let result =
            unsafe { call(self.handle, base, len, request.file_offset, request.buffer_offset) };
        match usize::try_from(result) {
            Ok(bytes) if bytes == len => (len, None),
            Ok(bytes) if bytes < len => (bytes, Some(ShortTransfer::Silent)),
            // More bytes than requested: a code without its sign.
            Ok(_) => (0, Some(ShortTransfer::Failed(result, 0))),
            Err(_) => {
                let errno = std::io::Error::last_os_error().raw_os_error();
                (0, Some(ShortTransfer::Failed(result, errno.unwrap_or(0))))
            }
        }
    }

    /// Lets `transfer` move the file's bytes from now on, because it could where the library could
    /// not.
    pub(crate) fn give_up(&self, why: ShortTransfer) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            log::line(Level::Warn, || {
                let name = name(self.own.as_fd());
                format!("{name}: moved by gpuio from now on. NVIDIA's library failed: {why}")
            });
        }
    }
}

impl Drop for NvidiaFile {
    fn drop(&mut self) {
        if self.direct.generation == fork::generation() {
            // SAFETY: from NVIDIA's `cuFileHandleRegister`, and deregistered once.
            unsafe { (self.direct.deregister)(self.handle) }
        }
    }
}
