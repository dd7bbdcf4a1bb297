//! Coherent links between a GPU and a processor: NVLink-C2C, and NVLink of POWER9. Host memory is
//! reached through them, and not over the GPU's PCIe link.

use gpuio_record::facts::{GpuFacts, Machine, NvLinkEnd};
use serde::Serialize;

use crate::topo::Device;

/// A coherent link of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coherent {
    pub gpu: String,
    /// `NVLink-C2C`, or `NVLink` with the number of links.
    pub link: String,
    /// NUMA node of the processor; `null` when not known.
    pub node: Option<u32>,
    /// Bytes per second in one direction; `null` where no source has it.
    pub bytes_per_second: Option<u64>,
    /// GPUs that share it with this one may be as many as this.
    pub gpus_at_most: u32,
    /// Where the rate is from.
    pub source: &'static str,
}

impl Coherent {
    /// Who shares the rate, to stand behind it; empty where one GPU has it.
    pub(crate) fn shared(&self) -> String {
        match self.gpus_at_most {
            ..=1 => String::new(),
            gpus => format!(" for {gpus} GPUs together"),
        }
    }
}

/// Chips that have NVLink-C2C to a processor: a word of the product's name, device numbers of
/// pci.ids, bytes per second in one direction, GPUs for each processor, source.
struct Chip {
    name: &'static str,
    devices: &'static [u16],
    bytes_per_second: Option<u64>,
    gpus: u32,
    source: &'static str,
}

const CHIPS: [Chip; 4] = [
    Chip {
        name: "GH200",
        devices: &[0x2342, 0x2345, 0x2348],
        bytes_per_second: Some(450_000_000_000),
        gpus: 1,
        source: "NVIDIA GH200 data sheet: 900 GB/s in both directions together",
    },
    Chip {
        name: "GB200",
        devices: &[0x2941],
        bytes_per_second: Some(450_000_000_000),
        gpus: 2,
        source: "NVIDIA GB200 NVL72 data sheet: 900 GB/s in both directions together, two GPUs",
    },
    Chip {
        name: "GB300",
        devices: &[0x31c2],
        bytes_per_second: Some(450_000_000_000),
        gpus: 2,
        source: "NVIDIA GB300 NVL72 data sheet: 900 GB/s in both directions together, two GPUs",
    },
    Chip {
        name: "GB10",
        devices: &[],
        bytes_per_second: None,
        gpus: 1,
        source: "NVIDIA DGX Spark data sheet names no rate",
    },
];

/// The rate of one link of NVLink 2 in one direction (NVIDIA Tesla V100 architecture, 300 GB/s in
/// both directions over six links).
const NVLINK_2: u64 = 25_000_000_000;

/// The coherent link of a GPU, where it has one by what is known.
pub fn coherent(machine: &Machine, gpu: &GpuFacts, name: &str) -> Option<Coherent> {
    let function = gpu.pci.as_deref().and_then(|pci| machine.function(pci));
    let node = gpu.node.or(function.and_then(|function| function.node));
    let to_cpu: Vec<_> = gpu
        .nvlinks
        .known()
        .into_iter()
        .flatten()
        .filter(|peer| peer.kind == NvLinkEnd::Cpu)
        .collect();
    let links: u32 = to_cpu.iter().map(|peer| peer.links).sum();
    if links > 0 {
        let each = to_cpu.iter().find_map(|peer| peer.bytes_per_second).unwrap_or(NVLINK_2);
        return Some(Coherent {
            gpu: name.to_owned(),
            link: format!("{links} NVLinks"),
            node,
            bytes_per_second: each.checked_mul(u64::from(links)),
            gpus_at_most: 1,
            source: "25 GB/s in one direction for each link of NVLink 2",
        });
    }
    if gpu.c2c.known() == Some(&false) {
        return None;
    }
    let words = [gpu.name.known(), function.and_then(|function| function.name.as_ref())];
    let device = function.and_then(|function| function.device);
    let chip = CHIPS.iter().find(|chip| {
        let named = |name: &&String| name.split([' ', '[', ']', '/']).any(|word| word == chip.name);
        words.iter().flatten().any(named) || device.is_some_and(|id| chip.devices.contains(&id))
    });
    let unknown = "no figure for this chip is known here";
    let has = gpu.c2c.known() == Some(&true);
    if chip.is_none() && !has {
        return None;
    }
    Some(Coherent {
        gpu: name.to_owned(),
        link: "NVLink-C2C".to_owned(),
        node,
        bytes_per_second: chip.and_then(|chip| chip.bytes_per_second),
        gpus_at_most: chip.map_or(1, |chip| chip.gpus),
        source: chip.map_or(unknown, |chip| chip.source),
    })
}

/// The coherent links of all GPUs.
pub(crate) fn all(machine: &Machine, devices: &[Device]) -> Vec<Coherent> {
    let gpus = machine.gpus.iter().filter_map(|gpu| {
        let device = devices.iter().find(|device| device.is_gpu(gpu))?;
        coherent(machine, gpu, &device.name)
    });
    let mut found: Vec<Coherent> = gpus.collect();
    found.sort_by_key(|one| devices.iter().position(|device| device.name == one.gpu));
    found
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::{Fact, NvLinkPeer};

    use super::*;

    #[test]
    fn a_chip_is_known_by_name_and_nvlinks_to_processors_are_counted() {
        let machine = Machine::default();
        let named =
            |name: &str| GpuFacts { name: Fact::Known(name.to_owned()), ..GpuFacts::default() };
        let grace = coherent(&machine, &named("NVIDIA GH200 480GB"), "GPU0").unwrap();
        assert_eq!(grace.bytes_per_second, Some(450_000_000_000));
        assert_eq!(coherent(&machine, &named("NVIDIA H200"), "GPU0"), None);
        let off = GpuFacts { c2c: Fact::Known(false), ..named("NVIDIA GH200 480GB") };
        assert_eq!(coherent(&machine, &off, "GPU0"), None);
        let peer = NvLinkPeer {
            pci: None,
            kind: NvLinkEnd::Cpu,
            links: 3,
            version: Some(2),
            bytes_per_second: None,
        };
        let power = GpuFacts { nvlinks: Fact::Known(vec![peer]), ..named("Tesla V100-SXM2-16GB") };
        let power = coherent(&machine, &power, "GPU1").unwrap();
        assert_eq!(
            (power.link.as_str(), power.bytes_per_second),
            ("3 NVLinks", Some(75_000_000_000))
        );
        let unknown = GpuFacts { c2c: Fact::Known(true), ..named("NVIDIA Next") };
        assert_eq!(coherent(&machine, &unknown, "GPU0").unwrap().bytes_per_second, None);
    }
}
