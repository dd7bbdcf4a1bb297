//! Arrays that would suit drives on which nothing was found: one for each group of GPUs, over the
//! drives that are nearest to it.

use gpuio_record::facts::{BlockDevice, Machine};

use crate::pair::regroup::{Part, farthest, new_names, parts};
use crate::pair::store::{Tier, stock};
use crate::pair::{DeviceAbsent, Direction, Group, NewArrays, StoreKind, Wanted};
use crate::topo::{DeviceKind, Topology};

/// The arrays; `None` where no group would have two drives, or the distances are not known.
///
/// # Errors
/// As of [`stock`].
pub(super) fn arrays(
    machine: &Machine,
    topology: &Topology,
    gpus: &[usize],
    wanted: &Wanted,
) -> Result<Option<NewArrays>, DeviceAbsent> {
    // Drives that could be read raw are those that nothing uses, whatever the load is.
    let mut reads = wanted.clone();
    reads.load.direction = Direction::Read;
    let stock = stock(machine, topology, &reads)?;
    let mut raw = stock.stores.iter();
    let raw: Vec<(usize, String)> = raw
        .by_ref()
        .filter(|store| store.tier == Tier::Raw && store.kind == StoreKind::Drive)
        .filter_map(|store| Some((*store.parts.first()?, store.on.first()?.clone())))
        .collect();
    let facts = |name: &String| machine.block.iter().find(|one| one.facts.name == *name);
    let holds = |name: &String| facts(name).and_then(|one: &BlockDevice| one.contents.as_deref());
    // A drive that only PCI shows can't be named in a command.
    let opened = |(_, name): &(usize, String)| {
        facts(name).is_some_and(|one| one.facts.has_kernel_name())
            && holds(name).is_none_or(str::is_empty)
    };
    let raw: Vec<(usize, String)> = raw.into_iter().filter(opened).collect();
    let drives: Vec<usize> = raw.iter().map(|(drive, _)| *drive).collect();
    // The groups of the whole machine: beside GPUs that are not wanted are no drives of the others.
    let all: Vec<usize> = topology.of_kind(DeviceKind::Gpu).map(|(gpu, _)| gpu).collect();
    let mut parts = parts(topology, &all, &drives);
    parts.iter_mut().for_each(|part| part.gpus.retain(|gpu| gpus.contains(gpu)));
    parts.retain(|part| !part.gpus.is_empty());
    if parts.is_empty() && !gpus.is_empty() && !drives.is_empty() {
        // All are as near to all.
        let all = Part { members: (0..drives.len()).collect(), gpus: gpus.to_vec() };
        if farthest(topology, &all, &drives).is_some() {
            parts.push(all);
        }
    }
    if parts.is_empty() || parts.iter().any(|part| part.members.len() < 2) {
        return Ok(None);
    }
    let names = new_names(machine, "", parts.len());
    let groups: Vec<Group> = parts
        .iter()
        .zip(names)
        .map(|(part, device)| Group {
            mount: Some(mount_point(machine, &device)),
            device,
            members: part.members.iter().map(|member| raw[*member].1.clone()).collect(),
            gpus: part.gpus.iter().map(|gpu| topology.devices[*gpu].name.clone()).collect(),
            class: farthest(topology, part, &drives),
        })
        .collect();
    let known = groups.iter().flat_map(|group| &group.members).all(|name| holds(name).is_some());
    let commands = if known { groups.iter().flat_map(commands).collect() } else { Vec::new() };
    Ok(Some(NewArrays { groups, commands }))
}

/// `/raid1` for `md1`, unless something is mounted there.
fn mount_point(machine: &Machine, device: &str) -> String {
    let number = device.trim_start_matches("md");
    let taken =
        |point: &String| machine.mounts.iter().any(|mount| mount.mount.mount_point == *point);
    let plain = format!("/raid{number}");
    if taken(&plain) { format!("/raid-{device}") } else { plain }
}

/// As mdadm(8), mkfs.ext4(8) and mount(8) take them. cuFile takes ext4 and XFS; NVIDIA's guide
/// makes RAID 0 of the drives below a switch.
fn commands(group: &Group) -> Vec<String> {
    let members: Vec<String> = group.members.iter().map(|name| format!("/dev/{name}")).collect();
    let (device, point) = (&group.device, group.mount.as_deref().unwrap_or_default());
    vec![
        format!(
            "mdadm --create /dev/{device} --level=0 --raid-devices={} {}",
            members.len(),
            members.join(" ")
        ),
        format!("mkfs.ext4 /dev/{device}"),
        format!("mkdir -p {point} && mount -o data=ordered /dev/{device} {point}"),
    ]
}
