//! The network route from a mount to its server.

use super::{Machine, MountedStorage, NicFacts};

/// Which interface leads to a mount's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerRoute<'m> {
    /// The interface.
    pub interface: &'m str,
    /// Whether it comes from the mount point's name and not from a route: `/mnt/nfs/ib9/data/0`, as
    /// NVIDIA's Benchmarking and Configuration Guide names mounts (5.1). That is an intention, and
    /// not what was read.
    pub by_name: bool,
}

impl Machine {
    /// The interface that leads to the server of an NFS mount: by the route where it is known,
    /// else one of this machine's after which a part of the mount point is named.
    pub fn server_route<'m>(&'m self, mount: &'m MountedStorage) -> Option<ServerRoute<'m>> {
        let nfs = mount.nfs.as_ref()?;
        if let Some(interface) = nfs.interface.known() {
            return Some(ServerRoute { interface, by_name: false });
        }
        let mut parts = mount.mount.mount_point.split('/');
        let interface = parts.find(|part| !self.cards_with(part).is_empty())?;
        Some(ServerRoute { interface, by_name: true })
    }

    /// Cards that a mount's traffic goes through: those of its functions, else those of its
    /// [`Machine::server_route`], which need no known function.
    pub fn cards_to(&self, mount: &MountedStorage) -> Vec<&NicFacts> {
        let through = |nic: &&NicFacts| nic.pci.as_ref().is_some_and(|pci| mount.pci.contains(pci));
        let known: Vec<&NicFacts> = self.nics.iter().filter(through).collect();
        match self.server_route(mount) {
            Some(route) if known.is_empty() => self.cards_with(route.interface),
            _ => known,
        }
    }

    /// Cards with an interface of this name, or with those right below it.
    fn cards_with(&self, interface: &str) -> Vec<&NicFacts> {
        let has = |nic: &&NicFacts, name: &str| nic.interfaces.iter().any(|one| one.name == name);
        let own: Vec<&NicFacts> = self.nics.iter().filter(|nic| has(nic, interface)).collect();
        let lower: Vec<&String> = own
            .iter()
            .filter(|nic| nic.pci.is_none() && nic.rdma.is_empty())
            .flat_map(|nic| nic.interfaces.iter().filter(|one| one.name == interface))
            .flat_map(|one| &one.lower)
            .collect();
        if lower.is_empty() {
            return own;
        }
        self.nics.iter().filter(|nic| lower.iter().any(|name| has(nic, name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Fact, InterfaceFacts, MountFacts, NfsFacts};

    fn card(name: &str, lower: &[&str]) -> NicFacts {
        let interface = InterfaceFacts {
            name: name.to_owned(),
            lower: lower.iter().map(|&lower| lower.to_owned()).collect(),
            ..InterfaceFacts::default()
        };
        NicFacts { interfaces: vec![interface], ..NicFacts::default() }
    }

    fn mount(point: &str, route: Option<&str>) -> MountedStorage {
        let interface = Fact::or_unknown(route.map(str::to_owned), "not reported");
        MountedStorage {
            mount: MountFacts { mount_point: point.to_owned(), ..MountFacts::default() },
            nfs: Some(NfsFacts { interface, ..NfsFacts::default() }),
            ..MountedStorage::default()
        }
    }

    #[test]
    fn a_route_comes_before_a_name_and_a_name_is_one_of_a_known_interface() {
        let nics = vec![card("ib8", &[]), card("ib9", &[]), card("bond0", &["ib8", "ib9"])];
        let machine = Machine { nics, ..Machine::default() };
        let of = |point: &str, route| {
            let mount = mount(point, route);
            let found = machine.server_route(&mount);
            let cards = machine.cards_to(&mount).len();
            found.map(|route| (route.interface.to_owned(), route.by_name, cards))
        };
        let expected = |name: &str, by_name, cards| Some((name.to_owned(), by_name, cards));
        assert_eq!(of("/mnt/nfs/ib9/data/0", None), expected("ib9", true, 1));
        assert_eq!(of("/mnt/nfs/ib9/data/0", Some("ib8")), expected("ib8", false, 1));
        assert_eq!(of("/mnt/bond0", None), expected("bond0", true, 2));
        assert_eq!(of("/mnt/nfs/ib7/data/0", None), None, "no such interface is known");
        assert_eq!(of("/mnt/ib90", None), None, "a name that only begins so");
    }
}
