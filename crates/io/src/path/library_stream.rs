//! `library-stream`: gpuio's own library core moves the bytes, as in our `libcufile.so.0`, in the
//! order of streams.
//!
//! Each request goes into one of the worker's streams, with an event behind it. Calls in one stream
//! run one after another, so requests overlap as far as there are slots and streams for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpuio_gpu::Stream;
use gpuio_transfer::{Ahead, OnCompletion, Param, Params, RawStream};

use super::library::MEMORY;
use super::library::core::{LibraryBuffers, LibraryFault, Rest, fault};
use super::streamed::{self, StreamCalls};
use super::{
    Backend, Calls, Fault, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, Request,
};
use crate::engine::IoFault;

const NAME: &str = "library-stream";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio_name: "LIBRARY_STREAM",
        summary: "gpuio's library core: operations in CUDA streams, one event for each block",
        needs_gpu: true,
        backend: Backend::Library(Calls::Streams),
        streams: true,
        memory: MEMORY,
        ..PathInfo::PLAIN
    },
    open,
};

/// The results of the slots' last transfers, stored by whichever thread completes one.
struct Results(Box<[AtomicU64]>);

/// No result yet: neither a count of bytes nor a fault.
const NOT_YET: u64 = u64::MAX;

impl Results {
    fn new(slots: u32) -> Results {
        Results((0..slots).map(|_| AtomicU64::new(NOT_YET)).collect())
    }

    /// A count of bytes, which is below 2^32 as a request's length is, or the kind of a fault in
    /// the upper half and its code in the lower.
    fn store(&self, slot: u32, result: Result<usize, Fault>) {
        let fault = |kind: u64, code: i32| (kind << 32) | u64::from(code.cast_unsigned());
        let value = match result {
            Ok(bytes) => bytes as u64,
            Err(Fault::File(IoFault::Errno(errno))) => fault(1, errno),
            Err(Fault::Gpu(code)) => fault(2, code),
            Err(Fault::Library(LibraryFault::Panicked)) => fault(3, 0),
            Err(_) => fault(3, 1),
        };
        // Release: who sees the value sees what the thread did before.
        self.0[slot as usize].store(value, Ordering::Release);
    }

    fn take(&self, slot: u32) -> Result<usize, Fault> {
        let value = self.0[slot as usize].swap(NOT_YET, Ordering::Acquire);
        // The lower half.
        #[expect(clippy::cast_possible_truncation, reason = "the code is the lower half")]
        let code = (value as u32).cast_signed();
        match value >> 32 {
            0 => usize::try_from(value).map_err(|_| Fault::Library(LibraryFault::Unreported)),
            1 => Err(Fault::File(IoFault::Errno(code))),
            2 => Err(Fault::Gpu(code)),
            3 if code == 0 => Err(Fault::Library(LibraryFault::Panicked)),
            3 => Err(Fault::Library(LibraryFault::Refused)),
            _ => Err(Fault::Library(LibraryFault::Unreported)),
        }
    }
}

struct LibraryCalls {
    results: Arc<Results>,
}

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let ahead = Ahead::Streams { len: config.block_max as usize, count: config.slots };
    let buffers = LibraryBuffers::open(NAME, &config, ahead)?;
    let gpu = super::slot_buffers::gpu(NAME, &config)?;
    let queues = streamed::queues(&gpu.context, &config, 1);
    let queues = queues.map_err(|source| PathError::Gpu { path: NAME, source })?;
    let calls = LibraryCalls { results: Arc::new(Results::new(config.slots)) };
    let (limits, parts) = ((1, Duration::MAX), (queues, calls));
    Ok(buffers.opened(|buffers| streamed::assemble(NAME, &config, limits, buffers, parts)))
}

impl StreamCalls for LibraryCalls {
    type Buffers = LibraryBuffers;

    unsafe fn enqueue(
        &mut self,
        buffers: &LibraryBuffers,
        request: &Request,
        done: u32,
        stream: &Stream,
    ) -> Result<(), Fault> {
        let Rest { address, len, offset } = buffers.rest(request, done);
        let params = Params {
            max_size: len,
            size: Param::Immediate(len),
            file_offset: Param::Immediate(offset.cast_signed()),
            buffer_offset: Param::Immediate(0),
        };
        let (op, slot) = (request.op, request.slot);
        let (results, counters) = (Arc::clone(&self.results), Arc::clone(&buffers.counters));
        let on_completion: OnCompletion = Box::new(move |_, outcome| {
            results.store(slot, counters.outcome(op, outcome));
        });
        let (stream, file) = (RawStream::new(stream.as_raw()), buffers.file(request));
        let to = (buffers.location, address);
        // SAFETY: the stream lives until it has passed, by the caller's promise, and the slot's
        // part of the destination is the request's alone until then; what filled it for a write
        // was waited for.
        let put =
            unsafe { buffers.transfer.enqueue(stream, (op, file), to, params, on_completion) };
        put.map_err(|refusal| fault(&refusal))
    }

    unsafe fn outcome(&mut self, slot: u32) -> Result<usize, Fault> {
        self.results.take(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_back_as_it_was_and_once() {
        let results = Results::new(3);
        let faults = [
            Fault::File(IoFault::Errno(libc::EIO)),
            Fault::Gpu(700),
            Fault::Gpu(-1),
            Fault::Library(LibraryFault::Panicked),
            Fault::Library(LibraryFault::Refused),
        ];
        let all = faults.into_iter().map(Err).chain([Ok(0), Ok(4096), Ok(0x7fff_f000)]);
        for result in all {
            results.store(1, result);
            assert_eq!(results.take(1), result);
            assert_eq!(results.take(1), Err(Fault::Library(LibraryFault::Unreported)));
        }
    }
}
