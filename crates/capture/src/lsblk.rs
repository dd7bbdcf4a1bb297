//! `lsblk` (util-linux): disks, partitions, arrays and volumes as a tree, with mount points. `-P`
//! prints pairs instead: `NAME="sda" TYPE="disk"`.

use gpuio_record::facts::{ArrayFacts, BlockKind, MountFacts, MountKind, MountedStorage};

use crate::columns::{Column, columns, values};
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lsblk",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| is_head(line) || pairs(line).is_some()),
    add,
};

/// Marks of the tree, in Unicode and in ASCII.
const MARKS: [char; 9] = ['├', '└', '─', '│', '|', '-', '`', '\'', ' '];

fn is_head(line: &str) -> bool {
    let names = columns(line);
    let has = |wanted: &[&str]| names.iter().any(|one| wanted.contains(&one.name.as_str()));
    let first = names.first().is_some_and(|one| ["NAME", "KNAME"].contains(&one.name.as_str()));
    first
        && has(&["TYPE", "SIZE", "MODEL", "FSTYPE", "MAJ:MIN", "ROTA"])
        && has(&["MOUNTPOINT", "MOUNTPOINTS", "TYPE", "MODEL", "TRAN", "FSTYPE"])
}

/// A line of the tree.
struct Row {
    depth: usize,
    name: String,
    kind: String,
    mount_point: String,
    fs_type: String,
    model: String,
    transport: String,
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut head: Vec<Column> = Vec::new();
    // The devices above the next line, by depth.
    let mut above: Vec<(usize, String)> = Vec::new();
    for (index, line) in lines(text) {
        if let Some((row, above)) = pairs(line) {
            if captured.machine.block.len() > MOST_DEVICES {
                return Err(CaptureError::new(index, line, 0, "fewer devices"));
            }
            put(captured, row, above.as_deref());
            continue;
        }
        if is_head(line) {
            head = columns(line);
            above.clear();
            continue;
        }
        if head.is_empty() {
            captured.skip(CaptureError::new(index, line, 0, "lsblk's head, like NAME SIZE TYPE"));
            continue;
        }
        let Some(row) = row(&head, line) else {
            // Further mount points of the device above stand alone.
            if !line.trim_start_matches(MARKS).starts_with(['/', '[']) {
                let wanted = "a device, like nvme0n1 259:0 0 3.5T 0 disk";
                captured.skip(CaptureError::new(index, line, 0, wanted));
            }
            continue;
        };
        if captured.machine.block.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        while above.last().is_some_and(|(depth, _)| *depth >= row.depth) {
            above.pop();
        }
        let name = row.name.clone();
        let depth = row.depth;
        put(captured, row, above.last().map(|(_, name)| name.as_str()));
        above.push((depth, name));
    }
    Ok(())
}

/// A line of pairs, and the device below the row's.
fn pairs(line: &str) -> Option<(Row, Option<String>)> {
    if !line.starts_with("NAME=\"") && !line.starts_with("KNAME=\"") {
        return None;
    }
    let value = |wanted: &str| {
        // Each pair but the first follows a blank: MODEL is no part of ID-MODEL.
        let start = format!(" {wanted}=\"");
        let (_, rest) =
            format!(" {line}").split_once(&start).map(|(a, b)| (a.len(), b.to_owned()))?;
        let (value, _) = rest.split_once('"')?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let row = Row {
        depth: 0,
        name: value("NAME").or_else(|| value("KNAME"))?,
        kind: value("TYPE")?,
        mount_point: value("MOUNTPOINT").or_else(|| value("MOUNTPOINTS")).unwrap_or_default(),
        fs_type: value("FSTYPE").unwrap_or_default(),
        model: value("MODEL").unwrap_or_default(),
        transport: value("TRAN").unwrap_or_default(),
    };
    Some((row, value("PKNAME")))
}

fn row(head: &[Column], line: &str) -> Option<Row> {
    let name = line.trim_start_matches(MARKS);
    let depth = line.chars().count() - name.chars().count();
    let first = name.split_whitespace().next()?;
    let name_is_one = first.chars().all(|c| c.is_ascii_alphanumeric() || "-_.!+:".contains(c));
    if !name_is_one || first.ends_with(':') {
        return None;
    }
    let by_position = values(head, line);
    let value = |wanted: &[&str]| {
        let at = head.iter().position(|one| wanted.contains(&one.name.as_str()));
        at.and_then(|at| by_position.get(at).cloned()).unwrap_or_default()
    };
    let mut row = Row {
        depth,
        name: first.to_owned(),
        kind: value(&["TYPE"]),
        mount_point: value(&["MOUNTPOINT", "MOUNTPOINTS"]),
        fs_type: value(&["FSTYPE"]),
        model: value(&["MODEL"]),
        transport: value(&["TRAN"]),
    };
    let words: Vec<&str> = name.split_whitespace().collect();
    // Columns without empty cells are found by their order too, where blanks were lost.
    let plain: Vec<&str> = head.iter().map(|one| one.name.as_str()).collect();
    let ["NAME", "MAJ:MIN", "RM", "SIZE", "RO", "TYPE", rest @ ..] = plain.as_slice() else {
        return Some(row);
    };
    if !words.get(1).is_some_and(|word| word.contains(':')) {
        return None;
    }
    let kind = words.get(5).copied().unwrap_or_default();
    let behind = words.get(6..).unwrap_or_default();
    if rest.len() < 2 {
        row.mount_point = behind.join(" ");
    } else if !stands_below(line, head, "TYPE", kind) {
        // Only what no other column could hold is taken where words don't stand below their heads.
        let mut paths = behind.iter().filter(|word| word.starts_with('/'));
        row.mount_point = paths.next().map_or_else(String::new, |path| (*path).to_owned());
        (row.fs_type, row.model, row.transport) = Default::default();
    }
    row.kind = kind.to_owned();
    Some(row)
}

/// Whether a value begins where its head does.
fn stands_below(line: &str, head: &[Column], name: &str, value: &str) -> bool {
    let start = head.iter().find(|one| one.name == name).map(|one| one.start);
    start.is_some_and(|start| {
        let before = start.checked_sub(1).and_then(|at| line.chars().nth(at));
        before.is_none_or(|c| c == ' ')
            && line.chars().skip(start).take(value.len()).eq(value.chars())
    })
}

fn put(captured: &mut Captured, row: Row, above: Option<&str>) {
    let Row { name, kind, mount_point, fs_type, model, transport, .. } = row;
    let level = kind.starts_with("raid") || kind == "linear";
    let known = match kind.as_str() {
        "rom" => return,
        "part" => BlockKind::Partition,
        "lvm" | "crypt" | "mpath" | "dm" => BlockKind::DeviceMapper,
        "loop" => BlockKind::Loop,
        _ if level => BlockKind::Md,
        "disk" => BlockKind::Disk,
        // Without a column of kinds the name shows it.
        "" if merge::disk_of(&name).is_some() => BlockKind::Partition,
        "" if name.starts_with("md") => BlockKind::Md,
        "" if above.is_some() => BlockKind::DeviceMapper,
        "" if name.starts_with("loop") => BlockKind::Loop,
        _ => BlockKind::Disk,
    };
    if known == BlockKind::Loop {
        return;
    }
    let machine = &mut captured.machine;
    let block = merge::block(machine, &name, known);
    if !model.is_empty() {
        block.facts.model = Some(model);
    }
    // For NVMe it has `nvme`, which is no transport.
    if ["usb", "pcie", "tcp", "rdma", "fc"].contains(&transport.as_str()) {
        block.facts.transport = Some(transport);
    }
    if let Some(above) = above {
        if !block.made_of.iter().any(|one| one == above) {
            block.made_of.push(above.to_owned());
        }
        if known == BlockKind::Partition {
            block.facts.disk = Some(above.to_owned());
        }
    }
    if level {
        block.facts.detail = Some(kind.clone());
        let members = u64::try_from(block.made_of.len()).ok();
        let array = block.array.get_or_insert_with(ArrayFacts::default);
        array.level = array.level.take().or(Some(kind.clone()));
        array.disks = array.disks.max(members);
    }
    if kind == "crypt" {
        block.mapper = Some("CRYPT".to_owned());
    } else if kind == "lvm" {
        block.mapper = Some("LVM".to_owned());
    }
    if mount_point.starts_with('/') {
        let by = if known == BlockKind::DeviceMapper { "/dev/mapper/" } else { "/dev/" };
        let mount = MountFacts {
            mount_point,
            fs_type,
            source: format!("{by}{name}"),
            fs_root: "/".to_owned(),
            ..MountFacts::default()
        };
        let one = MountedStorage { mount, kind: MountKind::Block, ..MountedStorage::default() };
        merge::mount(machine, one);
    }
}
