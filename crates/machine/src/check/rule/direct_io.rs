//! File systems and their options for direct I/O.

use gpuio_base::units::ShellLine;
use gpuio_record::facts::{DeviceNumber, Machine, MountKind, MountedStorage};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{has_option, none_of};

pub(super) const RULE: Rule = Rule {
    name: "direct-io",
    question: "Do file systems and their mount options let O_DIRECT through to storage?",
    why: "Direct paths into GPU memory need O_DIRECT, and file systems that accept it and then go \
          through the page cache show the speed of memory, or lose it to a copy.",
    fix: "Mount ext4 with data=ordered (its default) and without sync; use ext4 or XFS for data \
           that GPUs read. `gpuio check --mount DIR --prove` tries O_DIRECT there for real.",
    source: "Documentation/admin-guide/ext4.rst, data=journal; \
             NVIDIA, nvidia-fs, Key Features; NVIDIA, GPUDirect Storage O_DIRECT Requirements \
             Guide; mount(8), sync; zfsprops(7), direct",
    shown_by: "mount",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let is_image = |mount: &MountedStorage| IMAGES.contains(&&*mount.mount.fs_type);
    let data = machine.mounts.iter().filter(|m| m.kind != MountKind::Memory && !is_image(m));
    let data = data.filter(|one| !machine.mounts.iter().any(|other| shows_all_of(other, one)));
    let mut found: Vec<Found> = Vec::new();
    let mut good: Vec<&str> = Vec::new();
    for mount in data {
        let at = mount.mount.mount_point.as_str();
        let before = found.len();
        if has_option(mount, "sync") {
            let fix = format!("`mount -o remount,async {at}`");
            found.push(Found::warn("sync: every write waits for storage", fix).at([at]));
        }
        found.extend(of_type(mount).map(|found| found.at([at])));
        if found.len() == before {
            good.push(at);
        }
    }
    if !good.is_empty() {
        found.push(Found::pass("O_DIRECT reaches the storage").at(good));
    } else if found.is_empty() {
        found.push(none_of(machine.listed.mounts, "mount for data"));
    }
    found
}

/// Whether `one` is a further mount of the file system of `other`, of which the same is found.
fn shows_all_of(other: &MountedStorage, one: &MountedStorage) -> bool {
    let place = |it: &MountedStorage| {
        let point = it.mount.mount_point.clone();
        (it.mount.fs_root != "/", point.len(), point)
    };
    let known = one.mount.device != DeviceNumber::default();
    known
        && one.mount.device == other.mount.device
        && has_option(one, "sync") == has_option(other, "sync")
        && place(other) < place(one)
}

/// Read-only images, which hold no data that a load would read.
const IMAGES: [&str; 4] = ["squashfs", "erofs", "iso9660", "cramfs"];

/// File systems whose O_DIRECT goes to storage.
const DIRECT: [&str; 7] = ["ext2", "ext3", "ext4", "xfs", "f2fs", "vfat", "exfat"];

/// File systems whose O_DIRECT goes past the page cache of the client: what the server does is in
/// no fact of this machine.
const REMOTE: [&str; 6] = ["nfs", "nfs4", "lustre", "beegfs", "gpfs", "wekafs"];

/// The finding about a file system's type and options; `None` when all is well.
fn of_type(mount: &MountedStorage) -> Option<Found> {
    let at = mount.mount.mount_point.as_str();
    let silent = mount.mount.options.is_empty() && mount.mount.super_options.is_empty();
    match mount.mount.fs_type.as_str() {
        "ext4" if has_option(mount, "data=journal") => {
            let observed = "ext4 with data=journal: O_DIRECT goes through the page cache";
            let fix = format!("unmount {at}, and mount it with data=ordered");
            Some(Found::warn(observed, fix))
        }
        "ext4" if has_option(mount, "data=writeback") => {
            let observed = "ext4 with data=writeback: nvidia-fs supports data=ordered only";
            Some(Found::warn(observed, "mount with data=ordered for GPUDirect Storage"))
        }
        "btrfs" => Some(Found::warn(
            "btrfs: files with checksums or compression may go through the page cache in spite of \
             O_DIRECT, and cuFile knows it in compatibility mode only",
            "keep data that GPUs read on ext4 or XFS",
        )),
        "zfs" => Some(Found::warn(
            "ZFS: before OpenZFS 2.3 O_DIRECT goes through its cache, and cuFile knows it in \
             compatibility mode only",
            "keep data that GPUs read on ext4 or XFS",
        )),
        "overlay" => Some(Found::warn(
            "an overlay, as of a container: cuFile knows it in compatibility mode only",
            "put data that GPUs read on a mount of its own: a volume of the container",
        )),
        kind if kind.starts_with("fuse") => {
            Some(Found::unknown("FUSE: whether O_DIRECT gets through is up to its server"))
        }
        kind if silent && [&DIRECT[..], &REMOTE].concat().contains(&kind) => {
            Some(Found::unknown("its mount options are not reported"))
        }
        kind if DIRECT.contains(&kind) => None,
        kind if REMOTE.contains(&kind) => {
            let found = Found::unknown(format!(
                "by {kind} and its mount options O_DIRECT passes this machine's page cache; how \
                 the server serves it was not tried"
            ));
            Some(found.fix("`gpuio check --mount DIR --prove` tries it"))
        }
        "" => Some(Found::unknown("the type of its file system is not reported")),
        kind => {
            let found =
                Found::unknown(format!("whether {kind} lets O_DIRECT through is not known"));
            let check = ShellLine::new("gpuio check --mount").file(at);
            Some(found.fix(format!("`{check} --prove` tries it")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sample;

    #[test]
    fn a_file_system_is_named_once_however_often_it_is_mounted() {
        let mut machine = Machine::default();
        for (at, root) in [("/run/netns", "/run/netns"), ("/", "/"), ("/data", "/")] {
            let mut mount = sample::mount(at, "vda");
            mount.mount.fs_type = "ext4".to_owned();
            mount.mount.fs_root = root.to_owned();
            mount.mount.super_options = vec!["rw".to_owned()];
            mount.mount.device.minor = 1;
            machine.mounts.push(mount);
        }
        machine.mounts[2].mount.device.minor = 2;
        let places = |machine: &Machine| {
            evaluate(machine).into_iter().flat_map(|found| found.locations).collect::<Vec<_>>()
        };
        assert_eq!(places(&machine), ["/", "/data"]);
        // With other options it is another thing to find.
        machine.mounts[0].mount.options = vec!["sync".to_owned()];
        assert_eq!(places(&machine), ["/run/netns", "/", "/data"]);
    }
}
