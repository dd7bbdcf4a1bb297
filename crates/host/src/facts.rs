//! The facts put together: of the machine, and of the storage beneath a path.

use std::path::{Path, PathBuf};

use gpuio_record::facts::{BlockFacts, HostFacts, TargetStorage};

use crate::mount::Mount;
use crate::parse::keep;
use crate::{HostError, Root, block, cgroup, cpu, kernel, memory, mount, numa, statx};

/// Reads the machine once. Never fails: what could not be read or understood is listed in
/// `problems`, and what the kernel lacks is `None`.
pub fn collect(root: &Root) -> HostFacts {
    let mut problems = Vec::new();
    let mut facts = HostFacts {
        cpu: cpu::read(root, &mut problems),
        numa: numa::read(root, &mut problems),
        memory: memory::read(root, &mut problems),
        kernel: kernel::read(root, &mut problems),
        io_limits: keep(cgroup::io_limits(root), &mut problems),
        problems: Vec::new(),
    };
    facts.problems = problems.iter().map(HostError::to_problem).collect();
    // Several facts come from one file; a file that cannot be read is one problem.
    facts.problems.dedup();
    facts
}

/// Reads the storage beneath `path`, which this process opens as it is written; where it does
/// not exist yet, that of the nearest directory above it. A value that could not be read or
/// understood goes to `problems`.
pub fn target_storage(root: &Root, path: &Path, problems: &mut Vec<HostError>) -> TargetStorage {
    let mut facts =
        TargetStorage { path: path.to_string_lossy().into_owned(), ..TargetStorage::default() };
    let Some(near) = nearest_existing(path) else {
        return facts;
    };
    facts.examined = Some(near.to_string_lossy().into_owned());
    facts.file = keep(statx::file(&near).map(Some), problems);
    let mount = keep(mount::of_path(root, &near), problems);
    facts.mount = mount.as_ref().map(Mount::facts);
    facts.device = match statx::node_device(&near) {
        Some(device) => block::read(root, device, problems),
        None => {
            let device = facts.file.as_ref().map(|file| file.device);
            let direct = device.and_then(|device| block::read(root, device, problems));
            direct.or_else(|| behind_mount(root, mount.as_ref()?, problems))
        }
    };
    facts
}

/// The device a mount names as its source. Needed for btrfs, whose files carry a device number
/// that no block device has.
fn behind_mount(root: &Root, mount: &Mount, problems: &mut Vec<HostError>) -> Option<BlockFacts> {
    if let Some(found) = block::read(root, mount.device, problems) {
        return Some(found);
    }
    let source = Path::new(&mount.source);
    let name = source.strip_prefix("/dev").ok()?;
    match statx::node_device(&root.join(source)) {
        Some(device) => block::read(root, device, problems),
        None => block::read_name(root, name.to_str()?, problems),
    }
}

/// The path itself, links resolved, or the nearest directory above it that exists.
fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let full = std::path::absolute(path).ok()?;
    full.ancestors().find_map(|part| part.canonicalize().ok())
}
