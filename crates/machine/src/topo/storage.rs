//! Drives, arrays and mounts with what is known of each, also where they have no place in the tree.

use std::borrow::Cow;

use gpuio_base::document::{Cell, Columns, Document, Look};
use gpuio_record::facts::{BlockDevice, BlockKind, Machine, MountedStorage};

use super::format::short;

/// Adds sections with the machine's drives and mounts above the notes, where there are any.
pub fn add(whole: &mut Document, machine: &Machine) {
    let mut page = Document::new("");
    let drives: Vec<&BlockDevice> = machine
        .block
        .iter()
        .filter(|one| !matches!(one.facts.kind, BlockKind::Partition | BlockKind::Loop))
        .collect();
    if !drives.is_empty() {
        let table = Columns::<BlockDevice>::new()
            .words("drive", |one| one.facts.name.clone())
            .words("kind", |one| kind(one).into_owned())
            .words("size", |one| one.facts.size_bytes.map_or_else(Cell::default, Cell::bytes))
            .if_any()
            .words("model", |one| {
                // PCI's name of the controller, where no text has the drive's.
                let of_pci = || machine.function(one.facts.pci_address.as_deref()?)?.name.clone();
                one.facts.model.clone().or_else(of_pci).unwrap_or_default()
            })
            .if_any()
            .words("PCIe", |one| {
                let all: Vec<&str> = one.pci.iter().map(|pci| short(pci)).collect();
                all.join(" ")
            })
            .if_any()
            .words("by", by)
            .if_any()
            .words("of", |one| one.made_of.join(" "))
            .if_any()
            .table("drives", drives)
            .look(Look::Indented(2));
        page.begin("drives", "DRIVES").table(table);
    }
    if !machine.mounts.is_empty() {
        let table = Columns::<MountedStorage>::new()
            .words("mount", |one| one.mount.mount_point.clone())
            .words("type", |one| one.mount.fs_type.clone())
            .if_any()
            .words("source", |one| one.mount.source.clone())
            .words("through", through)
            .if_any()
            .words("options", options)
            .if_any()
            .table("mounts", &machine.mounts)
            .look(Look::Indented(2));
        page.begin("mounts", "MOUNTS").table(table);
    }
    let notes = whole.sections.iter().position(|section| section.key == "notes");
    let at = notes.unwrap_or(whole.sections.len());
    whole.sections.splice(at..at, page.sections);
}

fn kind(one: &BlockDevice) -> Cow<'_, str> {
    let array = one.array.as_ref();
    let level = array.and_then(|array| array.level.as_deref()).unwrap_or("array");
    match (one.facts.kind, array.and_then(|array| array.degraded)) {
        (BlockKind::Md, Some(lacks @ 1..)) => format!("{level}, lacks {lacks}").into(),
        (BlockKind::Md, _) => level.into(),
        (BlockKind::DeviceMapper, _) => one.mapper.as_deref().unwrap_or("volume").into(),
        _ if one.facts.is_optical() => "optical drive".into(),
        _ => "disk".into(),
    }
}

/// How a drive is reached, and the rate of its link.
fn by(one: &BlockDevice) -> String {
    let link = one.link.as_ref().and_then(|link| {
        let rate = link.now_megabits?;
        Some(format!("{} at {}.{} Gb/s", link.port, rate / 1000, rate % 1000 / 100))
    });
    let parts = one.facts.transport.clone().into_iter().chain(link);
    parts.collect::<Vec<_>>().join(", ")
}

/// The interface or the devices that a mount goes through.
fn through(one: &MountedStorage) -> String {
    let interface = one.nfs.as_ref().and_then(|nfs| nfs.interface.known().cloned());
    interface.unwrap_or_else(|| one.devices.join(" "))
}

/// Options on which a rate depends.
fn options(one: &MountedStorage) -> String {
    const SHOWN: [&str; 13] = [
        "vers", "nfsvers", "proto", "rdma", "tcp", "rsize", "wsize", "nconnect", "port", "addr",
        "ro", "sync", "data",
    ];
    let all = one.mount.options.iter().chain(&one.mount.super_options);
    let shown = all.filter(|option| SHOWN.contains(&option.split('=').next().unwrap_or_default()));
    let mut kept: Vec<&str> = shown.map(String::as_str).collect();
    kept.dedup();
    kept.join(",")
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::ArrayFacts;

    use super::*;
    use crate::check::sample::gpu_and_drive_below_a_switch;

    #[test]
    fn an_array_that_lacks_members_says_so() {
        let level = Some("raid5".to_owned());
        for (degraded, words) in [(None, "raid5"), (Some(0), "raid5"), (Some(1), "raid5, lacks 1")]
        {
            let mut one = gpu_and_drive_below_a_switch().block.remove(0);
            one.facts.kind = BlockKind::Md;
            let array = ArrayFacts { level: level.clone(), degraded, ..ArrayFacts::default() };
            one.array = Some(array);
            assert_eq!(kind(&one), words);
        }
    }
}
