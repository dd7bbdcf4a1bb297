//! The three binary interfaces: which one a library has, and its constants.

use std::ffi::c_int;
use std::path::Path;

use libloading::os::unix::Library;

/// A handle as it is passed: an address in Open MPI and in the standard interface, an `int` in
/// MPICH. An `int` argument is the low half of a register of the same calling convention (System V
/// for x86-64, AAPCS64), so one signature serves all.
pub(crate) type Handle = usize;

/// Values that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abi {
    pub(crate) name: &'static str,
    /// `MPI_COMM_WORLD`.
    pub(crate) world: Handle,
    /// `MPI_BYTE`.
    pub(crate) byte: Handle,
    /// `MPI_THREAD_FUNNELED`.
    pub(crate) funneled: c_int,
}

/// `mpi.h` of MPICH 4.0; the same in Intel MPI, Cray MPICH and MVAPICH by the "MPICH ABI
/// Compatibility Initiative".
const MPICH: Abi = Abi { name: "MPICH ABI", world: 0x4400_0000, byte: 0x4c00_010d, funneled: 1 };
/// MPI 5.0, chapter "Application Binary Interface".
const STANDARD: Abi = Abi { name: "MPI 5 ABI", world: 0x101, byte: 0x247, funneled: 1024 };

impl Abi {
    /// The interface of a library that was loaded as `name`. Open MPI has its predefined objects as
    /// symbols; the standard's library is known by its file name, which the standard gives.
    pub(crate) fn of(library: &Library, name: &str) -> Abi {
        let object = |symbol: &[u8]| {
            // SAFETY: only the address is taken, and nothing is read through it.
            unsafe { library.get::<*mut u8>(symbol) }.ok().map(|found| found.as_raw_ptr() as Handle)
        };
        if let (Some(world), Some(byte)) =
            (object(b"ompi_mpi_comm_world"), object(b"ompi_mpi_byte"))
        {
            return Abi { name: "Open MPI", world, byte, funneled: 1 };
        }
        let path = Path::new(name);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_standard = |path: &Path| path.to_string_lossy().contains("mpi_abi");
        if is_standard(path) || is_standard(&real) { STANDARD } else { MPICH }
    }
}
