//! gpuio's path `initiated`.

use super::{Mode, own};
use crate::check::rings;
use crate::check::verdict::{Need, Pair};

pub(super) const MODE: Mode = Mode {
    name: "initiated",
    is: "gpuio's path initiated: the GPU starts the I/O itself, through host memory",
    source: "gpuio, docs/paths.md, I/O that the GPU starts; io_uring_setup(2)",
    needs,
};

fn needs(pair: &Pair<'_>) -> Vec<Need> {
    own::gpu(pair).into_iter().chain(rings::needs(pair.machine)).collect()
}
