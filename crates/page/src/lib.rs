//! The live page: counters of a running process in a small file of shared memory, a fixed layout,
//! written by the threads of one process, read by anyone whom its owner lets.
//!
//! A process makes one page ([`Page::create`]) and gives each of its threads a [`Lane`]. A lane is
//! written by plain relaxed stores of one thread: nanoseconds per I/O, no system call, no lock.
//! Readers copy the file's bytes out by read(2) and check everything that they find
//! ([`read::find`], [`read::list`]): a page may be half-written, hostile, or of a process that was
//! killed.
//!
//! The layout is in `layout`; docs/stats.md has it in words.

mod bucket;
pub mod format;
mod layout;
mod mapping;
mod place;
pub mod read;
mod snapshot;
mod write;

pub use bucket::{SIZES, size_class};
pub use layout::{LANES_MOST, NOT_COUNTED, REGISTERED, VERSION};
pub use place::{PageError, Place};
pub use snapshot::{Counts, Snapshot, Way};
pub use write::{Direction, Key, Lane, Page, monotonic_ns};
