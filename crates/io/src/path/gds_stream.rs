//! `gds-stream`: cuFile's I/O in the order of streams. gdsio's `-x 5`.
//!
//! `cuFileReadAsync` and `cuFileWriteAsync` put each request into one of the worker's streams, with
//! an event behind it. Calls in one stream run one after another, so requests overlap as far as
//! there are slots and streams for them.

use super::gds::streamed;
use super::{ANY_MEMORY, Backend, Calls, PathEntry, PathInfo};

const NAME: &str = "gds-stream";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(5),
        gdsio_name: "ASYNC",
        summary: "cuFile's asynchronous calls in CUDA streams, one event for each block",
        needs_gpu: true,
        backend: Backend::Cufile(Calls::Streams),
        streams: true,
        memory: ANY_MEMORY,
        ..PathInfo::PLAIN
    },
    open: |config| streamed::open(NAME, &config, 1),
};
