//! The devices in question: GPUs, network cards and drives.

use gpuio_record::facts::{BlockDevice, BlockKind, GpuFacts, Machine, NicFacts};
use serde::Serialize;

use crate::topo::graph::Graph;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    Gpu,
    /// A network card's function.
    Nic,
    Drive,
}

/// A GPU, network card or drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Device {
    pub kind: DeviceKind,
    /// `GPU0` by the driver's number, `mlx5_0` or the interface, `nvme3n1`.
    pub name: String,
    /// Other names that it goes by.
    pub also: Vec<String>,
    /// Product's name, where it is known.
    pub model: Option<String>,
    /// PCI functions that lead to it: one, several for a drive with several controllers, none
    /// where it is not known.
    pub pci: Vec<String>,
    /// NUMA node; `null` when not known.
    pub node: Option<u32>,
}

impl Device {
    /// Whether it is this GPU: by address, else by number.
    pub(crate) fn is_gpu(&self, gpu: &GpuFacts) -> bool {
        let number = || gpu.index.known().map(|number| format!("GPU{number}"));
        self.kind == DeviceKind::Gpu
            && match &gpu.pci {
                Some(pci) => self.pci.contains(pci),
                None => self.pci.is_empty() && number().is_some_and(|name| name == self.name),
            }
    }

    /// Whether it goes by this name; PCI addresses with or without domain 0000.
    pub fn is_called(&self, name: &str) -> bool {
        let bare = name.strip_prefix("/dev/").unwrap_or(name);
        let same = |known: &str| known.eq_ignore_ascii_case(bare);
        let address = |known: &String| same(known) || known.strip_prefix("0000:").is_some_and(same);
        same(&self.name)
            || self.also.iter().any(|known| same(known))
            || self.pci.iter().any(address)
    }
}

/// GPUs in the driver's order, then network cards, then drives.
pub(crate) fn devices(machine: &Machine, graph: &Graph<'_>) -> Vec<Device> {
    let numbered = machine.gpus.iter().all(|gpu| gpu.index.known().is_some());
    let mut gpus: Vec<(u32, Device)> = machine
        .gpus
        .iter()
        .zip(0..)
        .map(|(gpu, index)| {
            let number = gpu.index.known().copied().filter(|_| numbered).unwrap_or(index);
            (number, from_gpu(gpu, number, graph))
        })
        .collect();
    gpus.sort_by_key(|(number, _)| *number);
    let nics = machine.nics.iter().filter_map(|nic| from_nic(nic, graph));
    let drives = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
    let drives = drives.map(|drive| from_drive(drive, graph));
    gpus.into_iter().map(|(_, gpu)| gpu).chain(nics).chain(drives).collect()
}

fn from_gpu(gpu: &GpuFacts, number: u32, graph: &Graph<'_>) -> Device {
    let pci: Vec<String> = gpu.pci.iter().cloned().collect();
    Device {
        kind: DeviceKind::Gpu,
        name: format!("GPU{number}"),
        also: gpu.uuid.known().into_iter().cloned().collect(),
        model: gpu.name.known().cloned(),
        node: gpu.node.or_else(|| node(&pci, graph)),
        pci,
    }
}

/// A card's function; bonds, VLANs and bridges have none of their own and are no devices.
fn from_nic(nic: &NicFacts, graph: &Graph<'_>) -> Option<Device> {
    let rdma = nic.rdma.iter().map(|one| one.name.clone());
    let mut names = rdma.chain(nic.interfaces.iter().map(|one| one.name.clone()));
    if nic.pci.is_none() && nic.rdma.is_empty() {
        return None;
    }
    let pci: Vec<String> = nic.pci.iter().cloned().collect();
    let function = nic.pci.as_deref().and_then(|pci| graph.function(pci));
    Some(Device {
        kind: DeviceKind::Nic,
        name: names.next().or_else(|| nic.pci.as_deref().map(by_address))?,
        also: names.collect(),
        model: function.and_then(|function| function.name.clone()),
        node: nic.node.or_else(|| node(&pci, graph)),
        pci,
    })
}

/// `nic@5e:00.0`, of a card that PCI shows and nothing names.
fn by_address(address: &str) -> String {
    format!("nic@{}", address.strip_prefix("0000:").unwrap_or(address))
}

fn from_drive(drive: &BlockDevice, graph: &Graph<'_>) -> Device {
    let controllers = drive.nvme.iter().flat_map(|nvme| &nvme.controllers);
    Device {
        kind: DeviceKind::Drive,
        name: drive.facts.name.clone(),
        also: controllers.map(|controller| controller.name.clone()).collect(),
        model: drive.facts.model.clone(),
        node: drive.facts.numa_node.or_else(|| node(&drive.pci, graph)),
        pci: drive.pci.clone(),
    }
}

/// The node that all functions are on.
fn node(pci: &[String], graph: &Graph<'_>) -> Option<u32> {
    let mut nodes = pci.iter().map(|address| graph.node(address));
    let first = nodes.next()??;
    nodes.all(|node| node == Some(first)).then_some(first)
}
