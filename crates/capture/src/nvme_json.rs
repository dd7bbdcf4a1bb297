//! `nvme list -o json` in the forms of nvme-cli 1 (a list of namespaces) and 2 (subsystems with
//! controllers and namespaces, `-v`), and `nvme list-subsys`, also as text.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{BlockDevice, BlockKind, NvmeController, NvmeFacts};
use serde_json::Value;

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, json, lines, merge};

pub(crate) const LIST: Kind = Kind {
    command: "nvme list -o json",
    gives: "NVMe drives, models, sizes, with `-v` addresses and controllers",
    most_bytes: crate::SHORT,
    looks_like: |text| text.contains("\"Devices\"") && json::find(text, is_list).is_some(),
    add: add_list,
};

pub(crate) const SUBSYSTEMS: Kind = Kind {
    command: "nvme list-subsys",
    gives: "controllers of NVMe drives, their transports and addresses; also `-o json`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.contains("\"Subsystems\"") && json::find(text, is_subsystems).is_some()
            || text.lines().any(is_subsystem) && text.lines().any(|line| path(line).is_some())
    },
    add: add_subsystems,
};

fn is_list(value: &Value) -> bool {
    value["Devices"].is_array()
}

fn is_subsystems(value: &Value) -> bool {
    let hosts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    hosts.iter().any(|host| host["Subsystems"].is_array())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

/// A controller's facts, as both forms name them.
struct Path {
    name: String,
    transport: Option<String>,
    address: Option<String>,
    state: Option<String>,
}

fn add_list(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let first = text.lines().next().unwrap_or_default();
    let found = json::find(text, is_list)
        .ok_or_else(|| CaptureError::new(0, first, 0, "{\"Devices\": [ … ]}"))?;
    for device in list(&found.value["Devices"]) {
        namespace(device, None, captured);
        for subsystem in list(&device["Subsystems"]) {
            let controllers = list(&subsystem["Controllers"]);
            let paths: Vec<Path> = controllers.iter().filter_map(controller).collect();
            for one in controllers {
                for space in list(&one["Namespaces"]) {
                    namespace(space, Some(one), captured);
                    with_paths(space, &paths, captured);
                }
            }
            for space in list(&subsystem["Namespaces"]) {
                namespace(space, controllers.first(), captured);
                with_paths(space, &paths, captured);
            }
        }
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(0, first, 0, "fewer devices"));
        }
    }
    json::skip_others(text, &found, captured);
    Ok(())
}

/// The kernel's name of a namespace.
fn name_of(space: &Value) -> Option<String> {
    let name = json::word(&space["DevicePath"]).or_else(|| json::word(&space["NameSpace"]));
    let name = name.or_else(|| json::word(&space["Namespace"]))?;
    let name = name.trim_start_matches("/dev/").to_owned();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric());
    (name.starts_with("nvme") && plain).then_some(name)
}

fn namespace(space: &Value, controller: Option<&Value>, captured: &mut Captured) {
    let Some(name) = name_of(space) else { return };
    let of = |key: &str| {
        json::word(&space[key]).or_else(|| controller.and_then(|one| json::word(&one[key])))
    };
    let block = merge::block(&mut captured.machine, &name, BlockKind::Disk);
    block.facts.model = of("ModelNumber").or(block.facts.model.take());
    let size = space["PhysicalSize"].as_u64().filter(|bytes| *bytes > 0);
    block.facts.size_bytes = size.or(block.facts.size_bytes);
}

fn controller(value: &Value) -> Option<Path> {
    let word = |keys: &[&str]| keys.iter().find_map(|key| json::word(&value[*key]));
    Some(Path {
        name: word(&["Controller", "Name"])?,
        transport: word(&["Transport"]),
        address: word(&["Address"]),
        state: word(&["State"]),
    })
}

fn with_paths(space: &Value, paths: &[Path], captured: &mut Captured) {
    if let Some(name) = name_of(space) {
        put_paths(&name, paths, captured);
    }
}

fn put_paths(name: &str, paths: &[Path], captured: &mut Captured) {
    let block = merge::block(&mut captured.machine, name, BlockKind::Disk);
    for path in paths {
        let pci = path.address.as_deref().and_then(normalize_pci);
        put(block, path.facts(pci));
    }
}

impl Path {
    fn facts(&self, pci: Option<String>) -> NvmeController {
        NvmeController {
            name: self.name.clone(),
            address: self.address.clone().filter(|_| pci.is_none()),
            pci,
            transport: self.transport.clone(),
            state: self.state.clone(),
            firmware: None,
        }
    }
}

fn put(block: &mut BlockDevice, controller: NvmeController) {
    if let Some(pci) = controller.pci.clone().filter(|pci| !block.pci.contains(pci)) {
        block.facts.pci_address.get_or_insert(pci.clone());
        block.pci.push(pci);
    }
    if let Some(transport) = &controller.transport {
        block.facts.transport = Some(transport.clone());
    }
    let facts = block.nvme.get_or_insert_with(|| NvmeFacts {
        namespace: None,
        multipath: false,
        policy: None,
        controllers: Vec::new(),
    });
    if !facts.controllers.iter().any(|one| one.name == controller.name) {
        facts.controllers.push(controller);
    }
    facts.multipath = facts.controllers.len() > 1;
}

/// `nvme-subsys0 - NQN=nqn.2014…`.
fn is_subsystem(line: &str) -> bool {
    line.starts_with("nvme-subsys") && line.contains("NQN=")
}

/// ` +- nvme0 pcie 0000:01:00.0 live`, ` +- nvme1 tcp traddr=192.0.2.1,trsvcid=4420 live`.
fn path(line: &str) -> Option<Path> {
    let rest = line.trim_start().strip_prefix(['+', '\\', '`'])?.trim_start_matches(['-', ' ']);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [name, transport, address, rest @ ..] = words.as_slice() else { return None };
    let known = ["pcie", "tcp", "rdma", "fc", "loop"].contains(transport);
    let number = name.strip_prefix("nvme")?;
    (known && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| Path {
        name: (*name).to_owned(),
        transport: Some((*transport).to_owned()),
        address: Some((*address).to_owned()),
        state: rest.iter().find(|word| !word.contains('=')).map(|word| (*word).to_owned()),
    })
}

/// The number of `nvme-subsys0`, which is that of its namespaces' names too
/// (`nvme_mpath_set_disk_name` in Linux).
fn number_of(subsystem: &str) -> Option<u32> {
    subsystem.strip_prefix("nvme-subsys")?.split([' ', '-']).next()?.parse().ok()
}

fn add_subsystems(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if let Some(found) = json::find(text, is_subsystems) {
        let hosts =
            found.value.as_array().map_or(std::slice::from_ref(&found.value), Vec::as_slice);
        for subsystem in hosts.iter().flat_map(|host| list(&host["Subsystems"])) {
            let number = json::word(&subsystem["Name"]).and_then(|name| number_of(&name));
            let paths = list(&subsystem["Paths"]).iter().filter_map(controller);
            number.into_iter().for_each(|number| keep(captured, number, paths.clone().collect()));
        }
        json::skip_others(text, &found, captured);
        return Ok(());
    }
    let mut number: Option<u32> = None;
    for (index, line) in lines(text) {
        if is_subsystem(line) {
            number = number_of(line);
        } else if let (Some(number), Some(path)) = (number, path(line)) {
            keep(captured, number, vec![path]);
        } else if !matches!(line.trim(), "\\" | "|") && !line.trim_start().starts_with(['h', 'i']) {
            captured.skip(CaptureError::new(index, line, 0, "a subsystem or a path to it"));
        }
        if captured.nvme_paths.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    Ok(())
}

/// Keeps paths until the namespaces are known; their functions are there at once.
fn keep(captured: &mut Captured, number: u32, paths: Vec<Path>) {
    for path in paths {
        let pci = path.address.as_deref().and_then(normalize_pci);
        keep_one(captured, number, path.facts(pci));
    }
}

/// Keeps a controller of the drives whose names have this number.
pub(crate) fn keep_one(captured: &mut Captured, number: u32, controller: NvmeController) {
    if let Some(pci) = controller.pci.clone() {
        let mut function = merge::function(pci, "NVMe's own list does not show it");
        function.class = Some(NVME_CLASS);
        merge::functions(captured, vec![function]);
    }
    let known = |one: &&(u32, NvmeController)| one.0 == number && one.1.name == controller.name;
    if captured.nvme_paths.len() <= MOST_DEVICES
        && !captured.nvme_paths.iter().any(|one| known(&one))
    {
        captured.nvme_paths.push((number, controller));
    }
}

/// Mass storage, non-volatile memory, NVMe (PCI Code and ID Assignment 1.11).
const NVME_CLASS: u32 = 0x01_0802;

/// Gives drives the paths that are kept for their numbers.
pub(crate) fn complete(captured: &mut Captured) {
    for (number, controller) in &captured.nvme_paths {
        let start = format!("nvme{number}n");
        let drives = captured
            .machine
            .block
            .iter_mut()
            .filter(|one| one.facts.disk.is_none() && one.facts.name.starts_with(&start));
        for drive in drives {
            put(drive, controller.clone());
        }
    }
}
