//! The path over PCIe.

use crate::topo::{Climb, Crossed, climb};
use gpuio_record::facts::{AcsControl, Lanes};

use super::{Layer, Source, share_of};
use crate::flow::expectation::Laid;
use crate::flow::{By, Stream, link};

impl Layer<'_> {
    /// The path between a source and memory, or its peer.
    pub(super) fn source_way(&mut self, source: &Source, stream: &Stream, laid: &mut Laid) {
        let Some(pci) = &source.pci else {
            laid.note("Links above a source whose PCI function is not known are not counted.");
            return;
        };
        let gpus = stream.end.gpus();
        if gpus.is_empty() || stream.by == By::Host {
            self.up_to_root(pci, source.out, source.into, laid);
        }
        for gpu in gpus {
            let share = share_of(gpus.len());
            let part = Source {
                pci: source.pci.clone(),
                out: source.out * share,
                into: source.into * share,
            };
            match stream.by {
                By::Direct => self.between_peers(&part, pci, gpu, laid),
                By::Host => self.across_nodes(&part, pci, gpu, laid),
            }
        }
    }

    /// All links above a function: `up` and `down` are bytes per byte of the stream.
    pub(super) fn up_to_root(&mut self, pci: &str, up: f64, down: f64, laid: &mut Laid) {
        let Some(path) = climb(self.machine, pci) else {
            laid.note(&format!("Links above {pci} are not counted: they are not known."));
            return;
        };
        if !path.complete {
            laid.note(&format!("The links above {pci} are not all known; the others count."));
        }
        for crossed in &path.links {
            self.cross(crossed, up, down, laid);
        }
    }

    fn cross(&mut self, crossed: &Crossed, up: f64, down: f64, laid: &mut Laid) {
        let name = format!("link above {}", crossed.address);
        let Some((rate, figure)) = self.rate(crossed) else {
            let known = crossed.link.as_ref().filter(|link| link.now != Lanes::default());
            let what = known.map_or_else(
                || "its speed is not known".to_owned(),
                |link| match link.mark() {
                    mark if mark.is_empty() => format!("all that is known is {}", link.text()),
                    mark => format!("all that is known is {} ({})", link.text(), &mark[2..]),
                },
            );
            laid.note(&format!("The {name} is not counted: {what}."));
            return;
        };
        for (bytes, direction) in [(up, "up"), (down, "down")] {
            let key = format!("pcie:{}:{direction}", crossed.key);
            laid.uses(&mut self.network, (&key, &name), bytes / rate, figure.clone());
        }
    }

    /// Data per second over a link, and that figure in words: as it is trained now. Only a GPU's
    /// counts at the most speed of both ends: an idle GPU slows it down, and raises it under load.
    fn rate(&self, crossed: &Crossed) -> Option<(f64, String)> {
        let link = crossed.link.as_ref()?;
        let function = self.machine.pci.iter().find(|one| one.address == crossed.address);
        let known = function.and_then(|one| one.max_payload_bytes.known().copied());
        let payload = known.map_or(link::PAYLOAD_TAKEN, u64::from);
        let packets = match known {
            Some(bytes) => format!("in packets of {bytes} B"),
            None => format!("if packets carry {payload} B (MaxPayload is not known)"),
        };
        let is_gpu = self.machine.gpus.iter().any(|gpu| gpu.pci.as_ref() == Some(&link.address));
        let (now, most) = (link.now.mega_transfers, link.most.mega_transfers);
        let speed = if is_gpu { most.or(now) } else { now.or(most) };
        let width = link.now.width.or(link.most.width);
        let below = match is_gpu || !link.is_below_most() {
            true => String::new(),
            false => format!(" (now; both ends could do {})", link.most_text()),
        };
        let (rate, what) = match speed.zip(width) {
            Some((speed, width)) => {
                let rate = link::pcie(speed, width, payload)?;
                let tenths = if speed % 1000 == 0 {
                    String::new()
                } else {
                    format!(".{}", speed % 1000 / 100)
                };
                (rate, format!("{}{tenths} GT/s x{width}{below}", speed / 1000))
            }
            None => {
                let raw = link.bytes_per_second? as f64;
                (raw * link::share(payload, 24), "PCIe with its reported payload size".to_owned())
            }
        };
        let text = gpuio_base::units::human_decimal_rate(rate);
        Some((rate, format!("{what}, {text} of data {packets}")))
    }

    /// From a source to the GPU's memory, not touching host memory.
    fn between_peers(&mut self, source: &Source, pci: &str, gpu: &str, laid: &mut Laid) {
        let (Some(from), Some(to)) = (climb(self.machine, pci), climb(self.machine, gpu)) else {
            laid.missing.push(format!("the path between {pci} and {gpu} is not known"));
            return;
        };
        let is_shared = |path: &Climb, crossed: &Crossed| {
            path.links.iter().any(|other| other.key == crossed.key)
        };
        let meet = from.links.iter().any(|crossed| is_shared(&to, crossed));
        let below = |path: &Climb, other: &Climb| -> Vec<Crossed> {
            path.links.iter().filter(|crossed| !is_shared(other, crossed)).cloned().collect()
        };
        let (mut up, mut down) = (below(&from, &to), below(&to, &from));
        let redirected = up.iter().chain(&down).find(|crossed| self.redirects(&crossed.port));
        let why = if let Some(port) = redirected {
            Some(format!("access control (ACS) at {} sends peers' requests up to", port.port))
        } else if !meet {
            Some(format!("{pci} and {gpu} meet only in"))
        } else {
            None
        };
        if let Some(why) = why {
            laid.missing.push(format!(
                "{why} the root complex, and what that passes between peers is not known: measure"
            ));
            (up, down) = (from.links, to.links);
        }
        for crossed in &up {
            self.cross(crossed, source.out, source.into, laid);
        }
        for crossed in &down {
            self.cross(crossed, source.into, source.out, laid);
        }
    }

    fn redirects(&self, port: &str) -> bool {
        let function = self.machine.pci.iter().find(|one| one.address == port);
        let acs = function.and_then(|one| one.acs.known());
        acs.is_some_and(|acs| acs.enabled.contains(&AcsControl::RequestRedirect))
    }

    /// Between the processors, where source and GPU hang on different ones.
    fn across_nodes(&mut self, source: &Source, pci: &str, gpu: &str, laid: &mut Laid) {
        let node = |pci: &str| climb(self.machine, pci).and_then(|path| path.node);
        let Some((from, to)) = node(pci).zip(node(gpu)).filter(|(from, to)| from != to) else {
            return;
        };
        let Some((rate, words)) = self.figures.interconnect() else {
            laid.note(&format!(
                "The link between NUMA nodes {from} and {to} is not counted: no figure for it."
            ));
            return;
        };
        let text = gpuio_base::units::human_decimal_rate(rate);
        let figure = format!("{text} ({words})");
        let name = format!("between NUMA nodes {from} and {to}");
        for (bytes, a, b) in [(source.out, from, to), (source.into, to, from)] {
            let key = format!("nodes:{a}:{b}");
            laid.uses(&mut self.network, (&key, &name), bytes / rate, figure.clone());
        }
    }
}
