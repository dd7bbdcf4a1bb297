//! The control groups of this process (cgroups(7)), and their limits on its I/O.

use std::path::{Component, Path, PathBuf};

use gpuio_record::Towards;
use gpuio_record::facts::{DeviceNumber, IoLimit, IoLimits};

use crate::mount::{self, Mount};
use crate::{HostError, LineFault, Root};

/// Hierarchies with one controller: one of each version, and a few for what may come.
const MOST_HIERARCHIES: usize = 8;
/// Limits of version 1, a file each; the last word says whether it counts bytes or I/Os.
const V1_FILES: [(&str, Towards, bool); 4] = [
    ("blkio.throttle.read_bps_device", Towards::Read, true),
    ("blkio.throttle.read_iops_device", Towards::Read, false),
    ("blkio.throttle.write_bps_device", Towards::Write, true),
    ("blkio.throttle.write_iops_device", Towards::Write, false),
];

/// A control group of this process: a line of `/proc/self/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Whether the line is that of the version 2 hierarchy.
    pub unified: bool,
    /// The controllers of a version 1 hierarchy.
    pub controllers: Vec<String>,
    /// The group's path in its hierarchy.
    pub path: PathBuf,
}

/// Those of `/proc/self/cgroup`: `0::/path` and `4:cpu,memory:/path`.
///
/// # Errors
/// [`LineFault`] when a line has fewer than three parts.
pub fn parse(text: &str) -> Result<Vec<Group>, LineFault> {
    let mut groups = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let malformed = || LineFault::new(index, line, "id:controllers:path");
        let (id, rest) = line.split_once(':').ok_or_else(malformed)?;
        let (controllers, path) = rest.split_once(':').ok_or_else(malformed)?;
        groups.push(Group {
            unified: id == "0" && controllers.is_empty(),
            controllers: controllers.split(',').map(str::to_owned).collect(),
            path: PathBuf::from(path),
        });
    }
    Ok(groups)
}

/// The groups that can have limits of this version 1 controller, and that of version 2, with their
/// mounts. Hierarchies that are not mounted are left out.
pub(crate) fn groups(root: &Root, controller: &str) -> Result<Vec<(Group, Mount)>, HostError> {
    let Some(groups) = root.read("proc/self/cgroup")? else {
        return Ok(Vec::new());
    };
    let mut groups = groups.parse(parse)?;
    let mounts = mount::read(root)?;
    groups.retain(|one| one.unified || one.controllers.iter().any(|name| name == controller));
    let mounted = groups.into_iter().take(MOST_HIERARCHIES).filter_map(|group| {
        let mount = mounts.iter().find(|mount| group.is_mounted_at(mount, controller))?;
        Some((group, mount.clone()))
    });
    Ok(mounted.collect())
}

impl Group {
    fn is_mounted_at(&self, mount: &Mount, controller: &str) -> bool {
        if self.unified {
            return mount.fs_type == "cgroup2";
        }
        mount.fs_type == "cgroup" && mount.super_options.iter().any(|option| option == controller)
    }

    /// The group's path below what is mounted; `None` where it lies outside, as it may in a
    /// container.
    fn below(&self, mount: &Mount) -> Option<&Path> {
        let below = self.path.strip_prefix(&mount.fs_root).ok()?;
        (!below.components().any(|part| part == Component::ParentDir)).then_some(below)
    }

    /// The group's directory and those above it, up to the mount point, which alone is left to look
    /// at where the group's path lies outside.
    pub(crate) fn directories(&self, mount: &Mount) -> Vec<PathBuf> {
        let below = self.below(mount).unwrap_or(Path::new(""));
        let mut dirs: Vec<PathBuf> = below
            .ancestors()
            .filter(|part| !part.as_os_str().is_empty() && !part.starts_with("/"))
            .map(|part| mount.mount_point.join(part))
            .collect();
        dirs.push(mount.mount_point.clone());
        dirs
    }
}

/// The limits on this process's I/O at block devices. `None` where no hierarchy that can have some
/// is in sight.
///
/// In version 2 the groups above limit their members too (`io.max`). Version 1 has only the group's
/// own limits: its groups are flat for throttling, whatever the directories look like
/// (Documentation/admin-guide/cgroup-v1/blkio-controller.rst).
///
/// # Errors
/// [`HostError`] when a file cannot be read or understood.
pub fn io_limits(root: &Root) -> Result<Option<IoLimits>, HostError> {
    let groups = groups(root, "blkio")?;
    if groups.is_empty() {
        return Ok(None);
    }
    let mut found = IoLimits::default();
    for (group, mount) in groups {
        let directories = group.directories(&mount);
        found.hidden |= group.below(&mount).is_none();
        if group.unified {
            // The root of the machine's hierarchy has no type: this is a part of it.
            found.hidden |= root.exists(mount.mount_point.join("cgroup.type"));
            for directory in &directories {
                let Some(text) = root.read(directory.join("io.max"))? else { continue };
                let path = text.path.clone();
                let limits = text.parse(parse_io_max)?;
                found.limits.extend(limits.into_iter().map(|one| one.named(root, 2, &path)));
            }
            continue;
        }
        for (file, towards, is_bytes) in V1_FILES {
            let Some(text) = directories.first().map(|own| root.read(own.join(file))) else {
                continue;
            };
            let Some(text) = text? else { continue };
            let path = text.path.clone();
            let limits = text.parse(|text| parse_throttle(text, towards, is_bytes))?;
            found.limits.extend(limits.into_iter().map(|one| one.named(root, 1, &path)));
        }
    }
    Ok(Some(found))
}

/// A limit of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub device: DeviceNumber,
    pub towards: Towards,
    pub bytes_per_s: Option<u64>,
    pub ios_per_s: Option<u64>,
}

impl Limit {
    fn named(self, root: &Root, version: u32, path: &Path) -> IoLimit {
        let DeviceNumber { major, minor } = self.device;
        let link = root.link(format!("sys/dev/block/{major}:{minor}"));
        let name = link.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        IoLimit {
            version,
            path: path.to_string_lossy().into_owned(),
            number: self.device,
            device: name.unwrap_or_default(),
            towards: self.towards,
            bytes_per_s: self.bytes_per_s,
            ios_per_s: self.ios_per_s,
        }
    }
}

/// Parses `blkio.throttle.*_device` of version 1: `254:0 31457280`.
///
/// # Errors
/// [`LineFault`] when a line is not a device number and a number.
pub fn parse_throttle(
    text: &str,
    towards: Towards,
    is_bytes: bool,
) -> Result<Vec<Limit>, LineFault> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let malformed = || LineFault::new(index, line, "MAJOR:MINOR and a number");
        let (device, number) = line.trim().split_once(' ').ok_or_else(malformed)?;
        let number = Some(number.trim().parse().map_err(|_| malformed())?);
        found.push(Limit {
            device: device_number(device).ok_or_else(malformed)?,
            towards,
            bytes_per_s: number.filter(|_| is_bytes),
            ios_per_s: number.filter(|_| !is_bytes),
        });
    }
    Ok(found)
}

/// Parses `io.max` of version 2: `254:0 rbps=31457280 wbps=max riops=max wiops=120`.
///
/// # Errors
/// [`LineFault`] when a line is no device number with such words.
pub fn parse_io_max(text: &str) -> Result<Vec<Limit>, LineFault> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let malformed = || LineFault::new(index, line, "MAJOR:MINOR and rbps=, wbps=, …");
        let mut words = line.split_whitespace();
        let device = words.next().and_then(device_number).ok_or_else(malformed)?;
        let none = |towards| Limit { device, towards, bytes_per_s: None, ios_per_s: None };
        let (mut read, mut write) = (none(Towards::Read), none(Towards::Write));
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(malformed)?;
            let value = match value {
                "max" => None,
                number => Some(number.parse().map_err(|_| malformed())?),
            };
            match key {
                "rbps" => read.bytes_per_s = value,
                "riops" => read.ios_per_s = value,
                "wbps" => write.bytes_per_s = value,
                "wiops" => write.ios_per_s = value,
                _ => {}
            }
        }
        let is_one = |limit: &Limit| limit.bytes_per_s.or(limit.ios_per_s).is_some();
        found.extend([read, write].into_iter().filter(is_one));
    }
    Ok(found)
}

fn device_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}
