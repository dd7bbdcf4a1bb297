//! Netplan's configuration (`/etc/netplan/*.yaml`): addresses and MTUs that are set at boot, and
//! `isi network interfaces list`, which shows the interfaces of a PowerScale cluster's nodes.

use gpuio_host::net::Route;

use crate::network::cidr;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines};

pub(crate) const NETPLAN: Kind = Kind {
    command: "cat /etc/netplan/*.yaml",
    gives: "interfaces with the addresses and MTUs that are set at boot",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let has = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
        has("network:") && KINDS.iter().any(|kind| has(kind))
            || KINDS.iter().any(|kind| has(kind)) && has("addresses:")
    },
    add: add_netplan,
};

/// Keys that hold interfaces (netplan's YAML reference).
const KINDS: [&str; 6] = ["ethernets:", "bonds:", "vlans:", "bridges:", "infinibands:", "wifis:"];
/// Keys of an interface that hold others: what stands below is no interface.
const INSIDE: [&str; 7] =
    ["addresses", "nameservers", "routes", "match", "parameters", "search", "dhcp4-overrides"];

fn add_netplan(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut name: Option<String> = None;
    // The key whose list stands on the lines below.
    let mut key = "";
    // How far the interfaces of a kind are indented: as far as the first line below the kind. A
    // text whose indentation is lost has names alone.
    let mut depth: Option<Option<usize>> = None;
    for (index, line) in lines(text) {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        if words.starts_with('#') || words.starts_with("---") || words == "network:" {
            continue;
        }
        if KINDS.contains(&words) {
            (name, key, depth) = (None, "", Some(None));
            continue;
        }
        let depth = depth.as_mut().map(|depth| *depth.get_or_insert(indent));
        if captured.network.interfaces.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer interfaces"));
        }
        let item = words.strip_prefix("- ").map(str::trim);
        if let Some(item) = item {
            if let (Some(name), "addresses") = (&name, key) {
                item.split(',').for_each(|one| address(captured, name, one));
            }
            continue;
        }
        let Some((found, value)) = words.split_once(':') else {
            captured.skip(CaptureError::new(index, line, 0, "a key, like mtu: 9000"));
            continue;
        };
        let value = value.trim();
        key = match found {
            "addresses" if key == "nameservers" => "",
            "addresses" | "nameservers" => found,
            _ => "",
        };
        match (&name, found) {
            (Some(name), "addresses") if key == "addresses" && !value.is_empty() => {
                let list = value.trim_start_matches('[').trim_end_matches(']');
                list.split(',').for_each(|one| address(captured, name, one));
            }
            (Some(name), "mtu") => {
                let name = name.clone();
                captured.sets_at_boot = true;
                let one = captured.network.interface(&name);
                one.mtu_bytes = one.mtu_bytes.or(value.parse().ok());
            }
            _ if value.is_empty()
                && !INSIDE.contains(&found)
                && (depth == Some(indent) && indent > 0 || is_interface(found)) =>
            {
                captured.network.interface(found);
                name = Some(found.to_owned());
            }
            // Keys without a use here: gateways, DHCP, versions.
            _ => {}
        }
    }
    Ok(())
}

fn is_interface(name: &str) -> bool {
    // The kernel's names have 15 characters at most.
    name.len() < 16 && !name.contains([' ', '-']) && name.contains(|c: char| c.is_ascii_digit())
}

fn address(captured: &mut Captured, interface: &str, text: &str) {
    let text = text.trim().trim_matches(['"', '\'']);
    let Some((to, prefix)) = cidr(text).filter(|_| text.contains('/')) else { return };
    captured.sets_at_boot = true;
    let network = &mut captured.network;
    if !network.own.contains(&to) {
        network.own.push(to);
        let route = Route { interface: interface.to_owned(), to, prefix, metric: 0 };
        network.connected.push(route);
    }
}

pub(crate) const ISI: Kind = Kind {
    command: "isi network interfaces list",
    gives: "a PowerScale cluster's interfaces with their nodes and addresses",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let pools = text.lines().any(|line| line.contains("groupnet") && line.contains("subnet"));
        pools && text.lines().any(|line| line.contains("LNN"))
    },
    add: add_isi,
};

/// An interface of a server's node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPort {
    /// The node's number; `None` where the text does not show it.
    pub node: Option<u32>,
    /// The interface's name there.
    pub name: String,
    /// `Up`, `Down` or other words of the tool.
    pub state: String,
    /// Its address; `None` where the text does not show which one.
    pub address: Option<String>,
}

fn add_isi(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    // A PDF puts the number of a node above its interface.
    let mut number: Option<u32> = None;
    let before = captured.server_ports.len();
    for (index, line) in lines(text) {
        if captured.server_ports.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer interfaces"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["Total:", total] = words.as_slice() {
            let rows = captured.server_ports.len() - before;
            captured.counted(ISI.command, line.trim(), total.parse().ok(), rows);
            continue;
        }
        if let [one] = words.as_slice()
            && let Ok(node) = one.parse()
        {
            number = Some(node);
            continue;
        }
        let first = words.first().and_then(|word| word.parse().ok());
        let rest = if first.is_some() { &words[1..] } else { &words[..] };
        let port = rest.first().filter(|name| is_port(name)).zip(rest.get(1));
        let Some((name, state)) = port else {
            // The words of the head, pools and addresses alone belong to no interface for sure.
            if !line.contains(['_', '-']) && !line.contains("LNN") {
                captured.skip(CaptureError::new(index, line, 0, "1  100gige-1  Up  …"));
            }
            continue;
        };
        let addresses = rest.iter().filter(|word| word.parse::<std::net::IpAddr>().is_ok());
        captured.server_ports.push(ServerPort {
            node: first.or(number.take()),
            // `q` for `g` is a mistake of reading printed pages.
            name: name.replace("giqe", "gige"),
            state: match (*state, rest.get(2)) {
                ("No", Some(word)) => format!("No {word}"),
                (state, _) => state.to_owned(),
            },
            address: addresses.map(|word| (*word).to_owned()).next(),
        });
        number = None;
    }
    Ok(())
}

/// `100gige-1`, `ext-2`, `int-a`, `mgmt-1`, `25gige-2`, `bond0`, `ib0`.
fn is_port(name: &str) -> bool {
    let start = name.trim_start_matches(|c: char| c.is_ascii_digit());
    ["gige-", "giqe-", "gige-agg-", "ext-", "int-", "mgmt-", "ib", "bond"]
        .iter()
        .any(|kind| start.starts_with(kind))
}

/// The cluster's interfaces, and the mounts that they serve, as sentences.
pub(crate) fn notes(captured: &Captured) -> Vec<String> {
    let ports = &captured.server_ports;
    if ports.is_empty() {
        return Vec::new();
    }
    let mut nodes: Vec<u32> = ports.iter().filter_map(|port| port.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let up = ports.iter().filter(|port| port.state == "Up").count();
    let down: Vec<String> = ports
        .iter()
        .filter(|port| port.state != "Up")
        .map(|port| format!("{}{} ({})", of_node(port), port.name, port.state))
        .collect();
    let down =
        if down.is_empty() { String::new() } else { format!("; not up: {}", down.join(", ")) };
    let mut notes = vec![format!(
        "The PowerScale cluster shows {} interfaces of {} {}, {up} of them up{down}.",
        ports.len(),
        nodes.len(),
        if nodes.len() == 1 { "node" } else { "nodes" }
    )];
    for mount in &captured.machine.mounts {
        let Some(nfs) = &mount.nfs else { continue };
        let server = nfs.address.as_ref().unwrap_or(&nfs.server);
        let port = ports.iter().find(|port| port.address.as_ref() == Some(server));
        notes.extend(port.map(|port| {
            format!("{} is served by {}{}.", mount.mount.mount_point, of_node(port), port.name)
        }));
    }
    notes
}

fn of_node(port: &ServerPort) -> String {
    port.node.map(|node| format!("node {node}'s ")).unwrap_or_default()
}
