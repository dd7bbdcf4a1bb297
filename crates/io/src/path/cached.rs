//! `cached`: file → page cache → pinned ring → GPU memory. gdsio's `-x 4`.
//!
//! The ring is that of `staged`; what differs is that files are never open with O_DIRECT, so the
//! kernel's page cache stands between storage and the ring and adds a copy.

use super::{ANY_MEMORY, Backend, OpenedPath, PathConfig, PathEntry, PathError, PathInfo, staged};

const NAME: &str = "cached";

pub(super) const ENTRY: PathEntry = PathEntry {
    info: PathInfo {
        name: NAME,
        gdsio: Some(4),
        gdsio_name: "CPU_CACHED_GPU",
        summary: "file through the page cache to a pinned ring, then copies to GPU memory",
        needs_gpu: true,
        buffered_only: true,
        backend: Backend::Engine,
        streams: true,
        memory: ANY_MEMORY,
        has_tier: true,
        ..PathInfo::PLAIN
    },
    open,
};

fn open(config: PathConfig) -> Result<OpenedPath, PathError> {
    if config.direct {
        return Err(PathError::Setup {
            path: NAME,
            what: "this path is the one through the page cache and can't be --direct; \
                   use --path staged for O_DIRECT"
                .into(),
        });
    }
    staged::open(NAME, &config)
}
