//! NUMA nodes: `/sys/devices/system/node`, and where PCI devices hang.

use gpuio_record::facts::{NumaFacts, NumaNode, PciLocality};

use crate::parse::{keep, parse_cpu_list};
use crate::{HostError, LineFault, Root, cpu};

const BASE: &str = "sys/devices/system/node";

/// Reads the nodes. A value that cannot be understood goes to `problems` and stays `None`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> NumaFacts {
    let nodes = online(root, problems).into_iter().map(|node| {
        let dir = format!("{BASE}/node{node}");
        let (total_bytes, free_bytes) = keep(memory(root, &dir), problems).unwrap_or((None, None));
        NumaNode {
            node,
            cpus: keep(cpu::list(root, &format!("{dir}/cpulist")), problems),
            total_bytes,
            free_bytes,
            distances: keep(distances(root, &dir), problems),
        }
    });
    NumaFacts { nodes: nodes.collect() }
}

/// Numbers of the nodes: those in `online`, which ends in a NUL in some copies of trees, else those
/// that have a directory.
fn online(root: &Root, problems: &mut Vec<HostError>) -> Vec<u32> {
    let listed = || -> Result<Option<Vec<u32>>, HostError> {
        let Some(text) = root.read(format!("{BASE}/online"))? else { return Ok(None) };
        text.parse(|body| parse_cpu_list(body.trim_end_matches('\0'))).map(Some)
    };
    if let Some(nodes) = keep(listed(), problems).filter(|nodes| !nodes.is_empty()) {
        return nodes;
    }
    let names = keep(root.list(BASE).map(Some), problems).unwrap_or_default();
    let number = |name: &String| name.strip_prefix("node")?.parse().ok();
    let mut nodes: Vec<u32> = names.iter().filter_map(number).collect();
    nodes.sort_unstable();
    nodes
}

type Sizes = (Option<u64>, Option<u64>);

fn memory(root: &Root, dir: &str) -> Result<Option<Sizes>, HostError> {
    let Some(text) = root.read(format!("{dir}/meminfo"))? else {
        return Ok(None);
    };
    let total = text.parse(|body| parse_node_memory(body, "MemTotal"))?;
    let free = text.parse(|body| parse_node_memory(body, "MemFree"))?;
    Ok(Some((total, free)))
}

/// One value of a node's `meminfo` (`Node 0 MemTotal:  16384 kB`), in bytes.
///
/// # Errors
/// [`LineFault`] when the line is there and is no size in kB.
pub fn parse_node_memory(meminfo: &str, key: &str) -> Result<Option<u64>, LineFault> {
    for (index, line) in meminfo.lines().enumerate() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.split_whitespace().last() != Some(key) {
            continue;
        }
        let malformed = || LineFault::new(index, line, "a size in kB");
        let digits = value.trim().strip_suffix("kB").ok_or_else(malformed)?.trim_end();
        let kib: u64 = digits.parse().map_err(|_| malformed())?;
        return kib.checked_mul(1024).ok_or_else(malformed).map(Some);
    }
    Ok(None)
}

fn distances(root: &Root, dir: &str) -> Result<Option<Vec<u32>>, HostError> {
    let Some(text) = root.read(format!("{dir}/distance"))? else {
        return Ok(None);
    };
    text.parse(parse_distances).map(Some)
}

/// A node's `distance` file: one number per online node.
///
/// # Errors
/// [`LineFault`] when a word is not a number.
pub fn parse_distances(text: &str) -> Result<Vec<u32>, LineFault> {
    text.split_whitespace()
        .map(|word| word.parse().map_err(|_| LineFault::new(0, text.trim_end(), "distances")))
        .collect()
}

/// Where the PCI device at `address` hangs. Case does not matter, and the domain may be left out
/// or written with eight digits, as GPU tools do (`3b:00.0`, `00000000:3B:00.0`). `None` when
/// there is no such device.
///
/// # Errors
/// [`HostError`] when the device is there and its files cannot be read or understood.
pub fn pci_locality(root: &Root, address: &str) -> Result<Option<PciLocality>, HostError> {
    let Some(address) = normalize_pci(address) else {
        return Ok(None);
    };
    let dir = format!("sys/bus/pci/devices/{address}");
    if !root.exists(&dir) {
        return Ok(None);
    }
    let node = match root.read(format!("{dir}/numa_node"))? {
        Some(text) => text.parse(parse_node)?,
        None => None,
    };
    let local_cpus = cpu::list(root, &format!("{dir}/local_cpulist"))?;
    Ok(Some(PciLocality { address, node, local_cpus }))
}

/// A `numa_node` file; -1, from firmware that does not report a node, is `None`.
///
/// # Errors
/// [`LineFault`] when it is not a number from -1 up.
pub fn parse_node(text: &str) -> Result<Option<u32>, LineFault> {
    let word = text.trim();
    if word == "-1" {
        return Ok(None);
    }
    word.parse().map(Some).map_err(|_| LineFault::new(0, word, "a node number or -1"))
}

/// A PCI address as sysfs spells it; `None` when `address` is not one.
pub fn normalize_pci(address: &str) -> Option<String> {
    let address = address.trim();
    let mut parts = address.rsplit(':');
    let (device, function) = parts.next()?.split_once('.')?;
    let bus = parts.next()?;
    let domain = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    let hex = |text: &str, width: usize| {
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.len() <= width;
        plain.then(|| u32::from_str_radix(text, 16).ok()).flatten()
    };
    let (domain, bus) = (hex(domain, 8)?, hex(bus, 2)?);
    let (device, function) = (hex(device, 2)?, hex(function, 1)?);
    (device < 32 && function < 8)
        .then(|| format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}
