//! The lines about one file.

use std::path::Path;

use gpuio_record::facts::{Fact, GdsCheck, Machine, MountKind, MountedStorage};

use crate::check::machine::disks_below;

/// A file and the line that is about its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfFile {
    /// The file, links followed.
    pub path: String,
    /// Where it lies, in words.
    pub mount: String,
    /// gdscheck's name of the kind of storage, or `Storage`.
    pub storage: String,
    /// The line's value.
    pub value: Fact<String>,
}

/// The part of `check`, made from `machine`, that concerns a file; `path` is absolute and has its
/// links followed.
#[must_use]
pub fn of_file(machine: &Machine, check: &GdsCheck, path: &Path) -> OfFile {
    let shown = path.display().to_string();
    // The last of several mounts at one mount point hides the others.
    let above = machine.mounts.iter().filter(|one| path.starts_with(&one.mount.mount_point));
    let mount = above.max_by_key(|one| one.mount.mount_point.len());
    let Some(mount) = mount else {
        let value = Fact::unknown("no mount is known that it lies on");
        return OfFile { path: shown, mount: "not known".into(), storage: "Storage".into(), value };
    };
    let MountedStorage { mount: what, .. } = mount;
    let words = format!("{} ({} of {})", what.mount_point, what.fs_type, what.source);
    let (storage, value) = match storage(machine, mount) {
        Ok(name) => {
            let line = check.drivers.iter().find(|line| line.name == name);
            let value = line.map_or_else(|| Fact::unknown("no such line"), |one| one.value.clone());
            (name.to_owned(), value)
        }
        Err(why) => ("Storage".to_owned(), why),
    };
    OfFile { path: shown, mount: words, storage, value }
}

/// gdscheck's name for what serves a mount, or why there is none.
fn storage(machine: &Machine, mount: &MountedStorage) -> Result<&'static str, Fact<String>> {
    let none = |why: &str| Err(Fact::Known(format!("Unsupported ({why})")));
    match mount.kind {
        MountKind::Nfs => Ok("NFS"),
        MountKind::Lustre => Ok("DDN EXAScaler"),
        MountKind::Beegfs => Ok("BeeGFS"),
        MountKind::Weka => Ok("WekaFS"),
        MountKind::Gpfs => Ok("IBM Spectrum Scale"),
        MountKind::Memory => none("its bytes are memory"),
        MountKind::Overlay => none("overlayfs: name a file on the mount below it"),
        MountKind::Other if mount.mount.fs_type == "virtiofs" => Ok("VIRTIOFS"),
        MountKind::Other => Err(Fact::unknown("no line of gdscheck's is about this file system")),
        MountKind::Block => block(machine, mount),
    }
}

/// By the drives at the bottom, which have to be of one kind.
fn block(machine: &Machine, mount: &MountedStorage) -> Result<&'static str, Fact<String>> {
    let disks: Vec<_> =
        mount.devices.iter().flat_map(|device| disks_below(machine, device)).collect();
    let kind = |name: &str, transport: Option<&str>| match (name, transport) {
        (_, Some("rdma" | "tcp" | "fc")) => Some("NVMeOF"),
        (name, _) if name.starts_with("nvme") => Some("NVMe"),
        (name, _) if name.starts_with("sfdv") || name.starts_with("sfx") => Some("ScaleFlux CSD"),
        (name, _) if name.starts_with("sd") => Some("SCSI"),
        _ => None,
    };
    let mut kinds =
        disks.iter().map(|disk| kind(&disk.facts.name, disk.facts.transport.as_deref()));
    let first = kinds.next().flatten();
    match first {
        Some(first) if kinds.all(|other| other == Some(first)) => Ok(first),
        Some(_) => Err(Fact::unknown("drives of several kinds lie below it")),
        None => Err(Fact::unknown("no line of gdscheck's is about its drives")),
    }
}
