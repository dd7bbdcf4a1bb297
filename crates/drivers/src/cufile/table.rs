//! The part of the cuFile API that gpuio uses: the table of functions.
//!
//! The functions have the library's own names, so that they can be looked up in the "cuFile API
//! Reference Guide".

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use crate::cufile::abi::{BatchEntry, BatchEvent, CufileError as Answer, Descriptor, Properties};
use crate::cufile::absent::Absent;
use crate::cufile::search::Search;

/// The file name that means a real CUDA driver; libcufile loads it by this name.
const CUDA: &CStr = c"libcuda.so.1";

/// Declares the table from one list, required and optional symbols apart, and how it is loaded.
macro_rules! table {
    (
        required { $($name:ident: fn($($arg:ty),*) -> $ret:ty;)* }
        optional { $($maybe:ident: fn($($maybe_arg:ty),*) -> $maybe_ret:ty;)* }
    ) => {
        /// A loaded cuFile library that was not opened yet. Loading starts nothing; dropping it
        /// closes the shared object.
        #[expect(non_snake_case, reason = "the fields bear the library's own names")]
        #[derive(Debug)]
        pub struct Library {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
            $(pub(crate) $maybe: Option<unsafe extern "C" fn($($maybe_arg),*) -> $maybe_ret>,)*
            pub(crate) path: PathBuf,
            /// Last, so that it is closed after everything that points into it.
            _object: libloading::Library,
        }

        impl Library {
            fn resolve(object: libloading::Library, path: &Path) -> Result<Self, Absent> {
                let library = Self {
                    $($name: {
                        // SAFETY: the type is that of the symbol in the reference guide; the
                        // pointer lives beside the object that it points into.
                        let found = unsafe { object.get(stringify!($name)) };
                        *found.map_err(|_| missing(path, stringify!($name)))?
                    },)*
                    $($maybe: {
                        // SAFETY: as for the required symbols.
                        unsafe { object.get(stringify!($maybe)) }.ok().map(|found| *found)
                    },)*
                    path: path.to_path_buf(),
                    _object: object,
                };
                Ok(library)
            }
        }
    };
}

// Device addresses are u64 here and pointers there: the same register in both 64-bit ABIs, and no
// address that this process must not touch becomes a Rust pointer.
table! {
    required {
        cuFileDriverOpen: fn() -> Answer;
        cuFileHandleRegister: fn(*mut *mut c_void, *mut Descriptor) -> Answer;
        cuFileHandleDeregister: fn(*mut c_void) -> ();
        cuFileBufRegister: fn(u64, usize, c_int) -> Answer;
        cuFileBufDeregister: fn(u64) -> Answer;
        cuFileRead: fn(*mut c_void, u64, usize, i64, i64) -> isize;
        cuFileWrite: fn(*mut c_void, u64, usize, i64, i64) -> isize;
    }
    optional {
        // Counts references; the older one, below, closes for everybody.
        cuFileDriverClose_v2: fn() -> Answer;
        cuFileDriverClose: fn() -> Answer;
        cuFileGetVersion: fn(*mut c_int) -> Answer;
        cuFileDriverGetProperties: fn(*mut Properties) -> Answer;
        cuFileDriverSetPollMode: fn(bool, usize) -> Answer;
        cuFileBatchIOSetUp: fn(*mut *mut c_void, c_uint) -> Answer;
        cuFileBatchIOSubmit: fn(*mut c_void, c_uint, *mut BatchEntry, c_uint) -> Answer;
        cuFileBatchIOGetStatus:
            fn(*mut c_void, c_uint, *mut c_uint, *mut BatchEvent, *mut libc::timespec) -> Answer;
        cuFileBatchIOCancel: fn(*mut c_void) -> Answer;
        cuFileBatchIODestroy: fn(*mut c_void) -> ();
        cuFileStreamRegister: fn(*mut c_void, c_uint) -> Answer;
        cuFileStreamDeregister: fn(*mut c_void) -> Answer;
        cuFileReadAsync:
            fn(*mut c_void, u64, *mut usize, *mut i64, *mut i64, *mut isize, *mut c_void) -> Answer;
        cuFileWriteAsync:
            fn(*mut c_void, u64, *mut usize, *mut i64, *mut i64, *mut isize, *mut c_void) -> Answer;
        // Statistics, from release 1.15 on. A structure's size depends on the release.
        cuFileGetStatsLevel: fn(*mut c_int) -> Answer;
        cuFileSetStatsLevel: fn(c_int) -> Answer;
        cuFileStatsStart: fn() -> Answer;
        cuFileStatsStop: fn() -> Answer;
        cuFileGetStatsL3: fn(*mut u64) -> Answer;
        // Only gpuio's stand-in has it.
        gpuio_soft_cufile_version: fn() -> c_int;
    }
}

fn missing(library: &Path, symbol: &'static str) -> Absent {
    Absent::SymbolMissing { library: library.to_path_buf(), symbol }
}

impl Library {
    /// Loads the first library of `search` that the loader accepts. Starts nothing: the library
    /// opens no device and writes no log before [`crate::cufile::Driver::open`].
    ///
    /// # Errors
    /// [`Absent::NoLibrary`] if none loads, [`Absent::SymbolMissing`] if one is not cuFile.
    pub fn load(search: &Search) -> Result<Library, Absent> {
        let candidates = search.candidates();
        let mut tried = candidates.empty;
        for path in candidates.files {
            // SAFETY: running the library's initialisers is what the caller requested: NVIDIA's
            // library, gpuio's stand-in, or a path that the user gave.
            match unsafe { gpuio_guard::objects::load(&path, libc::RTLD_LAZY | libc::RTLD_LOCAL) } {
                Ok((object, _)) => {
                    let mut library = Self::resolve(object.into(), &path)?;
                    if let Some(file) = library.file() {
                        library.path = file;
                    }
                    return Ok(library);
                }
                Err(why) => tried.push((path.display().to_string(), why)),
            }
        }
        Err(Absent::NoLibrary { tried })
    }

    /// True for gpuio's stand-in: a test double over plain file I/O.
    pub fn is_stand_in(&self) -> bool {
        self.gpuio_soft_cufile_version.is_some()
    }

    /// The file it was loaded from, as the loader reports it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that holds `cuFileRead`.
    fn file(&self) -> Option<PathBuf> {
        // SAFETY: `self` keeps the library open.
        unsafe { gpuio_guard::objects::file_of(self.cuFileRead as *const c_void) }
    }
}

/// Whether a library of the CUDA driver's name is loaded in this process.
pub(crate) fn cuda_is_loaded() -> bool {
    // SAFETY: RTLD_NOLOAD runs no code of the library; it only looks for it.
    let found = unsafe { libc::dlopen(CUDA.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if found.is_null() {
        return false;
    }
    // SAFETY: from dlopen just now, whose count this gives back.
    let _ = unsafe { libc::dlclose(found) };
    true
}
