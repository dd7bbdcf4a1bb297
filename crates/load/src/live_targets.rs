//! What is at a path, looked up on the live machine for the plan.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gpuio_host::{Root, mount, statx};

use gpuio_plan::{DirectAnswer, TargetInfo, TargetLookup};

/// The live machine.
#[derive(Debug)]
pub struct LiveTargets {
    root: Root,
}

impl Default for LiveTargets {
    fn default() -> LiveTargets {
        LiveTargets { root: Root::live() }
    }
}

impl TargetLookup for LiveTargets {
    fn look(&self, path: &str) -> TargetInfo {
        let path = Path::new(path);
        let found = std::fs::metadata(path).ok();
        let near = nearest(path);
        let filesystem = mount::of_path(&self.root, &near).ok().flatten().map(|m| m.fs_type);
        let device = found.as_ref().is_some_and(|m| m.file_type().is_block_device());
        TargetInfo {
            length_bytes: match (&found, device) {
                (None, _) => None,
                (Some(_), true) => device_bytes(path),
                (Some(found), false) => Some(found.len()),
            },
            device,
            directory: found.as_ref().is_some_and(std::fs::Metadata::is_dir),
            free_bytes: rustix::fs::statvfs(&near).ok().map(|fs| fs.f_bavail * fs.f_frsize),
            direct: direct(path, &near, found.is_some()),
            filesystem,
        }
    }

    fn tensors(&self, path: &str) -> Result<Vec<(u64, u64)>, String> {
        tensors(Path::new(path))
    }

    fn drive_node(&self, path: &str) -> Option<u32> {
        // What could not be read is not reported.
        let storage = gpuio_host::target_storage(&self.root, Path::new(path), &mut Vec::new());
        storage.device?.numa_node
    }
}

/// The tensors of a file, from its header.
fn tensors(path: &Path) -> Result<Vec<(u64, u64)>, String> {
    let words = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(words)?;
    let length = file.metadata().map_err(words)?.len();
    let header = gpuio_safetensors::read(length, |bytes, at| file.read_at(bytes, at));
    let all = header.map_err(|error| error.to_string())?.tensors;
    Ok(all.iter().filter(|one| one.length > 0).map(|one| (one.offset, one.length)).collect())
}

/// The path itself or the nearest directory above it that exists.
fn nearest(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|near| near.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// The size of a device is the offset of its end (lseek(2)).
fn device_bytes(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).ok()
}

/// Tries O_DIRECT for real: on the file, or on an unnamed one (O_TMPFILE, Linux 3.11) where the
/// file will be, which leaves nothing behind.
fn direct(path: &Path, near: &Path, exists: bool) -> DirectAnswer {
    let flags = |more: i32| libc::O_DIRECT | libc::O_CLOEXEC | more;
    let tried = if exists && !path.is_dir() {
        File::options().read(true).custom_flags(flags(0)).open(path)
    } else {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600).custom_flags(flags(libc::O_TMPFILE)).open(near)
    };
    match tried {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => DirectAnswer::Refused,
        Err(_) => DirectAnswer::Unknown,
        Ok(file) => match statx::open_file(&file).ok().and_then(|facts| facts.direct) {
            Some(alignment) if !alignment.supported => DirectAnswer::Refused,
            Some(alignment) => {
                let alignment = alignment.offset_bytes.max(alignment.memory_bytes.min(4096));
                DirectAnswer::Works { alignment }
            }
            None => DirectAnswer::Works { alignment: 4096 },
        },
    }
}
