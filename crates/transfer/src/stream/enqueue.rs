//! Enqueues a transfer into the program's stream.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gpuio_gpu::{DevPtr, GpuError, UserStream};

use super::StreamDevice;
use super::op::{Method, StreamOp};
use crate::Op;
use crate::fault::Fault;

/// The purpose of the stream's call of the host.
#[derive(Debug, Clone, Copy)]
enum HostStep {
    /// The parameters may be read.
    Begin,
    /// The stream has reached so many chunks.
    Reach(u64),
    /// So many chunks must be done before the stream continues.
    Do(u64),
    /// The page-locked memory is free.
    Free,
}

/// Enqueues a transfer. If it fails, nothing of the transfer happens later.
pub(super) fn enqueue(
    stream: &UserStream,
    stream_device: &'static StreamDevice,
    stream_op: &Arc<StreamOp>,
) -> Result<(), Fault> {
    let enqueued = stream.entered(|| {
        // The poller watches operations in the order in which the stream reaches them.
        let _one = stream_op.latency.lock_enqueue();
        prefetch(stream, stream_op);
        match (stream_op.uses_kernel(), stream_op.op) {
            (true, Op::Read) if stream_device.semaphores => read(stream, stream_op),
            (true, Op::Write) if stream_device.semaphores => write(stream, stream_op),
            (true, Op::Read) => read_by_calls(stream, stream_op),
            (true, Op::Write) => write_by_calls(stream, stream_op),
            (false, _) if stream_device.semaphores => {
                signal_reached(stream, stream_op, 1)?;
                wait_for_chunk(stream, stream_op, 0)
            }
            (false, _) => call_host(stream, stream_op, HostStep::Do(1)),
        }
    });
    enqueued.and_then(|enqueued| enqueued).map_err(|error| {
        stream_op.abandon();
        Fault::Gpu(error)
    })
}

/// Prefetches managed memory to the GPU. A refusal costs only speed.
fn prefetch(stream: &UserStream, stream_op: &StreamOp) {
    if let Method::Kernel { prefetch: Some((start, len)), .. } = stream_op.method {
        // SAFETY: the caller of the transfer keeps the memory until the stream has passed.
        let _ = unsafe { stream.bring(DevPtr(start), len) };
    }
}

fn read(stream: &UserStream, stream_op: &Arc<StreamOp>) -> Result<(), GpuError> {
    signal_reached(stream, stream_op, stream_op.chunks.min(2))?;
    for chunk in 0..stream_op.chunks {
        wait_for_chunk(stream, stream_op, chunk)?;
        launch_kernel(stream, stream_op, chunk)?;
        if chunk + 2 < stream_op.chunks {
            signal_reached(stream, stream_op, chunk + 3)?;
        }
    }
    let value = stream_op.buffer.value(stream_op.chunks);
    // SAFETY: a semaphore of ours, which lives as long as the process.
    let stored = unsafe { stream.store(stream_op.buffer.released_device_ptr(), value) };
    if stored.is_ok() {
        stream_op.stream_device.buffers.give_back_later(stream_op.buffer, value);
    }
    // Without the store the buffer is never used again. The transfer itself still succeeds.
    Ok(())
}

fn write(stream: &UserStream, stream_op: &Arc<StreamOp>) -> Result<(), GpuError> {
    begin(stream, stream_op)?;
    for chunk in 0..stream_op.chunks {
        if chunk >= 2 {
            wait_for_chunk(stream, stream_op, chunk - 2)?;
        }
        launch_kernel(stream, stream_op, chunk)?;
        signal_reached(stream, stream_op, chunk + 1)?;
    }
    wait_for_chunk(stream, stream_op, stream_op.chunks - 1)
}

fn read_by_calls(stream: &UserStream, stream_op: &Arc<StreamOp>) -> Result<(), GpuError> {
    for chunk in 0..stream_op.chunks {
        call_host(stream, stream_op, HostStep::Do(chunk + 1))?;
        launch_kernel(stream, stream_op, chunk)?;
    }
    // Without the call the buffer is never used again. The transfer itself still succeeds.
    let _ = call_host(stream, stream_op, HostStep::Free);
    Ok(())
}

fn write_by_calls(stream: &UserStream, stream_op: &Arc<StreamOp>) -> Result<(), GpuError> {
    begin(stream, stream_op)?;
    for chunk in 0..stream_op.chunks {
        launch_kernel(stream, stream_op, chunk)?;
        call_host(stream, stream_op, HostStep::Do(chunk + 1))?;
    }
    Ok(())
}

/// A write's parameters must be known before its first bytes are copied.
fn begin(stream: &UserStream, stream_op: &Arc<StreamOp>) -> Result<(), GpuError> {
    if stream_op.is_fixed() {
        stream_op.begin();
        return Ok(());
    }
    call_host(stream, stream_op, HostStep::Begin)
}

/// Makes the stream signal that it has reached so many chunks: by a semaphore value, and by a host
/// call if the poller does not watch it or the stream is likely to be held up for longer than a
/// call takes. The call comes after the store and before the wait, so its latency overlaps the
/// reading.
fn signal_reached(
    stream: &UserStream,
    stream_op: &Arc<StreamOp>,
    chunks: u64,
) -> Result<(), GpuError> {
    let (word, value) = (stream_op.buffer.reached_device_ptr(), stream_op.buffer.value(chunks));
    // SAFETY: a semaphore of ours, which lives as long as the process and is used atomically.
    unsafe { stream.store(word, value) }?;
    stream_op.note_enqueued();
    if stream_op.latency.is_prompt() && stream_op.workers().poll_for(stream_op) {
        return Ok(());
    }
    call_host(stream, stream_op, HostStep::Reach(chunks))?;
    // Only after the call is enqueued: a transfer that was refused up to here has not begun.
    stream_op.workers().poll_for(stream_op);
    Ok(())
}

fn wait_for_chunk(stream: &UserStream, stream_op: &StreamOp, chunk: u64) -> Result<(), GpuError> {
    let (word, value) =
        (stream_op.buffer.completed_device_ptr(), stream_op.buffer.value(chunk + 1));
    // SAFETY: a semaphore of ours, which lives as long as the process. Its value arrives: the
    // threads that store it wait for file I/O alone, or for work of another context, and `abandon`
    // stores it if enqueueing the rest fails.
    unsafe { stream.wait_for(word, value) }?;
    stream_op.note_enqueued();
    Ok(())
}

fn launch_kernel(stream: &UserStream, stream_op: &StreamOp, chunk: u64) -> Result<(), GpuError> {
    let (_, list) = stream_op.buffer.list(stream_op.half(chunk), stream_op.chunk_len);
    let (count, shape) = stream_op.launch(chunk);
    let Some(kernel) = stream_op.stream_device.kernel() else {
        unreachable!("transfers go this method where there is a kernel")
    };
    // SAFETY: the list and the half live as long as the process and are filled before the stream
    // gets here; the caller of the transfer promises the memory, and the list names only reachable
    // parts of it.
    unsafe { kernel.launch_in(stream, list, count, shape) }?;
    stream_op.note_enqueued();
    Ok(())
}

fn call_host(
    stream: &UserStream,
    stream_op: &Arc<StreamOp>,
    step: HostStep,
) -> Result<(), GpuError> {
    let data = Box::into_raw(Box::new((Arc::clone(stream_op), step)));
    // SAFETY: the function takes the box once, from any thread, and calls no driver.
    let enqueued = unsafe { stream.call(host_callback, data.cast()) };
    if enqueued.is_err() {
        // SAFETY: from Box::into_raw, and the function is not called.
        drop(unsafe { Box::from_raw(data) });
    } else {
        stream_op.note_enqueued();
    }
    enqueued
}

unsafe extern "C" fn host_callback(data: *mut c_void) {
    // SAFETY: from Box::into_raw in `call_host`, and called once.
    let step = unsafe { Box::from_raw(data.cast::<(Arc<StreamOp>, HostStep)>()) };
    // A panic must not unwind into the driver; the panic hook has reported it.
    let _ = catch_unwind(AssertUnwindSafe(|| run_step(&step.0, step.1)));
}

fn run_step(stream_op: &Arc<StreamOp>, step: HostStep) {
    match step {
        HostStep::Begin => stream_op.begin(),
        HostStep::Reach(chunks) => {
            if stream_op.reach(chunks) {
                if stream_op.is_reached() {
                    stream_op.workers().pending.remove(stream_op);
                }
                stream_op.dispatch();
            }
        }
        HostStep::Do(chunks) => {
            stream_op.reach(chunks);
            stream_op.dispatch();
            if stream_op.uses_kernel() {
                stream_op.work();
            }
            stream_op.wait(chunks);
        }
        HostStep::Free => {
            stream_op.stream_device.buffers.give_back(stream_op.buffer, stream_op.chunks)
        }
    }
}
