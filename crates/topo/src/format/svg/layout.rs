//! The positions: a row for each device, each bridge and switch in the middle of what
//! hangs below it, columns by depth, devices in the last one.

use gpuio_units::{format_cpu_list, human_bytes};

use super::draw::{Draw, fit, width};
use super::{BOX, EDGE, ROW};
use crate::format::short;
use crate::{Branch, DeviceKind, HostBridge, Knot, KnotKind, Link, Topology};

/// Width of the box of a host bridge or switch.
const INNER: u32 = 112;
/// From a box to those of the next column: the link's words stand there.
const GAP: u32 = 128;
/// Width of a device's box at least, and at most.
const LEAF: (u32, u32) = (64, 150);
/// Font size of links.
const SMALL: u32 = 9;
/// Font size of boxes.
const NORMAL: u32 = 11;
/// Characters of mounts next to the matrix at most.
const MOUNTS: u32 = 320;

/// A row of the picture: one device.
#[derive(Debug)]
pub(super) struct Row {
    /// Its index in the topology's list.
    pub(super) device: usize,
    /// The middle of its row.
    pub(super) y: u32,
    mounts: String,
}

/// A NUMA node.
#[derive(Debug)]
struct Band {
    words: String,
    top: u32,
    bottom: u32,
    empty: bool,
}

/// A box of the tree.
#[derive(Debug)]
struct Node {
    words: String,
    title: String,
    style: &'static str,
    column: u32,
    /// Its middle.
    y: u32,
    link: Option<Link>,
    /// Whether a link leads up from it.
    linked: bool,
    below: Vec<Node>,
}

/// The tree with the position of each box.
#[derive(Debug)]
pub(super) struct Layout {
    bands: Vec<Band>,
    roots: Vec<Node>,
    pub(super) rows: Vec<Row>,
    columns: u32,
    leaf: u32,
    /// The right edge of the tree.
    pub(super) width: u32,
    /// The lower edge of the last node.
    pub(super) height: u32,
}

impl Layout {
    pub(super) fn of(topology: &Topology) -> Layout {
        let bridges = topology.tree.iter().flat_map(|branch| &branch.host_bridges);
        let deepest = bridges.flat_map(|bridge| &bridge.below).map(depth).max().unwrap_or(1);
        let names = topology.devices.iter().map(|device| width(&device.name, NORMAL) + 16);
        let leaf = names.max().unwrap_or(0).clamp(LEAF.0, LEAF.1);
        let mut layout = Layout {
            bands: Vec::new(),
            roots: Vec::new(),
            rows: Vec::new(),
            columns: deepest,
            leaf,
            width: 0,
            height: EDGE,
        };
        layout.width = layout.x(deepest) + leaf;
        topology.tree.iter().for_each(|branch| layout.branch(topology, branch));
        layout.unplaced(topology);
        layout
    }

    /// The left edge of a column's boxes.
    fn x(&self, column: u32) -> u32 {
        2 * EDGE + column * (INNER + GAP)
    }

    fn branch(&mut self, topology: &Topology, branch: &Branch) {
        let top = self.height;
        self.height += ROW;
        let empty = branch.host_bridges.is_empty();
        self.height += if empty { ROW } else { 0 };
        for bridge in &branch.host_bridges {
            let node = self.host_bridge(topology, bridge);
            self.roots.push(node);
        }
        self.height += EDGE / 2;
        self.bands.push(Band { words: words(branch), top, bottom: self.height, empty });
        self.height += EDGE / 2;
    }

    fn host_bridge(&mut self, topology: &Topology, bridge: &HostBridge) -> Node {
        let below: Vec<Node> =
            bridge.below.iter().flat_map(|knot| self.knot(topology, knot, 1)).collect();
        let name = bridge.name.as_deref().unwrap_or("unknown");
        Node {
            words: format!("host {name}"),
            title: format!("host bridge {name}"),
            style: "gt-box",
            column: 0,
            y: middle(&below, self.height),
            link: None,
            linked: false,
            below,
        }
    }

    /// A switch, or the devices behind a function: one row for each of their names.
    fn knot(&mut self, topology: &Topology, knot: &Knot, column: u32) -> Vec<Node> {
        if knot.kind == KnotKind::Device && knot.below.is_empty() {
            let index = |name: &String| topology.devices.iter().position(|one| one.name == *name);
            let devices: Vec<usize> = knot.names.iter().filter_map(index).collect();
            let first = self.rows.len();
            let leaves = devices.iter().map(|device| self.leaf(topology, knot, *device)).collect();
            if let Some(row) = self.rows.get_mut(first) {
                row.mounts = mounts(knot);
            }
            return leaves;
        }
        let below: Vec<Node> =
            knot.below.iter().flat_map(|knot| self.knot(topology, knot, column + 1)).collect();
        let what = match knot.kind {
            KnotKind::Switch => "switch",
            KnotKind::Bridge => "bridge",
            KnotKind::RootDevice => "root device",
            KnotKind::Device => "device",
        };
        let address = short(&knot.address);
        let words = match knot.kind {
            KnotKind::RootDevice => format!("root {address}"),
            _ => format!("{what} {address}"),
        };
        vec![Node {
            words,
            title: title(knot, &format!("{what} {address}"), ""),
            style: "gt-box",
            column,
            y: middle(&below, self.height),
            link: knot.link.clone(),
            linked: knot.kind != KnotKind::RootDevice,
            below,
        }]
    }

    fn leaf(&mut self, topology: &Topology, knot: &Knot, device: usize) -> Node {
        let one = &topology.devices[device];
        let y = self.height + ROW / 2;
        self.height += ROW;
        self.rows.push(Row { device, y, mounts: String::new() });
        Node {
            words: one.name.clone(),
            title: title(knot, &one.name, one.model.as_deref().unwrap_or_default()),
            style: style(one.kind),
            column: self.columns,
            y,
            link: knot.link.clone(),
            linked: true,
            below: Vec::new(),
        }
    }

    /// Devices without a known position: boxes without a line, below the nodes.
    fn unplaced(&mut self, topology: &Topology) {
        let lost = topology.devices.iter().enumerate();
        let lost = lost.filter(|(_, device)| topology.unplaced.contains(&device.name));
        let lost: Vec<usize> = lost.map(|(index, _)| index).collect();
        if lost.is_empty() {
            return;
        }
        let top = self.height;
        self.height += ROW;
        for device in lost {
            let one = &topology.devices[device];
            let y = self.height + ROW / 2;
            self.height += ROW;
            self.rows.push(Row { device, y, mounts: String::new() });
            self.roots.push(Node {
                words: one.name.clone(),
                title: format!("{}: no PCI function of it is known", one.name),
                style: style(one.kind),
                column: self.columns,
                y,
                link: None,
                linked: false,
                below: Vec::new(),
            });
        }
        self.height += EDGE / 2;
        let words = "position unknown".to_owned();
        self.bands.push(Band { words, top, bottom: self.height, empty: false });
        self.height += EDGE / 2;
    }

    /// The NUMA nodes behind everything else.
    pub(super) fn bands(&self, draw: &mut Draw, wide: u32) {
        for band in &self.bands {
            draw.open(&band.words);
            draw.rect("gt-band", (EDGE, band.top), (wide, band.bottom - band.top), 6);
            let words = fit(&band.words, 12, self.width - EDGE);
            draw.text("gt-head", (EDGE + 8, band.top + 17), &words);
            draw.close();
            if band.empty {
                let words = "no GPU, network card or drive";
                draw.text("gt-soft", (2 * EDGE, band.top + ROW + 14), words);
            }
        }
    }

    /// Where the columns of the matrix have their names: over each node with devices.
    pub(super) fn headings(&self) -> impl Iterator<Item = u32> + '_ {
        self.bands.iter().filter(|band| !band.empty).map(|band| band.top + 17)
    }

    /// Boxes and lines.
    pub(super) fn tree(&self, draw: &mut Draw) {
        self.roots.iter().for_each(|node| self.node(node, draw));
    }

    fn node(&self, node: &Node, draw: &mut Draw) {
        let x = self.x(node.column);
        let leaf = node.below.is_empty() && node.style != "gt-box";
        let wide = if leaf { self.leaf } else { INNER };
        let turn = x + wide + 12;
        for below in &node.below {
            let to = self.x(below.column);
            draw.open(&below.title);
            draw.elbow(strain(below.link.as_ref()), (x + wide, node.y), turn, (to, below.y));
            self.link(below, turn, draw);
            draw.close();
        }
        draw.open(&node.title);
        draw.rect(node.style, (x, node.y - BOX / 2), (wide, BOX), 4);
        let words = fit(&node.words, NORMAL, wide - 8);
        draw.text("gt-mid", (x + wide / 2, node.y + 4), &words);
        draw.close();
        node.below.iter().for_each(|below| self.node(below, draw));
    }

    /// Speed above the line, notes below it.
    fn link(&self, node: &Node, turn: u32, draw: &mut Draw) {
        if !node.linked {
            return;
        }
        let at = self.x(node.column);
        // Next to the box, so that the text of long lines is where the link ends.
        let left = at.saturating_sub(GAP - 20).max(turn + 4);
        let space = at - left - 4;
        let Some(link) = &node.link else { return };
        draw.text("gt-small gt-soft", (left, node.y - 3), &fit(&link.text(), SMALL, space));
        let (style, words) = if link.is_below_most() {
            ("gt-small gt-slow-text", format!("of {}", link.most_text()))
        } else if link.is_held_by_port() {
            ("gt-small gt-port-text", format!("device {}", link.device_most_text()))
        } else {
            return;
        };
        draw.text(style, (left, node.y + 10), &fit(&words, SMALL, space));
    }

    pub(super) fn mounts_width(&self) -> u32 {
        let widest = self.rows.iter().map(|row| width(&row.mounts, 10)).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.min(MOUNTS) + EDGE }
    }

    /// What is mounted from each device, next to the matrix.
    pub(super) fn mounts(&self, draw: &mut Draw, x: u32) {
        for row in self.rows.iter().filter(|row| !row.mounts.is_empty()) {
            draw.open(&row.mounts);
            let words = fit(&row.mounts, 10, MOUNTS);
            draw.text("gt-small gt-soft", (x + 8, row.y + 3), &words);
            draw.close();
        }
    }
}

/// What is mounted from a function. The function does not show on which of its disks that is.
fn mounts(knot: &Knot) -> String {
    match (knot.names.as_slice(), knot.mounts.is_empty()) {
        ([first, .., last], false) => format!("{first} to {last}: {}", knot.mounts.join(", ")),
        _ => knot.mounts.join(", "),
    }
}

fn depth(knot: &Knot) -> u32 {
    1 + knot.below.iter().map(depth).max().unwrap_or(0)
}

/// The middle of the boxes below; where there are none, of a row to come.
fn middle(below: &[Node], height: u32) -> u32 {
    match (below.first(), below.last()) {
        (Some(first), Some(last)) => u32::midpoint(first.y, last.y),
        _ => height + ROW / 2,
    }
}

fn words(branch: &Branch) -> String {
    let node = branch.node.map_or("NUMA node unknown".to_owned(), |n| format!("NUMA node {n}"));
    let cpus = branch.cpus.as_ref().map(|cpus| format!("CPUs {}", format_cpu_list(cpus)));
    #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
    let memory = branch.memory_bytes.map(|bytes| human_bytes(bytes as f64));
    let all: Vec<String> = [Some(node), cpus, memory].into_iter().flatten().collect();
    all.join(", ")
}

fn style(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Gpu => "gt-gpu",
        DeviceKind::Nic => "gt-nic",
        DeviceKind::Drive => "gt-drive",
    }
}

fn strain(link: Option<&Link>) -> &'static str {
    match link {
        Some(link) if link.is_below_most() => "gt-slow",
        Some(link) if link.is_held_by_port() => "gt-port",
        _ => "",
    }
}

fn title(knot: &Knot, name: &str, model: &str) -> String {
    let mut words = format!("{name} at {}", short(&knot.address));
    if !model.is_empty() {
        words.push_str(&format!(", {model}"));
    }
    match (&knot.port, knot.gap) {
        (Some(port), _) => words.push_str(&format!(", on port {}", short(port))),
        (None, true) => words.push_str(", port above unknown"),
        (None, false) => {}
    }
    match &knot.link {
        Some(link) => words.push_str(&format!(", link {} {}", link.text(), link.mark())),
        None => words.push_str(", link unknown"),
    }
    if !knot.mounts.is_empty() {
        words.push_str(&format!(", mounts {}", knot.mounts.join(", ")));
    }
    words.trim_end().to_owned()
}
