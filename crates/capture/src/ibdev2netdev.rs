//! `ibdev2netdev` (Mellanox OFED): which network interface belongs to which RDMA port; with `-v`
//! the PCI address stands first.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{InterfaceFacts, RdmaFacts, RdmaPort};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "ibdev2netdev",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.contains(" port ") && line.contains(" ==> ")),
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text, "ibdev2netdev") {
        let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
        if index > MOST_DEVICES {
            return Err(wanted(line, "fewer devices"));
        }
        let Some((left, right)) = line.split_once(" ==> ") else {
            return Err(wanted(line, "mlx5_0 port 1 ==> ib0 (Up)"));
        };
        let Some((device, port)) = left.split_once(" port ") else {
            return Err(wanted(left, "a device and its port, like mlx5_0 port 1"));
        };
        let number = port.split_whitespace().next().unwrap_or_default();
        let number: u64 = number.parse().map_err(|_| wanted(port, "a port's number"))?;
        let mut words = device.split_whitespace();
        let first = words.next().ok_or_else(|| wanted(left, "a device, like mlx5_0"))?;
        let pci = normalize_pci(first);
        let name = if pci.is_some() { words.next() } else { Some(first) };
        let name = name.ok_or_else(|| wanted(device, "a device, like mlx5_0"))?;
        let (interface, state) = right.trim().split_once(' ').unwrap_or((right.trim(), ""));
        let state = match state.trim() {
            "(Up)" => Some("up".to_owned()),
            "(Down)" => Some("down".to_owned()),
            "" => None,
            other => return Err(wanted(other, "(Up) or (Down)")),
        };
        let card = merge::card(&mut captured.machine, pci.as_deref(), Some(name), Some(interface));
        if !card.rdma.iter().any(|one| one.name == name) {
            card.rdma.push(RdmaFacts { name: name.to_owned(), ..RdmaFacts::default() });
        }
        for device in card.rdma.iter_mut().filter(|one| one.name == name) {
            if !device.ports.iter().any(|port| port.port == number) {
                device.ports.push(RdmaPort { port: number, ..RdmaPort::default() });
            }
            let port = device.ports.iter_mut().find(|port| port.port == number);
            port.into_iter().for_each(|port| port.interface = Some(interface.to_owned()));
        }
        if !card.interfaces.iter().any(|one| one.name == interface) {
            let new = InterfaceFacts { name: interface.to_owned(), ..InterfaceFacts::default() };
            card.interfaces.push(new);
        }
        let known = card.interfaces.iter_mut().find(|one| one.name == interface);
        known.into_iter().for_each(|one| one.state.clone_from(&state));
    }
    Ok(())
}
