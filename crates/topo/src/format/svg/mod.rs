//! A picture: the tree on the left, and for each device its distance to the GPUs, in colours.
//!
//! Self-contained (SVG 1.1 without script; one style sheet whose names begin with `gt-`), so that
//! it can stand alone or inside a page. Characters are taken to be 0.6 of their size wide, as those
//! of monospaced faces are, and what would be longer than its space is cut, whole in its title.

mod draw;
mod layout;
mod legend;
mod matrix;
mod style;

use crate::Topology;

use draw::Draw;
use layout::Layout;

/// Distance from the picture's edge, in pixels, as all sizes here.
const EDGE: u32 = 16;
/// From one device to the next below.
const ROW: u32 = 26;
/// Height of a box.
const BOX: u32 = 20;
/// Width of a cell of the matrix.
const CELL: u32 = 36;

/// The picture as one SVG document, without XML declaration.
#[must_use]
pub fn svg(topology: &Topology) -> String {
    let layout = Layout::of(topology);
    let columns = matrix::columns(topology);
    let left = layout.width + 2 * EDGE;
    let mounts = left + matrix::width(&columns);
    let width = (mounts + layout.mounts_width()).max(legend::LEAST_WIDTH) + EDGE;
    let bottom = layout.height + EDGE;
    let mut draw = Draw::default();
    layout.bands(&mut draw, width - 2 * EDGE);
    layout.tree(&mut draw);
    matrix::draw(topology, &columns, &layout, left, &mut draw);
    layout.mounts(&mut draw, mounts);
    let end = legend::draw(topology, bottom, width, &mut draw);
    let height = end + EDGE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gt\" role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<title>{}</title>\n<style>\n{}\
         </style>\n<rect class=\"gt-back\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
        gpuio_units::markup(&summary(topology)),
        style::SHEET,
        draw.out
    )
}

/// In one sentence, for those who do not see it.
fn summary(topology: &Topology) -> String {
    let count = |kind| topology.of_kind(kind).count();
    format!(
        "PCIe topology: {} GPUs, {} network cards, {} drives, with the distance between them",
        count(crate::DeviceKind::Gpu),
        count(crate::DeviceKind::Nic),
        count(crate::DeviceKind::Drive)
    )
}
