//! gpuio's own `libcufile.so.0`: the interface of NVIDIA's cuFile library over gpuio's transfers,
//! with no kernel module, no root and no device node.
//!
//! A program that was built for cuFile loads this object instead of NVIDIA's (`gpuio exec`) and
//! runs unchanged. All 50 public functions are exported, without symbol versions, as NVIDIA's
//! library exports them; each documents its contract in `export`. Nothing else is exported, and
//! Rust programs do not link this crate. The bytes are moved by `transfer`, not here.
//!
//! - `abi`, `code`, `call`: layouts, codes, and what all calls share (no panic leaves).
//! - `library`: the state of the process, and its locks at a `fork(2)`; `config`, `environment`:
//!   the settings in effect.
//! - `handles`, `buffers`, `batches`, `streams`: what programs registered.
//! - `io`: registered files and their transfers; `stats`, `live_page`, `log`: counters and log.
//! - `nvidia`: NVIDIA's library, if calls are forwarded to it; `observed`: such calls, counted and
//!   recorded; `nvidia_stats`: its own counts; `direct`: the files for which it has a direct path.
//! - `recorder`: traces of the calls that a program makes, where that is requested.
//! - `fork`: the count of forks; `sync`: the primitives of the lock-free parts, for their model.
//!
//! How one `cuFileRead` flows: `export::file` → `call` (errno and panics) →
//! `io::Library::transfer`, which finds the file in `handles` and the memory in `buffers` (if it is
//! registered), checks the request, calls `transfer` (or NVIDIA's library for a direct path), and
//! counts the result in `stats` and `live_page`.
//!
//! Threads: every function may be called from any thread and from many at once. This crate starts
//! one, the writer of `recorder`, where calls are recorded, and another for a moment where a file
//! with holes is registered then; those of `transfer` are listed there.
//! A call looks up its file and memory without a lock;
//! the first call of a thread, and the first after a registration, take one. The first call of
//! all reads the configuration and makes the live page under the library's lock, and the first use
//! of a direct path opens NVIDIA's library under another. At exit
//! nothing is returned to CUDA; the object stays loaded after `dlclose(3)`. All that is
//! done at exit is to remove the live page's file and to end the trace.
//!
//! The interface was learned from public documents ("cuFile API Reference Guide", the header's
//! names as published with bindings for other languages) and from what the functions return;
//! docs/dropin.md says which behaviour comes from where.
#![warn(missing_docs)]
#![allow(unsafe_code)]

mod batches;
mod buffers;
mod call;
mod code;
mod config;
mod direct;
mod environment;
mod export;
mod fork;
mod handles;
mod io;
mod library;
mod live_page;
mod log;
mod nvidia;
mod nvidia_stats;
mod observed;
mod recorder;
mod request;
mod standard_error;
mod stats;
mod streams;
mod sync;

use gpuio_drivers::cufile::abi;
