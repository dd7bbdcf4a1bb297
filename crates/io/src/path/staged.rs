//! `staged`: file → pinned ring → GPU memory, the legs overlapping. gdsio's `-x 2`.

use super::{Mover, Row, ring};

const NAME: &str = "staged";

pub(super) const ROW: Row = Row {
    name: NAME,
    gdsio: Some(2),
    gdsio_name: "CPU_GPU",
    summary: "file to a pinned ring, then asynchronous copies to GPU memory; both overlap",
    needs_gpu: true,
    buffered_only: false,
    mover: Mover::Engine,
    batches: false,
    open: |config| ring::open(NAME, config),
};
