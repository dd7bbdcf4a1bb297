//! All PCI functions of a machine: `/sys/bus/pci/devices`
//! (Documentation/ABI/testing/sysfs-bus-pci of Linux).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gpuio_record::facts::PciFacts;

use super::{parse_config, parse_speed, parse_width};
use crate::numa::{normalize_pci, parse_node};
use crate::parse::{devices_in, keep};
use crate::{HostError, LineFault, Root};

const ALL: &str = "sys/bus/pci/devices";

/// Reads every function, by address. A value that cannot be understood goes to `problems` and stays
/// unknown.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> Vec<PciFacts> {
    let names = devices_in(root, ALL, problems);
    let mut domains = HashMap::new();
    let addresses = names.iter().filter(|name| normalize_pci(name).as_deref() == Some(*name));
    let mut all: Vec<PciFacts> =
        addresses.map(|address| function(root, address, &mut domains, problems)).collect();
    all.sort_by_cached_key(|function| order(&function.address));
    all
}

/// Domains may have more than four digits, so text does not sort them.
fn order(address: &str) -> (u32, String) {
    let (domain, rest) = address.split_once(':').unwrap_or(("0", address));
    (u32::from_str_radix(domain, 16).unwrap_or(u32::MAX), rest.to_owned())
}

type Domains = HashMap<u32, Option<String>>;

fn function(
    root: &Root,
    address: &str,
    domains: &mut Domains,
    problems: &mut Vec<HostError>,
) -> PciFacts {
    let link = format!("{ALL}/{address}");
    let (dir, upstream) = directory(root, &link);
    let mut files = Files { root, dir: &dir, problems };
    let lanes = |files: &mut Files<'_>, when: &str| super::Lanes {
        mega_transfers: files.parse(&format!("{when}_link_speed"), parse_speed).flatten(),
        width: files.parse(&format!("{when}_link_width"), parse_width).flatten(),
    };
    let config = config(root, &dir);
    let class = files.parse("class", parse_hex);
    // Only bridges have these: it saves two files for each of the others.
    let bridge = class.is_some_and(|class| class >> 8 == 0x0604);
    let bus = |files: &mut Files<'_>, end: &str| {
        let number = bridge.then(|| files.number(&format!("{end}_bus_number"))).flatten();
        number.and_then(|bus| u8::try_from(bus).ok())
    };
    let group = last_of_link(root, &dir.join("iommu_group")).and_then(|name| name.parse().ok());
    PciFacts {
        address: address.to_owned(),
        parent: upstream.parent,
        host_bridge: upstream.host_bridge,
        class,
        vendor: files.half("vendor"),
        device: files.half("device"),
        subsystem_vendor: files.half("subsystem_vendor"),
        subsystem_device: files.half("subsystem_device"),
        name: None,
        driver: last_of_link(root, &dir.join("driver")),
        node: files.parse("numa_node", parse_node).flatten(),
        secondary_bus: bus(&mut files, "secondary"),
        subordinate_bus: bus(&mut files, "subordinate"),
        link_now: lanes(&mut files, "current"),
        link_most: lanes(&mut files, "max"),
        link_bytes_per_second: None,
        iommu_group: group,
        iommu_domain: group.and_then(|group| files.domain(group, domains)),
        p2p_memory_bytes: files.number("p2pmem/size"),
        ..config
    }
}

struct Files<'a> {
    root: &'a Root,
    dir: &'a Path,
    problems: &'a mut Vec<HostError>,
}

impl Files<'_> {
    fn parse<T>(
        &mut self,
        name: &str,
        parser: impl FnOnce(&str) -> Result<T, LineFault>,
    ) -> Option<T> {
        let text = keep(self.root.read(self.dir.join(name)), self.problems)?;
        keep(text.parse(parser).map(Some), self.problems)
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        keep(self.root.number(self.dir.join(name)), self.problems)
    }

    /// A number of 16 bits in hexadecimal; 0 where nothing was burnt in.
    fn half(&mut self, name: &str) -> Option<u16> {
        let value = self.parse(name, parse_hex)?;
        u16::try_from(value).ok()
    }

    /// The kind of an IOMMU group's domain, read once for each group.
    fn domain(&mut self, group: u32, domains: &mut Domains) -> Option<String> {
        let file = format!("sys/kernel/iommu_groups/{group}/type");
        let seen = domains.entry(group);
        seen.or_insert_with(|| keep(self.root.word(file), self.problems)).clone()
    }
}

/// A number as sysfs prints it in hexadecimal: `0x010802`.
fn parse_hex(text: &str) -> Result<u32, LineFault> {
    let word = text.trim();
    let malformed = || LineFault::new(0, word, "a number like 0x10de");
    let digits = word.strip_prefix("0x").ok_or_else(malformed)?;
    u32::from_str_radix(digits, 16).map_err(|_| malformed())
}

/// The devices above a function, by the path of its directory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Upstream {
    parent: Option<String>,
    host_bridge: Option<String>,
}

/// A function's directory relative to the root, and what is above it. The link in `devices` is read
/// and not followed, which is one system call where resolving it is twenty.
fn directory(root: &Root, link: &str) -> (PathBuf, Upstream) {
    let Some(target) = root.link(link) else {
        return (PathBuf::from(link), Upstream::default());
    };
    let upstream = upstream(&target);
    // `../../../devices/pci…` from `sys/bus/pci/devices`.
    let Ok(below) = target.strip_prefix("../../../") else {
        return (PathBuf::from(link), upstream);
    };
    (Path::new("sys").join(below), upstream)
}

fn upstream(dir: &Path) -> Upstream {
    let parts: Vec<&str> = dir.iter().filter_map(|part| part.to_str()).collect();
    let above = &parts[..parts.len().saturating_sub(1)];
    let is_function = |part: &&&str| normalize_pci(part).as_deref() == Some(**part);
    let bridge =
        |part: &&str| part.strip_prefix("pci").filter(|bus| is_bus(bus)).map(str::to_owned);
    Upstream {
        parent: above.iter().rfind(is_function).map(|part| (*part).to_owned()),
        host_bridge: above.iter().find_map(bridge),
    }
}

/// `0000:d7`.
fn is_bus(text: &str) -> bool {
    normalize_pci(&format!("{text}:00.0")).is_some_and(|full| full == format!("{text}:00.0"))
}

/// The name that a link leads to.
fn last_of_link(root: &Root, link: &Path) -> Option<String> {
    let target = root.link(link)?;
    Some(target.file_name()?.to_str()?.to_owned())
}

fn config(root: &Root, dir: &Path) -> PciFacts {
    let file = root.window(dir.join("config"));
    parse_config(|at, buffer| file.as_ref().is_some_and(|file| file.read(at, buffer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dir: &str) -> (Option<String>, Option<String>) {
        let upstream = upstream(Path::new(dir));
        (upstream.parent, upstream.host_bridge)
    }

    #[test]
    fn what_is_above_is_read_from_the_directory() {
        let some = |text: &str| Some(text.to_owned());
        let at = "../../../devices/pci0000:d7/0000:d7:00.0/0000:d8:00.0";
        assert_eq!(found(at), (some("0000:d7:00.0"), some("0000:d7")));
        assert_eq!(found("../../../devices/pci0000:00/0000:00:1f.2"), (None, some("0000:00")));
        let vmd = "../../../devices/pci0000:80/0000:80:05.5/pci10000:00/10000:00:02.0";
        assert_eq!(found(vmd), (some("0000:80:05.5"), some("0000:80")));
        let azure = "../../../devices/LNXSYSTM:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0";
        assert_eq!(found(azure), (None, some("0001:00")));
    }
}
