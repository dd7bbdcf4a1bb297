//! Libraries of others, loaded at run time: a missing one is a value that says what was tried.
//!
//! - [`cufile`]: NVIDIA's cuFile, with safe owners.
//! - [`nvml`]: readings of a GPU.
//! - [`dcgm`]: profiling fields of all GPUs.
//! - [`mpi`]: messages between the processes of one job.
//!
//! No pointer of a library leaves its module, nothing is linked, and which file may be loaded is
//! decided by `gpuio_guard::objects`. CUDA's driver is not here: `gpuio_gpu` has it, with our
//! kernels. It must not hold the meaning of readings and messages.

pub mod cufile;
pub mod dcgm;
pub mod mpi;
pub mod nvml;
