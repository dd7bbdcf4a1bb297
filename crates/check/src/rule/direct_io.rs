//! File systems and their options for direct I/O.

use gpuio_record::facts::{Machine, MountKind, MountedStorage};

use super::Rule;
use crate::finding::Found;
use crate::machine::has_option;

pub(super) const RULE: Rule = Rule {
    name: "direct-io",
    asks: "Do file systems and their mount options let O_DIRECT through to storage?",
    why: "Direct paths into GPU memory need O_DIRECT, and file systems that accept it and then go \
          through the page cache show the speed of memory, or lose it to a copy.",
    mend: "Mount ext4 with data=ordered (its default) and without sync; use ext4 or XFS for data \
           that GPUs read. `gpuio check --mount DIR --prove` tries O_DIRECT there for real.",
    source: "Documentation/admin-guide/ext4.rst, data=journal; \
             NVIDIA, nvidia-fs, Key Features; NVIDIA, GPUDirect Storage O_DIRECT Requirements \
             Guide; mount(8), sync; zfsprops(7), direct",
    judge,
};

fn judge(machine: &Machine) -> Vec<Found> {
    if machine.mounts.is_empty() {
        return vec![Found::unknown("no mount is known")];
    }
    let data = machine.mounts.iter().filter(|mount| mount.kind != MountKind::Memory);
    let mut found: Vec<Found> = Vec::new();
    let mut good: Vec<&str> = Vec::new();
    for mount in data {
        let at = mount.mount.mount_point.as_str();
        let before = found.len();
        if has_option(mount, "sync") {
            let mend = format!("`mount -o remount,async {at}`");
            found.push(Found::warn("sync: every write waits for storage", mend).at([at]));
        }
        found.extend(of_type(mount).map(|found| found.at([at])));
        if found.len() == before {
            good.push(at);
        }
    }
    if !good.is_empty() || found.is_empty() {
        found.push(Found::pass("nothing keeps O_DIRECT from storage").at(good));
    }
    found
}

/// What is to be said of a file system's type with its options; nothing when all is well.
fn of_type(mount: &MountedStorage) -> Option<Found> {
    let at = mount.mount.mount_point.as_str();
    match mount.mount.fs_type.as_str() {
        "ext4" if has_option(mount, "data=journal") => {
            let seen = "ext4 with data=journal: O_DIRECT goes through the page cache";
            let mend = format!("unmount {at}, and mount it with data=ordered");
            Some(Found::warn(seen, mend))
        }
        "ext4" if has_option(mount, "data=writeback") => {
            let seen = "ext4 with data=writeback: nvidia-fs supports data=ordered only";
            Some(Found::info(seen).mend("mount with data=ordered for GPUDirect Storage"))
        }
        "btrfs" => Some(Found::info(
            "btrfs: files with checksums or compression may go through the page cache in spite of \
             O_DIRECT, and cuFile knows it in compatibility mode only",
        )),
        "zfs" => Some(Found::info(
            "ZFS: before OpenZFS 2.3 O_DIRECT goes through its cache, and cuFile knows it in \
             compatibility mode only",
        )),
        "overlay" => Some(Found::info(
            "an overlay, as of a container: cuFile knows it in compatibility mode only; put data \
             on a mount of its own",
        )),
        kind if kind.starts_with("fuse") => {
            Some(Found::unknown("FUSE: whether O_DIRECT gets through is up to its server"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Severity, sample};

    fn of(fs_type: &str, options: &[&str]) -> Vec<Severity> {
        let mut mount = sample::mount("/d", "nvme0n1");
        mount.mount.fs_type = fs_type.to_owned();
        mount.mount.super_options = options.iter().map(|&option| option.to_owned()).collect();
        let machine = Machine { mounts: vec![mount], ..Machine::default() };
        judge(&machine).into_iter().map(|found| found.severity).collect()
    }

    #[test]
    fn types_and_options() {
        assert_eq!(of("ext4", &["rw"]), [Severity::Pass]);
        assert_eq!(of("xfs", &["rw", "sync"]), [Severity::Warn]);
        assert_eq!(of("ext4", &["data=journal"]), [Severity::Warn]);
        assert_eq!(of("ext4", &["data=writeback"]), [Severity::Info]);
        assert_eq!(of("fuse.sshfs", &[]), [Severity::Unknown]);
        assert_eq!(of("overlay", &[]), [Severity::Info]);
    }
}
