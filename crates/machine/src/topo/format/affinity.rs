//! The affinity table.

use gpuio_base::units::format_cpu_list;

use super::short;
use crate::topo::{Near, NearStorage, Topology};
use gpuio_table::indented_columns;

/// A row for each GPU; empty without GPUs.
#[must_use]
pub fn affinity(topology: &Topology) -> String {
    if topology.affinity.is_empty() {
        return String::new();
    }
    let heading = ["GPU", "PCIe", "drives", "arrays and mounts", "NICs", "node", "CPUs"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for row in &topology.affinity {
        rows.push(vec![
            row.gpu.clone(),
            row.pci.as_deref().map_or("?", short).to_owned(),
            near(&row.drives),
            storage(&row.storage),
            near(&row.nics),
            row.node_text(),
            row.cpus.as_ref().map_or("?".to_owned(), |cpus| format_cpu_list(cpus)),
        ]);
    }
    indented_columns(&rows)
}

/// `nvme2n1 nvme3n1 (PXB)`: all have one class.
fn near(all: &[Near]) -> String {
    let Some(first) = all.first() else { return "-".to_owned() };
    let names: Vec<&str> = all.iter().map(|near| near.name.as_str()).collect();
    format!("{} ({})", names.join(" "), first.class.name())
}

/// `/raid (md1, 2 of 8 near)`.
fn storage(all: &[NearStorage]) -> String {
    let words = all.iter().map(|storage| {
        let on = storage.on.join(" ");
        let part = if storage.near == storage.of {
            String::new()
        } else {
            format!("{} of {} near", storage.near, storage.of)
        };
        match (&storage.mount, part.as_str()) {
            (Some(mount), "") => format!("{mount} ({on})"),
            (Some(mount), part) => format!("{mount} ({on}, {part})"),
            (None, "") => on,
            (None, part) => format!("{on} ({part})"),
        }
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}
