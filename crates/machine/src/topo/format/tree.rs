//! The tree.

use gpuio_base::units::{format_cpu_list, human_bytes, printable_short};

use super::short;
use crate::topo::{Knot, KnotKind, Topology};
use gpuio_table::indented_columns;

/// NUMA nodes, host bridges, switches, devices: name, address, port, link, marks, mounts.
#[must_use]
pub fn tree(topology: &Topology) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let heading = ["", "function", "on port", "link above", "", "mounts"];
    for branch in &topology.tree {
        let node = branch.node.map_or("NUMA node unknown".to_owned(), |n| format!("NUMA node {n}"));
        let cpus = branch.cpus.as_ref().map(|cpus| match cpus.is_empty() {
            false => format!("CPUs {}", format_cpu_list(cpus)),
            true if branch.memory_of.is_empty() => "memory without CPUs".to_owned(),
            true => format!("memory of {}", branch.memory_of.join(", ")),
        });
        #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
        let memory = branch.memory_bytes.map(|bytes| human_bytes(bytes as f64));
        let words: Vec<String> = [Some(node), cpus, memory].into_iter().flatten().collect();
        rows.push(vec![words.join(", ")]);
        let memory_only = branch.cpus.as_ref().is_some_and(Vec::is_empty);
        if branch.host_bridges.is_empty() && !memory_only {
            rows.push(vec![format!("  {}", nothing_here(topology))]);
        }
        for bridge in &branch.host_bridges {
            let name = bridge.name.as_deref().unwrap_or("unknown");
            rows.push(vec![format!("  host bridge {name}")]);
            bridge.below.iter().for_each(|knot| put(knot, 2, &mut rows));
        }
    }
    if !rows.is_empty() {
        rows.insert(0, heading.map(str::to_owned).to_vec());
    }
    // Headings of nodes are longer than names and must not push the columns away.
    let (long, _): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(|row| row.len() == 1);
    let tabled: Vec<Vec<String>> =
        rows.iter().map(|row| if row.len() == 1 { Vec::new() } else { row.clone() }).collect();
    let mut long = long.into_iter().map(|row| format!("  {}", printable_short(&row.concat())));
    let mut out = String::new();
    for line in indented_columns(&tabled).lines() {
        let line = if line.is_empty() { long.next().unwrap_or_default() } else { line.to_owned() };
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What is said of a node below which nothing hangs: devices whose place is unknown may be on it.
pub(super) fn nothing_here(topology: &Topology) -> &'static str {
    if topology.unplaced.is_empty() {
        "no GPU, network card or drive"
    } else {
        "no device whose place is known"
    }
}

fn put(knot: &Knot, depth: usize, rows: &mut Vec<Vec<String>>) {
    let name = match knot.kind {
        KnotKind::Switch => "switch".to_owned(),
        KnotKind::Bridge => "bridge".to_owned(),
        KnotKind::RootDevice => "root device".to_owned(),
        KnotKind::Device => knot.names.join(" "),
    };
    let port = match (&knot.port, knot.gap) {
        (Some(port), _) => short(port).to_owned(),
        (None, true) => "unknown".to_owned(),
        (None, false) => String::new(),
    };
    let link = knot.link.as_ref();
    rows.push(vec![
        format!("{}{name}", "  ".repeat(depth)),
        short(&knot.address).to_owned(),
        port,
        link.map_or_else(|| "unknown".to_owned(), crate::topo::Link::text),
        link.map(crate::topo::Link::mark).unwrap_or_default(),
        knot.mounts.join(", "),
    ]);
    knot.below.iter().for_each(|below| put(below, depth + 1, rows));
}
