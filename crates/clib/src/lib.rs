//! gpuio's C library, `libgpuio.so.0`: reads into GPU memory, tensors, and for a program's own GPU
//! kernels files in the page cache and I/O that they start.
//!
//! The functions of `include/gpuio.h` over [`gpuio_transfer::Transfer`]. docs/gpuio-h.md is the
//! page for users of C, docs/python.md for those of the Python module, which calls them.
//! Moving, mapping, registering and leases are in `transfer`; nothing of these may live here, nor
//! functions that cuFile's interface has (`dropin`). Rust programs use `transfer`.
//!
//! - `export`: mappings, and the last error.
//! - `memory`: memory on a GPU or in the host, and reads into any memory.
//! - `pages`: locked pages of the caller, copies out of a GPU into them, digests.
//! - `parts`: reads of many ranges in one call, and copies of their bytes to other GPUs.
//! - `rings`: rings for I/O that kernels start, and the thread that wakes those who serve them.
//! - `safetensors`: the headers of model files.
//! - `tensor`: tensors over such a memory, as DLPack has them.
//! - `process`: the process's only `Transfer` (the variable `GPUIO_CUFILE_DRIVER` says with which
//!   driver).
//! - `error`: what the functions return where they fail, and the thread's last error in words.
//!
//! How one `gpuio_read` flows: `memory` opens the caller's descriptor with the transfer, asks it
//! what memory the address is, and makes one call of it. The bytes moved, by route, go into the
//! caller's `gpuio_bytes`. `gpuio_map_open` maps the range and hands out the mapping in a box, as
//! an address that only these functions look into. A `gpuio_memory` is counted: the caller and each
//! tensor have a share, and the last one frees it, on any thread. An error becomes an errno and
//! words in `error`.
//!
//! Threads: every function may be called from any thread and from many at once. Open rings have a
//! thread each (`gpuio-rings`), which ends with them; `transfer` starts some on demand, which stay
//! until the process ends, so the object stays loaded after `dlclose(3)`. The locks are those of
//! rings, which are held for system calls of io_uring while files and buffers are added. The words
//! of an error belong to their thread. A panic leaves no function.
#![warn(missing_docs)]
#![allow(unsafe_code)]

mod error;
mod export;
mod memory;
mod pages;
mod parts;
mod process;
mod rings;
mod safetensors;
mod strips;
mod tensor;
