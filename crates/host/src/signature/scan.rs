//! Magic numbers whose offset or meaning depends on other bytes.

use gpuio_record::facts::Signature;

use super::Ends;
use super::magic::{MAGICS, MD_0, MD_1, PAGES, SWAPS};

/// File systems whose boot sector carries the partition table's mark too.
const BOOT_SECTOR_SYSTEMS: [&str; 5] = [
    "ntfs file system",
    "exfat file system",
    "refs file system",
    "vfat file system",
    "BitLocker encrypted volume",
];

pub(super) fn signatures(ends: &Ends) -> Vec<Signature> {
    let mut found = Vec::new();
    for (name, offset, bytes) in MAGICS {
        if ends.holds(*offset, bytes) {
            add(&mut found, name, *offset);
        }
    }
    ext(ends, &mut found);
    swap(ends, &mut found);
    lvm2(ends, &mut found);
    md_at_end(ends, &mut found);
    luks_second_header(ends, &mut found);
    zfs(ends, &mut found);
    gpt_at_end(ends, &mut found);
    firmware_raid(ends, &mut found);
    mbr(ends, &mut found);
    found.sort_by(|a, b| (a.offset_bytes, &a.name).cmp(&(b.offset_bytes, &b.name)));
    found.dedup();
    found
}

fn add(found: &mut Vec<Signature>, name: &str, offset_bytes: u64) {
    found.push(Signature { name: name.to_owned(), offset_bytes });
}

/// ext2, 3 and 4 share one magic number; the features distinguish them (kernel `fs/ext4/ext4.h`).
fn ext(ends: &Ends, found: &mut Vec<Signature>) {
    const SUPER: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    /// The features that ext3 understands: filetype, recover, meta_bg.
    const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
    /// The features that ext3 understands: sparse_super, large_file, btree_dir.
    const EXT3_READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
    if ends.u16_le(SUPER + 56) != Some(0xef53) {
        return;
    }
    let feature = |offset| ends.u32_le(SUPER + offset).unwrap_or(0);
    let (compatible, incompatible, read_only) = (feature(92), feature(96), feature(100));
    let name = if incompatible & JOURNAL_DEVICE != 0 {
        "ext4 external journal"
    } else if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0 {
        "ext4 file system"
    } else if compatible & HAS_JOURNAL != 0 {
        "ext3 file system"
    } else {
        "ext2 file system"
    };
    add(found, name, SUPER + 56);
}

fn swap(ends: &Ends, found: &mut Vec<Signature>) {
    for page in PAGES {
        for (name, bytes) in SWAPS {
            if ends.holds(page - 10, bytes) {
                add(found, name, page - 10);
            }
        }
    }
}

/// The label may stand in any of the first four sectors (LVM2 `lib/label/label.h`).
fn lvm2(ends: &Ends, found: &mut Vec<Signature>) {
    for sector in 0..4u64 {
        let at = sector * 512;
        if ends.holds(at, b"LABELONE") && ends.holds(at + 24, b"LVM2 001") {
            add(found, "LVM2 physical volume", at);
        }
    }
}

/// md metadata 0.90 stands in the last whole 64 KiB before the last one begun; 1.0 at least
/// 8 KiB before the end, on a 4 KiB boundary (kernel `md_p.h`).
fn md_at_end(ends: &Ends, found: &mut Vec<Signature>) {
    const CHUNK: u64 = 64 * 1024;
    let size = ends.size_bytes();
    if let Some(at) = (size - size % CHUNK).checked_sub(CHUNK) {
        // Version 1.0 begins with the same number, and may be at the same offset.
        let other = ends.holds(at, &MD_1);
        if !other && MD_0.iter().any(|bytes| ends.holds(at, bytes)) {
            add(found, "md RAID member (metadata 0.90)", at);
        }
    }
    if let Some(sector) = (size / 512).checked_sub(16) {
        let at = (sector & !7) * 512;
        if ends.holds(at, &MD_1) {
            add(found, "md RAID member (metadata 1.0)", at);
        }
    }
}

/// LUKS2 keeps a second header at one of these offsets (LUKS2 on-disk format, section 2.1): it
/// revives a volume whose first header is gone.
fn luks_second_header(ends: &Ends, found: &mut Vec<Signature>) {
    let offsets = (14..20).map(|shift| 1u64 << shift);
    for at in offsets.filter(|at| ends.holds(*at, b"SKUL\xba\xbe")) {
        add(found, "LUKS encrypted volume", at);
    }
}

/// A label is 256 KiB, two at each end of the device; the second half of each holds uberblocks,
/// one per KiB at least, each beginning with its mark in the writer's byte order.
fn zfs(ends: &Ends, found: &mut Vec<Signature>) {
    const LABEL: u64 = 256 * 1024;
    const MAGIC: u64 = 0x00ba_b10c;
    let size = ends.size_bytes();
    let end = size - size % LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    for label in labels.into_iter().flatten() {
        let slots = (LABEL / 2..LABEL).step_by(1024).map(|slot| label + slot);
        let is_uberblock = |at: &u64| {
            ends.holds(*at, &MAGIC.to_le_bytes()) || ends.holds(*at, &MAGIC.to_be_bytes())
        };
        if let Some(at) = slots.into_iter().find(is_uberblock) {
            add(found, "zfs pool member", at);
        }
    }
}

/// The backup header stands in the last block (UEFI 2.10, 5.3.2).
fn gpt_at_end(ends: &Ends, found: &mut Vec<Signature>) {
    for block in [512, 4096] {
        if let Some(at) = ends.size_bytes().checked_sub(block)
            && ends.holds(at, b"EFI PART")
        {
            add(found, "GPT partition table (backup)", at);
        }
    }
}

/// RAID sets of firmware keep their mark at the end of each disk (SNIA DDF 2.0; Intel RST).
fn firmware_raid(ends: &Ends, found: &mut Vec<Signature>) {
    let marks: [(&str, u64, &[u8]); 3] = [
        ("Intel firmware RAID member", 1024, b"Intel Raid ISM Cfg Sig. "),
        ("DDF firmware RAID member", 512, &[0xde, 0x11, 0xde, 0x11]),
        ("DDF firmware RAID member", 512, &[0x11, 0xde, 0x11, 0xde]),
    ];
    for (name, before_end, bytes) in marks {
        if let Some(at) = ends.size_bytes().checked_sub(before_end)
            && ends.holds(at, bytes)
        {
            add(found, name, at);
        }
    }
}

/// The mark `55 aa` ends every boot sector. It means partitions only when an entry is in use;
/// the entry that protects a GPT is none.
fn mbr(ends: &Ends, found: &mut Vec<Signature>) {
    const PROTECTIVE: u8 = 0xee;
    if !ends.holds(510, &[0x55, 0xaa]) {
        return;
    }
    let file_system = found.iter().any(|mark| BOOT_SECTOR_SYSTEMS.contains(&mark.name.as_str()));
    let entries = (0..4u64).filter_map(|index| ends.at(446 + index * 16, 16));
    let used: Vec<u8> = entries
        .filter(|entry| matches!(entry[0], 0 | 0x80) && entry[4] != 0)
        .map(|entry| entry[4])
        .collect();
    let gpt = found.iter().any(|mark| mark.name.starts_with("GPT"));
    if file_system || (gpt && used.iter().all(|kind| *kind == PROTECTIVE)) {
        return;
    }
    let name = if used.is_empty() { "boot sector" } else { "MBR partition table" };
    add(found, name, 510);
}
