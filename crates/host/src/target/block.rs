//! Everything on this machine that seems to use a block device's bytes.

use std::collections::VecDeque;
use std::path::Path;

use gpuio_record::facts::{BlockTarget, DeviceNumber, Holder, MountedAt, Unchecked};

use super::{loops, note, swap};
use crate::block::{BlockDir, block_dir, block_dir_by_name};
use crate::mount::{self, Mount};
use crate::signature::Ends;
use crate::{HostError, Root, statx};

/// The facts found by opening a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Whether the device is open exclusively elsewhere; `None` when it could not be opened.
    pub claimed: Option<bool>,
    /// Its first and last MiB; `None` when they could not be read.
    pub ends: Option<Ends>,
}

/// Finds what uses the block device `device`, by `/sys` and `/proc` under `root`, and what
/// its `contents` show. Checks that can't be made go to `unchecked`.
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
    let Some(dir) = block_dir(root, device) else {
        let path = root.join(format!("sys/dev/block/{}:{}", device.major, device.minor));
        let reason = format!("{} does not exist", path.display());
        note(unchecked, "which partitions, volumes and mounts use it", &reason);
        return target;
    };
    if let Err(error) = relations(root, &dir, &mut target, unchecked) {
        note(unchecked, "which partitions and volumes use it", &error);
    }
    target
}

fn relations(
    root: &Root,
    dir: &BlockDir,
    target: &mut BlockTarget,
    unchecked: &mut Vec<Unchecked>,
) -> Result<(), HostError> {
    target.name.clone_from(&dir.name);
    let mut problems = Vec::new();
    target.size_bytes = dir.size_bytes(root, &mut problems).or(target.size_bytes);
    target.read_only = root.number(dir.file("ro"))?.map(|value| value != 0);
    let partitions = dir.partitions(root)?;
    target.partitions = partitions.iter().map(|part| part.name.clone()).collect();
    let disk = if dir.is_partition(root) { dir.parent() } else { None };
    target.disk = disk.as_ref().map(|disk| disk.name.clone());
    let mut related = vec![dir.clone()];
    related.extend(partitions);
    related.extend(disk);
    let related = with_holders(root, related, &mut target.holders)?;
    match mounts(root, &related) {
        Ok(found) => target.mounted = found,
        Err(reason) => note(unchecked, "whether it is mounted", &reason),
    }
    match loops::read(root) {
        Ok(all) => {
            let uses = |one: &loops::Loop| {
                related.iter().any(|at| at.device(root).is_some_and(|at| one.uses_device(at)))
            };
            target.loop_devices = loops::named(&all, uses);
            if let Some(reason) = loops::unknown_backing(&all) {
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
        Err(error) => note(unchecked, "whether it is swap space in use", &error),
    }
    Ok(())
}

/// The devices, those built on them at any depth, and the partitions of those. Each edge is
/// noted once in `edges`.
fn with_holders(
    root: &Root,
    from: Vec<BlockDir>,
    edges: &mut Vec<Holder>,
) -> Result<Vec<BlockDir>, HostError> {
    let mut queue: VecDeque<BlockDir> = from.iter().cloned().collect();
    let mut seen = from;
    while let Some(dir) = queue.pop_front() {
        for holder in dir.holders(root)? {
            let detail = holder.detail(root)?;
            edges.push(Holder { name: holder.name.clone(), on: dir.name.clone(), detail });
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
fn mounts(root: &Root, related: &[BlockDir]) -> Result<Vec<MountedAt>, String> {
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
fn mounted_device(root: &Root, mount: &Mount, related: &[BlockDir]) -> Option<String> {
    let by_number = related.iter().find(|dir| dir.device(root) == Some(mount.device));
    by_number.map(|dir| dir.name.clone()).or_else(|| named(root, Path::new(&mount.source), related))
}

/// The name of the device among `related` that a path in `/dev` stands for.
fn named(root: &Root, path: &Path, related: &[BlockDir]) -> Option<String> {
    let rest = path.strip_prefix("/dev").ok()?.to_str()?;
    let dir = match statx::node_device(&root.join(path)) {
        Some(device) => block_dir(root, device)?,
        None => match rest.strip_prefix("mapper/") {
            Some(volume) => related
                .iter()
                .find(|dir| dir.detail(root).ok().flatten().as_deref() == Some(volume))?
                .clone(),
            None => block_dir_by_name(root, rest)?,
        },
    };
    related.contains(&dir).then_some(dir.name)
}

/// Devices among `related` that belong to a btrfs file system in use: one of several devices is
/// named in the mount table, all are listed in `/sys/fs/btrfs` as long as it is mounted anywhere.
fn btrfs_members(root: &Root, related: &[BlockDir]) -> Result<Vec<(String, String)>, HostError> {
    let mut found = Vec::new();
    for uuid in root.list("sys/fs/btrfs")? {
        for name in root.list(format!("sys/fs/btrfs/{uuid}/devices"))? {
            if related.iter().any(|dir| dir.name == name) {
                found.push((name, uuid.clone()));
            }
        }
    }
    Ok(found)
}
