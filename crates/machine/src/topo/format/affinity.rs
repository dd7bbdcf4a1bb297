//! The affinity table.

use gpuio_base::document::{Columns, Look, Table};
use gpuio_base::units::format_cpu_list;

use super::short;
use crate::topo::{Affinity, Near, NearStorage, Topology};

/// A row for each GPU.
pub(super) fn affinity(topology: &Topology) -> Table {
    Columns::<Affinity>::new()
        .words("GPU", |row| row.gpu.clone())
        .words("PCIe", |row| row.pci.as_deref().map_or("?", short).to_owned())
        .words("drives", |row| near(&row.drives))
        .words("arrays and mounts", |row| storage(&row.storage))
        .words("NICs", |row| near(&row.nics))
        .words("node", Affinity::node_text)
        .words("CPUs", |row| row.cpus.as_ref().map_or("?".into(), |cpus| format_cpu_list(cpus)))
        .table("affinity", &topology.affinity)
        .look(Look::Indented(2))
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
