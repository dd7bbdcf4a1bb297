//! Transfers in the order of a program's stream.
//!
//! A stream operation (`StreamOp`) is split into chunks that go through a double-buffered
//! [`StagingBuffer`](staging::StagingBuffer). For each chunk of a read the stream signals that it
//! has reached it (`cuStreamWriteValue32`), waits for a semaphore value that one of our threads
//! stores when the file's bytes are in page-locked memory (`cuStreamWaitValue32`), and then runs
//! the kernel that copies them:
//!
//! ```text
//! stream:   signal  wait  copy  signal  wait  copy  ...   store "released"
//! workers:     read  read ...       read (the next chunk into the free half)
//! ```
//!
//! A write is the other way round: copy, signal; workers write; the stream waits for them before it
//! uses a half again, and at the end.
//!
//! No copy goes into a stream of ours: it could queue behind that very wait. Streams share the few
//! hardware queues of a context (`CUDA_DEVICE_MAX_CONNECTIONS`), and a waiting stream blocks all
//! others of its queue. Sources: CUDA driver API manual, "Stream Memory Operations" and
//! `cuLaunchHostFunc`; CUDA C++ Programming Guide, "Environment Variables".
//!
//! Mapped files (`crate::mapped`): a kernel that copies a chunk gets its list of pieces only when
//! the stream has reached the chunk. If the file's bytes are mapped at that time, the list names
//! the page cache instead of the staging buffer; the thread that sees the signal writes it and
//! stores the semaphore value itself, so no other thread is woken and nothing is read. That is the
//! earliest time: the parameters may be set, and the file changed, by earlier work of the stream or
//! by threads that it waits for. So nothing is looked up when a transfer is enqueued, not even with
//! fixed parameters, and a lease never has to be kept for a stream that the one who wants it may
//! hold up. Every other chunk takes the staging buffer, which each transfer has. From the lookup on
//! the extents count one user more, until the stream stores "released". A lease that is wanted
//! back meanwhile is given back at once: the copy then runs beside the writer, as a `pread(2)`
//! would that began when the stream arrived, and its pages stay registered until it has ended.
//!
//! The poller thread ([`mod@poller`]) watches the signals. If it has too many streams to watch, or
//! the stream was held up the last time, the stream also calls a host function
//! (`cuLaunchHostFunc`), on a driver thread that an interrupt wakes. The stream continues when the
//! function has returned, which takes longer than reading 1 MiB. Where the driver has no waits for
//! semaphore values, the function itself reads or writes, and returns when that is done.
//!
//! Progress: stream workers ([`mod@workers`]) wait for nothing but file I/O, so each awaited value
//! arrives whatever else holds up the GPU. Page-locked memory for the whole operation is taken when
//! it is enqueued; at the memory limit, a small buffer beyond it. So no thread waits for memory
//! that only later work of a stream returns.
//!
//! Memory of a context that the program created, which our kernel can't reach, is moved by workers
//! of a second kind with our own streams while the program's stream waits. These are of the primary
//! context, and contexts do not share queues. For host memory there is no GPU side at all.

mod chunks;
mod enqueue;
mod file_io;
mod latency;
mod mapped;
mod op;
mod pending;
mod poller;
mod staging;
mod transfer;
mod workers;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use gpuio_gpu::{GatherKernel, GpuError};

use crate::device::{Device, Devices};
use crate::fault::Fault;
use crate::settings::Settings;
use crate::transferred::Transferred;
use op::Method;
use staging::StagingBuffers;
use workers::StreamWorkers;

/// A parameter of a transfer in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<T> {
    /// Known when the transfer is enqueued.
    Immediate(T),
    /// Read from this address when the stream reaches the transfer.
    Deferred(*const T),
}

/// The parameters of a transfer in a stream.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// The largest value that `size` may have.
    pub max_size: usize,
    /// Bytes.
    pub size: Param<usize>,
    /// Offset in the file, in bytes.
    pub file_offset: Param<i64>,
    /// Offset in the memory from its base, in bytes.
    pub buffer_offset: Param<i64>,
}

// SAFETY: the addresses are only read from, once, by the thread that resolves the parameters; the
// caller of `Transfer::enqueue` keeps them valid for any thread.
unsafe impl Send for Params {}
// SAFETY: as for Send.
unsafe impl Sync for Params {}

/// Parameters as they were when the stream reached the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResolvedParams {
    /// Bytes.
    pub size: usize,
    /// Offset in the file, in bytes.
    pub file_offset: i64,
    /// Offset in the memory from its base, in bytes.
    pub buffer_offset: i64,
}

/// Called once, before later work of the stream runs, on any thread. It must not call the driver
/// nor wait for the GPU. It is not called if the context is lost before the stream reaches the
/// transfer.
pub type OnCompletion = Box<dyn FnOnce(ResolvedParams, Result<Transferred, Fault>) + Send>;

/// The state of all transfers in streams.
#[derive(Debug)]
pub(crate) struct Streams {
    max_bytes: u64,
    piece_len: usize,
    semaphores: bool,
    devices: RwLock<HashMap<u32, &'static StreamDevice>>,
    /// They wait for file I/O alone.
    file_workers: StreamWorkers,
    /// They make whole calls, which wait for the GPU.
    call_workers: StreamWorkers,
}

#[derive(Debug)]
struct StreamDevice {
    device: &'static Device,
    buffers: StagingBuffers,
    semaphores: bool,
}

impl Streams {
    pub(crate) fn new(settings: &Settings) -> Self {
        // More helpers would only compete with the program's own threads.
        let most = settings.max_workers.clamp(1, settings.max_active.max(1));
        Self {
            max_bytes: settings.max_staging_bytes,
            piece_len: settings.max_piece(),
            semaphores: settings.stream_semaphores,
            devices: RwLock::default(),
            file_workers: StreamWorkers::new(most, settings.stream_poller),
            call_workers: StreamWorkers::new(most, settings.stream_poller),
        }
    }

    /// The state for a device, made on first use.
    fn device(&self, devices: &Devices, index: u32) -> Result<&'static StreamDevice, GpuError> {
        // Before the locks: this may call the driver.
        let device = devices.device(index)?;
        let resolved = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        let is_current =
            |stream_device: &&&'static StreamDevice| std::ptr::eq(stream_device.device, device);
        if let Some(stream_device) = resolved.get(&index).filter(is_current) {
            return Ok(stream_device);
        }
        drop(resolved);
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream_device) = devices.get(&index).filter(is_current) {
            return Ok(stream_device);
        }
        let stream_device: &'static StreamDevice = Box::leak(Box::new(StreamDevice {
            device,
            buffers: StagingBuffers::new(self.max_bytes, self.piece_len),
            semaphores: self.semaphores && device.context().driver().waits_for_words(index),
        }));
        devices.insert(index, stream_device);
        Ok(stream_device)
    }
}

impl Streams {
    /// Makes staging buffers for so many transfers of up to `len` bytes at once, as far as they can
    /// be had.
    pub(crate) fn prepare(&self, devices: &Devices, index: u32, len: u64, count: u32) {
        let Ok(StreamDevice { device, buffers, .. }) = self.device(devices, index) else {
            return;
        };
        let taken = (0..count).map_while(|_| buffers.take(device.context(), Some(len)).ok());
        for buffer in taken.collect::<Vec<_>>() {
            buffers.give_back(buffer, 0);
        }
    }
}

impl Streams {
    fn workers(&'static self, method: &Method) -> &'static StreamWorkers {
        match method {
            Method::BlockingCall(_) => &self.call_workers,
            Method::Host | Method::Kernel { .. } => &self.file_workers,
        }
    }
}

impl StreamDevice {
    fn kernel(&self) -> Option<&GatherKernel> {
        self.device.gather().ok()
    }
}

#[cfg(test)]
mod tests;
