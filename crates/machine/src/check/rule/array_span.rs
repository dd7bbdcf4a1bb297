//! Software arrays whose members hang under different root ports.

use gpuio_record::facts::{BlockDevice, BlockKind, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{
    disks_below, gpu_is_absent, is_of_system, none_of, root_port, system_disks,
};

pub(super) const RULE: Rule = Rule {
    name: "array-span",
    question: "Do the members of each software array hang under one root port?",
    why: "Whichever GPU reads an array that spans switches or sockets, a part of the bytes comes \
          the long route through the root complex or the link between sockets, and that part \
          limits the whole.",
    fix: "Make one array for each group of drives below one switch, and give each GPU the array \
           near it.",
    source: "NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide, regrouping of a DGX \
             A100's drives; mdadm(8)",
    shown_by: "cat /proc/mdstat",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = gpu_is_absent(machine) {
        return vec![found];
    }
    let system = system_disks(machine);
    let arrays = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Md);
    let mut found: Vec<Found> = Vec::new();
    for array in arrays {
        let disks = disks_below(machine, &array.facts.name);
        let name = &array.facts.name;
        let mut on_it =
            machine.mounts.iter().filter(|mount| mount.devices.contains(name)).peekable();
        // Data may lie beside the system, on other partitions of the same disks.
        let is_for_data = on_it.peek().is_some() && !on_it.any(is_of_system);
        let shared = disks.iter().any(|disk| system.contains(&disk.facts.name.as_str()));
        if shared && !is_for_data {
            let observed = format!("the system lies on the disks of {name}, which is not for data");
            found.push(Found::not_applicable(observed).at([name]));
            continue;
        }
        found.push(one(machine, array, &disks));
    }
    if found.is_empty() {
        found.push(none_of(machine.listed.block, "software array"));
    }
    found
}

fn one(machine: &Machine, array: &BlockDevice, disks: &[&BlockDevice]) -> Found {
    let name = &array.facts.name;
    let addresses: Vec<&String> = disks.iter().flat_map(|disk| &disk.pci).collect();
    let tops: Vec<_> = addresses.iter().filter_map(|address| root_port(machine, address)).collect();
    let without = disks.iter().any(|disk| disk.pci.is_empty());
    if disks.is_empty() || without || tops.len() < addresses.len() {
        let why = "the PCIe paths from its members to root ports are not known";
        let fix = match disks.is_empty() {
            true => "read `cat /proc/mdstat`",
            false => "read `lspci -tv` and `ls -l /dev/disk/by-path`",
        };
        return Found::unknown(why).fix(fix).at([name]);
    }
    let mut ports: Vec<&str> = tops.iter().map(|(_, port)| *port).collect();
    ports.sort_unstable();
    ports.dedup();
    if ports.len() == 1 {
        return Found::pass(format!("all members are below {}", ports[0])).at([name]);
    }
    let mut nodes: Vec<u32> = addresses
        .iter()
        .filter_map(|address| machine.function(address).and_then(|function| function.node))
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let across =
        if nodes.len() > 1 { format!(" in {} NUMA nodes", nodes.len()) } else { String::new() };
    let observed = format!("its members are below {} root ports{across}", ports.len());
    let one_bridge = tops.iter().all(|(bridge, _)| *bridge == tops[0].0);
    // A port that leads to its drive alone, and to no GPU: all ways to a GPU are alike.
    let alone = addresses.iter().all(|address| machine.upstream_path(address).len() == 2);
    if one_bridge && alone && ports.len() == addresses.len() && nodes.len() < 2 {
        return Found::pass(format!(
            "{observed} of host bridge {}, one each: none is nearer to a GPU",
            tops[0].0
        ))
        .at([name]);
    }
    if machine.gpus.is_empty() {
        return Found::info(format!("{observed}; no GPU is known that it would matter to"))
            .at([name]);
    }
    let level = array.array.as_ref().and_then(|array| array.level.as_deref()).unwrap_or("raid0");
    let fix = format!(
        "save its data, then for each group of drives below one root port: `mdadm --create \
         /dev/mdN --level={} --raid-devices=COUNT DRIVES`; groups: {}",
        level.trim_start_matches("raid"),
        groups(machine, disks)
    );
    Found::warn(observed, fix).at([name])
}

/// `PORT: nvme0n1 nvme1n1; PORT: …`.
fn groups(machine: &Machine, disks: &[&BlockDevice]) -> String {
    let mut groups: std::collections::BTreeMap<&str, Vec<&str>> = Default::default();
    for disk in disks {
        let top = disk.pci.first().and_then(|address| root_port(machine, address));
        let port = top.map_or("unknown", |(_, port)| port);
        groups.entry(port).or_default().push(&disk.facts.name);
    }
    let words = groups.iter().map(|(port, names)| format!("{port}: {}", names.join(" ")));
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::PciPort;

    use super::*;
    use crate::check::{Severity, sample};

    fn array(second: &str) -> Machine {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let other = "0000:80:01.0";
        machine.pci.push(sample::function(other, None, PciPort::RootPort));
        machine.pci.push(sample::function("0000:81:00.0", Some(other), PciPort::Endpoint));
        machine.block.push(sample::disk("nvme1n1", second));
        let mut md = sample::disk("md0", "");
        md.facts.kind = BlockKind::Md;
        md.pci.clear();
        md.made_of = vec!["nvme0n1".to_owned(), "nvme1n1".to_owned()];
        machine.block.push(md);
        machine
    }

    #[test]
    fn members_below_two_root_ports_are_grouped() {
        let found = evaluate(&array("0000:81:00.0"));
        assert_eq!(found[0].severity, Severity::Warn);
        let fix = found[0].fix.as_ref().unwrap();
        assert!(fix.ends_with("0000:00:01.0: nvme0n1; 0000:80:01.0: nvme1n1"), "{fix}");
    }

    #[test]
    fn members_below_one_switch_pass() {
        assert_eq!(evaluate(&array(sample::DRIVE))[0].severity, Severity::Pass);
    }

    #[test]
    fn members_each_on_an_own_root_port_of_one_host_bridge_pass() {
        let mut machine = array("0000:81:00.0");
        let other = "0000:80:02.0";
        machine.pci.push(sample::function(other, None, PciPort::RootPort));
        machine.pci.push(sample::function("0000:82:00.0", Some(other), PciPort::Endpoint));
        machine.block[0] = sample::disk("nvme0n1", "0000:82:00.0");
        let found = evaluate(&machine);
        assert_eq!((found[0].severity, &found[0].fix), (Severity::Pass, &None), "{found:?}");
        let port = machine.pci.iter_mut().find(|one| one.address == other).unwrap();
        port.host_bridge = Some("0000:c0".to_owned());
        assert_eq!(evaluate(&machine)[0].severity, Severity::Warn, "two host bridges");
    }

    #[test]
    fn a_member_without_a_way_up_is_unknown() {
        assert_eq!(evaluate(&array("0000:99:00.0"))[0].severity, Severity::Unknown);
    }

    #[test]
    fn the_arrays_of_the_system_are_left_alone() {
        let mut machine = array("0000:81:00.0");
        machine.mounts.push(sample::mount("/", "md0"));
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
        machine.mounts[0] = sample::mount("/raid", "md0");
        machine.mounts.push(sample::mount("/boot/efi", "nvme1n1"));
        assert_eq!(evaluate(&machine)[0].severity, Severity::Warn, "data beside the system");
    }
}
