//! Moves bytes between files, host memory and GPU memory, one worker thread at a time.
//!
//! An [`engine`] moves bytes between a file and host memory. A [`path`](mod@path) takes them from
//! there to the requested memory, or back. It must not hold options, plans, statistics, or threads
//! of the load. The only threads are those that an engine needs for itself, and those of `transfer`
//! on the paths `library*`.
//!
//! - [`engine`]: the trait [`engine::Engine`], the table [`engine::ENGINES`] with one file for each
//!   engine, and the decorators `throttle`, `fault`, `whole` (continues short transfers) and
//!   `monitor` (live counters).
//! - [`path`](mod@path): the trait [`path::Path`] and the table [`path::PATHS`] with one file for
//!   each path. `two_legs` is the state machine of all paths with a file leg and a GPU stage;
//!   `slot_buffers` (memory) and `stream_queues` (CUDA streams and events) are its parts, and
//!   `staged` makes the streams a GPU stage that copies each slot by itself. On the paths `gds*`,
//!   NVIDIA's cuFile moves the bytes from end to end; on the paths `library*` the core of our own
//!   libcufile.so.0 does (crate `transfer`); on `mapped` the GPU itself, out of a mapping, and on
//!   `initiated` by I/O that it starts.
//!   `destination` (memory) is common to these; `progress` (requests), `blocking`, `grouped` and
//!   `streamed` (calls of each kind) to both libraries. `launcher` is the kernel of `gather` and
//!   `mapped`, with its lists.
//! - [`CATALOG`]: both tables as data (`gpuio_base::catalog`), without what opens an engine or
//!   path.
//! - [`buf`] and [`clock`]: aligned host memory, and the clock of a run (`transfer`'s).
//!
//! One read on path `staged`:
//!
//! 1. The worker (`load`) calls [`path::Path::start`] with a [`path::Request`], which names a free
//!    slot. `TwoLegs::start_read` gives the I/O to the engine ([`engine::Engine::push`]). A
//!    synchronous engine does the I/O in this call, and step 3 follows in it.
//! 2. [`path::Path::advance`] runs `TwoLegs::drive`: [`engine::Engine::reap`] returns completed
//!    file I/Os, and `TwoLegs::file_done` passes each to `GpuStage::enqueue`.
//! 3. `StreamQueues`, the GPU stage, copies the slot to GPU memory in a CUDA stream
//!    (`Slots::transfer`) and records an event behind the copy (`StreamQueues::record`).
//! 4. `GpuStage::poll`, or `GpuStage::wait` where nothing else is left to do, finds the event
//!    reached, `TwoLegs::take_gpu_completions` marks the request
//!    complete, and `advance` returns it as a [`path::Completion`].
//!
//! A write runs the same steps in the order 3, 4, 1, 2. Its file I/O waits in `TwoLegs::held` for
//! space in the engine, and `TwoLegs::offer` pushes it.
//!
//! Which thread does what, and what may block:
//!
//! - The worker (the caller) does everything above. An engine and a path belong to the thread that
//!   opened them. It may block in `push` and `start` of synchronous engines, in `reap`, in
//!   `advance` with `wait`, in `wait_timeout` up to its timeout, and when it drops a path with I/Os
//!   in flight.
//! - Threads of the engine `pool` do one pread(2) or pwrite(2) at a time and may block on it.
//! - Threads of `transfer`, which stay until the process ends, work for the paths `library*`.
//! - Kernel threads of io_uring do I/Os that would block.
//!
//! Nothing calls back into the worker.
#![warn(missing_docs)]
#![allow(unsafe_code)]

pub mod buf;
mod catalog;
pub mod engine;
pub mod path;

pub use catalog::CATALOG;
pub use gpuio_transfer::clock;
