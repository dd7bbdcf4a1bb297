//! `gds-batch-stream`: batches of cuFile's I/O in the order of streams. gdsio's `-x 7`.
//!
//! cuFile has no public call that submits a batch to a stream. In its place, this path makes
//! [`GpuSide::batch`] asynchronous calls one behind the other into one stream, with one event
//! behind all of them, and one wait for them together. A batch that is not full goes when nothing
//! else is in flight.
//!
//! [`GpuSide::batch`]: super::GpuSide::batch

use super::gds::streamed;
use super::{ANY_MEMORY, Backend, Calls, OpenedPath, PathConfig, PathEntry, PathError, PathInfo};

const NAME: &str = "gds-batch-stream";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(7),
        gdsio_name: "GPU_BATCH_STREAM",
        summary: "batches of cuFile's asynchronous calls in CUDA streams, one event for each batch",
        needs_gpu: true,
        backend: Backend::Cufile(Calls::Streams),
        batches: true,
        streams: true,
        memory: ANY_MEMORY,
        ..PathInfo::PLAIN
    },
    open,
};

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    let batch = config.gpu.as_ref().map_or(1, |gpu| gpu.batch);
    streamed::open(NAME, &config, batch)
}
