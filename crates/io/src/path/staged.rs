//! `staged`: file → pinned ring → GPU memory, the legs overlapping. gdsio's `-x 2`.

use super::{ANY_MEMORY, Backend, PathEntry, PathInfo, ring};

const NAME: &str = "staged";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(2),
        gdsio_name: "CPU_GPU",
        summary: "file to a pinned ring, then asynchronous copies to GPU memory; both overlap",
        needs_gpu: true,
        via_gpu: false,
        buffered_only: false,
        buffered_because: None,
        backend: Backend::Engine,
        batches: false,
        streams: true,
        memory: ANY_MEMORY,
    },
    open: |config| ring::open(NAME, &config),
};
