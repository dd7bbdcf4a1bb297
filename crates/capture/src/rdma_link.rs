//! `rdma link` (iproute2): `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0`.

use gpuio_record::facts::{InterfaceFacts, RdmaFacts, RdmaPort};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, ib_text, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "rdma link",
    gives: "RDMA devices, ports, interfaces",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| link(line).is_some()),
    add,
};

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        let Some((name, port)) = link(line) else {
            let wanted = "a link, like link mlx5_0/1 state ACTIVE …";
            captured.skip(CaptureError::new(index, line, 0, wanted));
            continue;
        };
        if captured.machine.nics.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        if let Some(interface) = &port.interface {
            let card = merge::card(&mut captured.machine, None, Some(name), Some(interface));
            if !card.interfaces.iter().any(|one| one.name == *interface) {
                let name = interface.clone();
                card.interfaces.push(InterfaceFacts { name, ..InterfaceFacts::default() });
            }
            if !card.rdma.iter().any(|one| one.name == name) {
                card.rdma.push(RdmaFacts { name: name.to_owned(), ..RdmaFacts::default() });
            }
        }
        let device = RdmaFacts { name: name.to_owned(), firmware: None, ports: vec![port] };
        ib_text::put(captured, device);
    }
    Ok(())
}

fn link(line: &str) -> Option<(&str, RdmaPort)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "link").filter(|at| *at < 2)?;
    let (name, port) = words.get(at + 1)?.split_once('/')?;
    let after = |key: &str| words.windows(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
    let state = after("state")?;
    Some((
        name,
        RdmaPort {
            port: port.parse().ok()?,
            state: Some(state.to_owned()),
            physical_state: after("physical_state").map(str::to_owned),
            interface: after("netdev").map(str::to_owned),
            ..RdmaPort::default()
        },
    ))
}
