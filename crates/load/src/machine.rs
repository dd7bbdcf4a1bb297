//! The whole machine for questions of topology: what `host` reads, with what NVML knows of GPUs.

use gpuio_host::{Root, nvidia_gpu};
use gpuio_nvml::{Library, Link, NvLink, NvLinks, Readings, Unread};
use gpuio_record::facts::{
    Bar1Facts, Fact, GpuFacts, Machine, NvLinkEnd, NvLinkPeer, PcieGeneration,
};

/// Reads the machine, and NVML where this is the running system: its library may take a second to
/// start. Never fails; what NVML did not tell is unknown with its reason.
#[must_use]
pub fn read(root: &Root) -> Machine {
    let mut machine = gpuio_host::machine::read(root);
    if root.is_live() {
        let readings = from_nvml(&machine.gpus);
        nvidia_gpu::merge(&mut machine.gpus, readings);
    }
    machine
}

/// NVML's readings of all its GPUs; without NVML, the reason for each GPU that is `known`.
fn from_nvml(known: &[GpuFacts]) -> Vec<GpuFacts> {
    let asked = Library::load().map_err(|absent| absent.to_string()).and_then(|library| {
        let uuids = library.uuids().map_err(|unread| unread.to_string())?;
        let gpus = uuids.iter().filter_map(|uuid| library.gpu(uuid).ok());
        Ok(gpus.map(|gpu| facts(gpu.readings(), gpu.nvlinks())).collect())
    });
    asked.unwrap_or_else(|why: String| {
        known.iter().map(|gpu| GpuFacts { pci: gpu.pci.clone(), ..nothing(&why) }).collect()
    })
}

fn nothing(why: &str) -> GpuFacts {
    GpuFacts {
        index: Fact::unknown(why),
        nvlinks: Fact::unknown(why),
        persistence: Fact::unknown(why),
        pcie_now: Fact::unknown(why),
        pcie_most: Fact::unknown(why),
        ..GpuFacts::default()
    }
}

fn facts(readings: Readings, nvlinks: Result<NvLinks, Unread>) -> GpuFacts {
    let generation = |link: Link| PcieGeneration { generation: link.generation, lanes: link.lanes };
    let bar1 = readings
        .bar1
        .map(|bar1| Bar1Facts { total_bytes: bar1.total, used_bytes: Some(bar1.used) });
    GpuFacts {
        pci: readings.pci.ok(),
        index: fact(readings.index),
        minor: readings.minor.ok(),
        name: fact(readings.name),
        uuid: fact(readings.uuid),
        node: None,
        bar1: fact(bar1),
        nvlinks: fact(nvlinks.map(|links| peers(&links))),
        persistence: fact(readings.persistence),
        pcie_now: fact(readings.link_now.map(generation)),
        pcie_most: fact(readings.link_most.map(generation)),
    }
}

fn fact<T>(reading: Result<T, Unread>) -> Fact<T> {
    reading.map_or_else(|unread| Fact::unknown(unread.to_string()), Fact::Known)
}

/// Links that lead to the same neighbour, counted.
fn peers(links: &NvLinks) -> Vec<NvLinkPeer> {
    let mut peers: Vec<NvLinkPeer> = Vec::new();
    for link in &links.up {
        let kind = end(link);
        let same = |peer: &&mut NvLinkPeer| {
            peer.pci == link.peer && peer.kind == kind && peer.version == link.version
        };
        match peers.iter_mut().find(same) {
            Some(peer) => peer.links += 1,
            None => peers.push(NvLinkPeer {
                pci: link.peer.clone(),
                kind,
                links: 1,
                version: link.version,
                bytes_per_second: links.bytes_per_second,
            }),
        }
    }
    peers.sort_by(|a, b| a.pci.cmp(&b.pci));
    peers
}

fn end(link: &NvLink) -> NvLinkEnd {
    match link.end {
        gpuio_nvml::NvLinkEnd::Gpu => NvLinkEnd::Gpu,
        gpuio_nvml::NvLinkEnd::Switch => NvLinkEnd::Switch,
        gpuio_nvml::NvLinkEnd::Cpu => NvLinkEnd::Cpu,
        gpuio_nvml::NvLinkEnd::Unknown => NvLinkEnd::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_one_neighbour_are_counted() {
        let link = |peer: &str, end| NvLink { peer: Some(peer.to_owned()), end, version: Some(2) };
        let gpu = gpuio_nvml::NvLinkEnd::Gpu;
        let links = NvLinks {
            up: vec![
                link("0000:0b:00.0", gpu),
                link("0000:0a:00.0", gpu),
                link("0000:0b:00.0", gpu),
            ],
            bytes_per_second: Some(25_781_000_000),
        };
        let counted: Vec<(String, u32)> =
            peers(&links).into_iter().map(|peer| (peer.pci.unwrap(), peer.links)).collect();
        assert_eq!(counted, [("0000:0a:00.0".to_owned(), 1), ("0000:0b:00.0".to_owned(), 2)]);
    }

    #[test]
    fn what_nvml_keeps_silent_about_has_its_reason() {
        let unread = || Unread { what: "PCIe link", why: "no".to_owned() };
        let readings = Readings {
            index: Ok(3),
            minor: Ok(2),
            name: Ok("G".to_owned()),
            uuid: Ok("GPU-1".to_owned()),
            pci: Ok("0000:0a:00.0".to_owned()),
            bar1: Ok(gpuio_nvml::Bar1 { total: 10, used: 1 }),
            link_now: Err(unread()),
            link_most: Ok(Link { generation: 4, lanes: 16 }),
            persistence: Ok(true),
        };
        let facts = facts(readings, Err(unread()));
        assert_eq!(facts.pcie_now.why(), Some("NVML, PCIe link: no"));
        assert_eq!(facts.pcie_most, Fact::Known(PcieGeneration { generation: 4, lanes: 16 }));
        assert_eq!((facts.index, facts.minor), (Fact::Known(3), Some(2)));
    }

    #[test]
    fn without_nvml_a_gpu_that_pci_shows_stays() {
        let mut gpus =
            vec![GpuFacts { pci: Some("0000:0a:00.0".to_owned()), ..GpuFacts::default() }];
        let reading = GpuFacts { pci: gpus[0].pci.clone(), ..nothing("no library") };
        nvidia_gpu::merge(&mut gpus, vec![reading]);
        assert_eq!(gpus.len(), 1);
        assert_eq!(gpus[0].persistence.why(), Some("no library"));
    }
}
