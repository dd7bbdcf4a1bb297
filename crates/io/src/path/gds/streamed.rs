//! cuFile's asynchronous calls in streams: of `gds-stream` (groups of one) and `gds-batch-stream`.

use gpuio_drivers::cufile::{StreamIo, StreamRegistration};
use gpuio_gpu::Stream;

use super::buffers::{GdsBuffers, fault, setup, sides};
use crate::path::streamed::{self, StreamCalls};
use crate::path::{Fault, OpenedPath, PathConfig, PathError, Request};

struct CufileCalls {
    /// Dropped before the streams.
    _registrations: Vec<StreamRegistration>,
    io: StreamIo,
}

impl StreamCalls for CufileCalls {
    type Buffers = GdsBuffers;

    unsafe fn enqueue(
        &mut self,
        buffers: &GdsBuffers,
        request: &Request,
        done: u32,
        stream: &Stream,
    ) -> Result<(), Fault> {
        let (range, handle) = (buffers.rest(request, done), buffers.handle(request));
        let (op, stream) = (request.op, stream.as_raw());
        // SAFETY: the slot's place among the parameters is the request's alone, and its part of the
        // destination too; the rest is the caller's promise.
        let put = unsafe { self.io.enqueue(op, handle, range, request.slot, stream) };
        put.map_err(fault)
    }

    unsafe fn outcome(&mut self, slot: u32) -> Result<usize, Fault> {
        // SAFETY: the caller's promise.
        unsafe { self.io.outcome(slot) }.map_err(fault)
    }
}

/// Opens a path whose requests go into streams in groups of `full`.
pub(in crate::path) fn open(
    path: &'static str,
    config: &PathConfig,
    full: u32,
) -> Result<OpenedPath, PathError> {
    let buffers = GdsBuffers::open(path, config)?;
    let (gpu, cufile) = sides(path, config)?;
    let io = StreamIo::new(&cufile.driver, config.slots);
    let io = io.map_err(|error| setup(path, error.to_string()))?;
    let full = full.clamp(1, config.slots);
    let queues = streamed::queues(&gpu.context, config, full);
    let queues = queues.map_err(|source| PathError::Gpu { path, source })?;
    let mut registrations = Vec::new();
    for at in 0..queues.count() {
        // SAFETY: the registrations go before the streams, and `put` sets all parameters first.
        let made = unsafe { StreamRegistration::new(&cufile.driver, queues.stream(at).as_raw()) };
        registrations.extend(made.map_err(|error| setup(path, error.to_string()))?);
    }
    let mut steps_down = Vec::new();
    if registrations.is_empty() {
        steps_down
            .push("this cuFile has no cuFileStreamRegister: streams are not registered".into());
    }
    let open_info = buffers.open_info(&cufile.driver);
    let calls = CufileCalls { _registrations: registrations, io };
    let limits = (full, cufile.stall_timeout);
    let opened = open_info.of(streamed::assemble(path, config, limits, buffers, (queues, calls)));
    Ok(OpenedPath { steps_down, ..opened })
}
