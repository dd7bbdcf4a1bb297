//! Coherent links of GPUs.

use gpuio_table::indented_columns;

use crate::topo::Topology;
use crate::topo::link::rate_text;

/// A row for each GPU that has one; empty where none is known.
#[must_use]
pub fn coherent(topology: &Topology) -> String {
    if topology.coherent.is_empty() {
        return String::new();
    }
    let heading = ["GPU", "link", "to", "each direction", "source"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in &topology.coherent {
        rows.push(vec![
            one.gpu.clone(),
            one.link.clone(),
            one.node.map_or("its processor".to_owned(), |node| format!("NUMA node {node}")),
            one.bytes_per_second.map_or("unknown".to_owned(), rate_text),
            one.source.to_owned(),
        ]);
    }
    indented_columns(&rows)
}
