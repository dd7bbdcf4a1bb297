//! Regrouping of arrays.

use gpuio_base::document::{Block, Columns, Look, Section};
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
        let table = Columns::<Group>::new()
            .words("array", |group| format!("/dev/{}", group.device))
            .words("mount", |group| group.mount.clone())
            .words("GPUs", |group| together(&group.gpus))
            .words("drives", |group| group.members.join(" "))
            .words("distance", |group| group.class.map_or("?", |class| class.name()));
        section.table(table.table("regrouped", &regroup.groups).look(Look::Indented(2)));
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

/// Arrays over drives that nothing uses, with the commands as a suggestion.
pub(super) fn new_arrays(arrays: &NewArrays, section: &mut Section) {
    section.push(Block::Lines(
        "  No file system is on these drives. One array for each group of GPUs would give a file \
         system near to\n  each of them:\n\n"
            .to_owned(),
    ));
    let table = Columns::<Group>::new()
        .words("array", |group| format!("/dev/{}", group.device))
        .words("mount", |group| group.mount.clone())
        .words("GPUs", |group| together(&group.gpus))
        .words("drives", |group| group.members.join(" "))
        .words("distance", |group| group.class.map_or("?", |class| class.name()));
    section.table(table.table("new_arrays", &arrays.groups).look(Look::Indented(2)));
    let lines: String = arrays.commands.iter().map(|line| format!("    {line}\n")).collect();
    section.push(Block::Lines(format!(
        "\n  A suggestion; gpuio runs none of it. IT DESTROYS ALL DATA ON THESE DRIVES. RAID 0 \
            has no \
         copy of anything.\n\n{lines}"
    )));
}
