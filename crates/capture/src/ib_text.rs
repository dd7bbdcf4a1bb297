//! `ibstat`, `ibstatus` and `ibv_devinfo` (rdma-core): RDMA devices with their ports.

use gpuio_record::facts::{LinkLayer, RdmaFacts, RdmaPort};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

/// `CA 'mlx5_0'`, `Port 1:`, keys and values.
pub(crate) const IBSTAT: Kind = Kind {
    command: "ibstat",
    gives: "RDMA devices, ports, rates",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| quoted(line, "CA '").is_some()),
    add: |text, captured| read(text, captured, "CA 'mlx5_0'"),
};

/// `Infiniband device 'mlx5_0' port 1 status:`, keys and values.
pub(crate) const IBSTATUS: Kind = Kind {
    command: "ibstatus",
    gives: "RDMA devices, ports, rates",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| quoted(line, "Infiniband device '").is_some()),
    add: |text, captured| read(text, captured, "Infiniband device 'mlx5_0' port 1 status:"),
};

/// `hca_id: mlx5_0`, `port: 1`, keys and values.
pub(crate) const IBV_DEVINFO: Kind = Kind {
    command: "ibv_devinfo",
    gives: "RDMA devices, ports, states",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.trim_start().starts_with("hca_id:")),
    add: |text, captured| read(text, captured, "hca_id: mlx5_0"),
};

/// `mlx5_0  88e9a4ffffa746e6` below a head.
pub(crate) const IBV_DEVICES: Kind = Kind {
    command: "ibv_devices",
    gives: "RDMA devices",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| listed(line).is_some()),
    add: |text, captured| {
        for (index, line) in lines(text) {
            let is_head = line.contains("node GUID") || line.trim_start().starts_with("---");
            match listed(line).and_then(merge::rdma_name) {
                Some(name) => put(captured, RdmaFacts { name, ..RdmaFacts::default() }),
                None if is_head => {}
                None => {
                    captured.skip(CaptureError::new(index, line, 0, "a device and its GUID"));
                }
            }
            if captured.machine.nics.len() > MOST_DEVICES {
                return Err(CaptureError::new(index, line, 0, "fewer devices"));
            }
        }
        Ok(())
    },
};

/// The device of a row of `ibv_devices`: a name with a number, and a GUID.
fn listed(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (name, guid) = (words.next()?, words.next()?);
    let hex = guid.len() == 16 && guid.bytes().all(|byte| byte.is_ascii_hexdigit());
    let numbered = name.contains('_') && name.ends_with(|c: char| c.is_ascii_digit());
    (hex && numbered && words.next().is_none()).then_some(name)
}

/// The name in quotes behind `start`.
fn quoted<'t>(line: &'t str, start: &str) -> Option<&'t str> {
    line.trim_start().strip_prefix(start)?.split('\'').next().filter(|name| !name.is_empty())
}

fn read(text: &str, captured: &mut Captured, wanted: &'static str) -> Result<(), CaptureError> {
    let mut devices: Vec<RdmaFacts> = Vec::new();
    // The lines are of a device whose name is not known.
    let mut lost = false;
    for (index, line) in lines(text) {
        let (key, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let name = quoted(line, "CA '").or_else(|| quoted(line, "Infiniband device '"));
        let name = name.or((key == "hca_id").then_some(value).filter(|name| !name.is_empty()));
        if let Some(name) = name {
            let Some(name) = merge::rdma_name(name) else {
                captured.skip(CaptureError::new(index, line, 0, wanted));
                lost = true;
                continue;
            };
            lost = false;
            if devices.last().is_none_or(|last| last.name != name) {
                devices.push(RdmaFacts { name, ..RdmaFacts::default() });
            }
            let number = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next());
            if let (Some(number), Some(device)) = (number, devices.last_mut()) {
                port(device, number);
            }
        } else if let Some(device) = devices.last_mut().filter(|_| !lost) {
            if let Some(number) = key.strip_prefix("port ").filter(|_| value.is_empty()) {
                port(device, number);
            } else if key == "port" {
                port(device, value);
            } else if line.contains(':') {
                take(device, &key, value);
            } else if !line.trim().is_empty() {
                captured.skip(CaptureError::new(index, line, 0, "a key and a value"));
            }
        } else {
            captured.skip(CaptureError::new(index, line, 0, wanted));
        }
        if devices.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    for device in devices {
        put(captured, device);
    }
    Ok(())
}

fn port(device: &mut RdmaFacts, number: &str) {
    if let Ok(port) = number.trim().parse() {
        device.ports.push(RdmaPort { port, ..RdmaPort::default() });
    }
}

fn take(device: &mut RdmaFacts, key: &str, value: &str) {
    if matches!(key, "firmware version" | "fw_ver") {
        device.firmware = Some(value.to_owned());
    }
    let Some(port) = device.ports.last_mut() else { return };
    // `PORT_ACTIVE (4)`, `4: ACTIVE`, `Active`.
    let state = value.rsplit(": ").next().unwrap_or(value);
    let state = state.split(" (").next().unwrap_or(state).trim();
    match key {
        "state" => {
            let state = state.to_ascii_uppercase();
            port.state = Some(state.strip_prefix("PORT_").unwrap_or(&state).to_owned());
        }
        "physical state" | "phys state" | "phys_state" => {
            port.physical_state = Some(state.to_owned());
        }
        "link layer" | "link_layer" => {
            port.carries = match value {
                "InfiniBand" | "IB" => Some(LinkLayer::Infiniband),
                "Ethernet" => Some(LinkLayer::Ethernet),
                _ => None,
            };
        }
        // ibstat in Gb/s, ibstatus with the unit behind it: `200 Gb/sec (4X HDR)`.
        "rate" => {
            let number = value.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            port.megabits = number.and_then(megabits);
            port.rate = Some(value.to_owned());
        }
        // `-v`: the speed of a lane and their number.
        "active_width" => port.rate = Some(value.to_owned()),
        "active_speed" => {
            let width = port.rate.take();
            let lanes = width.and_then(|width| width.split('X').next()?.parse::<f64>().ok());
            let lane = value.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            port.megabits = lanes.zip(lane).and_then(|(lanes, lane)| megabits(lanes * lane));
        }
        _ => {}
    }
}

fn megabits(gigabits: f64) -> Option<u64> {
    let whole = (0.1..100_000.0).contains(&gigabits).then_some(gigabits * 1000.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 100 and a hundred million"
    )]
    let whole = whole.round() as u64;
    Some(whole)
}

/// Adds a device to its card; what is known of its ports from elsewhere stays.
pub(crate) fn put(captured: &mut Captured, device: RdmaFacts) {
    let card = merge::card(&mut captured.machine, None, Some(&device.name), None);
    let Some(known) = card.rdma.iter_mut().find(|one| one.name == device.name) else {
        card.rdma.push(device);
        return;
    };
    known.firmware = device.firmware.or(known.firmware.take());
    for new in device.ports {
        match known.ports.iter_mut().find(|port| port.port == new.port) {
            Some(port) => {
                port.state = new.state.or(port.state.take());
                port.physical_state = new.physical_state.or(port.physical_state.take());
                port.megabits = new.megabits.or(port.megabits);
                port.rate = new.rate.or(port.rate.take());
                port.carries = new.carries.or(port.carries);
                port.interface = new.interface.or(port.interface.take());
            }
            None => known.ports.push(new),
        }
    }
}
