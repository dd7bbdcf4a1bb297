//! Network cards that one text names and another lists by their PCI functions.

use gpuio_record::facts::{Machine, PciFacts};

use crate::{Captured, Matrix, network, pci_names};

/// How RDMA devices of Mellanox, now NVIDIA, are named, before a number; `NIC0` in a matrix without
/// its legend.
const NAMES: [&str; 3] = ["mlx5_", "mlx4_", "NIC"];

/// Gives named cards their functions: the one in a name that udev made, else, where there are as
/// many names as functions of the maker, the only one that fits, or that of the same place in the
/// order, which is noted. A function does not fit where a matrix or NUMA nodes put it elsewhere.
pub(crate) fn join(captured: &mut Captured) {
    let own: Vec<(usize, String)> = (0..captured.machine.nics.len())
        .filter_map(|at| {
            let nic = &captured.machine.nics[at];
            let name = nic.rdma.iter().find_map(|one| network::function_of(&one.name))?;
            let listed = functions(&captured.machine).any(|one| one.address == name);
            (nic.pci.is_none() && listed).then_some((at, name))
        })
        .collect();
    place(&mut captured.machine, own);
    for start in NAMES {
        let Captured { machine, matrices, .. } = &*captured;
        let mut named: Vec<(u32, usize)> = (0..machine.nics.len())
            .filter(|at| machine.nics[*at].pci.is_none())
            .filter_map(|at| {
                let [rdma] = machine.nics[at].rdma.as_slice() else { return None };
                Some((rdma.name.strip_prefix(start)?.parse().ok()?, at))
            })
            .collect();
        named.sort_unstable();
        let listed: Vec<&PciFacts> =
            functions(machine).filter(|one| one.vendor == Some(pci_names::MELLANOX)).collect();
        if named.is_empty() || named.len() != listed.len() {
            continue;
        }
        let fits = |at: usize, one: &PciFacts| does_fit(machine, matrices, at, one);
        let only = |at: usize| {
            let mut all = listed.iter().filter(|one| fits(at, one));
            let first = all.next()?;
            all.next().is_none().then(|| first.address.clone())
        };
        let only: Vec<String> = named.iter().filter_map(|(_, at)| only(*at)).collect();
        let mut distinct = only.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let by_fit = distinct.len() == named.len();
        let in_order = || named.iter().zip(&listed).all(|((_, at), one)| fits(*at, one));
        if !by_fit && !in_order() {
            continue;
        }
        let listed: Vec<String> = listed.iter().map(|one| one.address.clone()).collect();
        let (first, more) = (&listed[0], listed.len() - 1);
        let note = format!(
            "{start}{} and {more} more are taken for {first} and {more} more, in the order of \
             both: no text has both.",
            named[0].0
        );
        let addresses = if by_fit { only } else { listed };
        place(&mut captured.machine, named.into_iter().map(|(_, at)| at).zip(addresses).collect());
        if !by_fit {
            captured.remark(note);
        }
    }
}

/// Functions of cards that no text gives an RDMA device, by address.
fn functions(machine: &Machine) -> impl Iterator<Item = &PciFacts> {
    let bare = machine.nics.iter().filter(|nic| nic.rdma.is_empty());
    let addresses: Vec<&String> = bare.filter_map(|nic| nic.pci.as_ref()).collect();
    machine.pci.iter().filter(move |one| addresses.contains(&&one.address))
}

/// Gives cards, by their places in the list, the functions at these addresses.
fn place(machine: &mut Machine, cards: Vec<(usize, String)>) {
    for (at, address) in cards {
        let is_it = |pci: Option<&String>| pci == Some(&address);
        let Some(other) = machine.nics.iter().position(|nic| is_it(nic.pci.as_ref())) else {
            continue;
        };
        let interfaces = std::mem::take(&mut machine.nics[other].interfaces);
        machine.nics[other].pci = None;
        machine.nics[at].pci = Some(address);
        machine.nics[at].interfaces.extend(interfaces);
    }
    machine
        .nics
        .retain(|nic| nic.pci.is_some() || !nic.rdma.is_empty() || !nic.interfaces.is_empty());
}

fn does_fit(machine: &Machine, matrices: &[Matrix], at: usize, function: &PciFacts) -> bool {
    let nic = &machine.nics[at];
    if nic.node.zip(function.node).is_some_and(|(a, b)| a != b) {
        return false;
    }
    let gpus = machine.gpus.iter().zip(0u32..).filter_map(|(gpu, place)| {
        let number = gpu.index.known().copied().unwrap_or(place);
        let bridge = machine.function(gpu.pci.as_deref()?)?.host_bridge.as_ref()?;
        let same = function.host_bridge.as_ref()? == bridge;
        Some((format!("GPU{number}"), same))
    });
    let mut pairs = gpus.flat_map(|(gpu, same)| {
        let cells = nic.rdma.iter().flat_map(|one| matrices.iter().map(|all| (all, &one.name)));
        cells
            .filter_map(move |(all, name)| Some((all.cell(&gpu, name)?.to_owned(), same)))
            .collect::<Vec<_>>()
    });
    pairs.all(|(cell, same)| match cell.as_str() {
        "PIX" | "PXB" | "PHB" => same,
        "NODE" | "SYS" => !same,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use crate::Captured;

    const MATRIX: &str = "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n\
                          GPU0\t X \tSYS\tSYS\tPIX\t0-31\t0\nGPU1\tSYS\t X \tPIX\tSYS\t32-63\t1\n\
                          NIC0\tSYS\tPIX\t X \tSYS\nNIC1\tPIX\tSYS\tSYS\t X \n\
                          NIC Legend:\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
    const CARDS: &str = "19:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                         9c:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                         1a:00.0 Ethernet controller: Intel Corporation Ethernet X710\n";

    fn cards(texts: &[&str]) -> (Vec<(String, String)>, String) {
        let mut captured = Captured::default();
        texts.iter().for_each(|text| crate::read("text", text, &mut captured).unwrap());
        captured.finish();
        let name = |nic: &gpuio_record::facts::NicFacts| {
            let rdma = nic.rdma.first().map(|one| one.name.clone());
            (rdma.unwrap_or_default(), nic.pci.clone().unwrap_or_default())
        };
        let cards = captured.machine.nics.iter().map(name).collect();
        (cards, captured.remarks().join(" "))
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_card_of_a_matrix_is_that_of_lspci() {
        let other = ("", "0000:1a:00.0");
        // As many of one maker, in the order of both.
        let (all, note) = cards(&[MATRIX, CARDS]);
        let wanted = [("mlx5_0", "0000:19:00.0"), other, ("mlx5_1", "0000:9c:00.0")];
        assert_eq!(all, pairs(&wanted));
        assert!(note.contains("mlx5_0 and 1 more are taken for 0000:19:00.0 and 1 more"), "{note}");
        // Nodes, or host bridges with the matrix, show which is which.
        let wanted = [("mlx5_1", "0000:19:00.0"), other, ("mlx5_0", "0000:9c:00.0")];
        let nodes = "19:00.0 Infiniband controller: Mellanox Technologies MT28908\n\
                     \tNUMA node: 0\n9c:00.0 Infiniband controller: Mellanox Technologies \
                     MT28908\n\tNUMA node: 1\n1a:00.0 Ethernet controller: Intel X710\n\
                     \tNUMA node: 0\n";
        let (all, note) = cards(&[MATRIX, nodes]);
        assert_eq!((all, note.as_str()), (pairs(&wanted), ""));
        let tree = "-+-[0000:17]-+-01.0-[18]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]\n\
                    \x20|           \\-02.0-[19]----00.0  Mellanox Technologies MT28908 Family\n\
                    \x20\\-[0000:9a]-+-01.0-[9b]----00.0  NVIDIA Corporation GA100 [A100]\n\
                    \x20            \\-02.0-[9c]----00.0  Mellanox Technologies MT28908 Family\n";
        let (all, note) = cards(&[MATRIX, tree]);
        assert_eq!((all, note.as_str()), (pairs(&[wanted[0], wanted[2]]), ""));
        // A third card of the maker: nothing is guessed, and that is said once.
        let three =
            format!("{CARDS}20:00.0 Infiniband controller: Mellanox Technologies MT28908\n");
        let (all, note) = cards(&[MATRIX, &three]);
        assert_eq!(all.iter().filter(|(_, pci)| pci.is_empty()).count(), 2, "{all:?}");
        assert_eq!(note.matches("may be the same").count(), 1, "{note}");
        // A name of udev's has the address.
        let named = "CA 'ibp25s0'\n\tPort 1:\n\t\tState: Active\n";
        assert!(cards(&[named, &three]).0.contains(&pairs(&[("ibp25s0", "0000:19:00.0")])[0]));
    }
}
