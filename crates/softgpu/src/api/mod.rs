//! The exported functions, with the names and the ABI of the CUDA driver API's reference manual.
//!
//! The contract of each is the manual's: pointers to results must be valid for the write, sizes in
//! bytes. It is not repeated at each function.

mod context;
mod device;
mod init;
mod managed;
mod memory;
mod module;
mod peer;
mod pointer;
mod simple;
mod stream;
mod stream_memory;
mod vmm;
