//! A picture: the tree on the left, NVLinks beside the GPUs, and for each device its distance to
//! the GPUs, in colours.
//!
//! Self-contained (SVG 1.1 without script; one style sheet whose names begin with `gt-`), so that
//! it can stand alone or inside a page. It scales to the window. Characters are taken to be 0.6 of
//! their size wide, as those of monospaced faces are; the columns are as wide as their texts. Names
//! and mounts beyond any sensible length are cut, whole in their title. Attributes `data-` name
//! devices, boxes and links for the script of `format::html`.

mod draw;
mod layout;
mod legend;
mod matrix;
mod nvlink;
mod style;

use gpuio_record::facts::{Machine, is_optical};

use crate::topo::Topology;

use draw::Draw;
use layout::Layout;
pub(super) use matrix::title as distance;

/// Distance from the picture's edge, in pixels, as all sizes here.
const EDGE: u32 = 16;
/// From one device to the next below.
const ROW: u32 = 30;
/// Height of a box.
const BOX: u32 = 22;
/// Font size of links, cells and notes; that of boxes is 12.
const SMALL: u32 = 11;

/// The picture as one SVG document, without XML declaration. NVLinks are those of the machine's
/// facts.
pub fn svg(machine: &Machine, topology: &Topology) -> String {
    let layout = Layout::of(topology);
    let matrix = matrix::Matrix::of(topology);
    let links = nvlink::NvLinks::of(machine, topology);
    let left = layout.width + links.width() + EDGE;
    let mounts = left + matrix.width();
    let width = (mounts + layout.mounts_width()).max(legend::LEAST_WIDTH) + EDGE;
    let bottom = layout.height + EDGE;
    let mut draw = Draw::default();
    layout.bands(topology, &mut draw, width - 2 * EDGE);
    layout.tree(topology, &mut draw);
    links.draw(topology, &layout, &mut draw);
    matrix.draw(topology, &layout, left, &mut draw);
    layout.mounts(&mut draw, mounts);
    let end = legend::draw(topology, &links.sentence, bottom, width, &mut draw);
    let height = end + EDGE;
    // Larger than life a picture of few devices would fill the screen with three boxes.
    let most = width + width / 4;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gt\" role=\"img\" width=\"100%\" \
         viewBox=\"0 0 {width} {height}\" style=\"height: auto; max-width: {most}px\">\n\
         <title>{}</title>\n<style>\n{}</style>\n\
         <rect class=\"gt-back\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
        gpuio_base::units::markup(&summary(topology)),
        style::SHEET,
        draw.out
    )
}

/// In one sentence, for those who do not see it.
pub(super) fn summary(topology: &Topology) -> String {
    // An optical drive is none that data goes to a GPU from.
    let count = |kind| topology.of_kind(kind).filter(|(_, one)| !is_optical(&one.name)).count();
    format!(
        "PCIe topology: {} GPUs, {} network cards, {} drives, with the distance between them",
        count(crate::topo::DeviceKind::Gpu),
        count(crate::topo::DeviceKind::Nic),
        count(crate::topo::DeviceKind::Drive)
    )
}
