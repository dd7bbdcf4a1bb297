//! MPI, loaded at run time: messages of bytes between the processes (ranks) of one job.
//!
//! Purpose: a job that `mpirun` or `srun` started finds its ranks. [`Launcher::found`] recognises
//! the launcher by its environment variables; without one nothing is loaded. [`World::join`] loads
//! the library that fits the launcher and starts MPI. One binary serves three binary interfaces
//! (`abi`): Open MPI 4 and 5, the MPICH 4 family, and the standard interface of MPI 5.
//!
//! It must not hold loads, plans, results, or the meaning of messages.
//!
//! Messages go between rank 0 and each other rank, in order, of any length up to 2 GiB. They are
//! sent and received with `MPI_Isend`, `MPI_Irecv` and `MPI_Test` only, and no call here blocks
//! between `MPI_Init_thread` and `MPI_Finalize`. With `MPI_Barrier` and its like a rank that hangs
//! would hang the others in a call that has no timeout; here the caller waits, for as long as it
//! wants to.
//!
//! Threads: `MPI_THREAD_FUNNELED`. A [`World`] stays on the thread that made it, which MPI then
//! calls the main thread; no other thread may call MPI.
//!
//! Data flow: bytes from [`World::send`] are queued, then owned by MPI until `MPI_Test` reports the
//! end; received bytes are owned by MPI until [`World::receive`] returns them.
//!
//! Sources: MPI 4.1 and MPI 5.0 standards (functions, chapter "Application Binary Interface");
//! `mpi.h` of Open MPI 4.1 and `mpi.h` of MPICH 4.0 for the values in `abi`.

#![allow(unsafe_code)]

mod abi;
mod launcher;
mod library;
mod world;

pub use launcher::{LIBRARY_VARIABLE, Launcher};
pub use library::Absent;
pub use world::{World, WorldError};
