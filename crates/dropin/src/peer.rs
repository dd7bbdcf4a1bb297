//! NVIDIA's library, where calls are handed on to it.
//!
//! `GPUIO_CUFILE=nvidia` hands on every call as it comes. `auto` hands on reads and writes of files
//! for which that library says that it has a direct path: nvidia-fs is loaded, and the file is
//! accepted with compatibility mode off. Without nvidia-fs `auto` does not so much as look for the
//! library, whose opening probes devices and may write a log.
//!
//! It is loaded by its path with `RTLD_LOCAL` and `RTLD_DEEPBIND` (`dlopen(3)`): its calls of its
//! own functions go to itself, though ours stand before them in the process. Our own file is never
//! taken for it, whatever it is called.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpuio_cufile::Search;
use gpuio_host::Root;
use libloading::os::unix::Library;

use crate::abi::{Answer, Descriptor, DescriptorUnion, Handle, OPAQUE_FD, Properties};
use crate::code::{DRIVER_NOT_INITIALIZED, IO_NOT_SUPPORTED};
use crate::log::{self, Level};
use crate::setting::{self, Setting, Whose};

/// In our file, so that a copy of it is known wherever it lies.
static MARK: &[u8] = b"this libcufile.so.0 is gpuio's, not NVIDIA's\n";
/// What nvidia-fs shows of itself while it is loaded.
const NVIDIA_FS: &str = "proc/driver/nvidia-fs/version";
/// The parameter that forbids that library its compatibility mode (`CUFileBoolConfigParameter_t`).
const ALLOW_COMPAT_MODE: c_int = 1;
/// The parameter that names its log file (`CUFileStringConfigParameter_t`).
const LOG_FILE: c_int = 1;

/// The loaded library.
#[derive(Debug)]
pub(crate) struct Peer {
    library: Library,
}

/// The functions that `auto` hands files on by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct {
    register: unsafe extern "C" fn(*mut Handle, *mut Descriptor) -> Answer,
    deregister: unsafe extern "C" fn(Handle),
    read: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
    write: unsafe extern "C" fn(Handle, u64, usize, i64, i64) -> isize,
}

/// What a call answers that could not be handed on: the library that was named is not there, or
/// lacks the function.
pub(crate) trait Refused {
    fn refused(there: bool) -> Self;
}

impl Refused for Answer {
    fn refused(there: bool) -> Answer {
        let code = if there { IO_NOT_SUPPORTED } else { DRIVER_NOT_INITIALIZED };
        Answer { code, cuda: 0 }
    }
}

impl Refused for isize {
    fn refused(there: bool) -> isize {
        -(Answer::refused(there).code as isize)
    }
}

impl Refused for Count {
    fn refused(_: bool) -> Count {
        Count(0)
    }
}

impl Refused for () {
    fn refused(_: bool) {}
}

/// What `cuFileUseCount` answers.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) c_long);

/// Where every call goes: `None` where they stay here; the inner `None` where NVIDIA's library was
/// asked for and can't be had.
pub(crate) fn whole() -> Option<Option<&'static Peer>> {
    static WHOLE: OnceLock<Option<Option<Peer>>> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| {
        let setting = setting::get();
        (setting.whose == Whose::Nvidia).then(|| Peer::load(setting))
    });
    whole.as_ref().map(Option::as_ref)
}

/// NVIDIA's library for files that it has a direct path for, with compatibility mode off.
pub(crate) fn direct() -> Option<Direct> {
    static DIRECT: OnceLock<Option<(Peer, Direct)>> = OnceLock::new();
    let found = DIRECT.get_or_init(|| {
        let setting = setting::get();
        // A library that is named is asked in any case, for tests.
        let look = setting.library.is_some() || Root::live().exists(NVIDIA_FS);
        if setting.whose != Whose::Auto || !look {
            return None;
        }
        let peer = Peer::load(setting)?;
        let direct = peer.open_direct()?;
        Some((peer, direct))
    });
    found.as_ref().map(|(_, direct)| *direct)
}

impl Peer {
    fn load(setting: &Setting) -> Option<Peer> {
        let found = match &setting.library {
            Some(path) => vec![path.clone()],
            None => candidates(),
        };
        for path in found.iter().filter(|path| path.is_absolute() && !is_ours(path)) {
            let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
            // SAFETY: running the library's initialisers is what was asked for: NVIDIA's library,
            // or what GPUIO_CUFILE_LIB names.
            match unsafe { Library::open(Some(path), flags) } {
                Ok(library) => {
                    log::line(Level::Info, || format!("NVIDIA's library is {}", path.display()));
                    return Some(Peer { library });
                }
                Err(error) => log::line(Level::Warn, || format!("{}: {error}", path.display())),
            }
        }
        log::line(Level::Error, || {
            format!("NVIDIA's cuFile is not to be had; looked at {found:?}; set GPUIO_CUFILE_LIB")
        });
        None
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is a pointer to a function of the type that the interface gives this name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the caller's promise.
        let found = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        found.ok().map(|symbol| *symbol)
    }

    /// Opens the library with compatibility mode off, if nvidia-fs is there.
    fn open_direct(&self) -> Option<Direct> {
        type Set = unsafe extern "C" fn(c_int, bool) -> Answer;
        type Look = unsafe extern "C" fn(*mut Properties) -> Answer;
        // SAFETY: types of the interface, here and below.
        let set: Set = unsafe { self.function(c"cuFileSetParameterBool") }?;
        // SAFETY: as above.
        let open: unsafe extern "C" fn() -> Answer = unsafe { self.function(c"cuFileDriverOpen") }?;
        // SAFETY: as above.
        let look: Look = unsafe { self.function(c"cuFileDriverGetProperties") }?;
        let direct = Direct {
            // SAFETY: as above.
            register: unsafe { self.function(c"cuFileHandleRegister") }?,
            // SAFETY: as above.
            deregister: unsafe { self.function(c"cuFileHandleDeregister") }?,
            // SAFETY: as above.
            read: unsafe { self.function(c"cuFileRead") }?,
            // SAFETY: as above.
            write: unsafe { self.function(c"cuFileWrite") }?,
        };
        if !log::is_asked_for() {
            // It would write one into the working directory of a program that did not ask for it.
            type Name = unsafe extern "C" fn(c_int, *const c_char) -> Answer;
            // SAFETY: as above.
            let name: Option<Name> = unsafe { self.function(c"cuFileSetParameterString") };
            // SAFETY: a text that ends. Refused, the log is written, and nothing else happens.
            let _ = name.map(|name| unsafe { name(LOG_FILE, c"/dev/null".as_ptr()) });
        }
        // SAFETY: takes two numbers.
        let forbidden = unsafe { set(ALLOW_COMPAT_MODE, false) };
        // SAFETY: takes nothing.
        let opened = unsafe { open() };
        let mut room = Room { found: Properties::default(), _more: [0; 16] };
        // SAFETY: valid for the write of the structure, and of one with more fields.
        let told = unsafe { look(&raw mut room.found) };
        let codes = [forbidden.code, opened.code, told.code];
        let nvidia_fs = (room.found.nvidia_fs_major, room.found.nvidia_fs_minor);
        log::line(Level::Info, || format!("NVIDIA's library: {codes:?}, nvidia-fs {nvidia_fs:?}"));
        (codes == [0; 3] && nvidia_fs > (0, 0)).then_some(direct)
    }
}

/// Room for a release that adds fields.
#[repr(C)]
struct Room {
    found: Properties,
    _more: [u64; 16],
}

impl Direct {
    /// Has the library take a file, if it has a direct path for it.
    pub(crate) fn register(&self, fd: c_int) -> Option<Theirs> {
        let mut descriptor = Descriptor {
            kind: OPAQUE_FD,
            fd: DescriptorUnion { handle: std::ptr::null_mut() },
            operations: std::ptr::null(),
        };
        descriptor.fd.fd = fd;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: both are valid for the call, and the descriptor is open.
        let answer = unsafe { (self.register)(&raw mut handle, &raw mut descriptor) };
        (answer.code == 0 && !handle.is_null()).then_some(Theirs { handle, direct: *self })
    }
}

/// A file that NVIDIA's library has taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Theirs {
    handle: Handle,
    direct: Direct,
}

// SAFETY: the library's handles may be used from any thread.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

impl Theirs {
    /// Their `cuFileRead` or `cuFileWrite`.
    ///
    /// # Safety
    /// As the interface asks of its callers.
    pub(crate) unsafe fn transfer(
        &self,
        write: bool,
        base: u64,
        len: usize,
        offsets: (i64, i64),
    ) -> isize {
        let call = if write { self.direct.write } else { self.direct.read };
        // SAFETY: the caller's promise.
        unsafe { call(self.handle, base, len, offsets.0, offsets.1) }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: from their `cuFileHandleRegister`, and given back once.
        unsafe { (self.direct.deregister)(self.handle) }
    }
}

/// Files that may be NVIDIA's library, the likeliest first.
fn candidates() -> Vec<PathBuf> {
    let split = |name: &str| -> Vec<PathBuf> {
        std::env::var_os(name)
            .map(|value| std::env::split_paths(&value).collect())
            .unwrap_or_default()
    };
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().flat_map(split).collect();
    let search = Search { given: None, prefixes, stand_in: false };
    search.all_lying(&split("LD_LIBRARY_PATH"))
}

/// Whether a file is this library, or a copy of one of gpuio's.
fn is_ours(path: &Path) -> bool {
    let same = |mine: &Path| {
        let facts = |path: &Path| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino()));
        facts(mine).is_ok_and(|mine| facts(path).is_ok_and(|theirs| mine == theirs))
    };
    if own_file().is_some_and(|mine| same(&mine)) {
        return true;
    }
    let Ok(bytes) = std::fs::read(path) else { return false };
    bytes.windows(MARK.len()).any(|part| part == MARK)
}

/// The file that holds this code (`dladdr(3)`).
fn own_file() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let address: *const c_void = MARK.as_ptr().cast();
    // SAFETY: dladdr only compares the address with the loaded objects; `info` is valid for writes.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's string lives as long as the object, which is never unloaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
