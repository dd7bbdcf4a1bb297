//! Moves bytes between files and callers' memory, on a GPU or in the host, for many threads at
//! once.
//!
//! Nothing has to be registered first, and any alignment of offset, address and length will do.
//! Bytes in the page cache are read from there, the rest from the device (of block devices with
//! O_DIRECT, all). cuFile's names, codes and configuration live in `dropin`; load generation and
//! printing live elsewhere too.
//!
//! How one `cuFileRead` into GPU memory flows:
//!
//! 1. `dropin` finds the [`File`] of the handle and the [`MemoryLocation`] of the address (among
//!    its registered buffers, else by [`Transfer::locate`]) and calls [`Transfer::call`].
//! 2. Up to 64 KiB (`device/small`): the calling thread reads into a page-locked slot of its own. A
//!    command to the resident copy kernel (`gpuio_gpu::resident_copy`) or a driver copy moves the
//!    bytes on.
//! 3. A longer call (`call`) is split at multiples of a power of two in the file. The worker
//!    pool (`pool`) decides who takes the pieces: the caller, its workers or both. Each thread
//!    holds a permit and a staging ring (`device/staging`), and reads one piece while the previous
//!    one is copied to the GPU.
//! 4. A piece (`file`) is read from the page cache if it is there. Missing bytes are read with
//!    `O_DIRECT` if the call has 256 KiB or more, else as the program opened the file.
//! 5. The resident copy kernel copies small calls, and pieces that came whole from the page cache.
//!    A copy of the driver moves the rest, and everything while other kernels fill the GPU.
//! 6. The thread that completes the last piece wakes the caller, which waits on a futex.
//!
//! Reads of files that are read again and again (`mapped`) need no `pread` and skip 3 and 4: on
//! the calling thread the resident copy kernel (up to 64 KiB) or a copy of the driver reads the
//! page cache, and the thread waits for it. In a program's stream, the stream does. Writes of files
//! in memory that are written again and again are one copy into the page cache, and a `pwrite` of
//! the range's ends.
//!
//! A [`Batch`] (`batch`) joins neighbouring small entries into runs of one staging slot and one
//! kernel launch or command. A transfer in a CUDA stream (`stream`) is split into chunks of a
//! staging buffer: the stream signals that it has reached a chunk, waits for the host, then copies.
//!
//! Which thread does what, and what may block:
//!
//! | Thread | Does | May block on |
//! | --- | --- | --- |
//! | caller | own pieces; small calls | file I/O, GPU copies, a ring, a permit, others' pieces |
//! | pool worker | pieces of others' calls, runs of batches | file I/O, a GPU copy, a ring |
//! | stream worker | file side of transfers in streams | file I/O |
//! | stream call worker | whole calls for streams of other contexts | as a caller |
//! | poller, one for each kind above | watches semaphore values of streams | its sleep |
//! | mapper | registers hot files, retires or unregisters the others | file I/O, the driver |
//! | watcher of leases | gives back leases that the kernel wants | its signal |
//!
//! All are named `gpuio-transfer`. Pool workers start with the first batch, or the first call that
//! they may help with; pollers and stream workers with the first operation in a stream; mapper and
//! watcher with the first hot file. All stay
//! until the process ends. Idle threads sleep on a futex or a condition variable.
//!
//! Operations that wait while they hold a lock:
//!
//! - the first use: the loading of the driver, some hundred milliseconds, for which others wait;
//! - the lock of a device's creation: the making of its context and the loading of kernels, in
//!   which the driver may wait for the device;
//! - the lock of a command queue's launches: one kernel launch, and after a backoff the look
//!   whether there is room, 0.2 ms;
//! - the lock of a stream's operations: the driver's enqueue calls, which wait while the stream is
//!   full;
//! - the lock of a file's edges: a direct write of whole blocks holds it shared, a write of parts
//!   of blocks and its flush hold it alone.
//!
//! Other locks, of the queue of calls and batches and of rings, are held for some instructions.
//! Where no stream worker can be started, the poller does its file I/O.
//!
//! [`live_page`] counts calls for `gpuio stats`. [`spawn_thread`] starts a thread of another crate
//! as those here are started.
//!
//! Every function may be called from any thread. A caller needs no current CUDA context, and its
//! context is left as it was. At exit nothing is returned to the driver: threads, page-locked
//! memory and contexts stay until the process ends, because a driver that shuts down must not be
//! called.
//!
//! After `fork(2)` the child has none of these threads, and no driver. Calls on host memory work in
//! it, with state of its own (`fork`); calls on GPU memory return [`Fault::Forked`].
#![warn(missing_docs)]
#![allow(unsafe_code)]

pub mod apart;
mod api;
mod batch;
mod bounce;
mod call;
mod cancel;
pub mod clock;
mod device;
mod fault;
mod file;
mod fork;
mod idle;
pub mod live_page;
mod mapped;
mod memory;
mod pool;
mod retry;
mod settings;
mod spawn;
mod state;
mod stream;
mod sync;
mod transferred;

pub use api::{Ahead, Transfer};
pub use batch::{Batch, BatchFull, Entry, Event};
pub use cancel::{cancellation_point, uncancelled};
pub use fault::{Fault, FileError};
pub use file::{File, KeptFd};
pub use gpuio_base::catalog::Op;
pub use gpuio_gpu::RawStream;
pub use mapped::{FileMapping, MappingError, MappingState};
pub use memory::MemoryLocation;
pub use settings::{BypassCache, Settings, UncachedReads};
pub use spawn::spawn_thread;
pub use stream::{OnCompletion, Param, Params, ResolvedParams};
pub use transferred::{RouteBytes, Transferred};
