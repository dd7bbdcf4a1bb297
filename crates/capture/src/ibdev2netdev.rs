//! `ibdev2netdev` (Mellanox OFED): which network interface belongs to which RDMA port; with `-v`
//! the PCI address stands first.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{InterfaceFacts, RdmaFacts, RdmaPort};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "ibdev2netdev",
    gives: "RDMA devices and their interfaces",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.contains(" port ") && line.contains(" ==> ")),
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        if index > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match parse(index, &line) {
            Ok(link) => put(captured, &link),
            Err(why) => captured.skip(why),
        }
    }
    Ok(())
}

/// A port and its interface.
struct Link<'t> {
    pci: Option<String>,
    device: String,
    port: u64,
    /// The port's own state, which `-v` prints.
    port_state: Option<&'t str>,
    interface: &'t str,
    state: Option<&'static str>,
}

fn parse(index: usize, line: &str) -> Result<Link<'_>, CaptureError> {
    let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
    let (left, right) =
        line.split_once(" ==> ").ok_or_else(|| wanted(line, "mlx5_0 port 1 ==> ib0 (Up)"))?;
    let device_words = "a device and its port, like mlx5_0 port 1";
    let (device, port) = left.rsplit_once(" port ").ok_or_else(|| wanted(left, device_words))?;
    let number = port.split_whitespace().next().unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| wanted(port, "a port's number"))?;
    let port_state = port.split_once('(').map(|(_, state)| state.trim_end_matches(')').trim());
    let mut words = device.split_whitespace();
    let first = words.next().ok_or_else(|| wanted(left, "a device, like mlx5_0"))?;
    let pci = normalize_pci(first);
    // Behind the name stands something with the address alone.
    let name = match pci {
        Some(_) => words.next().map(str::to_owned),
        None => merge::rdma_name(device),
    };
    let name = name.ok_or_else(|| wanted(device, device_words))?;
    let (interface, state) = right.trim().split_once(' ').unwrap_or((right.trim(), ""));
    // A note behind it is the user's, or of another release.
    let state = state.split('#').next().unwrap_or_default().trim();
    let word = state.split(')').next().unwrap_or_default().trim_start_matches('(').trim();
    let state = match word {
        "" => None,
        up if up.eq_ignore_ascii_case("up") => Some("up"),
        down if down.eq_ignore_ascii_case("down") => Some("down"),
        _ => return Err(wanted(state, "(Up) or (Down)")),
    };
    Ok(Link { pci, device: name, port: number, port_state, interface, state })
}

fn put(captured: &mut Captured, link: &Link<'_>) {
    let Link { pci, device: name, port: number, port_state, interface, state } = link;
    let interface = (*interface).to_owned();
    let card =
        merge::card(&mut captured.machine, pci.as_deref(), Some(name.as_str()), Some(&interface));
    if !card.rdma.iter().any(|one| one.name == *name) {
        card.rdma.push(RdmaFacts { name: name.clone(), ..RdmaFacts::default() });
    }
    for device in card.rdma.iter_mut().filter(|one| one.name == *name) {
        if !device.ports.iter().any(|port| port.port == *number) {
            device.ports.push(RdmaPort { port: *number, ..RdmaPort::default() });
        }
        let port = device.ports.iter_mut().find(|port| port.port == *number);
        if let Some(port) = port {
            port.interface = Some(interface.clone());
            port.state = port_state.map(str::to_owned).or(port.state.take());
        }
    }
    if !card.interfaces.iter().any(|one| one.name == interface) {
        card.interfaces.push(InterfaceFacts { name: interface.clone(), ..Default::default() });
    }
    let known = card.interfaces.iter_mut().find(|one| one.name == interface);
    known.into_iter().for_each(|one| one.state = state.map(str::to_owned));
}
