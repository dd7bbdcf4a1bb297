//! Finds and loads the MPI library.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::mpi::abi::{Abi, Handle};
use crate::mpi::launcher::Launcher;

/// Why there is no MPI for a job that a launcher started.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    #[error(
        "{launcher} started this process ({variable} is set), but no MPI library for it could be \
         loaded; looked for {}; install it on every host, set GPUIO_MPI=/path/to/library, or set \
         GPUIO_MPI=off to run each process for itself",
        tried.join(", ")
    )]
    NoLibrary {
        launcher: &'static str,
        /// The variable that showed it.
        variable: &'static str,
        /// Each name with the loader's answer.
        tried: Vec<String>,
    },
    /// A library lacks a function.
    #[error("{library} lacks {function}, so it is no usable MPI library")]
    NoFunction {
        /// The library's name.
        library: String,
        function: &'static str,
    },
}

type Init = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
type OfWorld = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
/// Buffer, count, type, peer, tag, communicator, request.
type Start =
    unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut c_void) -> c_int;
type OfRequest = unsafe extern "C" fn(*mut Handle) -> c_int;
type Abort = unsafe extern "C" fn(Handle, c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;

/// The functions of a loaded library. It stays loaded: MPI can't be started twice in a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) abi: Abi,
    pub(crate) init: Init,
    pub(crate) rank: OfWorld,
    pub(crate) size: OfWorld,
    pub(crate) isend: Start,
    pub(crate) irecv: Start,
    pub(crate) test: Test,
    pub(crate) cancel: OfRequest,
    pub(crate) abort: Abort,
    pub(crate) finalize: Finalize,
    pub(crate) version: Version,
}

/// Loads the first library that can be: `named`, or those of the launcher.
pub(crate) fn load(launcher: &Launcher, named: Option<&str>) -> Result<Functions, Absent> {
    let mut tried = Vec::new();
    let names = named.map_or_else(|| launcher.libraries.to_vec(), |name| vec![name]);
    for name in names {
        // Open MPI's own modules need its symbols: RTLD_GLOBAL.
        // SAFETY: an MPI library's initialisers may run at any time before MPI_Init_thread.
        match unsafe { gpuio_guard::objects::load(Path::new(name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok((library, _)) => return functions(library, name),
            Err(why) => tried.push(format!("{name} ({why})")),
        }
    }
    let Launcher { name, variable, .. } = *launcher;
    Err(Absent::NoLibrary { launcher: name, variable, tried })
}

fn functions(library: Library, name: &str) -> Result<Functions, Absent> {
    /// The address of a function of this type.
    fn get<T: Copy>(library: &Library, name: &str, function: &'static str) -> Result<T, Absent> {
        // SAFETY: each type is the function's signature in the MPI standard, with handles as they
        // are passed (`abi::Handle`).
        let found = unsafe { library.get::<T>(function.as_bytes()) };
        found
            .map(|symbol| *symbol)
            .map_err(|_| Absent::NoFunction { library: name.to_owned(), function })
    }
    let functions = Functions {
        abi: Abi::of(&library, name),
        init: get::<Init>(&library, name, "MPI_Init_thread")?,
        rank: get::<OfWorld>(&library, name, "MPI_Comm_rank")?,
        size: get::<OfWorld>(&library, name, "MPI_Comm_size")?,
        isend: get::<Start>(&library, name, "MPI_Isend")?,
        irecv: get::<Start>(&library, name, "MPI_Irecv")?,
        test: get::<Test>(&library, name, "MPI_Test")?,
        cancel: get::<OfRequest>(&library, name, "MPI_Cancel")?,
        abort: get::<Abort>(&library, name, "MPI_Abort")?,
        finalize: get::<Finalize>(&library, name, "MPI_Finalize")?,
        version: get::<Version>(&library, name, "MPI_Get_library_version")?,
    };
    // The functions' addresses outlive this value.
    std::mem::forget(library);
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHER: Launcher = Launcher {
        name: "MPICH",
        rank: 0,
        size: 2,
        variable: "PMI_RANK",
        libraries: &["libgpuio-no-mpi.so.1", "libgpuio-no-mpi.so.2"],
    };

    #[test]
    fn an_error_names_all_that_was_looked_for() {
        let text = load(&LAUNCHER, None).unwrap_err().to_string();
        for part in ["MPICH", "PMI_RANK", "libgpuio-no-mpi.so.1", "libgpuio-no-mpi.so.2", "off"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_library_that_is_no_mpi_is_refused() {
        let text = load(&LAUNCHER, Some("libc.so.6")).unwrap_err().to_string();
        assert_eq!(text, "libc.so.6 lacks MPI_Init_thread, so it is no usable MPI library");
    }
}
