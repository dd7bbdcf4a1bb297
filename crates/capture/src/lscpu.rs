//! `lscpu` (util-linux): the processor's model, processors, and the NUMA nodes with theirs.

use gpuio_host::parse_cpu_list;
use gpuio_record::facts::NumaNode;

use crate::{CaptureError, Captured, Kind, lines, numactl};

pub(crate) const KIND: Kind = Kind {
    command: "lscpu",
    gives: "NUMA nodes and CPUs",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let keys = text.lines().filter_map(|line| line.trim_start().split_once(':'));
        let known = ["Model name", "NUMA node0 CPU(s)", "NUMA node(s)", "Socket(s)", "CPU(s)"];
        keys.filter(|(key, _)| known.contains(&key.trim())).count() >= 2
    },
    add,
};

/// How lscpu's keys begin.
const KEYS: [&str; 29] = [
    "Architecture",
    "CPU",
    "Byte Order",
    "Address sizes",
    "On-line",
    "Off-line",
    "Thread(s)",
    "Core(s)",
    "Socket(s)",
    "Cluster(s)",
    "NUMA",
    "Vendor ID",
    "BIOS",
    "Model",
    "Machine type",
    "Stepping",
    "Frequency",
    "Bogo",
    "Virtualization",
    "Hypervisor",
    "L1",
    "L2",
    "L3",
    "Caches",
    "Flags",
    "Vulnerabilit",
    "Book(s)",
    "Drawer(s)",
    "Dispatching",
];

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut nodes = Vec::new();
    let mut count = None;
    for (index, line) in lines(text) {
        let Some((key, value)) = line.split_once(':') else {
            captured.skip(CaptureError::new(index, line, 0, "a key and a value, like CPU(s): 64"));
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let cpu = &mut captured.machine.host.cpu;
        match key {
            "Model name" => cpu.model = Some(value.to_owned()),
            "On-line CPU(s) list" => cpu.online = parse_cpu_list(value).ok().or(cpu.online.take()),
            "NUMA node(s)" => count = value.parse::<usize>().ok(),
            _ if !KEYS.iter().any(|known| key.starts_with(known)) => {
                captured.skip(CaptureError::new(index, line, 0, "a key that lscpu prints"));
            }
            _ => {
                let number =
                    key.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
                let Some(number) = number.and_then(|number| number.trim().parse().ok()) else {
                    continue;
                };
                // A node of memory alone has none.
                match parse_cpu_list(value) {
                    Ok(cpus) => nodes.push(NumaNode {
                        node: number,
                        cpus: Some(cpus),
                        ..NumaNode::default()
                    }),
                    Err(_) => {
                        let wanted = "a list of CPUs, like 0-31,64-95";
                        captured.skip(CaptureError::at(index, line, value, wanted));
                    }
                }
            }
        }
        if nodes.len() > crate::MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer nodes"));
        }
    }
    let whole = count == Some(nodes.len());
    let printed = format!("NUMA node(s): {}", count.unwrap_or_default());
    captured.counted(KIND.command, &printed, count, nodes.len());
    numactl::put(captured, nodes, whole);
    Ok(())
}
