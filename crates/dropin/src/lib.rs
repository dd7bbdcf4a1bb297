//! gpuio's own `libcufile.so.0`: the interface of NVIDIA's cuFile library over gpuio's transfers,
//! with no kernel module, no root and no device node.
//!
//! A program that was built for cuFile finds this object in the place of NVIDIA's (`gpuio exec`)
//! and runs unchanged. All 50 public functions are exported, without symbol versions, as NVIDIA's
//! library exports them; each has its contract beside it in `export`. Nothing else is exported, and
//! nothing here is for Rust programs.
//!
//! - `abi`, `code`, `answer`: layouts, codes, and what every call has in common.
//! - `library`: what is open; `config`, `setting`: what holds.
//! - `handles`, `buffers`, `batches`, `streams`: what programs registered.
//! - `io`: the transfers; `stats`, `live`: what is counted of them.
//! - `sync`: what the parts without locks are made of, for the model of them.
//! - `peer`: NVIDIA's library, where a program's calls are handed on to it; `direct`: the files
//!   that it has a direct path for.
//!
//! Threads: every function may be called from any thread and from many at once. Reads and writes
//! take no lock that others take. At exit nothing is given back to CUDA; the object stays loaded
//! after `dlclose(3)`. Only one call is made at exit: the live page's file is removed.
//!
//! The interface was learned from public documents ("cuFile API Reference Guide", the header's
//! names as published with bindings for other languages) and from what the functions answer;
//! docs/dropin.md says which behaviour comes from where.
#![allow(unsafe_code)]

mod abi;
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
mod stats;
mod streams;
mod sync;
