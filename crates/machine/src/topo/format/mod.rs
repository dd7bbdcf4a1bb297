//! Topologies as text, JSON, a picture, a page, and hwloc's XML.

mod affinity;
mod coherent;
mod html;
mod hwloc;
mod matrix;
mod pair;
mod svg;
mod tree;

pub use affinity::affinity;
pub use coherent::coherent;
pub use html::html;
pub use hwloc::hwloc_xml;
pub use matrix::matrix;
pub use pair::pair;
pub use svg::svg;
pub use tree::tree;

use gpuio_base::units::printable_short;
use serde::Serialize;

use crate::topo::Topology;

/// Everything: tree, matrix with its legend, affinity, notes.
#[must_use]
pub fn text(topology: &Topology) -> String {
    let mut out = String::new();
    let parts = [
        ("TREE", tree(topology)),
        ("MATRIX", matrix(topology)),
        ("AFFINITY", affinity(topology)),
        ("COHERENT LINKS (host memory is reached over them, not over PCIe)", coherent(topology)),
    ];
    for (title, body) in parts {
        if !body.is_empty() {
            out.push_str(&format!("{title}\n{body}\n"));
        }
    }
    if !topology.notes.is_empty() {
        out.push_str("NOTES\n");
        for note in &topology.notes {
            out.push_str(&format!("  {}\n", printable_short(note)));
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// JSON with a line feed at its end, of a [`Topology`] or an [`crate::topo::Explanation`].
///
/// # Errors
/// None in practice: all keys are strings and all numbers are finite.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// An address without domain 0000, as people write it.
fn short(address: &str) -> &str {
    address.strip_prefix("0000:").unwrap_or(address)
}
