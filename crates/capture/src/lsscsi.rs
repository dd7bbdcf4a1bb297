//! `lsscsi`: SCSI, SATA and NVMe devices with model and kernel name; also `-s` (sizes), `-t`
//! (transports) and `-g` (generic devices).

use gpuio_record::facts::{BlockDevice, BlockKind};

use crate::lsblk::size_of;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lsscsi",
    gives: "drives with models, sizes (`-s`) and transports (`-t`)",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| device(line).is_some()),
    add,
};

/// Kinds of SCSI devices, as it prints them.
const KINDS: [&str; 9] =
    ["disk", "cd/dvd", "enclosu", "storage", "process", "tape", "zbc", "no", "wlun"];

/// Address, kind and the words behind.
fn device(line: &str) -> Option<(&str, &str, Vec<&str>)> {
    let (address, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let mut words = rest.split_whitespace();
    let kind = words.next()?;
    let parts: Vec<&str> = address.split(':').collect();
    let numbered = parts.iter().all(|part| {
        let part = part.strip_prefix("0x").unwrap_or(part);
        part == "N" || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let known = KINDS.contains(&kind);
    (parts.len() == 4 && numbered && known).then(|| (address, kind, words.collect()))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    for (index, line) in lines(text) {
        let Some((_, kind, words)) = device(line) else {
            captured.skip(CaptureError::new(index, line, 0, "[2:0:0:0] disk ATA MODEL /dev/sda"));
            continue;
        };
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        let at =
            words.iter().position(|word| word.starts_with("/dev/") && !word.starts_with("/dev/sg"));
        // A device without a name can't be opened; drivers may have claimed it.
        let Some(at) = at.filter(|_| kind == "disk" || kind == "zbc") else { continue };
        let name = words[at].trim_start_matches("/dev/").to_owned();
        let block = merge::block(&mut captured.machine, &name, BlockKind::Disk);
        describe(block, &words[..at]);
        let size = words[at + 1..].iter().rev().find_map(|word| size_of(word));
        block.facts.size_bytes = block.facts.size_bytes.or(size);
    }
    Ok(())
}

/// Takes the words between kind and name: `ATA Samsung SSD 850 3B6Q`, or a transport of `-t`.
fn describe(block: &mut BlockDevice, words: &[&str]) {
    if let [one] = words
        && let Some((transport, _)) = one.split_once(':')
    {
        let known = ["sata", "usb", "sas", "fc", "iscsi"].contains(&transport);
        if known {
            block.facts.transport = Some(transport.to_owned());
        }
        return;
    }
    // Without `-t`: vendor, model, revision. An NVMe device has its model and number alone.
    let nvme = block.facts.name.starts_with("nvme");
    let end = if nvme { words.len() } else { words.len().saturating_sub(1) };
    let Some(model) = words.get(usize::from(!nvme)..end).filter(|model| !model.is_empty()) else {
        return;
    };
    let mut model = model.join(" ");
    if nvme {
        model = model.split("__").next().unwrap_or_default().to_owned();
    } else if words[0] != "ATA" {
        model = format!("{} {model}", words[0]);
    }
    // It prints 16 characters of a model: a longer one that begins so is the same.
    let longer = block.facts.model.as_ref().is_some_and(|known| known.starts_with(&model));
    if !longer {
        block.facts.model = Some(model);
    }
    if words[0] == "ATA" && block.facts.transport.is_none() {
        block.facts.transport = Some("sata".to_owned());
    }
}
