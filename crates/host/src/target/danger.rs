//! The reasons not to write to a target, as text.

use std::fmt;

use gpuio_record::facts::{
    BlockTarget, Holder, MountFacts, MountedAt, OtherKind, Signature, TargetFacts, TargetKind,
    Unchecked,
};

use crate::mounted::is_kernels_own;

/// File systems of the kernel whose files are no settings of it.
const NO_SETTINGS: [&str; 2] = ["devtmpfs", "hugetlbfs"];

/// A reason not to write to a target, with what would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Danger {
    /// Neither a regular file, a directory nor a block device.
    NotStorage(OtherKind),
    /// The file's directory does not exist.
    NoParent,
    /// A link that leads to nothing: the file would appear elsewhere.
    DanglingLink {
        /// Where it would appear.
        aim: String,
    },
    KernelFile {
        /// Type of its file system.
        fs_type: String,
    },
    /// A file that would be in `/dev`, in memory: usually a mistyped device name.
    FileInDev,
    /// The file holds bytes.
    HasData {
        /// How many.
        size_bytes: u64,
    },
    /// The file has other names, whose bytes would change with it.
    HardLinks {
        /// How many names it has in all.
        links: u64,
    },
    /// The file is a swap file in use.
    SwapFile,
    /// Loop devices use the file or device.
    LoopBacking {
        devices: Vec<String>,
    },
    /// The kernel refuses writes.
    ReadOnly {
        name: String,
    },
    /// A file system is in use on the device.
    Mounted(MountedAt),
    /// The device is swap space in use.
    Swap {
        name: String,
    },
    /// Another device is built on this one.
    Held(Holder),
    /// A program or the kernel has the device open exclusively, and nothing above shows which.
    Claimed {
        name: String,
    },
    Partitioned {
        partitions: Vec<String>,
    },
    /// A file system, volume or table was recognised on the device.
    Holds(Signature),
    /// The device has data of an unknown kind.
    UnknownData {
        name: String,
    },
    /// A check that could not be made.
    Unknown(Unchecked),
}

impl Danger {
    /// Whether no flag may allow a write here: the system is using the bytes now, or a
    /// write could not have the intended effect. The others need the user's confirmation that the
    /// bytes may be overwritten.
    pub fn is_final(&self) -> bool {
        match self {
            Self::NotStorage(_)
            | Self::NoParent
            | Self::DanglingLink { .. }
            | Self::KernelFile { .. }
            | Self::FileInDev
            | Self::SwapFile
            | Self::LoopBacking { .. }
            | Self::ReadOnly { .. }
            | Self::Mounted(_)
            | Self::Swap { .. }
            | Self::Held(_)
            | Self::Claimed { .. } => true,
            Self::HasData { .. }
            | Self::HardLinks { .. }
            | Self::Partitioned { .. }
            | Self::Holds(_)
            | Self::UnknownData { .. }
            | Self::Unknown(_) => false,
        }
    }
}

impl fmt::Display for Danger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStorage(kind) => write!(out, "it is {}, not storage", other_words(*kind)),
            Self::NoParent => out.write_str("its directory does not exist: create it first"),
            Self::DanglingLink { aim } => {
                write!(out, "it is a link to {aim}, which does not exist and would be created")
            }
            Self::KernelFile { fs_type } => {
                write!(
                    out,
                    "it is on {fs_type}: a write there changes a kernel setting and \
                             stores nothing"
                )
            }
            Self::FileInDev => out.write_str(
                "it would be a regular file in /dev, in memory: check the device's name",
            ),
            Self::HasData { size_bytes } => {
                write!(out, "the file holds {size_bytes} bytes, which would be overwritten")
            }
            Self::HardLinks { links } => {
                write!(out, "the file has {links} names, and all of them would change")
            }
            Self::SwapFile => out.write_str("the file is a swap file in use"),
            Self::LoopBacking { devices } => {
                write!(out, "it is in use by {}", devices.join(", "))
            }
            Self::ReadOnly { name } => write!(out, "{name} is read-only"),
            Self::Mounted(at) => {
                let MountedAt { device, mount_point, fs_type } = at;
                write!(out, "{device} is mounted at {mount_point} ({fs_type})")
            }
            Self::Swap { name } => write!(out, "{name} is swap space in use"),
            Self::Held(holder) => write_holder(out, holder),
            Self::Claimed { name } => {
                write!(out, "{name} is in use: a program or the kernel has it open exclusively")
            }
            Self::Partitioned { partitions } => {
                write!(out, "it has the partitions {}", partitions.join(", "))
            }
            Self::Holds(Signature { name, offset_bytes }) => {
                write!(out, "it holds: {name} (at byte {offset_bytes})")
            }
            Self::UnknownData { name } => {
                write!(out, "{name} is not empty, and its content is not recognised")
            }
            Self::Unknown(open) => {
                write!(out, "it is not known {}: {}", open.question, open.reason)
            }
        }
    }
}

fn write_holder(out: &mut fmt::Formatter<'_>, holder: &Holder) -> fmt::Result {
    let Holder { name, on, detail } = holder;
    match detail {
        Some(detail) => write!(out, "{name} ({detail}) is built on {on}"),
        None => write!(out, "{name} is built on {on}"),
    }
}

fn other_words(kind: OtherKind) -> &'static str {
    match kind {
        OtherKind::Fifo => "a named pipe",
        OtherKind::CharacterDevice => "a character device",
        OtherKind::Socket => "a socket",
        OtherKind::Unknown => "of an unknown kind",
    }
}

/// All reasons not to write to a target, the gravest first; empty when it may be written.
/// A directory itself is safe: the files that will be created in it are checked.
pub fn danger(facts: &TargetFacts) -> Vec<Danger> {
    let mut found = match &facts.kind {
        TargetKind::Absent { parent_exists } => absent(facts, *parent_exists),
        TargetKind::File { size_bytes, links, in_swap, loop_devices, .. } => {
            let mut found = file_system(facts.mount.as_ref());
            found.extend(in_swap.then_some(Danger::SwapFile));
            if !loop_devices.is_empty() {
                found.push(Danger::LoopBacking { devices: loop_devices.clone() });
            }
            found.extend((*links > 1).then_some(Danger::HardLinks { links: *links }));
            let data = Danger::HasData { size_bytes: *size_bytes };
            found.extend((*size_bytes > 0).then_some(data));
            found
        }
        TargetKind::Directory { .. } => file_system(facts.mount.as_ref()),
        TargetKind::Block(target) => block(target),
        TargetKind::Other { other } => vec![Danger::NotStorage(*other)],
    };
    found.extend(facts.unchecked.iter().cloned().map(Danger::Unknown));
    found.sort_by_key(|danger| !danger.is_final());
    found
}

fn absent(facts: &TargetFacts, parent_exists: bool) -> Vec<Danger> {
    let mut found = file_system(facts.mount.as_ref());
    found.extend((!parent_exists).then_some(Danger::NoParent));
    if facts.symlink {
        let aim = facts.resolved.clone().unwrap_or_else(|| "nowhere".to_owned());
        found.push(Danger::DanglingLink { aim });
    }
    found
}

/// The dangers of the file system that holds a file or directory.
fn file_system(mount: Option<&MountFacts>) -> Vec<Danger> {
    let Some(mount) = mount else {
        return Vec::new();
    };
    let fs_type = mount.fs_type.clone();
    if is_kernels_own(&fs_type) && !NO_SETTINGS.contains(&fs_type.as_str()) {
        return vec![Danger::KernelFile { fs_type }];
    }
    // Containers mount a tmpfs at /dev; /dev/shm is a mount of its own, and meant for files.
    if fs_type == "devtmpfs" || mount.mount_point == "/dev" {
        return vec![Danger::FileInDev];
    }
    Vec::new()
}

fn block(target: &BlockTarget) -> Vec<Danger> {
    let name = || target.name.clone();
    let mut found: Vec<Danger> = target.mounted.iter().cloned().map(Danger::Mounted).collect();
    found.extend(target.swap.iter().cloned().map(|name| Danger::Swap { name }));
    found.extend(target.holders.iter().cloned().map(Danger::Held));
    if !target.loop_devices.is_empty() {
        found.push(Danger::LoopBacking { devices: target.loop_devices.clone() });
    }
    if target.claimed == Some(true) && found.is_empty() {
        found.push(Danger::Claimed { name: name() });
    }
    if target.read_only == Some(true) {
        found.push(Danger::ReadOnly { name: name() });
    }
    if !target.partitions.is_empty() {
        found.push(Danger::Partitioned { partitions: target.partitions.clone() });
    }
    found.extend(target.signatures.iter().cloned().map(Danger::Holds));
    if target.signatures.is_empty() && target.ends_are_zero == Some(false) {
        found.push(Danger::UnknownData { name: name() });
    }
    found
}
