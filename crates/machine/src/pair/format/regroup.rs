//! Regrouping of arrays.

use gpuio_base::document::{Block, Columns, Look, Section, Table};
use gpuio_base::units::human_decimal_rate;

use super::together;
use crate::pair::{By, Group, NewArrays, PairExpected, Regroup};

/// Advice for each array, with the commands as a suggestion.
pub(super) fn section(all: &[Regroup], section: &mut Section) {
    for regroup in all {
        let mount = regroup.mount.as_ref().map(|mount| format!(" ({mount})")).unwrap_or_default();
        let level = regroup.level.as_deref().unwrap_or("level unknown");
        section.push(Block::Lines(format!(
            "  {}{mount}, {level}, lies on drives near to different GPUs: part of every GPU's \
             bytes comes from afar.\n  One array for each group of GPUs keeps them near:\n\n",
            regroup.array
        )));
        section.table(groups("regrouped", &regroup.groups));
        let mut out = String::new();
        if let Some(PairExpected { by, expected }) = &regroup.expected
            && let Some(rate) = expected.bytes_per_s
        {
            let basis = match by {
                By::Direct => "direct between drives and GPUs",
                By::HostMemory => "through host memory",
            };
            let rate = human_decimal_rate(rate);
            out.push_str(&format!("\n  Then expected of all of them together: {rate}, {basis}.\n"));
        }
        if let Some(hindrance) = &regroup.hindrance {
            out.push_str(&format!("\n  But not possible now: {hindrance}.\n"));
            section.push(Block::Lines(out));
            continue;
        }
        out.push_str(&format!(
            "\n  A suggestion; gpuio runs none of it. IT DESTROYS ALL DATA ON {}: copy what you \
             need\n  first, and fix mdadm.conf and fstab after.\n\n",
            regroup.array
        ));
        regroup.commands.iter().for_each(|line| out.push_str(&format!("    {line}\n")));
        section.push(Block::Lines(out));
    }
}

/// Arrays over drives on which nothing was found, with the commands as a suggestion.
pub(super) fn new_arrays(arrays: &NewArrays, section: &mut Section) {
    let known = !arrays.commands.is_empty();
    let found = if known {
        "lsblk finds no file system, volume or member of an array on these drives."
    } else {
        "Not known: whether these drives hold data."
    };
    section.push(Block::Lines(format!(
        "  {found} One array for each\n  group of GPUs would give a file system near to each of \
         them:\n\n"
    )));
    section.table(groups("new_arrays", &arrays.groups));
    let lines: String = arrays.commands.iter().map(|line| format!("    {line}\n")).collect();
    section.push(Block::Lines(if known {
        format!(
            "\n  A suggestion; gpuio runs none of it. IT DESTROYS ALL DATA ON THESE DRIVES. RAID 0 \
             has no copy of anything.\n\n{lines}"
        )
    } else {
        "\n  Commands are left out: they would destroy what is there. Add all that `lsblk -o \
         NAME,TYPE,SIZE,FSTYPE,MOUNTPOINT` prints\n  (--from), not of the drives alone.\n"
            .to_owned()
    }));
}

fn groups(key: &'static str, groups: &[Group]) -> Table {
    let table = Columns::<Group>::new()
        .words("array", |group| format!("/dev/{}", group.device))
        .words("mount", |group| group.mount.clone())
        .words("GPUs", |group| together(&group.gpus))
        .words("drives", |group| group.members.join(" "))
        .words("distance", |group| group.class.map_or("?", |class| class.name()));
    table.table(key, groups).look(Look::Indented(2))
}
