//! gpuio's C library, `libgpuio.so.0`: files in the page cache for a program's own GPU kernels.
//!
//! The six functions of `include/gpuio.h` over [`gpuio_transfer::Transfer::map`]: a mapping is
//! opened, has an address and a state, and is closed. docs/gpuio-h.md is the page for its users.
//! Mapping, registering and leases are in `transfer`; nothing of these may live here, nor may I/O
//! or functions that cuFile's interface has (`dropin`). Rust programs use `transfer`.
//!
//! - `export`: the functions, by their names in the header.
//! - `failure`: what they return where they fail, and the thread's last error in words.
//!
//! How one `gpuio_map_open` flows: `export` makes the process's only `Transfer` (the variable
//! `GPUIO_CUFILE_DRIVER` says with which driver), opens the caller's descriptor with it, maps the
//! range, and hands out the mapping in a box, as an address that only these functions look into.
//! An error becomes an errno and words in `failure`.
//!
//! Threads: every function may be called from any thread and from many at once. This crate starts
//! none; the first mapping starts the two of `transfer` that watch leases, which stay until the
//! process ends, so the object stays loaded after `dlclose(3)`. No lock is held here. The words of
//! an error belong to their thread. A panic leaves no function.
#![allow(unsafe_code)]

mod export;
mod failure;
