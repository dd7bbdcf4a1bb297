//! The layout of a page. Little endian, every counter 8 bytes on an 8-byte boundary.
//!
//! A header of [`HEADER_BYTES`], written once, then worker slots of [`SLOT_BYTES`] each. A slot
//! begins with its key, written once before `state` marks it as used, and goes on with counters
//! that only grow and a few readings that can also fall. A change of any of it is a new
//! [`VERSION`].

use std::mem::{offset_of, size_of};
use std::sync::atomic::AtomicU64;

use crate::page::bucket::{Latencies, SIZES};

/// First bytes of a page.
pub(crate) const MAGIC: [u8; 8] = *b"gpuiopg\n";
/// The layout's number.
pub const VERSION: u32 = 2;
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 256;
/// The most worker slots of a page: 9 MiB, for more threads than machines have processors. Further
/// threads share.
pub(crate) const MAX_WORKER_SLOTS: u32 = 1024;
/// Slots that several threads may write, after those of one thread each.
pub(crate) const SHARED: u32 = 4;
/// Instead of a count: it is not counted.
pub const NOT_COUNTED: u64 = u64::MAX;

/// Instead of a PCI address: gpuio's software GPU, whose rates are no GPU's.
pub const SOFTWARE: &str = "software";

/// Path of a slot that holds a program's registrations, and no I/Os.
pub const REGISTERED: &str = "registered";

/// Path of a slot with statistics that NVIDIA's library has of itself, and no I/Os: numbers in the
/// first [`LIBRARY_NUMBERS`] of `sizes` of each direction, in the order of
/// `snapshot::LibraryGpu::numbers`; of no GPU those of `snapshot::Library::numbers`.
pub const OF_LIBRARY: &str = "of_library";
/// Numbers of each direction in a slot of [`OF_LIBRARY`].
pub const LIBRARY_NUMBERS: usize = 11;

/// Path of a slot with the saves of a process that writes checkpoints, and no I/Os
/// (`snapshot::Saves`). `python/gpuio/_checkpoint_drain.py` writes it: bytes as those of the two
/// sides, numbers in `sizes` of reads, the directory in `latencies` of reads and the last error in
/// those of writes. The writer raises `threads` before and `spare` after a change: where they
/// differ, the slot is half-written.
pub(crate) const SAVES: &str = "saves";
/// Bytes of such a text at most.
pub(crate) const TEXT_BYTES: usize = Latencies::COUNT * 8;

/// `Cells::state` of an unused slot.
pub(crate) const UNUSED: u64 = 0;
/// `Cells::state` where no GPU is the destination; GPU n is `n + FIRST_GPU`.
pub(crate) const NO_GPU: u64 = 1;
pub(crate) const FIRST_GPU: u64 = 2;

/// Offsets of the header's fields.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const HEADER_BYTES: usize = 12;
    pub(crate) const SLOT_BYTES: usize = 16;
    pub(crate) const WORKER_SLOTS: usize = 20;
    pub(crate) const PID: usize = 24;
    pub(crate) const UID: usize = 28;
    pub(crate) const START_TICKS: usize = 32;
    pub(crate) const NAMESPACE: usize = 40;
    pub(crate) const BEGAN_REAL_NS: usize = 48;
    pub(crate) const BEGAN_MONOTONIC_NS: usize = 56;
    pub(crate) const BOOT: usize = 64;
    pub(crate) const BOOT_BYTES: usize = 40;
    pub(crate) const PROGRAM: usize = 104;
    pub(crate) const PROGRAM_BYTES: usize = 24;
    pub(crate) const RELEASE: usize = 128;
    pub(crate) const RELEASE_BYTES: usize = 24;
}

/// Counters of reads, or of writes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Side {
    pub(crate) bytes: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) latency_ns: AtomicU64,
    /// I/Os whose offset or length is no multiple of 4 KiB.
    pub(crate) unaligned: AtomicU64,
    /// I/Os by class of size; their sum is the number of I/Os.
    pub(crate) sizes: [AtomicU64; SIZES],
    pub(crate) latencies: [AtomicU64; Latencies::COUNT],
}

/// The counts of one thread. On cache lines of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Cells {
    pub(crate) state: AtomicU64,
    pub(crate) path: [AtomicU64; 3],
    pub(crate) engine: [AtomicU64; 2],
    pub(crate) pci: [AtomicU64; 2],
    /// Files opened; of a slot for registrations, files registered now.
    pub(crate) files: AtomicU64,
    /// Buffers registered with cuFile now, or [`NOT_COUNTED`].
    pub(crate) registered: AtomicU64,
    /// I/O slots of threads that run now.
    pub(crate) slots: AtomicU64,
    /// I/Os in flight at the last update.
    pub(crate) in_flight: AtomicU64,
    /// Start of the first and completion of the last I/O, `CLOCK_MONOTONIC` nanoseconds.
    pub(crate) first_ns: AtomicU64,
    pub(crate) last_ns: AtomicU64,
    pub(crate) threads: AtomicU64,
    /// Those of them that another slot counts too.
    pub(crate) spare: AtomicU64,
    pub(crate) sides: [Side; 2],
}

/// Bytes of a worker slot.
pub(crate) const SLOT_BYTES: usize = size_of::<Cells>();

// Readers of other versions of the program use these offsets.
const _: () = assert!(size_of::<Side>() == (4 + SIZES + Latencies::COUNT) * 8);
const _: () = assert!(SLOT_BYTES == 8896 && SLOT_BYTES.is_multiple_of(64));
const _: () = assert!(offset_of!(Cells, files) == 64 && offset_of!(Cells, sides) == 128);
const _: () = assert!(offset_of!(Side, sizes) == 32 && offset_of!(Side, latencies) == 160);
const _: () = assert!(offset_of!(Cells, threads) == 112 && TEXT_BYTES == 4224);
const _: () = assert!(LIBRARY_NUMBERS <= SIZES);
const _: () = assert!(header::RELEASE + header::RELEASE_BYTES <= HEADER_BYTES);
const _: () = assert!(HEADER_BYTES.is_multiple_of(64));
// A page of a process with as many threads as a large socket has cores stays small.
const _: () = assert!(HEADER_BYTES + (24 + SHARED as usize) * SLOT_BYTES < 256 << 10);
const _: () = assert!(cfg!(target_endian = "little"), "the layout is little endian");

/// Bytes of a page with so many worker slots.
pub(crate) fn page_bytes(worker_slots: u32) -> usize {
    HEADER_BYTES + worker_slots as usize * SLOT_BYTES
}
