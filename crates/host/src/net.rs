//! Network interfaces: what they carried, and which of them leads to an address.
//!
//! `/sys/class/net/NAME/statistics` (Linux, Documentation/ABI/testing/sysfs-class-net-statistics),
//! the counters of InfiniBand ports, which RDMA over Ethernet has too
//! (Documentation/ABI/stable/sysfs-class-infiniband), and `/proc/net/route`, `ipv6_route` and
//! `fib_trie`. Those are the main and the local table: what `ip rule` sends elsewhere is not seen.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{HostError, LineFault, Root};

/// `RTF_UP` and `RTF_REJECT` of a route's flags, and `RTF_LOCAL` of IPv6.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;
const LOCAL: u32 = 0x8000_0000;
/// The interface to this machine itself.
const LOOPBACK: &str = "lo";
/// Interfaces stacked deeper than this are a loop in a broken tree.
const MAX_DEPTH: usize = 8;

/// Bytes in and out, as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetSample {
    pub received: u64,
    pub sent: u64,
}

impl NetSample {
    /// Bytes received and sent from this sample to a `later` one. `None` when a counter went back:
    /// the interface was made anew, or one of 32 bits began again, how many times is not known.
    pub fn delta(&self, later: &Self) -> Option<NetSample> {
        Some(NetSample {
            received: later.received.checked_sub(self.received)?,
            sent: later.sent.checked_sub(self.sent)?,
        })
    }
}

/// A port of an InfiniBand device, or of an Ethernet device that does RDMA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The device (`mlx5_0`).
    pub device: String,
    /// Its port, from 1.
    pub port: u64,
}

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The interface that it leads to; `lo` where the address is this machine's own.
    pub interface: String,
    /// Where it leads.
    pub to: IpAddr,
    /// Leading bits of `to` that an address must share.
    pub prefix: u32,
    /// The smaller one of two as long is taken.
    pub metric: u32,
}

impl Route {
    fn serves(&self, address: IpAddr) -> bool {
        match (self.to, address) {
            (IpAddr::V4(to), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix.min(32)).unwrap_or(0);
                to.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(to), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix.min(128)).unwrap_or(0);
                to.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// Ports that do RDMA for an interface: its own, or those of the interfaces below it (bonds, VLANs,
/// bridges), each once.
///
/// # Errors
/// [`HostError`] when a directory cannot be read.
pub fn rdma_ports(root: &Root, name: &str) -> Result<Vec<Port>, HostError> {
    let mut found = Vec::new();
    gather(root, name, MAX_DEPTH, &mut found)?;
    Ok(found)
}

fn gather(root: &Root, name: &str, depth: usize, found: &mut Vec<Port>) -> Result<(), HostError> {
    let at = format!("sys/class/net/{name}");
    let devices = root.list(format!("{at}/device/infiniband"))?;
    if !devices.is_empty() {
        // A card with several ports is one device with interfaces that are numbered from 0.
        let nth = root.number(format!("{at}/dev_port"))?.unwrap_or(0);
        for device in devices {
            let ports = root.list(format!("sys/class/infiniband/{device}/ports"))?;
            let port = if ports.len() > 1 { nth + 1 } else { 1 };
            let port = Port { device, port };
            if !found.contains(&port) {
                found.push(port);
            }
        }
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for entry in root.list(&at)? {
        if let Some(lower) = entry.strip_prefix("lower_") {
            gather(root, lower, depth, found)?;
        }
    }
    Ok(())
}

/// The interface that leads to `address`: `lo` for this machine's own, else by the route that
/// shares most of its bits. `None` when no route leads there.
///
/// # Errors
/// [`HostError`] when a table cannot be read or understood.
pub fn interface_to(root: &Root, address: IpAddr) -> Result<Option<String>, HostError> {
    let address = address.to_canonical();
    if address.is_loopback() || is_own(root, address)? {
        return Ok(Some(LOOPBACK.to_owned()));
    }
    let routes = match address {
        IpAddr::V4(_) => table(root, "proc/net/route", parse_routes)?,
        IpAddr::V6(_) => table(root, "proc/net/ipv6_route", parse_ipv6_routes)?,
    };
    Ok(best(&routes, address).map(|route| route.interface.clone()))
}

/// A table's routes; none where the kernel lacks it.
fn table(
    root: &Root,
    file: &str,
    parse: impl FnOnce(&str) -> Result<Vec<Route>, LineFault>,
) -> Result<Vec<Route>, HostError> {
    root.read(file)?.map_or_else(|| Ok(Vec::new()), |text| text.parse(parse))
}

/// The route to `address`: most bits, then the smallest metric, then the first.
pub fn best(routes: &[Route], address: IpAddr) -> Option<&Route> {
    let serving = routes.iter().filter(|route| route.serves(address));
    serving.min_by_key(|route| (std::cmp::Reverse(route.prefix), route.metric))
}

/// Whether an IPv4 address is one of this machine's: `fib_trie` lists it as a host that is local.
fn is_own(root: &Root, address: IpAddr) -> Result<bool, HostError> {
    let IpAddr::V4(address) = address else { return Ok(false) };
    let Some(text) = root.read("proc/net/fib_trie")? else { return Ok(false) };
    let leaf = format!("|-- {address}");
    let mut lines = text.body.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == leaf && lines.next().is_some_and(|next| next == "/32 host LOCAL") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parses `/proc/net/route`: a heading, then interface, destination, gateway, flags, two counts,
/// metric and mask; addresses are the bytes on the wire as one number of this machine.
///
/// # Errors
/// [`LineFault`] for the first line without these fields.
pub fn parse_routes(text: &str) -> Result<Vec<Route>, LineFault> {
    let mut routes = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [interface, to, _, flags, _, _, metric, mask, ..] = words[..] else {
            if words.is_empty() {
                continue;
            }
            return Err(LineFault::new(index, line, "a route of eight or more fields"));
        };
        let malformed = || LineFault::new(index, line, "addresses and flags in hexadecimal");
        let number = |word: &str| u32::from_str_radix(word, 16).map_err(|_| malformed());
        let flags = number(flags)?;
        if flags & UP == 0 || flags & REJECT != 0 {
            continue;
        }
        let mask = u32::from_be_bytes(number(mask)?.to_ne_bytes());
        routes.push(Route {
            interface: interface.to_owned(),
            to: Ipv4Addr::from(number(to)?.to_ne_bytes()).into(),
            prefix: mask.leading_ones(),
            metric: metric.parse().map_err(|_| malformed())?,
        });
    }
    Ok(routes)
}

/// Parses `/proc/net/ipv6_route`: destination, its prefix, source, its prefix, next hop, metric,
/// two counts, flags and interface, all but the last in hexadecimal.
///
/// # Errors
/// [`LineFault`] for the first line without these fields.
pub fn parse_ipv6_routes(text: &str) -> Result<Vec<Route>, LineFault> {
    let mut routes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [to, prefix, _, _, _, metric, _, _, flags, interface] = words[..] else {
            return Err(LineFault::new(index, line, "a route of ten fields"));
        };
        let malformed = || LineFault::new(index, line, "addresses and flags in hexadecimal");
        let number = |word: &str| u32::from_str_radix(word, 16).map_err(|_| malformed());
        let flags = number(flags)?;
        if flags & UP == 0 || flags & REJECT != 0 {
            continue;
        }
        let to = u128::from_str_radix(to, 16).map_err(|_| malformed())?;
        let own = flags & LOCAL != 0;
        routes.push(Route {
            interface: if own { LOOPBACK } else { interface }.to_owned(),
            to: Ipv6Addr::from_bits(to).into(),
            prefix: number(prefix)?,
            metric: number(metric)?,
        });
    }
    Ok(routes)
}
