//! `dmesg`, also with readable times and from `journalctl -k`: drives and their links, PCI
//! functions with their IOMMU groups, links that are slower than their devices, the kernel's
//! command line. The other lines of a kernel's log are no mistakes and passed over in silence.

use std::collections::BTreeMap;

use gpuio_host::numa::normalize_pci;
use gpuio_host::settings::parse_command_line;
use gpuio_record::facts::{
    BlockDevice, BlockKind, DriveLink, Machine, ModuleFacts, NvmeController, PciFacts,
};

use crate::{CaptureError, Captured, Kind, MOST_FUNCTIONS, cufile_log, lines, merge, nvme_json};

pub(crate) const KIND: Kind = Kind {
    command: "dmesg",
    gives: "SATA links and drives, NVMe controllers, PCI functions, slow links, IOMMU, kernel's \
        command line, I/O that fails or waits",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(|line| message(line).is_some()),
    add,
};

/// The message behind the time: `[ 10.174282] …`, `[Mon Nov 11 10:00:00 2024] …`, `… kernel: …`.
fn message(line: &str) -> Option<&str> {
    // Levels of `dmesg -x`: `kern  :info  : [ 10.17] …`.
    let line = match line.split_once(": [") {
        Some((level, _)) if level.starts_with("kern") && level.len() < 20 => {
            &line[level.len() + 2..]
        }
        _ => line,
    };
    if let Some((time, rest)) =
        line.trim_start().strip_prefix('[').and_then(|line| line.split_once("] "))
    {
        let seconds = time.trim().split_once('.').is_some_and(|(whole, part)| {
            let digits =
                |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(whole) && digits(part) && part.len() == 6
        });
        let days = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
        let date = days.iter().any(|day| time.starts_with(day)) && time.contains(':');
        return (seconds || date).then(|| rest.trim_start());
    }
    let (before, rest) = line.split_once(" kernel: ")?;
    // `journalctl` may print the kernel's own time too.
    let rest = rest.trim_start();
    let stamped =
        rest.starts_with('[').then(|| rest.split_once("] ").map(|(_, rest)| rest)).flatten();
    before.contains(':').then(|| stamped.unwrap_or(rest).trim_start())
}

/// A drive behind a port of libata.
#[derive(Debug, Clone, Default)]
struct Port {
    model: Option<String>,
    now_megabits: Option<u64>,
    most_megabits: Option<u64>,
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut ports: BTreeMap<String, Port> = BTreeMap::new();
    let mut functions: Vec<PciFacts> = Vec::new();
    // The names of SCSI disks by their addresses, and models by these.
    let mut disks: BTreeMap<String, (Option<String>, Option<String>)> = BTreeMap::new();
    // Lines, and whether any of them says something.
    let (mut messages, mut says) = (0, false);
    for (index, line) in lines(text) {
        let Some(message) = message(line) else {
            captured.skip(CaptureError::new(index, line, 0, "a line of the kernel's log"));
            continue;
        };
        messages += 1;
        if ports.len() + disks.len() + functions.len() + captured.machine.pci.len() > MOST_FUNCTIONS
        {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        sata(message, &mut ports);
        scsi(message, &mut disks);
        pci(message, &mut functions);
        if let Some(note) = limited(message) {
            captured.remark(note);
            says = true;
        }
        if let Some(kind) = message.strip_prefix("iommu: Default domain type: ") {
            let passes = kind.starts_with("Passthrough");
            captured.iommu_domain = Some(if passes { "identity" } else { "DMA" });
            captured.remark(format!("The kernel's log: domains of the IOMMU are {kind}."));
            says = true;
        }
        // In its source, nvfs-core.c: with `__init` done.
        if message.starts_with("nvidia_fs: registered correctly with major number") {
            let module = ModuleFacts {
                name: "nvidia_fs".to_owned(),
                loaded: true,
                ..ModuleFacts::default()
            };
            merge::module(&mut captured.machine, module);
            says = true;
        }
        says |= drives(message, captured) | cufile_log::note_of_kernel(message, captured);
        let command = ["Command line: ", "Kernel command line: "];
        if let Some(words) = command.iter().find_map(|start| message.strip_prefix(start)) {
            captured.machine.settings.command_line = Some(parse_command_line(words));
            says = true;
        }
    }
    says |= !(ports.is_empty() && disks.is_empty() && functions.is_empty());
    merge::functions(captured, functions);
    joined(ports, &disks, captured);
    // Lines that are understood are none of another tool's, whatever they say.
    if messages > 0 && !says {
        let lines = if messages == 1 { "line says" } else { "lines say" };
        captured.remark(format!(
            "The kernel's log: {messages} {lines} nothing that gpuio reads there."
        ));
    }
    Ok(())
}

/// `ata4: SATA link up 6.0 Gbps (…)`, `ata4.00: ATA-9: MODEL, FIRMWARE, max UDMA/133`.
fn sata(message: &str, ports: &mut BTreeMap<String, Port>) {
    let Some((port, rest)) = message.strip_prefix("ata").and_then(|rest| rest.split_once(": "))
    else {
        return;
    };
    let number = port.split('.').next().unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return;
    }
    let name = format!("ata{number}");
    if let Some(rate) = rest.strip_prefix("SATA link up ") {
        ports.entry(name).or_default().now_megabits = megabits(rate);
    } else if let Some(rate) = rest.strip_prefix("limiting SATA link speed to ") {
        ports.entry(name).or_default().most_megabits = megabits(rate);
    } else if let Some((kind, rest)) = rest.split_once(": ")
        && (kind.starts_with("ATA-") || kind.starts_with("ATAPI"))
    {
        let model = rest.split(',').next().unwrap_or_default().trim();
        ports.entry(name).or_default().model =
            Some(model.to_owned()).filter(|model| !model.is_empty() && kind.starts_with("ATA-"));
    }
}

/// `6.0 Gbps …` in Mbit/s.
fn megabits(text: &str) -> Option<u64> {
    let (whole, part) = text.split(' ').next()?.split_once('.')?;
    let tenth: u64 = part.get(..1)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(tenth * 100)
}

/// `scsi 3:0:0:0: Direct-Access     ATA      Samsung SSD 850  3B6Q PQ: 0 ANSI: 5`,
/// `sd 3:0:0:0: [sdb] Attached SCSI disk`.
fn scsi(message: &str, disks: &mut BTreeMap<String, (Option<String>, Option<String>)>) {
    let of = |start: &str| {
        let (address, rest) = message.strip_prefix(start)?.split_once(": ")?;
        (address.split(':').count() == 4).then(|| (address.to_owned(), rest.trim_start()))
    };
    if let Some((address, rest)) = of("scsi ") {
        let Some(rest) = rest.strip_prefix("Direct-Access") else { return };
        let Some((words, _)) = rest.split_once(" PQ:") else { return };
        let words: Vec<&str> = words.split_whitespace().collect();
        let model = words.get(1..words.len().saturating_sub(1)).map(|model| model.join(" "));
        disks.entry(address).or_default().1 = model.filter(|model| !model.is_empty());
    } else if let Some((address, rest)) = of("sd ")
        && let Some((name, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
    {
        disks.entry(address).or_default().0 = Some(name.to_owned());
    }
}

/// Takes in disks and ports; a port whose disk is not known is a drive by the port's name.
fn joined(
    ports: BTreeMap<String, Port>,
    disks: &BTreeMap<String, (Option<String>, Option<String>)>,
    captured: &mut Captured,
) {
    for (name, model) in disks.values() {
        let Some(name) = name else { continue };
        let block = merge::block(&mut captured.machine, name, BlockKind::Disk);
        block.facts.model = block.facts.model.take().or(model.clone());
    }
    for (port, facts) in ports {
        // Without a link there is no drive.
        if facts.now_megabits.is_none() {
            continue;
        }
        let link = DriveLink {
            port: port.clone(),
            now_megabits: facts.now_megabits,
            most_megabits: facts.most_megabits,
            lanes: 1,
        };
        let known = captured.machine.block.iter();
        let known = known.filter(|one| one.link.as_ref().is_some_and(|known| known.port == port));
        let known = known.map(|one| one.facts.name.clone()).next();
        let name = known.unwrap_or_else(|| format!("drive@{port}"));
        let block = merge::block(&mut captured.machine, &name, BlockKind::Disk);
        block.facts.transport = Some("sata".to_owned());
        block.facts.model = facts.model.or(block.facts.model.take());
        block.link = Some(link);
    }
}

/// The name of a drive of which only the port is known begins so.
pub(crate) const AT_PORT: &str = "drive@ata";

/// Makes one of a port's drive and a disk where a model stands for one of each, whichever text came
/// first.
pub(crate) fn tie(machine: &mut Machine) {
    let at_port = |one: &&BlockDevice| one.facts.name.starts_with(AT_PORT);
    let ports: Vec<BlockDevice> = machine.block.iter().filter(at_port).cloned().collect();
    for port in ports {
        let Some(name) = only_drive(&port, &machine.block) else { continue };
        machine.block.retain(|one| one.facts.name != port.facts.name);
        let block = merge::block(machine, &name, BlockKind::Disk);
        block.facts.transport = port.facts.transport;
        if block.facts.model.as_ref().is_none_or(|model| model.len() < 17) {
            block.facts.model = port.facts.model;
        }
        block.link = port.link;
    }
}

/// The one drive that has a port's model, where no other port and no other drive has it. SCSI has
/// the first 16 characters of a model.
fn only_drive(port: &BlockDevice, block: &[BlockDevice]) -> Option<String> {
    let ours = port.facts.model.as_deref()?;
    let same = |one: &&BlockDevice| one.link.is_some() && one.facts.model.as_deref() == Some(ours);
    let is_it = |device: &&BlockDevice| {
        let model = device.facts.model.as_deref().unwrap_or_default();
        let short = model.len() >= 6 && ours.starts_with(model);
        device.facts.has_kernel_name() && (short || model.ends_with(ours)) && !model.is_empty()
    };
    let mut drives = block.iter().filter(is_it);
    let drive = drives.next()?;
    let alone =
        drive.link.is_none() && drives.next().is_none() && block.iter().filter(same).count() == 1;
    alone.then(|| drive.facts.name.clone())
}

/// `pci 0000:07:00.0: [10de:20b0] type 00 class 0x030200`, and the words on a link that is slower
/// than its device (`pcie_print_link_status` in Linux).
fn pci(message: &str, functions: &mut Vec<PciFacts>) {
    let mut words = message.split_whitespace();
    let driver = words.next().unwrap_or_default();
    let address = words.next().and_then(|word| normalize_pci(word.trim_end_matches(':')));
    let Some(address) = address.filter(|address| message.contains(address.as_str())) else {
        return;
    };
    let Some((_, rest)) = message.split_once(": ") else { return };
    let mut function = merge::function(address.clone(), "dmesg does not show it");
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    if let Some((ids, rest)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let ids = ids.split_once(':').and_then(|(a, b)| Some((hex(a)?, hex(b)?)));
        let Some((vendor, device)) = ids else { return };
        (function.vendor, function.device) =
            (u16::try_from(vendor).ok(), u16::try_from(device).ok());
        let class = rest.split_once("class ").and_then(|(_, class)| class.split(' ').next());
        function.class = class.and_then(hex);
    } else if let Some(group) = rest.strip_prefix("Adding to iommu group ") {
        function.iommu_group = group.trim().parse().ok();
    } else if rest.contains(" available PCIe bandwidth") {
        let (most, now) =
            rest.split_once("(capable of ").map_or(("", rest), |(now, most)| (most, now));
        function.link_most = lanes(most);
        let limiter =
            now.split_once("link at ").and_then(|(_, at)| normalize_pci(at.split(' ').next()?));
        match limiter {
            Some(limiter) => {
                let mut above = merge::function(limiter, "dmesg does not show it");
                above.link_now = lanes(now);
                functions.push(above);
            }
            None => function.link_now = lanes(now),
        }
        function.driver = (driver != "pci").then(|| driver.to_owned());
    } else {
        return;
    }
    functions.push(function);
}

/// A device's way that carries less than the device, as a sentence: `… 31.504 Gb/s available PCIe
/// bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:40:01.1 (capable of 63.012 Gb/s with …)`.
fn limited(message: &str) -> Option<String> {
    let (before, rest) = message.split_once(" available PCIe bandwidth, limited by ")?;
    let (device, rate) = before.split_once(": ")?;
    let device = device.split(' ').next_back()?;
    let (link, rest) = rest.split_once(" link at ")?;
    let (at, most) = rest.split_once(" (capable of ")?;
    let (most, _) = most.split_once(" with ")?;
    Some(format!(
        "The kernel's log: between {device} and its root {rate} pass at most, for the {link} link \
         at {at}; the device can do {most}."
    ))
}

/// `… 8.0 GT/s PCIe x8 link …`.
fn lanes(text: &str) -> gpuio_record::facts::Lanes {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "GT/s");
    let rate = at.and_then(|at| words.get(at.checked_sub(1)?));
    let rate = rate.and_then(|rate| gpuio_base::units::parse_transfers(rate));
    let width = words.iter().find_map(|word| word.strip_prefix('x')?.parse().ok());
    gpuio_record::facts::Lanes { mega_transfers: rate, width }
}

/// Reads `nvme nvme0: pci function 0000:01:00.0`, ` nvme0n1: p1 p2`, `md127: detected capacity
/// change …`; false for another message.
fn drives(message: &str, captured: &mut Captured) -> bool {
    if let Some((name, rest)) = message.strip_prefix("nvme ").and_then(|rest| rest.split_once(": "))
        && let Some(number) = name.strip_prefix("nvme").and_then(|number| number.parse().ok())
        && let Some(pci) =
            rest.strip_prefix("pci function ").and_then(|pci| normalize_pci(pci.trim()))
    {
        let controller = NvmeController {
            name: name.to_owned(),
            pci: Some(pci),
            transport: Some("pcie".to_owned()),
            address: None,
            state: None,
            firmware: None,
        };
        nvme_json::keep_one(captured, number, controller);
        return true;
    }
    let Some((name, rest)) = message.split_once(": ") else { return false };
    let parts = rest
        .split_whitespace()
        .all(|part| part.strip_prefix('p').is_some_and(|number| number.parse::<u32>().is_ok()));
    let number = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    let is_drive =
        number.is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok());
    let is_drive = is_drive && (parts || rest.starts_with("detected capacity change"));
    if is_drive {
        merge::block(&mut captured.machine, name, BlockKind::Disk);
    }
    is_drive
}
