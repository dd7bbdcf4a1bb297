//! `lsblk` (util-linux): disks, partitions, arrays and volumes as a tree, with mount points; with
//! any columns in any order, also where the blanks between them are lost. `-P` prints pairs
//! instead:
//! `NAME="sda" TYPE="disk"`. `-J` prints JSON ([`JSON`]).

mod json;
mod row;

use gpuio_record::facts::{ArrayFacts, BlockKind, MountFacts, MountKind, MountedStorage};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) use json::KIND as JSON;
pub(crate) use row::rows_on_one_line;
pub(crate) use row::size_of;
use row::{Head, Row};

pub(crate) const KIND: Kind = Kind {
    command: "lsblk",
    gives: "drives, models, sizes, arrays, mounts; any columns in any order, also `-P`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let own = |line| row::is_head(line) || pairs(line).is_some() || is_plain_row(line);
        text.lines().any(own)
    },
    add,
};

/// Marks of the tree, in Unicode and in ASCII.
const MARKS: [char; 9] = ['├', '└', '─', '│', '|', '-', '`', '\'', ' '];

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut head: Option<Head> = None;
    // The devices above the next line, by depth.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut disks_alone = true;
    for (index, line) in lines(text) {
        if let Some((row, above)) = pairs(line) {
            if captured.machine.block.len() > MOST_DEVICES {
                return Err(CaptureError::new(index, line, 0, "fewer devices"));
            }
            disks_alone &= put(captured, row, above.as_deref());
            continue;
        }
        if row::is_head(line) {
            head = Some(Head::of(line));
            above.clear();
            continue;
        }
        if head.is_none() && is_plain_row(line) {
            head = Some(Head::of(PLAIN_HEAD));
        }
        let Some(head) = &head else {
            captured.skip(CaptureError::new(index, line, 0, "lsblk's head, like NAME SIZE TYPE"));
            continue;
        };
        let Some(row) = head.row(line) else {
            // Further mount points of the device above stand alone.
            let alone = head.mount_point(line);
            if let (Some(alone), Some((_, name))) = (alone, above.last()) {
                let name = name.clone();
                let before = captured.machine.mounts.iter().rev();
                let same = before
                    .map(|one| &one.mount)
                    .find(|mount| mount.source.rsplit('/').next() == Some(name.as_str()));
                let fs_type = same.map_or_else(String::new, |mount| mount.fs_type.clone());
                mounted(captured, &name, alone, &fs_type);
            } else if !line.trim_start_matches(MARKS).starts_with('[') {
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
        disks_alone &= put(captured, row, above.last().map(|(_, name)| name.as_str()));
        above.push((depth, name));
    }
    forget_empty(captured, disks_alone);
    Ok(())
}

/// A text of disks alone may be of `lsblk -d`: what their partitions hold is not in it.
fn forget_empty(captured: &mut Captured, disks_alone: bool) {
    let all = captured.machine.block.iter_mut().filter(|_| disks_alone);
    all.for_each(|one| drop(one.contents.take_if(|contents| contents.is_empty())));
}

/// The columns without `-o`, whose head a `grep` leaves out.
const PLAIN_HEAD: &str = "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS";

/// `nvme2n1 259:0 0 931.5G 0 disk /data`.
fn is_plain_row(line: &str) -> bool {
    let line = line.trim_start_matches(MARKS);
    let mut words = line.split_whitespace().skip(1);
    let number = |word: &str| word.parse::<u32>().is_ok();
    let mut next = || words.next().unwrap_or_default();
    let device = next().split_once(':').is_some_and(|(a, b)| number(a) && number(b));
    let flag = |word: &str| word == "0" || word == "1";
    let kinds = ["disk", "part", "lvm", "crypt", "mpath"];
    device
        && flag(next())
        && size_of(next()).is_some()
        && flag(next())
        && Some(next()).is_some_and(|kind| kinds.contains(&kind) || kind.starts_with("raid"))
}

/// A line of pairs, and the device below the row's.
fn pairs(line: &str) -> Option<(Row, Option<String>)> {
    let line = line.trim();
    let (first, _) = line.split_once("=\"")?;
    if !row::is_column(first) {
        return None;
    }
    let value = |wanted: &str| {
        // Each pair but the first follows a blank: MODEL is no part of ID-MODEL.
        let start = format!(" {wanted}=\"");
        let (_, rest) =
            format!(" {line}").split_once(&start).map(|(a, b)| (a.len(), b.to_owned()))?;
        let (value, _) = rest.split_once('"')?;
        Some(value.trim().to_owned())
    };
    let row = Row::of(0, value)?;
    Some((row, value("PKNAME").filter(|name| !name.is_empty())))
}

/// Adds a device; whether it is a disk.
fn put(captured: &mut Captured, row: Row, above: Option<&str>) -> bool {
    let Row { name, kind, mount_points, fs_type, model, transport, size_bytes, rotates, .. } = row;
    let level = kind.starts_with("raid") || kind == "linear";
    let known = match kind.as_str() {
        "rom" => return true,
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
        return true;
    }
    let machine = &mut captured.machine;
    let block = merge::block(machine, &name, known);
    if !model.is_empty() {
        block.facts.model = Some(model);
    }
    block.facts.size_bytes = block.facts.size_bytes.or(size_bytes);
    block.facts.rotational = block.facts.rotational.or(rotates);
    block.contents = block.contents.take().filter(|known| !known.is_empty()).or(fs_type.clone());
    // For NVMe it has `nvme`, which is no transport.
    if ["usb", "pcie", "tcp", "rdma", "fc", "sata", "sas", "iscsi"].contains(&transport.as_str()) {
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
    for mount_point in mount_points {
        mounted(captured, &name, &mount_point, fs_type.as_deref().unwrap_or_default());
    }
    known == BlockKind::Disk
}

/// Adds a mount of a device.
fn mounted(captured: &mut Captured, name: &str, mount_point: &str, fs_type: &str) {
    let machine = &mut captured.machine;
    let kind = machine.block.iter().find(|one| one.facts.name == name).map(|one| one.facts.kind);
    let by = if kind == Some(BlockKind::DeviceMapper) { "/dev/mapper/" } else { "/dev/" };
    let mount = MountFacts {
        mount_point: mount_point.to_owned(),
        fs_type: fs_type.to_owned(),
        source: format!("{by}{name}"),
        fs_root: "/".to_owned(),
        ..MountFacts::default()
    };
    let one = MountedStorage { mount, kind: MountKind::Block, ..MountedStorage::default() };
    merge::mount(machine, one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_plain_columns_need_no_head() {
        let text = "$ lsblk | grep nvme\nnvme2n1 259:0 0 931.5G 0 disk\n\
                    └─nvme2n1p1 259:1 0 931.5G 0 part /data\n";
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let machine = captured.machine;
        assert_eq!(machine.block.len(), 2, "{:?}", machine.block);
        assert_eq!(machine.mounts[0].mount.mount_point, "/data");
        assert!(machine.block[0].facts.size_bytes.is_some());
        for other in ["a 1:2 0 3 of 4", "see 10:30 0 5G 1 more", "GPU0 X 0 1 0 disk"] {
            assert!(!is_plain_row(other), "{other}");
        }
    }

    #[test]
    fn other_tools_lines_below_the_table_are_no_mount_points() {
        let table = "NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS\n\
                     nvme0n1     259:0    0   3.5T  0 disk /mnt/x\n";
        let others = [
            "/dev/nvme0n1 on /mnt/x type ext4 (rw,relatime,data=writeback)",
            "/dev/nvme0n1 3.5T 1.0T 2.5T 29% /mnt/x",
            "/dev/nvme0n1 /mnt/x ext4 rw,relatime,data=writeback 0 0",
            "/mnt/x /dev/nvme0n1 ext4 rw,relatime,data=writeback",
            "/usr/local/cuda/gds/tools/gdscheck -p",
            "/mnt/x:",
        ];
        for other in others {
            let mut captured = Captured::default();
            crate::read("text", &format!("{table}{other}\n"), &mut captured).unwrap();
            let mounts: Vec<&MountFacts> =
                captured.machine.mounts.iter().map(|one| &one.mount).collect();
            assert_eq!((mounts.len(), &*mounts[0].mount_point), (1, "/mnt/x"), "{other}");
            let shows = other.contains("data=writeback") && other.starts_with("/dev/");
            assert_eq!(mounts[0].fs_type == "ext4", shows, "{other}: {mounts:?}");
        }
        let below = format!("{table}{}/mnt/with two\n/mnt/y\n", " ".repeat(38));
        let mut captured = Captured::default();
        crate::read("text", &below, &mut captured).unwrap();
        assert_eq!(captured.machine.mounts.len(), 3, "{:?}", captured.machine.mounts);
    }

    /// A drive is known to be empty only where the column has nothing, and partitions are there.
    #[test]
    fn contents_are_known_where_the_column_is() {
        let contents = |text: &str| -> Vec<Option<String>> {
            let mut captured = Captured::default();
            crate::read("text", text, &mut captured).unwrap();
            let disks = captured.machine.block.into_iter();
            disks.filter(|one| one.facts.name.len() == 3).map(|one| one.contents).collect()
        };
        let [none, empty, member] =
            [None, Some(""), Some("LVM2_member")].map(|it| it.map(str::to_owned));
        let table = "NAME   SIZE TYPE FSTYPE      MOUNTPOINT\n\
                     sda    3.5T disk             \n\
                     sdb    3.5T disk LVM2_member \n";
        let partition =
            "sdc    3.5T disk             \n\u{2514}\u{2500}sdc1 3.5T part ext4        /\n";
        let whole = format!("{table}{partition}");
        let known = [empty.clone(), member.clone(), empty.clone()];
        assert_eq!(contents(&whole), known);
        assert_eq!(contents(table), [none.clone(), member.clone()], "it may be of lsblk -d");
        let odd = whole.replace("LVM2_member", "some_volume");
        assert_eq!(contents(&odd), [empty.clone(), none.clone(), empty.clone()]);
        let squeezed = whole
            .split_inclusive('\n')
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n");
        assert_eq!(contents(&squeezed.collect::<String>())[0], none);
        assert_eq!(
            contents("NAME SIZE TYPE\nsda 3.5T disk\nsdb 3.5T disk\nsdb1 3T part\n"),
            [none.clone(), none]
        );
        let row =
            |name, kind, fs: &str| format!("NAME=\"{name}\" TYPE=\"{kind}\" FSTYPE=\"{fs}\"\n");
        let pairs =
            row("sda", "disk", "") + &row("sdb", "disk", "LVM2_member") + &row("sdc", "disk", "");
        assert_eq!(contents(&(pairs + &row("sdc1", "part", "ext4"))), known);
        let json = "{\"blockdevices\": [{\"name\": \"sda\", \"type\": \"disk\", \"fstype\": null},
            {\"name\": \"sdb\", \"type\": \"disk\", \"fstype\": \"LVM2_member\"},
            {\"name\": \"sdc\", \"type\": \"disk\", \"fstype\": null, \"children\": [
                {\"name\": \"sdc1\", \"type\": \"part\", \"fstype\": \"ext4\"}]}]}\n";
        assert_eq!(contents(json), known);
    }

    /// Most printed sizes are no whole number of bytes.
    #[test]
    fn a_printed_size_is_read_as_it_was_rounded() {
        let tib = |tenths: u64| Some((tenths << 40) / 10);
        for (text, bytes) in [
            ("1.8T", tib(18)),
            ("1,7T", tib(17)),
            ("3.5T", tib(35)),
            ("7T", Some(7 << 40)),
            ("447.1G", Some((4471 << 30) / 10)),
            ("931.5G", Some((9315 << 30) / 10)),
            ("1.81TiB", Some((181 << 40) / 100)),
            ("1.92TB", Some(1_920_000_000_000)),
            ("1000204886016", Some(1_000_204_886_016)),
            ("0B", Some(0)),
        ] {
            assert_eq!(size_of(text), bytes, "{text}");
        }
        for other in ["", ".", "1.8", "T", "1..8T", "-", "1.8X", "99999999999999999999999T"] {
            assert_eq!(size_of(other), None, "{other}");
        }
        let mut captured = Captured::default();
        let text = "NAME SIZE TYPE\nnvme0n1 1.8T disk\nsda 447.1G disk\n";
        crate::read("text", text, &mut captured).unwrap();
        let sizes = captured.machine.block.iter().map(|block| block.facts.size_bytes);
        assert!(sizes.eq([tib(18), Some((4471 << 30) / 10)]), "{:?}", captured.machine.block);
    }
}
