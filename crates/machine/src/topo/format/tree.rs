//! The tree.

use gpuio_base::document::{Columns, Look, Table};
use gpuio_base::units::{format_cpu_list, human_bytes};

use super::short;
use crate::topo::{Branch, Knot, KnotKind, Topology};

/// A line of the tree.
enum Line<'t> {
    /// A node or host bridge.
    Over(String),
    /// A function, so deep.
    Knot(usize, &'t Knot),
}

/// NUMA nodes, host bridges, switches, devices: name, address, port, link, marks, mounts.
pub(super) fn tree(topology: &Topology) -> Table {
    let knot = |of: fn(&Knot) -> String| {
        move |line: &Line<'_>| match line {
            Line::Over(_) => String::new(),
            Line::Knot(_, knot) => of(knot),
        }
    };
    Columns::<Line<'_>>::new()
        .over(|line| match line {
            Line::Over(text) => Some(text.clone()),
            Line::Knot(..) => None,
        })
        .words("", |line| match line {
            Line::Over(_) => String::new(),
            Line::Knot(depth, knot) => format!("{}{}", "  ".repeat(*depth), name(knot)),
        })
        .key("name")
        .words("function", knot(|knot| short(&knot.address).to_owned()))
        .words(
            "on port",
            knot(|knot| match (&knot.port, knot.gap) {
                (Some(port), _) => short(port).to_owned(),
                (None, true) => "unknown".to_owned(),
                (None, false) => String::new(),
            }),
        )
        .words(
            "link above",
            knot(|knot| knot.link.as_ref().map_or("unknown".to_owned(), crate::topo::Link::text)),
        )
        .words("", knot(|knot| knot.link.as_ref().map(crate::topo::Link::mark).unwrap_or_default()))
        .key("mark")
        .words("mounts", knot(|knot| knot.mounts.join(", ")))
        .table("tree", lines(topology))
        .look(Look::Indented(2))
}

/// Nodes without a difference, from so many on, share a line.
const ALIKE: usize = 3;

fn lines(topology: &Topology) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let alike = |a: &Branch, b: &Branch| {
        a.host_bridges.is_empty()
            && b.host_bridges.is_empty()
            && a.node.map(|node| node + 1) == b.node
            && about_node(a) == about_node(b)
    };
    for run in topology.tree.chunk_by(alike) {
        let named = run.first().zip(run.last()).and_then(|(a, b)| a.node.zip(b.node));
        let folded = named.filter(|_| run.len() >= ALIKE);
        let shown = if folded.is_some() { &run[..1] } else { run };
        for branch in shown {
            put_branch(topology, branch, folded, &mut lines);
        }
    }
    lines
}

/// Processors and memory of a node.
fn about_node(branch: &Branch) -> Vec<String> {
    let cpus = branch.cpus.as_ref().map(|cpus| match cpus.is_empty() {
        false => format!("CPUs {}", format_cpu_list(cpus)),
        true if branch.memory_of.is_empty() => "memory without CPUs".to_owned(),
        true => format!("memory of {}", branch.memory_of.join(", ")),
    });
    let memory = branch.memory_bytes.map(|bytes| human_bytes(bytes as f64));
    cpus.into_iter().chain(memory).collect()
}

fn put_branch<'t>(
    topology: &Topology,
    branch: &'t Branch,
    folded: Option<(u32, u32)>,
    lines: &mut Vec<Line<'t>>,
) {
    let node = match (folded, branch.node) {
        (Some((first, last)), _) => format!("NUMA nodes {first}-{last}"),
        (None, node) => node.map_or("NUMA node unknown".into(), |n| format!("NUMA node {n}")),
    };
    let each = folded.filter(|_| branch.memory_bytes.is_some()).map(|_| "each".to_owned());
    let words: Vec<String> = [node].into_iter().chain(each).chain(about_node(branch)).collect();
    lines.push(Line::Over(words.join(", ")));
    let memory_only = branch.cpus.as_ref().is_some_and(Vec::is_empty);
    if branch.host_bridges.is_empty() && !memory_only {
        lines.push(Line::Over(format!("  {}", nothing_here(topology))));
    }
    for bridge in &branch.host_bridges {
        let name = bridge.name.as_deref().unwrap_or("unknown");
        lines.push(Line::Over(format!("  host bridge {name}")));
        bridge.below.iter().for_each(|knot| put(knot, 2, lines));
    }
}

/// The text for a node below which nothing hangs: devices whose place is unknown may be on it.
pub(super) fn nothing_here(topology: &Topology) -> &'static str {
    if topology.unplaced.is_empty() {
        "no GPU, network card or drive"
    } else {
        "no device whose place is known"
    }
}

fn name(knot: &Knot) -> String {
    match knot.kind {
        KnotKind::Switch => "switch".to_owned(),
        KnotKind::Bridge => "bridge".to_owned(),
        KnotKind::RootDevice => "root device".to_owned(),
        KnotKind::Device => knot.names.join(" "),
    }
}

fn put<'t>(knot: &'t Knot, depth: usize, lines: &mut Vec<Line<'t>>) {
    lines.push(Line::Knot(depth, knot));
    knot.below.iter().for_each(|below| put(below, depth + 1, lines));
}
