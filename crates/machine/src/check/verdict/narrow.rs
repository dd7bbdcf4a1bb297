//! A machine without what one pair does not touch.

use gpuio_record::facts::Machine;

use super::{Gpu, Pair, layer};

/// The pair's GPU, mount, drives and cards, with the bridges above them: what rules find on it
/// concerns this pair. All cards stay where it is not known which of them leads to the server.
pub fn narrow(pair: &Pair<'_>) -> Machine {
    let machine = pair.machine;
    let block: Vec<_> = layer::below(machine, pair.mount).into_iter().cloned().collect();
    let gpus = match pair.gpu {
        Gpu::Real(gpu) => vec![gpu.clone()],
        Gpu::Software | Gpu::None => Vec::new(),
    };
    let over_network = block.is_empty();
    let interface = pair.mount.nfs.as_ref().and_then(|nfs| nfs.interface.known());
    let leads = |nic: &&gpuio_record::facts::NicFacts| match interface {
        Some(name) => nic.interfaces.iter().any(|one| {
            one.name == *name || nic.pci.as_ref().is_some_and(|pci| pair.mount.pci.contains(pci))
        }),
        None => over_network,
    };
    let nics: Vec<_> = machine.nics.iter().filter(leads).cloned().collect();
    let ends = gpus.iter().filter_map(|gpu| gpu.pci.as_deref());
    let ends = ends.chain(block.iter().flat_map(|device| &device.pci).map(String::as_str));
    let ends = ends.chain(nics.iter().filter_map(|nic| nic.pci.as_deref()));
    let on_route: Vec<&str> = ends
        .flat_map(|end| machine.upstream_path(end))
        .map(|function| function.address.as_str())
        .collect();
    let pci = machine.pci.iter().filter(|one| on_route.contains(&one.address.as_str()));
    Machine {
        pci: pci.cloned().collect(),
        mounts: vec![pair.mount.clone()],
        gpus,
        block,
        nics,
        ..machine.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    #[test]
    fn what_the_pair_does_not_touch_is_gone() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.block.push(sample::disk("nvme1n1", "0000:80:00.0"));
        machine.gpus.push(sample::gpu("0000:81:00.0", 1));
        machine.mounts = vec![sample::mount("/a", "nvme0n1"), sample::mount("/b", "nvme1n1")];
        let pair =
            Pair { machine: &machine, mount: &machine.mounts[0], gpu: Gpu::Real(&machine.gpus[0]) };
        let narrow = narrow(&pair);
        assert_eq!((narrow.block.len(), narrow.gpus.len(), narrow.mounts.len()), (1, 1, 1));
        assert_eq!(narrow.pci, machine.pci, "bridges stay");
        assert_eq!(narrow.modules, machine.modules);
    }
}
