//! Everything on this machine that seems to rely on a block device's bytes.

use std::collections::VecDeque;
use std::path::Path;

use gpuio_record::facts::{BlockTarget, DeviceNumber, Holder, MountedAt, Unchecked};

use super::{loops, note, swap};
use crate::block::{Place, place_of, place_of_name};
use crate::mount::{self, Mount};
use crate::signature::Ends;
use crate::{HostError, Root, statx};

/// What opening a device told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Whether someone holds the device for themselves; `None` when it could not be opened.
    pub claimed: Option<bool>,
    /// Its first and last MiB; `None` when they could not be read.
    pub ends: Option<Ends>,
}

/// Finds who relies on the block device `device`, by `/sys` and `/proc` under `root`, and what
/// its `contents` say. Questions left open go to `unchecked`.
#[must_use]
pub fn examine_block(
    root: &Root,
    device: DeviceNumber,
    contents: Contents,
    unchecked: &mut Vec<Unchecked>,
) -> BlockTarget {
    let mut target = BlockTarget {
        name: format!("{}:{}", device.major, device.minor),
        device,
        claimed: contents.claimed,
        ..BlockTarget::default()
    };
    if let Some(ends) = &contents.ends {
        target.size_bytes = Some(ends.size_bytes());
        target.signatures = ends.signatures();
        target.ends_are_zero = Some(ends.are_zero());
    }
    let Some(place) = place_of(root, device) else {
        let path = root.join(format!("sys/dev/block/{}:{}", device.major, device.minor));
        let reason = format!("{} does not exist", path.display());
        note(unchecked, "which partitions, volumes and mounts use it", &reason);
        return target;
    };
    if let Err(error) = relations(root, &place, &mut target, unchecked) {
        note(unchecked, "which partitions and volumes use it", &error);
    }
    target
}

fn relations(
    root: &Root,
    place: &Place,
    target: &mut BlockTarget,
    unchecked: &mut Vec<Unchecked>,
) -> Result<(), HostError> {
    target.name.clone_from(&place.name);
    let mut problems = Vec::new();
    target.size_bytes = place.size_bytes(root, &mut problems).or(target.size_bytes);
    target.read_only = root.number(place.file("ro"))?.map(|value| value != 0);
    let partitions = place.partitions(root)?;
    target.partitions = partitions.iter().map(|part| part.name.clone()).collect();
    let disk = if place.is_partition(root) { place.parent() } else { None };
    target.disk = disk.as_ref().map(|disk| disk.name.clone());
    let mut related = vec![place.clone()];
    related.extend(partitions);
    related.extend(disk);
    let related = with_holders(root, related, &mut target.holders)?;
    match mounts(root, &related) {
        Ok(found) => target.mounted = found,
        Err(reason) => note(unchecked, "whether it is mounted", &reason),
    }
    match loops::read(root) {
        Ok(all) => {
            let shows = |one: &loops::Loop| {
                related.iter().any(|at| at.device(root).is_some_and(|at| one.shows_device(at)))
            };
            target.loop_devices = loops::named(&all, shows);
            if let Some(reason) = loops::unseen(&all) {
                note(unchecked, "whether a loop device uses it", &reason);
            }
        }
        Err(error) => note(unchecked, "whether a loop device uses it", &error),
    }
    match swap::read(root) {
        Ok(areas) => {
            let paths = areas.iter().filter(|area| !area.is_file).map(|area| &area.path);
            target.swap = paths.filter_map(|path| named(root, path, &related)).collect();
        }
        Err(error) => note(unchecked, "whether the kernel swaps to it", &error),
    }
    Ok(())
}

/// The devices, those built on them at any depth, and the partitions of those. Each edge is
/// noted once in `edges`.
fn with_holders(
    root: &Root,
    from: Vec<Place>,
    edges: &mut Vec<Holder>,
) -> Result<Vec<Place>, HostError> {
    let mut queue: VecDeque<Place> = from.iter().cloned().collect();
    let mut seen = from;
    while let Some(place) = queue.pop_front() {
        for holder in place.holders(root)? {
            let detail = holder.detail(root)?;
            edges.push(Holder { name: holder.name.clone(), on: place.name.clone(), detail });
            let mut above = holder.partitions(root)?;
            above.push(holder);
            for new in above {
                if !seen.contains(&new) {
                    seen.push(new.clone());
                    queue.push_back(new);
                }
            }
        }
    }
    Ok(seen)
}

/// Where any of the devices is mounted.
fn mounts(root: &Root, related: &[Place]) -> Result<Vec<MountedAt>, String> {
    let mounts = mount::read(root).map_err(|error| error.to_string())?;
    if mounts.is_empty() {
        // No process is without a mount, so this is a table that could not be seen.
        return Err(format!("{} is empty", root.join("proc/self/mountinfo").display()));
    }
    let mut found: Vec<MountedAt> = Vec::new();
    for mount in &mounts {
        let Some(device) = mounted_device(root, mount, related) else {
            continue;
        };
        found.push(MountedAt {
            device,
            mount_point: mount.mount_point.to_string_lossy().into_owned(),
            fs_type: mount.fs_type.clone(),
        });
    }
    for (device, uuid) in btrfs_members(root, related).map_err(|error| error.to_string())? {
        if !found.iter().any(|mount| mount.device == device) {
            let mount_point = format!("/sys/fs/btrfs/{uuid}");
            found.push(MountedAt { device, mount_point, fs_type: "btrfs".to_owned() });
        }
    }
    Ok(found)
}

/// The device among `related` that a mount shows. By number, and by the source's name too:
/// btrfs gives its mounts a number that no device has.
fn mounted_device(root: &Root, mount: &Mount, related: &[Place]) -> Option<String> {
    let by_number = related.iter().find(|place| place.device(root) == Some(mount.device));
    by_number
        .map(|place| place.name.clone())
        .or_else(|| named(root, Path::new(&mount.source), related))
}

/// The name of the device among `related` that a path in `/dev` stands for.
fn named(root: &Root, path: &Path, related: &[Place]) -> Option<String> {
    let rest = path.strip_prefix("/dev").ok()?.to_str()?;
    let place = match statx::node_device(&root.join(path)) {
        Some(device) => place_of(root, device)?,
        None => match rest.strip_prefix("mapper/") {
            Some(volume) => related
                .iter()
                .find(|place| place.detail(root).ok().flatten().as_deref() == Some(volume))?
                .clone(),
            None => place_of_name(root, rest)?,
        },
    };
    related.contains(&place).then_some(place.name)
}

/// Devices among `related` that belong to a btrfs file system in use: one of several devices is
/// named in the mount table, all are listed in `/sys/fs/btrfs` as long as it is mounted anywhere.
fn btrfs_members(root: &Root, related: &[Place]) -> Result<Vec<(String, String)>, HostError> {
    let mut found = Vec::new();
    for uuid in root.list("sys/fs/btrfs")? {
        for name in root.list(format!("sys/fs/btrfs/{uuid}/devices"))? {
            if related.iter().any(|place| place.name == name) {
                found.push((name, uuid.clone()));
            }
        }
    }
    Ok(found)
}
