//! `mdadm --detail` of one array or several, and `mdadm --detail --scan`, as `mdadm.conf` has it.

use gpuio_record::facts::{ArrayFacts, BlockKind};

use crate::lsblk::size_of;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "mdadm --detail",
    gives: "arrays, their members, chunk and state; also `mdadm --detail --scan`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| heading(line).is_some())
            && text.lines().any(|line| field(line).is_some_and(|(key, _)| key == "Raid Level"))
            || text.lines().any(|line| scanned(line).is_some())
    },
    add,
};

/// `/dev/md0:`.
fn heading(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix("/dev/md")?.strip_suffix(':')?;
    (!name.contains(' ')).then(|| &line.trim()["/dev/".len()..line.trim().len() - 1])
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(" : ")?;
    Some((key.trim(), value.trim()))
}

/// `ARRAY /dev/md0 level=raid0 num-devices=2 metadata=1.2 …`.
fn scanned(line: &str) -> Option<(&str, ArrayFacts)> {
    let mut words = line.trim().strip_prefix("ARRAY ")?.split_whitespace();
    let name = words.next()?.strip_prefix("/dev/")?;
    let mut array = ArrayFacts::default();
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key {
            "level" => array.level = Some(value.to_owned()),
            "num-devices" => array.disks = value.parse().ok(),
            _ => {}
        }
    }
    Some((name, array))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut current: Option<String> = None;
    let mut in_members = false;
    // The devices that an array has by its own count, and those that are listed.
    let mut listed = (None, 0);
    for (index, line) in lines(text) {
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        if let Some(name) = heading(line) {
            counted(captured, std::mem::take(&mut listed));
            (current, in_members) = (Some(name.to_owned()), false);
            array(captured, name);
            continue;
        }
        if let Some((name, facts)) = scanned(line) {
            *array(captured, name) = facts;
            current = Some(name.to_owned());
        }
        // With `--verbose` they stand on a line of their own.
        let devices = line.split_whitespace().find_map(|word| word.strip_prefix("devices="));
        if let Some((name, devices)) = current.as_deref().zip(devices) {
            for device in devices.split(',').filter(|device| device.starts_with("/dev/")) {
                member(captured, name, device);
            }
        }
        if devices.is_some() || scanned(line).is_some() {
            continue;
        }
        let Some(name) = current.as_deref() else {
            captured.skip(CaptureError::new(index, line, 0, "an array, like /dev/md0:"));
            continue;
        };
        if line.trim_start().starts_with("Number ") {
            in_members = true;
        } else if in_members && line.split_whitespace().any(|word| word.starts_with("/dev/")) {
            listed.1 += 1;
            member(captured, name, line);
        } else if let Some((key, value)) = field(line) {
            if key == "Total Devices" {
                listed.0 = value.parse().ok();
            }
            set(captured, name, key, value);
        } else if !in_members
            || !line.trim_start().starts_with(|c: char| c == '-' || c.is_ascii_digit())
        {
            captured.skip(CaptureError::new(index, line, 0, "a field, like Raid Level : raid0"));
        }
    }
    counted(captured, listed);
    Ok(())
}

fn counted(captured: &mut Captured, (total, rows): (Option<usize>, usize)) {
    let printed = format!("Total Devices : {}", total.unwrap_or_default());
    captured.counted(KIND.command, &printed, total, rows);
}

fn array<'m>(captured: &'m mut Captured, name: &str) -> &'m mut ArrayFacts {
    let block = merge::block(&mut captured.machine, name, BlockKind::Md);
    block.array.get_or_insert_with(ArrayFacts::default)
}

fn set(captured: &mut Captured, name: &str, key: &str, value: &str) {
    let whole = value.split(' ').next().unwrap_or_default();
    let facts = array(captured, name);
    match key {
        "Raid Level" if value != "container" => {
            facts.level = Some(value.to_owned());
            let block = merge::block(&mut captured.machine, name, BlockKind::Md);
            block.facts.detail = Some(value.to_owned());
        }
        "Raid Devices" => facts.disks = whole.parse().ok(),
        "Active Devices" => {
            let active: Option<u64> = whole.parse().ok();
            facts.degraded =
                facts.disks.zip(active).map(|(all, active)| all.saturating_sub(active));
        }
        "State" => facts.state = Some(value.to_owned()),
        "Chunk Size" => facts.chunk_bytes = size_of(whole),
        "Array Size" => {
            let bytes = whole.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024));
            merge::block(&mut captured.machine, name, BlockKind::Md).facts.size_bytes = bytes;
        }
        _ => {}
    }
}

/// `   0     259        1        0      active sync   /dev/nvme2n1`; spare and faulty ones are no
/// members.
fn member(captured: &mut Captured, name: &str, line: &str) {
    let device = line.split_whitespace().rev().find_map(|word| word.strip_prefix("/dev/"));
    let Some(device) = device.map(str::to_owned) else { return };
    merge::disk_or_partition(&mut captured.machine, &device);
    let block = merge::block(&mut captured.machine, name, BlockKind::Md);
    let out = line.contains("spare") || line.contains("faulty") || line.contains("removed");
    if !out && !block.made_of.contains(&device) {
        block.made_of.push(device);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_below_an_array_of_a_scan_or_behind_it() {
        let text = "ARRAY /dev/md0 level=raid0 num-devices=2 metadata=1.2\n   \
                    devices=/dev/nvme0n1,/dev/nvme1n1\n\
                    ARRAY /dev/md1 devices=/dev/sda1\n";
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        assert!(captured.texts[0].skipped.is_empty(), "{:?}", captured.texts);
        let of = |name: &str| {
            let mut all = captured.machine.block.iter();
            all.find(|one| one.facts.name == name).map(|one| one.made_of.clone()).unwrap()
        };
        assert_eq!((of("md0").len(), of("md1")), (2, vec!["sda1".to_owned()]));
    }
}
