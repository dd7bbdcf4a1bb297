//! The network as `ip` shows it: interfaces, addresses, routes. It leads NFS mounts to the cards
//! that they go through.

use std::net::IpAddr;

use gpuio_host::net::{Route, best};
use gpuio_host::nic;
use gpuio_record::facts::{Fact, InterfaceFacts, Machine, MountKind};

use crate::ip_route::SEVERAL;

/// The output of `ip addr` and `ip route`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    /// Interfaces, `lo` and those of containers among them.
    pub interfaces: Vec<InterfaceFacts>,
    /// This machine's addresses.
    pub own: Vec<IpAddr>,
    /// The routes that the kernel makes of addresses.
    pub connected: Vec<Route>,
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

    /// Adds the facts on interfaces to the cards, and the route to the server to NFS mounts.
    pub(crate) fn complete(&self, machine: &mut Machine) {
        for mount in machine.mounts.iter_mut().filter(|mount| mount.kind == MountKind::Nfs) {
            let Some(nfs) = &mut mount.nfs else { continue };
            nfs.interface = self.to(nfs.address.as_deref());
        }
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
