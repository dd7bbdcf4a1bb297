//! NVIDIA's library, to which calls may be forwarded.
//!
//! `GPUIO_CUFILE=nvidia` forwards every call unchanged (module `observed` counts and records).
//! `auto` forwards reads and writes of files for which that library has a direct path (module
//! `direct`).
//!
//! It is loaded by its path with `RTLD_LOCAL` and `RTLD_DEEPBIND` (`dlopen(3)`): its calls of its
//! own functions reach itself, though ours come first in the process. Our own file is never loaded
//! as NVIDIA's, whatever its name.

use std::ffi::{CStr, c_long};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gpuio_drivers::cufile::Search;
use gpuio_guard::objects::environment::paths;
use libloading::os::unix::Library;

use crate::abi::CufileError;
use crate::code::{DRIVER_NOT_INITIALIZED, IO_NOT_SUPPORTED};
use crate::environment::{self, Backend, Environment};
use crate::log::{self, Level};

/// In our file, so that a copy of it is recognised anywhere.
static MARK: &[u8] = b"this libcufile.so.0 is gpuio's, not NVIDIA's\n";

pub(crate) struct NvidiaLibrary {
    library: Library,
}

/// The result of a call that could not be forwarded: the library is missing or lacks the function.
pub(crate) trait FromAbsent {
    fn from_absent(is_here: bool) -> Self;
}

impl FromAbsent for CufileError {
    fn from_absent(is_here: bool) -> CufileError {
        let code = if is_here { IO_NOT_SUPPORTED } else { DRIVER_NOT_INITIALIZED };
        CufileError { code, cuda: 0 }
    }
}

impl FromAbsent for isize {
    fn from_absent(is_here: bool) -> isize {
        -(CufileError::from_absent(is_here).code as isize)
    }
}

impl FromAbsent for Count {
    fn from_absent(_: bool) -> Count {
        Count(0)
    }
}

impl FromAbsent for () {
    fn from_absent(_: bool) {}
}

/// The result of `cuFileUseCount`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) c_long);

/// The target of all calls: `None` if they stay here; the inner `None` if NVIDIA's library was
/// requested and can't be loaded.
pub(crate) fn forward_all() -> Option<Option<&'static NvidiaLibrary>> {
    static FORWARD_ALL: OnceLock<Option<Option<NvidiaLibrary>>> = OnceLock::new();
    let forward_all = FORWARD_ALL.get_or_init(|| {
        let environment = environment::get();
        let forwards = environment.backend == Backend::Nvidia;
        let found = forwards.then(|| NvidiaLibrary::load(environment));
        if matches!(found, Some(None)) && environment.record.is_some() {
            crate::recorder::say("no trace is recorded: NVIDIA's library was not found");
        }
        found
    });
    forward_all.as_ref().map(Option::as_ref)
}

/// These paths in a text.
fn listed(all: &[PathBuf]) -> String {
    let all: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
    all.join(", ")
}

impl NvidiaLibrary {
    pub(crate) fn load(environment: &Environment) -> Option<NvidiaLibrary> {
        let found = match &environment.library {
            Some(path) => vec![path.clone()],
            None => candidates(),
        };
        for path in found.iter().filter(|path| path.is_absolute() && !is_gpuio(path)) {
            let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
            // SAFETY: running the library's initialisers was requested: NVIDIA's library, or the
            // one that GPUIO_CUFILE_LIB names.
            match unsafe { gpuio_guard::objects::load(path, flags) } {
                Ok((library, _)) => {
                    log::line(Level::Info, || format!("using NVIDIA's library {}", path.display()));
                    return Some(NvidiaLibrary { library });
                }
                Err(why) => log::line(Level::Warn, || why),
            }
        }
        log::line(Level::Error, || {
            format!(
                "NVIDIA's cuFile library not found. Searched {}. Set GPUIO_CUFILE_LIB to it",
                listed(&found)
            )
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
}

/// Candidates for NVIDIA's library, the likeliest first.
fn candidates() -> Vec<PathBuf> {
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().flat_map(paths);
    let search = Search { given: None, prefixes: prefixes.collect(), stand_in: false };
    search.find_all(&paths("LD_LIBRARY_PATH"))
}

/// Whether a file is this library, or a copy of one of gpuio's.
fn is_gpuio(path: &Path) -> bool {
    let same = |mine: &Path| {
        let facts = |path: &Path| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino()));
        facts(mine).is_ok_and(|mine| facts(path).is_ok_and(|other| mine == other))
    };
    // SAFETY: the object that holds this code is never unloaded.
    let mine = unsafe { gpuio_guard::objects::file_of(MARK.as_ptr().cast()) };
    if mine.is_some_and(|mine| same(&mine)) {
        return true;
    }
    let Ok(bytes) = std::fs::read(path) else { return false };
    bytes.windows(MARK.len()).any(|part| part == MARK)
}
