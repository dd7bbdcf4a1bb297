//! File system and device under a job, from the record's list of locations.

use std::path::Path;

use gpuio_record::facts::{BlockFacts, BlockKind, TargetStorage};

use crate::compare::job::Job;

impl Job<'_> {
    /// The locations of the job's targets, each once.
    pub(crate) fn locations(&self) -> Vec<&TargetStorage> {
        let of = |target: &gpuio_record::TargetPlan| {
            let path = Path::new(&target.path);
            self.record.storage.iter().find(|location| {
                let location = Path::new(&location.path);
                location == path
                    || path.parent().is_some_and(|parent| same_directory(location, parent))
            })
        };
        let mut locations: Vec<&TargetStorage> = self.plan.targets.iter().filter_map(of).collect();
        locations.dedup_by(|a, b| a.path == b.path);
        locations
    }

    /// Types of file systems; for a network file system also the server. A device has none.
    pub(crate) fn filesystem(&self) -> Option<String> {
        let of = |location: &&TargetStorage| {
            let mount = location.mount.as_ref()?;
            let far = location.device.is_none() && mount.source.contains(':');
            let from = if far { format!(" from {}", mount.source) } else { String::new() };
            Some(format!("{}{from}", mount.fs_type))
        };
        joined(self.locations().iter().filter_map(of))
    }

    /// The storage of the bytes: kind and model, with the members of an array.
    pub(crate) fn device(&self) -> Option<String> {
        joined(
            self.locations()
                .iter()
                .filter_map(|location| Some(device_words(location.device.as_ref()?))),
        )
    }

    /// Kernel names of the devices.
    pub(crate) fn disk(&self) -> Option<String> {
        joined(
            self.locations()
                .iter()
                .filter_map(|location| Some(location.device.as_ref()?.name.clone())),
        )
    }
}

fn same_directory(location: &Path, parent: &Path) -> bool {
    let here = |path: &Path| path.as_os_str().is_empty() || path == Path::new(".");
    location == parent || here(location) && here(parent)
}

fn device_words(device: &BlockFacts) -> String {
    let kind = match device.kind {
        BlockKind::Disk | BlockKind::Partition => "disk",
        BlockKind::DeviceMapper => "device mapper",
        BlockKind::Md => "array",
        BlockKind::Loop => "loop device",
        BlockKind::Virtual => "virtual device",
    };
    let mut words = vec![kind.to_owned()];
    words.extend(device.model.as_deref().map(|model| model.trim().to_owned()));
    words.extend(device.transport.clone());
    // The detail of a loop device is the file behind it, a name; that of an array its level.
    words.extend(device.detail.clone().filter(|_| device.kind == BlockKind::Md));
    if device.rotational == Some(true) {
        words.push("spinning".to_owned());
    }
    if !device.members.is_empty() {
        let members: Vec<String> = device.members.iter().map(device_words).collect();
        let groups = members.chunk_by(|a, b| a == b);
        let counted = groups.map(|group| format!("{} × {}", group.len(), group[0]));
        words.push(format!("of {}", counted.collect::<Vec<_>>().join(" + ")));
    }
    words.join(", ")
}

fn joined(words: impl Iterator<Item = String>) -> Option<String> {
    let mut words: Vec<String> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() { None } else { Some(words.join(" + ")) }
}
