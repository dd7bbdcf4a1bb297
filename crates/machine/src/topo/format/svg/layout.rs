//! The positions: a row for each device, each bridge and switch in the middle of what
//! hangs below it, columns by depth, devices in the last one.

use gpuio_base::units::{format_cpu_list, human_bytes, human_transfers, pcie_generation};
use gpuio_record::facts::Lanes;

use super::draw::{Draw, fit, width};
use super::{BOX, EDGE, ROW, SMALL};
use crate::topo::format::short;
use crate::topo::format::tree::nothing_here;
use crate::topo::link::rate_text;
use crate::topo::{Branch, DeviceKind, HostBridge, Knot, KnotKind, Link, Topology};

/// Width of the box of a host bridge or switch.
const INNER: u32 = 116;
/// From a box to those of the next column: the link's words stand there.
const GAP: u32 = 104;
/// Width of a device's box at least, and at most.
const LEAF: (u32, u32) = (64, 320);
/// Font size of boxes.
const NORMAL: u32 = 12;
/// Width of mounts next to the matrix at most.
const MOUNTS: u32 = 300;

/// A row of the picture: one device.
#[derive(Debug)]
pub(super) struct Row {
    /// Its index in the topology's list.
    pub(super) device: usize,
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
    /// Number of the box, and of the device whose box it is.
    number: usize,
    device: Option<usize>,
    style: &'static str,
    column: u32,
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
    /// Boxes so far.
    boxes: usize,
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
            boxes: 0,
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

    /// The number of the next box.
    fn next(&mut self) -> usize {
        self.boxes += 1;
        self.boxes
    }

    /// The right edge of devices' boxes.
    pub(super) fn right(&self) -> u32 {
        self.x(self.columns) + self.leaf
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
            number: self.next(),
            device: None,
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
            number: self.next(),
            device: None,
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
            number: self.next(),
            device: Some(device),
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
            let number = self.next();
            self.roots.push(Node {
                number,
                device: Some(device),
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
    pub(super) fn bands(&self, topology: &Topology, draw: &mut Draw, wide: u32) {
        for band in &self.bands {
            draw.open(&band.words);
            draw.rect("gt-band", (EDGE, band.top), (wide, band.bottom - band.top), 6);
            let words = fit(&band.words, NORMAL, self.width - EDGE);
            draw.text("gt-head", (EDGE + 8, band.top + 17), &words);
            draw.close();
            if band.empty {
                let words = nothing_here(topology);
                draw.text("gt-soft", (2 * EDGE, band.top + ROW + 14), words);
            }
        }
    }

    /// Where the columns of the matrix have their names: over each node with devices.
    pub(super) fn headings(&self) -> impl Iterator<Item = u32> + '_ {
        self.bands.iter().filter(|band| !band.empty).map(|band| band.top + 17)
    }

    /// Boxes and lines.
    pub(super) fn tree(&self, topology: &Topology, draw: &mut Draw) {
        self.roots.iter().for_each(|node| self.node(topology, node, None, draw));
    }

    fn node(&self, topology: &Topology, node: &Node, up: Option<usize>, draw: &mut Draw) {
        let x = self.x(node.column);
        let leaf = node.below.is_empty() && node.style != "gt-box";
        let wide = if leaf { self.leaf } else { INNER };
        let turn = x + wide + 12;
        for below in &node.below {
            let to = self.x(below.column);
            let rate = below.link.as_ref().and_then(|link| link.bytes_per_second);
            let rate = rate.map(|rate| rate.to_string()).unwrap_or_default();
            let number = below.number.to_string();
            draw.open_as("gt-link", &[("link", &number), ("rate", &rate)], &below.title);
            draw.elbow(strain(below.link.as_ref()), (x + wide, node.y), turn, (to, below.y));
            self.link(below, turn, draw);
            draw.close();
        }
        let (number, up_word) = (node.number.to_string(), up.map(|up| up.to_string()));
        let mut data = vec![("box", number.as_str()), ("name", node.words.as_str())];
        data.extend(up_word.as_ref().map(|up| ("up", up.as_str())));
        let device = node.device.map(|device| topology.devices[device].name.as_str());
        data.extend(device.map(|name| ("device", name)));
        draw.open_as("gt-node-box", &data, &node.title);
        draw.rect(node.style, (x, node.y - BOX / 2), (wide, BOX), 4);
        let words = fit(&node.words, NORMAL, wide - 8);
        draw.text("gt-mid", (x + wide / 2, node.y + 4), &words);
        draw.close();
        for below in &node.below {
            self.node(topology, below, Some(node.number), draw);
        }
    }

    /// Generation and lanes above the line; below it the rate, or what it could be.
    fn link(&self, node: &Node, turn: u32, draw: &mut Draw) {
        if !node.linked {
            return;
        }
        let at = self.x(node.column);
        // Next to the box, so that the text of long lines is where the link ends.
        let left = at.saturating_sub(GAP - 16).max(turn + 4);
        let space = at - left - 2;
        let Some(link) = &node.link else {
            draw.text("gt-small gt-soft", (left, node.y - 4), "unknown");
            return;
        };
        let (style, above, below) = if link.is_below_most() {
            ("gt-slow-text", generation(link.now), format!("of {}", generation(link.most)))
        } else if link.is_held_by_port() {
            ("gt-port-text", generation(link.now), format!("card {}", generation(link.device_most)))
        } else {
            ("gt-soft", generation(link.now), rate(link))
        };
        let above = if above.is_empty() { link.text() } else { above };
        let style = format!("gt-small {style}");
        draw.text(&style, (left, node.y - 4), &fit(&above, SMALL, space));
        draw.text(&style, (left, node.y + 12), &fit(&below, SMALL, space));
    }

    pub(super) fn mounts_width(&self) -> u32 {
        let lines = self.rows.iter().flat_map(|row| in_lines(&row.mounts));
        let widest = lines.map(|line| width(&line, SMALL)).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.min(MOUNTS) + EDGE }
    }

    /// The mounts of each device, next to the matrix.
    pub(super) fn mounts(&self, draw: &mut Draw, x: u32) {
        for row in self.rows.iter().filter(|row| !row.mounts.is_empty()) {
            draw.open(&row.mounts);
            let lines = in_lines(&row.mounts);
            let first = if lines.len() > 1 { row.y - 3 } else { row.y + 4 };
            for (line, y) in lines.iter().zip((first..).step_by(13)) {
                draw.text("gt-small gt-soft", (x + 8, y), &shorten(line, MOUNTS));
            }
            draw.close();
        }
    }
}

/// Mounts in at most two lines, as many in each.
fn in_lines(mounts: &str) -> Vec<String> {
    let all: Vec<&str> = mounts.split(", ").filter(|mount| !mount.is_empty()).collect();
    let half = all.len().div_ceil(2).max(1);
    all.chunks(half).map(|part| part.join(", ")).collect()
}

/// Generation and lanes: `Gen4 x16`. Speeds of no generation are in GT/s; empty where nothing is
/// known.
fn generation(lanes: Lanes) -> String {
    let speed = lanes.mega_transfers.map(|mega| match pcie_generation(mega) {
        Some(number) => format!("Gen{number}"),
        None => human_transfers(mega),
    });
    let lanes = lanes.width.map(|lanes| format!("x{lanes}"));
    [speed, lanes].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Bytes per second of a link in one direction; empty where it is not known.
fn rate(link: &Link) -> String {
    link.bytes_per_second.map(rate_text).unwrap_or_default()
}

/// A text that is cut in its middle where it is longer than the space: both ends tell more.
fn shorten(text: &str, space: u32) -> String {
    let most = (space * 10 / (SMALL * 6)) as usize;
    let all = text.chars().count();
    if all <= most {
        return text.to_owned();
    }
    let half = most.saturating_sub(1) / 2;
    let head = text.chars().take(half);
    head.chain(['…']).chain(text.chars().skip(all - half)).collect()
}

/// The mounts of a function. The function does not show on which of its disks that is.
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
        Some(link) => {
            let (lanes, rate) = (generation(link.now), rate(link));
            words.push_str(&format!(", link {} ({lanes}, {rate}) {}", link.text(), link.mark()));
        }
        None => words.push_str(", link unknown"),
    }
    if !knot.mounts.is_empty() {
        words.push_str(&format!(", mounts {}", knot.mounts.join(", ")));
    }
    words.trim_end().to_owned()
}
