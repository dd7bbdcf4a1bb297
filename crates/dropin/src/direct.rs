//! What `auto` leaves to NVIDIA's library: transfers for which that one has a direct path, between
//! drive and GPU without a stop in memory of the host.
//!
//! Registering a file there says nothing by itself, since the library takes any in its
//! compatibility mode ("cuFile API Reference Guide", "cuFile Compatibility Mode"). So that mode is
//! forbidden first, and these all have to hold:
//!
//! - nvidia-fs is loaded. Without it the library is not so much as looked for: its opening probes
//!   devices and may write a log.
//! - The library opens, says that compatibility mode is neither allowed nor forced (settings of
//!   the machine may have the last word), and tells a version of nvidia-fs above 0.0 and a kind of
//!   storage that it supports.
//! - The descriptor is open with `O_DIRECT`, which is how a program asks for the direct path
//!   ("GPUDirect Storage O_DIRECT Requirements Guide"); what becomes of others, no document tells.
//! - The library takes the file.
//! - The memory is a GPU's, and is not managed.
//!
//! What that library fails to move, ours moves, and has the file from then on: a program sees an
//! error only where ours fails too.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_host::Root;
use gpuio_transfer::MemoryLocation;
use rustix::fs::OFlags;

use crate::abi::{Answer, Descriptor, DescriptorUnion, Handle, OPAQUE_FD, Properties};
use crate::fork;
use crate::io::Asked;
use crate::log::{self, Level};
use crate::peer::Peer;
use crate::setting::{self, Whose};
use crate::stats::Way;

/// What nvidia-fs shows of itself while it is loaded.
const NVIDIA_FS: &str = "proc/driver/nvidia-fs/version";
/// The parameters that allow and force compatibility mode (`CUFileBoolConfigParameter_t`).
const ALLOW_COMPAT: c_int = 1;
const FORCE_COMPAT: c_int = 2;
/// The parameter that names the log file (`CUFileStringConfigParameter_t`).
const LOG_FILE: c_int = 1;

/// The functions of NVIDIA's library that are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct {
    register: unsafe extern "C" fn(*mut Handle, *mut Descriptor) -> Answer,
    deregister: unsafe extern "C" fn(Handle),
    read: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
    write: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
    register_buffer: unsafe extern "C" fn(u64, usize, c_int) -> Answer,
    deregister_buffer: unsafe extern "C" fn(u64) -> Answer,
    /// The process that opened the library. What its functions do in a child of fork(2) is not
    /// defined ("cuFile API Reference Guide", "Usage").
    born: u32,
}

/// NVIDIA's library with compatibility mode off, where there may be files with a direct path.
pub(crate) fn find() -> Option<Direct> {
    static FOUND: OnceLock<Option<(Peer, Direct)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let setting = setting::get();
        // A library that is named is asked in any case, for tests.
        let look = setting.library.is_some() || Root::live().exists(NVIDIA_FS);
        if setting.whose != Whose::Auto || !look {
            return None;
        }
        let peer = Peer::load(setting)?;
        match Direct::open(&peer) {
            Ok(direct) => Some((peer, direct)),
            Err(why) => {
                log::line(Level::Info, || format!("NVIDIA's library gets no file: {why}"));
                None
            }
        }
    });
    let direct = found.as_ref().map(|(_, direct)| *direct);
    direct.filter(|direct| direct.born == fork::generation())
}

/// Room for a release that adds fields.
#[repr(C)]
struct Room {
    found: Properties,
    _more: [u64; 16],
}

impl Direct {
    /// Opens the library with compatibility mode off; otherwise why no file can have a direct path.
    fn open(peer: &Peer) -> Result<Direct, String> {
        let direct = Self::functions(peer).ok_or("it lacks a function of the interface")?;
        // SAFETY: the type is that of the interface, here and below.
        let set: Option<unsafe extern "C" fn(c_int, bool) -> Answer> =
            unsafe { peer.function(c"cuFileSetParameterBool") };
        // SAFETY: as above.
        let open: Option<unsafe extern "C" fn() -> Answer> =
            unsafe { peer.function(c"cuFileDriverOpen") };
        // SAFETY: as above.
        let close: Option<unsafe extern "C" fn() -> Answer> =
            unsafe { peer.function(c"cuFileDriverClose_v2") };
        let (Some(set), Some(open), Some(close)) = (set, open, close) else {
            return Err("it is older than release 1.14, whose settings can't be changed".to_owned());
        };
        keep_quiet(peer);
        // SAFETY: takes two numbers.
        good("cuFileSetParameterBool", unsafe { set(ALLOW_COMPAT, false) })?;
        // SAFETY: takes nothing.
        good("cuFileDriverOpen", unsafe { open() })?;
        supports(peer).inspect_err(|_| {
            // What it holds of the GPU's memory is of no use to anybody.
            // SAFETY: takes nothing; nothing was registered there.
            let _ = unsafe { close() };
        })?;
        Ok(direct)
    }

    fn functions(peer: &Peer) -> Option<Direct> {
        Some(Direct {
            // SAFETY: types of the interface, here and below.
            register: unsafe { peer.function(c"cuFileHandleRegister") }?,
            // SAFETY: as above.
            deregister: unsafe { peer.function(c"cuFileHandleDeregister") }?,
            // SAFETY: as above.
            read: unsafe { peer.function(c"cuFileRead") }?,
            // SAFETY: as above.
            write: unsafe { peer.function(c"cuFileWrite") }?,
            // SAFETY: as above.
            register_buffer: unsafe { peer.function(c"cuFileBufRegister") }?,
            // SAFETY: as above.
            deregister_buffer: unsafe { peer.function(c"cuFileBufDeregister") }?,
            born: fork::generation(),
        })
    }

    /// Has the library take a file, if it has a direct path for it; why not, otherwise.
    pub(crate) fn register(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<Theirs, String> {
        if !flags.contains(OFlags::DIRECT) {
            return Err("it is open without O_DIRECT".to_owned());
        }
        // By a number that the program can't close and the kernel not give to another file, above
        // those of the standard streams.
        let own = rustix::io::fcntl_dupfd_cloexec(fd, 3)
            .map_err(|errno| format!("fcntl(F_DUPFD_CLOEXEC): {errno}"))?;
        let mut descriptor = Descriptor {
            kind: OPAQUE_FD,
            fd: DescriptorUnion { handle: std::ptr::null_mut() },
            operations: std::ptr::null(),
        };
        descriptor.fd.fd = own.as_raw_fd();
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: both are valid for the call, and the descriptor is open.
        let answer = unsafe { (self.register)(&raw mut handle, &raw mut descriptor) };
        good("NVIDIA's cuFileHandleRegister", answer)?;
        let (direct, given_up) = (*self, AtomicBool::new(false));
        Ok(Theirs { handle, direct, given_up, own })
    }
}

/// Has NVIDIA's library take a file, if it has a direct path for it, and says who moves its bytes.
pub(crate) fn take(fd: BorrowedFd<'_>, flags: OFlags) -> Option<Theirs> {
    let taken = find()?.register(fd, flags);
    log::line(Level::Info, || match &taken {
        Ok(_) => format!("{}: by NVIDIA's library", name(fd)),
        Err(why) => format!("{}: by gpuio: {why}", name(fd)),
    });
    taken.ok()
}

/// Whether memory is of the kind that a direct path leads to.
pub(crate) fn goes_with(location: &MemoryLocation) -> bool {
    location.device().is_some() && !location.is_managed()
}

/// Has NVIDIA's library, where it gets files, pin a buffer, by which its transfers need no buffer
/// of its own on the way. It has a bound for that; whether it did decides nothing but the speed.
pub(crate) fn register_buffer(base: u64, len: usize, flags: c_int) {
    if let Some(direct) = find() {
        // SAFETY: numbers; the memory is the program's until it deregisters it, by the interface.
        let _ = unsafe { (direct.register_buffer)(base, len, flags) };
    }
}

/// Gives back what [`register_buffer`] had it pin.
pub(crate) fn deregister_buffer(base: u64) {
    if let Some(direct) = find() {
        // SAFETY: a number. Refused, there was nothing to give back.
        let _ = unsafe { (direct.deregister_buffer)(base) };
    }
}

/// What the kernel calls a descriptor's file.
fn name(fd: BorrowedFd<'_>) -> String {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::read_link(&link).map_or(link, |path| path.display().to_string())
}

/// Has the library write no log into the working directory of a program that asked for none.
fn keep_quiet(peer: &Peer) {
    if log::is_asked_for() {
        return;
    }
    // SAFETY: the type of the interface.
    let name: Option<unsafe extern "C" fn(c_int, *const c_char) -> Answer> =
        unsafe { peer.function(c"cuFileSetParameterString") };
    let nowhere: &CStr = c"/dev/null";
    // SAFETY: a text that ends. Refused, the log is written, and nothing else happens.
    let _ = name.map(|name| unsafe { name(LOG_FILE, nowhere.as_ptr()) });
}

/// Whether the library that was opened can have a direct path for any file; why not, otherwise.
fn supports(peer: &Peer) -> Result<(), String> {
    // SAFETY: the type is that of the interface; its truth values are bytes, 0 or 1.
    let get: Option<unsafe extern "C" fn(c_int, *mut u8) -> Answer> =
        unsafe { peer.function(c"cuFileGetParameterBool") };
    // SAFETY: as above.
    let look: Option<unsafe extern "C" fn(*mut Properties) -> Answer> =
        unsafe { peer.function(c"cuFileDriverGetProperties") };
    let (Some(get), Some(look)) = (get, look) else {
        return Err("it lacks a function of the interface".to_owned());
    };
    for (parameter, does) in [(ALLOW_COMPAT, "allow"), (FORCE_COMPAT, "force")] {
        let mut value = 1;
        // SAFETY: valid for the write of one byte.
        good("cuFileGetParameterBool", unsafe { get(parameter, &raw mut value) })?;
        if value != 0 {
            return Err(format!("its settings {does} compatibility mode"));
        }
    }
    let mut room = Room { found: Properties::default(), _more: [0; 16] };
    // SAFETY: valid for the write of the structure, and of one with more fields.
    good("cuFileDriverGetProperties", unsafe { look(&raw mut room.found) })?;
    let Properties { nvidia_fs_major: major, nvidia_fs_minor: minor, status_flags, .. } =
        room.found;
    if (major, minor) == (0, 0) {
        return Err("it tells no version of nvidia-fs".to_owned());
    }
    if status_flags == 0 {
        return Err("it tells of no storage that nvidia-fs supports here".to_owned());
    }
    log::line(Level::Info, || {
        format!("NVIDIA's library is asked for files: nvidia-fs {major}.{minor}")
    });
    Ok(())
}

fn good(call: &str, answer: Answer) -> Result<(), String> {
    match answer {
        Answer { code: 0, .. } => Ok(()),
        Answer { code, cuda: 0 } => Err(format!("{call} answers {code}")),
        Answer { code, cuda } => Err(format!("{call} answers {code}, CUDA driver {cuda}")),
    }
}

/// A file that NVIDIA's library has taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Theirs {
    handle: Handle,
    direct: Direct,
    /// A transfer failed there that ours could do.
    given_up: AtomicBool,
    /// What the library knows it by: closed after it was given back.
    own: OwnedFd,
}

// SAFETY: the library's handles may be used from any thread.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

/// Why the library moved fewer bytes than it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// It failed: what it answered, and errno then.
    Failed(isize, c_int),
    /// It said nothing of it; the file may end there.
    Silent,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Short::Failed(-1, errno) => write!(f, "it answered -1 with errno {errno}"),
            Short::Failed(code, _) => write!(f, "it answered {code}"),
            Short::Silent => f.write_str("it moved too few bytes"),
        }
    }
}

impl Theirs {
    /// Whether the library shall move bytes between the file and this memory.
    pub(crate) fn takes(&self, location: &MemoryLocation) -> bool {
        goes_with(location)
            && !self.given_up.load(Ordering::Relaxed)
            && self.direct.born == fork::generation()
    }

    /// Their `cuFileRead` or `cuFileWrite`: how many bytes of the range, from its start on, were
    /// moved, and why it were not all.
    ///
    /// # Safety
    /// As the interface asks of its callers.
    pub(crate) unsafe fn transfer(&self, asked: &Asked) -> (usize, Option<Short>) {
        let call = match asked.way {
            Way::Read => self.direct.read,
            Way::Write => self.direct.write,
        };
        let (base, len) = (asked.base, asked.len);
        // SAFETY: the caller's promise.
        let result =
            unsafe { call(self.handle, base, len, asked.file_offset, asked.buffer_offset) };
        match usize::try_from(result) {
            Ok(bytes) if bytes == len => (len, None),
            Ok(bytes) if bytes < len => (bytes, Some(Short::Silent)),
            // More bytes than were asked for: a code that lost its sign.
            Ok(_) => (0, Some(Short::Failed(result, 0))),
            Err(_) => {
                let errno = std::io::Error::last_os_error().raw_os_error();
                (0, Some(Short::Failed(result, errno.unwrap_or(0))))
            }
        }
    }

    /// Has ours move the file's bytes from now on, since it could where the library could not.
    pub(crate) fn give_up(&self, why: Short) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            log::line(Level::Warn, || {
                let name = name(self.own.as_fd());
                format!("{name}: by gpuio from now on; NVIDIA's library had it, and {why}")
            });
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if self.direct.born == fork::generation() {
            // SAFETY: from their `cuFileHandleRegister`, and given back once.
            unsafe { (self.direct.deregister)(self.handle) }
        }
    }
}
