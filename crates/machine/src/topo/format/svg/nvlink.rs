//! NVLinks beside the GPUs: a bar for the NVSwitches, brackets between GPUs that are joined
//! directly, and a sentence that says what is there or why it is not known.

use gpuio_record::facts::{Fact, Machine, NvLinkEnd, NvLinkPeer};

use super::draw::{Draw, width};
use super::layout::Layout;
use super::{BOX, SMALL};
use crate::topo::link::rate_text;
use crate::topo::{DeviceKind, Topology};

/// From a GPU's box to the bar.
const REACH: u32 = 78;
/// Width of the bar.
const BAR: u32 = 26;
/// From one bracket to the next.
const STEP: u32 = 7;
/// NVLinks of a GPU at most: those of Hopper and Blackwell (their data sheets).
const LINKS_MOST: u32 = 18;
/// Brackets side by side at most; further ones are drawn over the last.
const MOST: u32 = 12;

/// The NVLinks in the picture.
pub(super) struct NvLinks {
    /// For each GPU on NVSwitches: its index among the devices, links, bytes per second of all.
    switched: Vec<(usize, u32, Option<u64>)>,
    /// Pairs that are joined without switches, with their links.
    direct: Vec<(usize, usize, u32)>,
    /// The NVLinks there are, or why they are not known.
    pub(super) sentence: String,
}

impl NvLinks {
    pub(super) fn of(machine: &Machine, topology: &Topology) -> NvLinks {
        let gpus: Vec<usize> = topology.of_kind(DeviceKind::Gpu).map(|(index, _)| index).collect();
        let mut found =
            NvLinks { switched: Vec::new(), direct: Vec::new(), sentence: String::new() };
        let mut why: Option<String> = None;
        let mut processors = 0;
        for gpu in &gpus {
            match peers(machine, topology, *gpu) {
                Fact::Known(peers) => {
                    let ends =
                        |kind| peers.iter().filter(move |peer: &&NvLinkPeer| peer.kind == kind);
                    let links: u32 = ends(NvLinkEnd::Switch).map(|peer| peer.links).sum();
                    let rates = ends(NvLinkEnd::Switch)
                        .map(|peer| Some(peer.bytes_per_second? * u64::from(peer.links)));
                    if links > 0 {
                        found.switched.push((*gpu, links, rates.sum()));
                    }
                    processors += u32::from(ends(NvLinkEnd::Cpu).next().is_some());
                }
                Fact::Unknown(reason) => {
                    why.get_or_insert(reason);
                }
            }
        }
        let on_switch = |gpu: usize| found.switched.iter().any(|(one, _, _)| *one == gpu);
        let mut pairs = Vec::new();
        for (nth, a) in gpus.iter().enumerate() {
            for b in &gpus[nth + 1..] {
                let route = topology.route(*a, *b);
                let links = route.and_then(|route| route.nvlinks.known().copied()).unwrap_or(0);
                if links > 0 && !(on_switch(*a) && on_switch(*b)) {
                    pairs.push((*a, *b, links));
                }
            }
        }
        // A GPU that reaches more than it has links for shares them: all go to switches.
        let sum = |gpu: usize| -> u32 {
            pairs.iter().filter(|(a, b, _)| gpu == *a || gpu == *b).map(|(.., links)| links).sum()
        };
        let most = |gpu: usize| {
            pairs.iter().filter(|(a, b, _)| gpu == *a || gpu == *b).map(|(.., links)| *links).max()
        };
        let shared = gpus.iter().filter(|gpu| sum(**gpu) > LINKS_MOST);
        let shared = shared.map(|gpu| (*gpu, most(*gpu).unwrap_or(0), None));
        found.switched.extend(shared.collect::<Vec<_>>());
        let on_switch = |gpu: usize| found.switched.iter().any(|(one, _, _)| *one == gpu);
        pairs.retain(|(a, b, _)| !(on_switch(*a) && on_switch(*b)));
        found.direct = pairs;
        found.sentence = found.words(gpus.len(), processors, why);
        found
    }

    fn words(&self, gpus: usize, processors: u32, why: Option<String>) -> String {
        let mut parts: Vec<String> = Vec::new();
        if let [(_, links, rate), ..] = self.switched.as_slice() {
            let each = rate.map(|rate| format!(", {} each way", rate_text(rate)));
            let each = each.unwrap_or_default();
            let number = self.switched.len();
            parts.push(format!("{number} GPUs on NVSwitches, {links} links each{each}"));
        }
        if !self.direct.is_empty() {
            let number = self.direct.len();
            let pairs = if number == 1 { "pair" } else { "pairs" };
            parts.push(format!("{number} {pairs} of GPUs joined by NVLinks"));
        }
        if processors > 0 {
            parts.push(format!("{processors} GPUs joined with their processor"));
        }
        match (parts.is_empty(), why) {
            _ if gpus == 0 => "NVLink and NVSwitch: no NVIDIA GPU is known.".to_owned(),
            (true, Some(why)) => format!("NVLink and NVSwitch: unknown, {why}."),
            (true, None) => "NVLink and NVSwitch: none is up.".to_owned(),
            (false, Some(why)) => {
                format!("NVLink: {}; of other GPUs unknown, {why}.", parts.join(", "))
            }
            (false, None) => format!("NVLink: {}.", parts.join(", ")),
        }
    }

    /// The space between the tree and the matrix.
    pub(super) fn width(&self) -> u32 {
        let brackets = u32::try_from(self.direct.len()).unwrap_or(MOST).min(MOST);
        let brackets = if brackets > 0 { 40 + brackets * STEP } else { 0 };
        let bar = if self.switched.is_empty() { 0 } else { REACH + BAR + 8 };
        brackets.max(bar)
    }

    pub(super) fn draw(&self, topology: &Topology, layout: &Layout, draw: &mut Draw) {
        let row = |device: usize| layout.rows.iter().find(|row| row.device == device);
        let right = layout.right();
        self.bar(topology, layout, draw);
        for (nth, (a, b, links)) in (0..).zip(&self.direct) {
            let Some((from, to)) = row(*a).zip(row(*b)) else { continue };
            let turn = right + 34 + nth.min(MOST) * STEP;
            let (one, two) = (&topology.devices[*a].name, &topology.devices[*b].name);
            let title = format!("{one} to {two}: {links} NVLinks");
            draw.open_as("gt-nvlink", &[("a", one), ("b", two)], &title);
            draw.bracket("gt-nvline", right, turn, (from.y, to.y));
            draw.close();
        }
        // Each GPU's number of links, over its line.
        let ends = self.direct.iter().flat_map(|(a, b, _)| [*a, *b]);
        let mut named: Vec<usize> = ends.collect();
        named.sort_unstable();
        named.dedup();
        for gpu in named {
            let links: u32 = self
                .direct
                .iter()
                .filter(|(a, b, _)| *a == gpu || *b == gpu)
                .map(|one| one.2)
                .sum();
            if let Some(at) = row(gpu) {
                draw.text("gt-small gt-soft", (right + 4, at.y - 4), &format!("NV{links}"));
            }
        }
    }

    fn bar(&self, topology: &Topology, layout: &Layout, draw: &mut Draw) {
        let right = layout.right();
        let rows: Vec<(&super::layout::Row, u32, Option<u64>)> = self
            .switched
            .iter()
            .filter_map(|(gpu, links, rate)| {
                Some((layout.rows.iter().find(|row| row.device == *gpu)?, *links, *rate))
            })
            .collect();
        let Some(top) = rows.iter().map(|(row, _, _)| row.y).min() else { return };
        let bottom = rows.iter().map(|(row, _, _)| row.y).max().unwrap_or(top);
        draw.open_as(
            "gt-nvswitch",
            &[],
            "NVSwitches: each GPU reaches each other one through them",
        );
        let (left, high) = (right + REACH, bottom - top + BOX);
        draw.rect("gt-switch", (left, top - BOX / 2), (BAR, high), 4);
        let words = if width("NVSwitch", SMALL) + 8 <= high { "NVSwitch" } else { "NVS" };
        draw.upright("gt-mid gt-small", (left + BAR / 2 + 4, u32::midpoint(top, bottom)), words);
        draw.close();
        for (row, links, rate) in rows {
            let name = &topology.devices[row.device].name;
            let all =
                rate.map(|rate| format!(", {} each way", rate_text(rate))).unwrap_or_default();
            let title = format!("{name}: {links} NVLinks to NVSwitches{all}");
            draw.open_as("gt-nvlink", &[("a", name)], &title);
            draw.elbow("gt-nvline", (right, row.y), right, (left, row.y));
            draw.text("gt-small gt-soft", (right + 6, row.y - 4), &format!("{links} links"));
            if let Some(rate) = rate {
                draw.text("gt-small gt-soft", (right + 6, row.y + 12), &rate_text(rate));
            }
            draw.close();
        }
    }
}

/// The neighbours of a GPU, by the PCI address that it has in the facts.
fn peers(machine: &Machine, topology: &Topology, gpu: usize) -> Fact<Vec<NvLinkPeer>> {
    let address = topology.devices[gpu].pci.first();
    let found = machine.gpus.iter().find(|one| address.is_some() && one.pci.as_ref() == address);
    found.map_or_else(
        || Fact::unknown("the GPU's PCI address is not known"),
        |one| one.nvlinks.clone(),
    )
}
