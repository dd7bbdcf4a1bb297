//! The network as `ip` shows it: interfaces, addresses, routes. It leads NFS mounts to the cards
//! that they go through.

use std::net::IpAddr;

use gpuio_host::net::{Route, best};
use gpuio_host::nic;
use gpuio_record::facts::{Fact, InterfaceFacts, Machine, MountKind, NicFacts};

use crate::ip_route::SEVERAL;
use crate::merge;

/// The output of `ip addr` and `ip route`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    /// Interfaces, `lo` and those of containers among them.
    pub interfaces: Vec<InterfaceFacts>,
    /// This machine's addresses.
    pub own: Vec<IpAddr>,
    /// The routes that the kernel makes of addresses.
    pub connected: Vec<Route>,
    /// Interfaces with the PCI functions in a name that udev gave them.
    pub(crate) functions: Vec<(String, String)>,
    /// The main table; `None` where it was not given.
    pub table: Option<Vec<Route>>,
}

impl Network {
    /// The interface of this name, added where it is not there yet.
    pub(crate) fn interface(&mut self, name: &str) -> &mut InterfaceFacts {
        let at = self.interfaces.iter().position(|one| one.name == name);
        let at = at.unwrap_or_else(|| {
            self.interfaces
                .push(InterfaceFacts { name: name.to_owned(), ..InterfaceFacts::default() });
            self.interfaces.len() - 1
        });
        &mut self.interfaces[at]
    }

    /// The interface to an address, or why it is not known.
    fn to(&self, address: Option<&str>) -> Fact<String> {
        let Some(address) = address else {
            return Fact::unknown("the mount's options name no address");
        };
        let (plain, scope) = address.split_once('%').unwrap_or((address, ""));
        if !scope.is_empty() {
            return Fact::Known(scope.to_owned());
        }
        if self.table.is_none() && self.connected.is_empty() {
            return Fact::unknown("mount does not report the route; `ip route` does");
        }
        let Ok(address) = plain.parse::<IpAddr>() else {
            return Fact::unknown(format!("{plain} is no IP address"));
        };
        if address.is_loopback() || self.own.contains(&address) {
            return Fact::Known("lo".to_owned());
        }
        // The table has the routes of addresses too.
        let routes = self.table.as_ref().unwrap_or(&self.connected);
        match best(routes, address).map(|route| route.interface.as_str()) {
            Some(SEVERAL) => Fact::unknown("the route there has several next hops"),
            Some("") | None if self.table.is_none() => Fact::unknown(
                "no address of `ip addr` is in the server's network; `ip route` shows it",
            ),
            Some("") | None => Fact::unknown("`ip route` shows no route there"),
            Some(interface) => Fact::Known(interface.to_owned()),
        }
    }

    /// Gives interfaces the cards of their functions, where a text shows these, and mounts the
    /// interfaces that they go through, where no card has them.
    fn place(&self, machine: &mut Machine) {
        for (name, pci) in &self.functions {
            let is_card = |class: u32| class >> 16 == 2;
            let shown = machine.function(pci).and_then(|one| one.class).is_some_and(is_card);
            let taken = |nic: &NicFacts| {
                let has = nic.interfaces.iter().any(|one| one.name == *name);
                nic.pci.as_ref() == Some(pci) && !nic.interfaces.is_empty()
                    || has && nic.pci.is_some()
            };
            if !shown || machine.nics.iter().any(taken) {
                continue;
            }
            machine.nics.retain(|nic| nic.pci.as_ref() != Some(pci) || !nic.rdma.is_empty());
            let card = merge::card(machine, Some(pci), None, Some(name));
            if !card.interfaces.iter().any(|one| one.name == *name) {
                card.interfaces.push(InterfaceFacts { name: name.clone(), ..Default::default() });
            }
        }
        let ways = machine.mounts.iter().filter_map(|mount| mount.nfs.as_ref()?.interface.known());
        let known = |name: &String| {
            machine.nics.iter().flat_map(|nic| &nic.interfaces).any(|one| one.name == *name)
        };
        let missing = self.interfaces.iter().filter(|one| one.name != "lo" && !known(&one.name));
        let missing: Vec<NicFacts> = missing
            .filter(|one| ways.clone().any(|way| *way == one.name))
            .map(|one| NicFacts { interfaces: vec![one.clone()], ..NicFacts::default() })
            .collect();
        machine.nics.extend(missing);
    }

    /// Adds the facts on interfaces to the cards, and the route to the server to NFS mounts.
    pub(crate) fn complete(&self, machine: &mut Machine) {
        for mount in machine.mounts.iter_mut().filter(|mount| mount.kind == MountKind::Nfs) {
            let Some(nfs) = &mut mount.nfs else { continue };
            nfs.interface = self.to(nfs.address.as_deref());
        }
        self.place(machine);
        for ours in &self.interfaces {
            let cards = machine.nics.iter_mut().flat_map(|nic| &mut nic.interfaces);
            for known in cards.filter(|known| known.name == ours.name) {
                let InterfaceFacts { carries, state, mtu_bytes, lower, .. } = ours;
                known.carries = known.carries.or(*carries);
                known.mtu_bytes = known.mtu_bytes.or(*mtu_bytes);
                known.state = known.state.take().or_else(|| state.clone());
                if known.lower.is_empty() {
                    known.lower.clone_from(lower);
                }
            }
        }
        for mount in &mut machine.mounts {
            let interface = mount.nfs.as_ref().and_then(|nfs| nfs.interface.known());
            let Some(interface) = interface else { continue };
            // A bond has no card of its own; those below it have.
            let below = self.interfaces.iter().find(|one| one.name == *interface);
            let below = below.iter().flat_map(|one| &one.lower);
            let names = std::iter::once(interface).chain(below);
            let mut pci: Vec<String> =
                names.flat_map(|name| nic::functions_of(&machine.nics, name)).collect();
            pci.sort();
            pci.dedup();
            mount.pci = pci;
        }
    }
}

/// The PCI function in a name that udev made of it: `enp129s0f1np1`, `ibP1p2s0`
/// (systemd.net-naming-scheme(7)). Its numbers are decimal.
pub(crate) fn function_of(name: &str) -> Option<String> {
    let rest = ["en", "ib", "roce", "iw"].iter().find_map(|start| name.strip_prefix(start))?;
    let number = |text: &str, mark: char| -> Option<(u32, usize)> {
        let digits = text.strip_prefix(mark)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        Some((digits[..end].parse().ok()?, 1 + end))
    };
    let (domain, used) = number(rest, 'P').unwrap_or((0, 0));
    let rest = &rest[used..];
    let (bus, used) = number(rest, 'p')?;
    let rest = &rest[used..];
    let (slot, used) = number(rest, 's')?;
    let (function, _) = number(&rest[used..], 'f').unwrap_or((0, 0));
    (bus < 256 && slot < 32 && function < 8)
        .then(|| format!("{domain:04x}:{bus:02x}:{slot:02x}.{function}"))
}

/// `192.0.2.0/24`, `2001:db8::/32`, or an address alone, which is all of its bits.
pub(crate) fn cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most)?,
        None => most,
    };
    Some((address, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_udev_have_the_function() {
        for (name, pci) in [
            ("enp129s0f1np1", Some("0000:81:00.1")),
            ("enp1s0", Some("0000:01:00.0")),
            ("rocep25s0f1", Some("0000:19:00.1")),
            ("ibP2p65s3", Some("0002:41:03.0")),
            ("ens6f0np0", None),
            ("eno1", None),
            ("enp1", None),
            ("enp300s0", None),
        ] {
            assert_eq!(function_of(name).as_deref(), pci, "{name}");
        }
    }

    const IP: &str = "2: ens6f0np0: <BROADCAST,UP> mtu 1500 state UP\n    link/ether 00:00\n\
        inet 192.0.2.5/24 scope global ens6f0np0\n    altname enp129s0f0np0\n\
        3: ens6f1np1: <BROADCAST,UP> mtu 9000 state UP\n    altname enp129s0f1np1\n";
    const IBDEV: &str = "mlx5_0 port 1 ==> ens6f0np0 (Up)\nmlx5_1 port 1 ==> ens6f1np1 (Down)\n";
    const LSPCI: &str = "81:00.0 Ethernet controller: Mellanox Technologies MT2892\n\
        81:00.1 Ethernet controller: Mellanox Technologies MT2892\n";
    const NFS: &str = "192.0.2.9:/a on /a type nfs4 (rw,vers=4.2,proto=tcp,addr=192.0.2.9)\n";

    fn read(texts: &[&str]) -> crate::Captured {
        let mut captured = crate::Captured::default();
        texts.iter().for_each(|text| crate::read("text", text, &mut captured).unwrap());
        captured.finish();
        captured
    }

    #[test]
    fn a_card_that_several_texts_name_is_one() {
        let orders = [[IP, IBDEV, LSPCI, NFS], [LSPCI, NFS, IBDEV, IP], [IBDEV, IP, NFS, LSPCI]];
        for texts in orders {
            let captured = read(&texts);
            let cards = captured.machine.nics.iter().map(|nic| {
                let [one] = nic.interfaces.as_slice() else { panic!("{nic:?}") };
                let mtu = one.mtu_bytes.unwrap();
                (nic.pci.as_deref().unwrap(), nic.rdma[0].name.as_str(), one.name.as_str(), mtu)
            });
            let wanted = [
                ("0000:81:00.0", "mlx5_0", "ens6f0np0", 1500),
                ("0000:81:00.1", "mlx5_1", "ens6f1np1", 9000),
            ];
            assert_eq!(cards.collect::<Vec<_>>(), wanted);
            assert_eq!(captured.machine.mounts[0].pci, ["0000:81:00.0"]);
        }
        // No text names the function: that is said.
        let remarks = read(&[IBDEV, LSPCI]).remarks().join(" ");
        assert!(remarks.contains("mlx5_0 and 1 more are taken for 0000:81:00.0 and 1 more"));
        let third = format!("{LSPCI}82:00.0 Ethernet controller: Mellanox Technologies MT2892\n");
        let remarks = read(&[IBDEV, &third]).remarks().join(" ");
        assert!(remarks.contains("mlx5_0 and 1 more may be the same as 0000:81:00.0 and"));
    }

    #[test]
    fn the_interface_of_a_mount_is_known_without_its_card() {
        let captured = read(&[IP, NFS]);
        let [nic] = captured.machine.nics.as_slice() else { panic!("{:?}", captured.machine.nics) };
        assert_eq!((nic.interfaces[0].mtu_bytes, &nic.pci), (Some(1500), &None));
    }
}
