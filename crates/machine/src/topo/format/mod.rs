//! Topologies as a document, a picture, a page with it, and hwloc's XML.

mod affinity;
mod coherent;
mod html;
mod hwloc;
mod matrix;
mod pair;
mod svg;
mod tree;

pub use html::html;
pub use hwloc::hwloc_xml;
pub use pair::pair;
pub use svg::svg;

use gpuio_base::document::{Document, List};

use crate::topo::Topology;
pub(crate) use crate::topo::link::short;

/// Everything: tree, matrix with its legend, affinity, notes.
pub fn document(topology: &Topology) -> Document {
    let mut page = Document::new("Topology");
    page.begin("tree", "TREE").table(self::tree::tree(topology));
    matrix::matrix(&mut page, topology);
    let coherent = "COHERENT LINKS (host memory is reached over them, not over PCIe)";
    for (key, title, table) in [
        ("affinity", "AFFINITY", affinity::affinity(topology)),
        ("coherent", coherent, self::coherent::coherent(topology)),
    ] {
        page.begin(key, title).table(table);
    }
    page.begin("notes", "NOTES").list(List::of(2, topology.notes.iter().map(String::as_str)));
    page
}
