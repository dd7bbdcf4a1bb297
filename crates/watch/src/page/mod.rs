//! The live page: counters of a running process in a small file of shared memory, with a fixed
//! layout, written by the threads of one process and read by anyone whom its owner allows.
//!
//! A process makes one page ([`LivePage::create`]) in `/dev/shm` and gives each of its threads a
//! [`WorkerSlot`] (our libcufile.so.0: one for each GPU and way of the bytes). A thread writes its
//! own with relaxed stores (entries that threads share, with relaxed additions): nanoseconds per
//! I/O, no system call, no lock, and no reader can delay it. All of the file is allocated before it
//! is mapped, because a store to a full tmpfs would raise a signal.
//!
//! Readers copy the file's bytes out by read(2) (a mapped file that somebody truncates raises a
//! signal too) and validate everything ([`read::find`], [`read::list`]): a page may be
//! half-written, malicious, or of a killed process. A page belongs to a process only if PID, start
//! time, PID namespace and boot agree.
//!
//! `layout` is the contract; sizes and offsets are asserted at compile time, and any change is a
//! new version. docs/stats.md describes it.

mod bucket;
pub mod format;
mod layout;
mod mapping;
mod page_root;
pub mod read;
mod snapshot;
mod write;

pub use bucket::{SIZES, size_class};
pub use layout::{LIBRARY_NUMBERS, NOT_COUNTED, OF_LIBRARY, REGISTERED, SOFTWARE, VERSION};
pub use page_root::{LivePageError, LivePageRoot};
pub use snapshot::{
    Counts, Library, LibraryCounts, LibraryGpu, LibraryState, PathCounters, Saves, Snapshot,
};
pub use write::{Direction, Key, LivePage, WorkerSlot, monotonic_ns};
