//! Coherent links of GPUs.

use gpuio_base::document::{Columns, Look, Table};

use crate::topo::link::rate_text;
use crate::topo::{Coherent, Topology};

/// A row for each GPU that has one.
pub(super) fn coherent(topology: &Topology) -> Table {
    Columns::<Coherent>::new()
        .words("GPU", |one| one.gpu.clone())
        .words("link", |one| one.link.clone())
        .words("to", |one| {
            one.node.map_or("its processor".to_owned(), |node| format!("NUMA node {node}"))
        })
        .words("each direction", |one| {
            one.bytes_per_second
                .map_or("unknown".to_owned(), |rate| rate_text(rate) + &one.shared())
        })
        .words("source", |one| one.source)
        .table("coherent links", &topology.coherent)
        .look(Look::Indented(2))
}
