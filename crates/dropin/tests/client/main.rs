//! The library as programs use it: loaded by `dlopen(3)`, called by its C names. On gpuio's
//! software GPU, or with `GPUIO_TEST_GPU=system` on the system's.
//!
//! A library reads its environment once and is never unloaded, so each test runs in a process of
//! its own ([`client::alone`]).
#![allow(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod auto;
mod batch;
mod cancel;
mod client;
mod descriptors;
mod driver;
mod file;
mod filesystem;
mod interface;
mod model;
mod nvidia;
mod order;
mod parameter;
mod process;
mod random;
mod recorded;
mod stats;
mod stream;
