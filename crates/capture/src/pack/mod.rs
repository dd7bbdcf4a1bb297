//! A capture: the kernel files that facts are read from, as one tar without secrets.
//!
//! [`redact()`] takes what a [`gpuio_host::Recorder`] noted and replaces names of hosts and users,
//! serial numbers, UUIDs, addresses of networks and sources of mounts; [`write()`] makes the tar,
//! with a list of what was taken and replaced, and [`read`] reads it back. Captures of hosts that
//! are compared keep their addresses ([`redact_but_addresses`]).

mod addresses;
mod archive;
mod manifest;
mod mounts;
mod redact;
mod secrets;
mod words;

pub use archive::{PackError, read, write};
pub use redact::{Redacted, Taken, redact, redact_but_addresses};
pub use secrets::Secret;

/// The list of what a capture holds, in its tar.
pub const MANIFEST: &str = "MANIFEST";

/// An empty file in captures that have the addresses and names of their machine.
pub const ADDRESSES_KEPT: &str = "gpuio/addresses-kept";
