//! The whole machine for questions of topology: what `host` reads, what NVML knows of GPUs, and
//! whether the kernel makes rings for path `initiated`.

use gpuio_drivers::nvml::{Library, Link, NvLink, NvLinks, ReadingAbsent, Readings};
use gpuio_host::{Entry, Root, Tree, nvidia_gpu};
use gpuio_record::facts::{
    Bar1Facts, Fact, GpuFacts, Lanes, Machine, NvLinkEnd, NvLinkPeer, ReadProblem,
};
use serde::de::DeserializeOwned;

/// Where a capture has what was known of the GPUs, NVML's readings with it.
const GPUS: &str = "gpuio/gpus.json";
/// Where a capture has the kernel's answer to who wanted a ring.
const RINGS: &str = "gpuio/rings.json";

/// Reads the machine. Where this is the running system, NVML is asked, whose library may take a
/// second to start, and a ring is tried; a capture holds their answers. Never fails; what NVML
/// did not report is unknown with its reason.
pub fn read(root: &Root) -> Machine {
    let mut machine = gpuio_host::machine::read(root);
    if root.is_live() {
        let readings = from_nvml(&machine.gpus);
        nvidia_gpu::merge(&mut machine.gpus, readings);
        machine.settings.gpu_rings = Fact::Known(gpuio_gpu::initiated::answer());
    } else {
        if let Some(readings) = captured(root, GPUS, &mut machine.problems) {
            nvidia_gpu::merge(&mut machine.gpus, readings);
        }
        if let Some(answer) = captured(root, RINGS, &mut machine.problems) {
            machine.settings.gpu_rings = answer;
        }
    }
    machine
}

/// Puts into a capture of a running machine what is known of it from elsewhere than the kernel's
/// files: NVML's readings of its GPUs, and whether there are rings.
///
/// # Errors
/// None in practice: all numbers are finite and all keys are strings.
pub fn put_answers(machine: &Machine, capture: &mut Tree) -> Result<(), serde_json::Error> {
    let gpus = serde_json::to_string_pretty(&machine.gpus)?;
    let rings = serde_json::to_string_pretty(&machine.settings.gpu_rings)?;
    for (name, text) in [(GPUS, gpus), (RINGS, rings)] {
        capture.put(name.as_ref(), Entry::File((text + "\n").into_bytes()));
    }
    Ok(())
}

/// An answer in a capture; none in trees that were copied by hand, or that can't be read.
fn captured<T: DeserializeOwned>(
    root: &Root,
    name: &str,
    problems: &mut Vec<ReadProblem>,
) -> Option<T> {
    let read = root.read(name).map_err(|error| error.to_string());
    let read = read.and_then(|text| {
        let value = text.map(|text| serde_json::from_str(&text.body)).transpose();
        value.map_err(|error| format!("{error}; `gpuio topo --capture` writes it otherwise"))
    });
    read.unwrap_or_else(|message| {
        let path = root.join(name).to_string_lossy().into_owned();
        problems.push(ReadProblem { path, line: None, message });
        None
    })
}

/// NVML's readings of all its GPUs; without NVML, the reason for each GPU that is `known`.
fn from_nvml(known: &[GpuFacts]) -> Vec<GpuFacts> {
    let requested = Library::load().map_err(|absent| absent.to_string()).and_then(|library| {
        let uuids = library.uuids().map_err(|unread| unread.to_string())?;
        let gpus = uuids.iter().filter_map(|uuid| library.gpu(uuid).ok());
        Ok(gpus.map(|gpu| facts(gpu.readings(), gpu.nvlinks(), gpu.c2c_links())).collect())
    });
    requested.unwrap_or_else(|why: String| {
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

fn facts(
    readings: Readings,
    nvlinks: Result<NvLinks, ReadingAbsent>,
    c2c_links: Result<u64, ReadingAbsent>,
) -> GpuFacts {
    let lanes = |link: Link| Lanes::of_generation(Some(link.generation), Some(link.lanes));
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
        c2c: fact(c2c_links.map(|links| links > 0)),
        memory_node: None,
        near_nodes: Vec::new(),
        near_cpus: None,
        persistence: fact(readings.persistence),
        pcie_now: fact(readings.link_now.map(lanes)),
        pcie_most: fact(readings.link_most.map(lanes)),
    }
}

fn fact<T>(reading: Result<T, ReadingAbsent>) -> Fact<T> {
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
        gpuio_drivers::nvml::NvLinkEnd::Gpu => NvLinkEnd::Gpu,
        gpuio_drivers::nvml::NvLinkEnd::Switch => NvLinkEnd::Switch,
        gpuio_drivers::nvml::NvLinkEnd::Cpu => NvLinkEnd::Cpu,
        gpuio_drivers::nvml::NvLinkEnd::Unknown => NvLinkEnd::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use gpuio_base::catalog::RingAnswer;

    use super::*;

    #[test]
    fn links_to_one_neighbour_are_counted() {
        let link = |peer: &str, end| NvLink { peer: Some(peer.to_owned()), end, version: Some(2) };
        let gpu = gpuio_drivers::nvml::NvLinkEnd::Gpu;
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
        let unread = || ReadingAbsent { what: "PCIe link", why: "no".to_owned() };
        let readings = Readings {
            index: Ok(3),
            minor: Ok(2),
            name: Ok("G".to_owned()),
            uuid: Ok("GPU-1".to_owned()),
            pci: Ok("0000:0a:00.0".to_owned()),
            bar1: Ok(gpuio_drivers::nvml::Bar1 { total: 10, used: 1 }),
            link_now: Err(unread()),
            link_most: Ok(Link { generation: 4, lanes: 16 }),
            persistence: Ok(true),
        };
        let facts = facts(readings, Err(unread()), Err(unread()));
        assert_eq!(facts.pcie_now.why(), Some("NVML, PCIe link: no"));
        assert_eq!(facts.pcie_most, Fact::Known(Lanes::of_generation(Some(4), Some(16))));
        assert_eq!((facts.index, facts.minor), (Fact::Known(3), Some(2)));
    }

    #[test]
    fn a_capture_has_what_was_asked_of_its_machine() {
        let gpu = GpuFacts {
            pci: Some("0000:0a:00.0".to_owned()),
            index: Fact::Known(3),
            nvlinks: Fact::Known(Vec::new()),
            ..nothing("no library")
        };
        let mut machine = Machine { gpus: vec![gpu], ..Machine::default() };
        machine.settings.gpu_rings = Fact::Known(RingAnswer::Forbidden);
        let mut capture = Tree::default();
        put_answers(&machine, &mut capture).unwrap();
        let again = read(&Root::of(capture));
        assert_eq!(again.gpus, machine.gpus);
        assert_eq!(again.settings.gpu_rings, machine.settings.gpu_rings);
        // Nothing is tried here for another machine.
        let bare = read(&Root::of(Tree::default()));
        assert_eq!(bare.settings.gpu_rings.why(), Some("it was not tried"));
        for name in [GPUS, RINGS] {
            let mut broken = Tree::default();
            broken.put(name.as_ref(), Entry::File(b"[{".to_vec()));
            let read = read(&Root::of(broken));
            let problem = &read.problems[0];
            assert!(problem.path.ends_with(name), "{problem:?}");
            assert!(problem.message.contains("line 1"), "{problem:?}");
            assert_eq!(read.settings.gpu_rings.known(), None);
        }
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
