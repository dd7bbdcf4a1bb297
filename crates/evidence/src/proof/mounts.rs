//! What holds a job's files, as far as evidence sources care.

use std::path::{Path, PathBuf};

use gpuio_host::Root;
use gpuio_record::facts::TargetStorage;
use gpuio_record::{JobPlan, TargetKind};

/// What holds a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    /// Block devices, all of them.
    Devices,
    /// NFS, all of them, on these mounts.
    Nfs(Vec<PathBuf>),
    /// Host memory (tmpfs, ramfs), all of them.
    Memory(String),
    /// Something else, or a mixture; named as a file system.
    Elsewhere(String),
}

/// Storage behind each directory or device of a job, each once.
pub(super) fn storages(root: &Root, job: &JobPlan) -> Vec<TargetStorage> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for target in &job.targets {
        let path = Path::new(&target.path);
        // Files of one directory lie on one device, unless they are links: the link is followed.
        let place = match (target.kind, path.is_symlink()) {
            (TargetKind::File, false) => path.parent().unwrap_or(path).to_path_buf(),
            _ => path.to_path_buf(),
        };
        if !seen.contains(&place) {
            found.push(gpuio_host::target_storage(root, path, &mut Vec::new()));
            seen.push(place);
        }
    }
    found
}

/// What holds a job's files.
pub(super) fn kept(root: &Root, job: &JobPlan) -> Kept {
    of(&storages(root, job))
}

fn of(storages: &[TargetStorage]) -> Kept {
    let kind = |storage: &TargetStorage| {
        let mount = storage.mount.as_ref();
        mount.map_or("an unknown file system", |mount| mount.fs_type.as_str()).to_owned()
    };
    let all =
        |fits: &dyn Fn(&TargetStorage) -> bool| !storages.is_empty() && storages.iter().all(fits);
    if all(&|storage| storage.device.is_some()) {
        return Kept::Devices;
    }
    if all(&|storage| matches!(kind(storage).as_str(), "nfs" | "nfs4")) {
        let mut points: Vec<PathBuf> = storages
            .iter()
            .filter_map(|storage| Some(PathBuf::from(&storage.mount.as_ref()?.mount_point)))
            .collect();
        points.sort();
        points.dedup();
        return Kept::Nfs(points);
    }
    let first = storages.iter().find(|storage| storage.device.is_none());
    let name = first.map_or_else(|| "an unknown file system".to_owned(), kind);
    if all(&|storage| matches!(kind(storage).as_str(), "tmpfs" | "ramfs")) {
        return Kept::Memory(name);
    }
    Kept::Elsewhere(name)
}
