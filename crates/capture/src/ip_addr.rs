//! `ip addr` and `ip link` (iproute2): interfaces with MTU, state and addresses, and so the routes
//! that the kernel makes of addresses.

use std::net::IpAddr;

use gpuio_host::net::Route;
use gpuio_record::facts::{InterfaceFacts, LinkLayer};

use crate::network::{Network, cidr, function_of};
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines};

pub(crate) const KIND: Kind = Kind {
    command: "ip addr",
    gives: "interfaces, addresses, and the cards of NFS mounts",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| heading(line).is_some()),
    add,
};

/// Name, flags and the rest of `2: ib0: <BROADCAST,UP> mtu 2044 …`.
fn heading(line: &str) -> Option<(&str, &str, &str)> {
    let (number, rest) = line.split_once(": ")?;
    number.parse::<u32>().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, rest) = rest.split_once('>')?;
    rest.trim_start().starts_with("mtu ").then_some((name, flags, rest))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    // The interface that lines belong to, and whether it is up.
    let mut own: Option<(String, bool)> = None;
    for (index, line) in lines(text) {
        let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
        let network = &mut captured.network;
        if let Some((names, flags, rest)) = heading(line) {
            let up = flags.split(',').any(|flag| flag == "UP");
            let name = interface(network, names, rest);
            own = Some((name, up));
            if network.interfaces.len() > MOST_DEVICES {
                return Err(wanted(line, "fewer interfaces"));
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(first), Some((name, up))) = (words.next(), &own) else {
            if line.trim().is_empty() {
                continue;
            }
            let what = "an interface, like 2: ib0: <BROADCAST,UP> mtu 2044 …";
            let why = wanted(line, what);
            captured.skip(why);
            continue;
        };
        match first {
            "inet" | "inet6" => {
                let given = words.next().unwrap_or_default();
                let end = words.clone().skip_while(|word| *word != "peer").nth(1).unwrap_or(given);
                let address = cidr(given).map(|(address, _)| address);
                let Some((address, (to, prefix))) = address.zip(cidr(end)) else {
                    let why = wanted(given, "an address, like 192.0.2.1/24");
                    captured.skip(why);
                    continue;
                };
                // The kernel makes no route of an address with this mark (ip-address(8)).
                let routed = *up && !words.any(|word| word == "noprefixroute");
                address_of(network, name, address, routed.then_some((to, prefix)));
            }
            link if link.starts_with("link/") => {
                let known = network.interfaces.iter_mut().find(|one| one.name == *name);
                known.into_iter().for_each(|one| {
                    one.carries = match link {
                        "link/ether" => Some(LinkLayer::Ethernet),
                        "link/infiniband" => Some(LinkLayer::Infiniband),
                        _ => None,
                    }
                });
            }
            "altname" => {
                let name = name.clone();
                words.next().into_iter().for_each(|other| named(network, &name, other));
            }
            // Lifetimes, counters of `-s`.
            _ => {}
        }
        if network.connected.len() > MOST_DEVICES {
            return Err(wanted(line, "fewer addresses"));
        }
    }
    Ok(())
}

/// Takes in a heading, and returns the interface's name: `vlan5@bond0` is `vlan5` above `bond0`.
fn interface(network: &mut Network, names: &str, rest: &str) -> String {
    let (name, lower) = names.split_once('@').unwrap_or((names, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let after = |key: &str| words.windows(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
    // A VLAN's name begins with that of the interface below it.
    if lower.is_empty() {
        named(network, name, name);
    }
    let one = network.interface(name);
    one.mtu_bytes = after("mtu").and_then(|mtu| mtu.parse().ok());
    one.state = after("state").map(str::to_ascii_lowercase);
    // `@if12` and `@NONE` are ends in other namespaces.
    let number = lower.strip_prefix("if").is_some_and(|rest| rest.parse::<u32>().is_ok());
    if !lower.is_empty() && lower != "NONE" && !number && !one.lower.iter().any(|own| own == lower)
    {
        one.lower.push(lower.to_owned());
    }
    if let Some(master) = after("master") {
        let above: &mut InterfaceFacts = network.interface(master);
        if !above.lower.iter().any(|own| own == name) {
            above.lower.push(name.to_owned());
        }
    }
    name.to_owned()
}

/// Takes the PCI function out of one of an interface's names.
fn named(network: &mut Network, name: &str, other: &str) {
    let function = function_of(other).map(|pci| (name.to_owned(), pci));
    let more = network.functions.len() < MOST_DEVICES;
    network.functions.extend(function.filter(|one| more && !network.functions.contains(one)));
}

fn address_of(network: &mut Network, name: &str, address: IpAddr, to: Option<(IpAddr, u32)>) {
    if !network.own.contains(&address) {
        network.own.push(address);
    }
    let route = to.map(|(to, prefix)| Route { interface: name.to_owned(), to, prefix, metric: 0 });
    network.connected.extend(route);
}
