//! Arrays over drives that are near to different GPUs, and what to make of them.

use std::collections::BTreeSet;

use crate::topo::{Class, Topology};
use gpuio_base::units::shell_word;
use gpuio_record::facts::{BlockDevice, BlockKind, Machine};

use crate::pair::store::{Store, leaves, natural};
use crate::pair::{Group, Regroup, distance};

/// A part of the array with its drives and GPUs, by their indices in the topology.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) members: Vec<usize>,
    pub(super) gpus: Vec<usize>,
}

pub(crate) fn suggest(
    machine: &Machine,
    topology: &Topology,
    gpus: &[usize],
    stores: &[&Store],
) -> Vec<Regroup> {
    let arrays = stores.iter().flat_map(|store| {
        let block = |name: &String| machine.block.iter().find(|one| one.facts.name == *name);
        let arrays = store.on.iter().filter_map(block);
        arrays.filter(|one| one.facts.kind == BlockKind::Md).map(move |array| (*store, array))
    });
    arrays.filter_map(|(store, array)| one(machine, topology, gpus, store, array)).collect()
}

fn one(
    machine: &Machine,
    topology: &Topology,
    gpus: &[usize],
    store: &Store,
    array: &BlockDevice,
) -> Option<Regroup> {
    let mut members = array.made_of.clone();
    members.sort_by_key(|name| natural(name));
    // A member that is no drive of the topology can't be placed.
    let drive = |name: &String| -> Option<usize> {
        let disks = leaves(machine, std::slice::from_ref(name));
        (disks.len() == 1).then(|| topology.find(&disks[0]))?
    };
    let drives: Vec<usize> = members.iter().map(drive).collect::<Option<_>>()?;
    let parts = parts(topology, gpus, &drives);
    if parts.len() < 2 {
        return None;
    }
    let level = array.array.as_ref().and_then(|array| array.level.clone());
    let mount = store.directory.as_ref().map(|_| store.name.clone());
    let names = new_names(machine, &array.facts.name, parts.len());
    let groups: Vec<Group> = parts
        .iter()
        .zip(names)
        .zip(1..)
        .map(|((part, name), number)| {
            let of_part: Vec<String> =
                part.members.iter().map(|member| members[*member].clone()).collect();
            Group {
                device: if of_part.len() == 1 { of_part[0].clone() } else { name },
                mount: mount.as_ref().map(|mount| format!("{mount}{number}")),
                members: of_part,
                gpus: part.gpus.iter().map(|gpu| topology.devices[*gpu].name.clone()).collect(),
                class: farthest(topology, part, &drives),
            }
        })
        .collect();
    let hindrance = hindrance(array, level.as_deref(), &groups);
    let commands = match &hindrance {
        Some(_) => Vec::new(),
        None => commands(machine, array, level.as_deref(), store, &groups),
    };
    let array = array.facts.name.clone();
    Some(Regroup { array, mount, level, groups, hindrance, expected: None, commands })
}

/// Groups of members that are nearest to the same GPUs. GPUs that prefer none join the group with
/// the fewest, drives that no GPU prefers the group that is nearest to them.
pub(super) fn parts(topology: &Topology, gpus: &[usize], drives: &[usize]) -> Vec<Part> {
    let far = |gpu: usize, drive: usize| distance::mean(topology, gpu, &[drive]).class;
    let mut parts: Vec<Part> = Vec::new();
    let mut without = Vec::new();
    for gpu in gpus {
        let all: Vec<i64> = drives.iter().map(|drive| far(*gpu, *drive)).collect();
        let (Some(least), Some(most)) = (all.iter().min(), all.iter().max()) else { continue };
        if least == most {
            without.push(*gpu);
            continue;
        }
        let near = (0..drives.len()).filter(|member| all[*member] == *least);
        let mut joined = Part { members: near.collect(), gpus: vec![*gpu] };
        // Groups that have a member in common are one.
        let (same, others): (Vec<Part>, Vec<Part>) = parts
            .into_iter()
            .partition(|part| part.members.iter().any(|m| joined.members.contains(m)));
        for part in same {
            joined.members.extend(part.members);
            joined.gpus.extend(part.gpus);
        }
        let members: BTreeSet<usize> = joined.members.into_iter().collect();
        joined.members = members.into_iter().collect();
        joined.gpus.sort_unstable();
        parts = others;
        parts.push(joined);
    }
    parts.sort_by(|a, b| a.gpus.cmp(&b.gpus));
    for (member, drive) in drives.iter().enumerate() {
        if parts.iter().any(|part| part.members.contains(&member)) {
            continue;
        }
        let cost = |part: &&mut Part| {
            let nearest = part.gpus.iter().map(|gpu| far(*gpu, *drive)).min();
            (nearest, part.members.len())
        };
        if let Some(part) = parts.iter_mut().min_by_key(cost) {
            part.members.push(member);
            part.members.sort_unstable();
        }
    }
    for gpu in without {
        if let Some(part) = parts.iter_mut().min_by_key(|part| part.gpus.len()) {
            part.gpus.push(gpu);
            part.gpus.sort_unstable();
        }
    }
    parts
}

pub(super) fn farthest(topology: &Topology, part: &Part, drives: &[usize]) -> Option<Class> {
    let pairs = part.gpus.iter().flat_map(|gpu| part.members.iter().map(move |m| (*gpu, *m)));
    let classes: Option<Vec<Class>> =
        pairs.map(|(gpu, member)| distance::class(topology, gpu, drives[member])).collect();
    classes?.into_iter().max()
}

/// `md1`, `md2`, …: the numbers that are free once the array is gone, from 1 on.
pub(super) fn new_names(machine: &Machine, old: &str, count: usize) -> Vec<String> {
    let taken = |name: &String| {
        name != old && machine.block.iter().any(|device| device.facts.name == *name)
    };
    let free = (1u32..).map(|number| format!("md{number}")).filter(|name| !taken(name));
    free.take(count).collect()
}

fn hindrance(array: &BlockDevice, level: Option<&str>, groups: &[Group]) -> Option<String> {
    let Some(level) = level else { return Some("its level is not known".to_owned()) };
    let least = match level {
        "raid0" | "linear" => 1,
        "raid1" | "raid10" => 2,
        "raid4" | "raid5" => 3,
        "raid6" => 4,
        other => return Some(format!("{other} is no level that can be made anew")),
    };
    let degraded = array.array.as_ref().and_then(|array| array.degraded).unwrap_or(0);
    if degraded > 0 {
        return Some(format!("it lacks {degraded} of its members: repair it first"));
    }
    let fewest = groups.iter().map(|group| group.members.len()).min().unwrap_or(0);
    (fewest < least).then(|| {
        format!(
            "{level} takes {least} members, and one group would have {fewest}: another level \
             would keep less than this one does"
        )
    })
}

/// As mdadm(8), mkfs(8), mount(8) and umount(8) take them.
fn commands(
    machine: &Machine,
    array: &BlockDevice,
    level: Option<&str>,
    store: &Store,
    groups: &[Group],
) -> Vec<String> {
    let mut lines = Vec::new();
    let on_it = machine.mounts.iter().filter(|mount| mount.devices.contains(&array.facts.name));
    // The last mount goes first.
    let points: Vec<&str> = on_it.map(|mount| mount.mount.mount_point.as_str()).collect();
    lines.extend(points.iter().rev().map(|point| format!("umount {}", shell_word(point))));
    let mount = machine.mounts.iter().find(|mount| mount.mount.mount_point == store.name);
    lines.push(format!("mdadm --stop /dev/{}", array.facts.name));
    let devices = |names: &[String]| {
        names.iter().map(|name| format!("/dev/{name}")).collect::<Vec<_>>().join(" ")
    };
    let all: Vec<String> = groups.iter().flat_map(|group| group.members.clone()).collect();
    lines.push(format!("mdadm --zero-superblock {}", devices(&all)));
    let level = level.unwrap_or_default();
    let level = level.strip_prefix("raid").unwrap_or(level);
    let chunk = array.array.as_ref().and_then(|array| array.chunk_bytes).unwrap_or(0);
    // mdadm counts a chunk in KiB.
    let chunk = if chunk > 0 { format!(" --chunk={}", chunk >> 10) } else { String::new() };
    for group in groups.iter().filter(|group| group.members.len() > 1) {
        lines.push(format!(
            "mdadm --create /dev/{} --level={level}{chunk} --raid-devices={} {}",
            group.device,
            group.members.len(),
            devices(&group.members)
        ));
    }
    let Some(mount) = mount else { return lines };
    for group in groups {
        let (device, point) = (&group.device, group.mount.as_deref().unwrap_or_default());
        let point = shell_word(point);
        lines.push(format!("mkfs.{} /dev/{device}", mount.mount.fs_type));
        lines.push(format!("mkdir -p {point} && mount /dev/{device} {point}"));
    }
    lines
}
