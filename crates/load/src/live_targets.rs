//! Looks up on the live machine what is at a path, for the plan.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuio_host::mount::Table;
use gpuio_host::{Root, statx};

use gpuio_job::plan::{DirectAnswer, LinkInfo, TargetInfo, TargetLookup};

/// The live machine, for one plan: mounts and directories are read once, whatever the number of
/// files.
#[derive(Debug)]
pub struct LiveTargets {
    root: Root,
    mounts: Table,
    /// Directories in which a file was absent.
    directories: RefCell<BTreeMap<PathBuf, Neighbours>>,
    /// Directories of files, with those behind a link.
    links: RefCell<BTreeMap<PathBuf, Option<LinkInfo>>>,
}

/// The facts that all absent files share: those that are not in a directory, or in one that is
/// absent itself.
#[derive(Debug)]
struct Neighbours {
    /// Whether it holds nothing at all, so that no file needs to be looked for.
    empty: bool,
    absent: Arc<TargetInfo>,
}

impl Default for LiveTargets {
    fn default() -> LiveTargets {
        LiveTargets {
            root: Root::live(),
            mounts: Table::default(),
            directories: RefCell::default(),
            links: RefCell::default(),
        }
    }
}

impl LiveTargets {
    /// The common facts of all absent files in the directory of `path`, where they are known and
    /// `path` is one of them.
    fn known_absent(&self, path: &Path) -> Option<Arc<TargetInfo>> {
        let directories = self.directories.borrow();
        let Neighbours { empty, absent } = directories.get(path.parent()?)?;
        (*empty || is_free(path)).then(|| Arc::clone(absent))
    }

    fn look_at(&self, path: &Path, found: Option<&std::fs::Metadata>) -> TargetInfo {
        let near = nearest(path);
        let mount = self.mounts.of_path(&self.root, &near);
        let device = found.is_some_and(|m| m.file_type().is_block_device());
        TargetInfo {
            length_bytes: match (found, device) {
                (None, _) => None,
                (Some(_), true) => device_bytes(path),
                (Some(found), false) => Some(found.len()),
            },
            device,
            directory: found.is_some_and(std::fs::Metadata::is_dir),
            free_bytes: rustix::fs::statvfs(&near).ok().map(|fs| fs.f_bavail * fs.f_frsize),
            direct: direct(path, &near, found.is_some()),
            filesystem: mount.ok().flatten().map(|mount| mount.fs_type),
            link: self.link(path),
        }
    }

    /// The link that a file is, or that its directory is below; one that leads nowhere is none.
    fn link(&self, path: &Path) -> Option<LinkInfo> {
        if path.is_symlink() {
            return self.behind(path);
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
        if let Some(known) = self.links.borrow().get(directory) {
            return known.clone();
        }
        let linked = directory.ancestors().any(Path::is_symlink);
        let link = linked.then(|| self.behind(directory)).flatten();
        self.links.borrow_mut().insert(directory.to_owned(), link.clone());
        link
    }

    fn behind(&self, path: &Path) -> Option<LinkInfo> {
        let real = path.canonicalize().ok()?;
        let mount = self.mounts.of_path(&self.root, &real).ok().flatten();
        Some(LinkInfo {
            path: path.display().to_string(),
            real: real.display().to_string(),
            mount: mount.map(|mount| (mount.fs_type, mount.mount_point.display().to_string())),
        })
    }
}

/// Whether a directory holds nothing, or is absent itself.
fn is_empty(directory: &Path) -> bool {
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    match std::fs::read_dir(here) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => is_absent(&error),
    }
}

/// Whether nothing has this name; a link that leads nowhere is something.
fn is_free(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| is_absent(&error))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

impl TargetLookup for LiveTargets {
    fn look(&self, path: &str) -> Arc<TargetInfo> {
        let path = Path::new(path);
        if let Some(known) = self.known_absent(path) {
            return known;
        }
        let found = std::fs::metadata(path).ok();
        let info = Arc::new(self.look_at(path, found.as_ref()));
        if let (None, Some(directory), true) = (found, path.parent(), is_free(path)) {
            let all = Neighbours { empty: is_empty(directory), absent: Arc::clone(&info) };
            self.directories.borrow_mut().insert(directory.to_owned(), all);
        }
        info
    }

    fn tensors(&self, path: &str) -> Result<Vec<(u64, u64)>, String> {
        tensors(Path::new(path))
    }

    fn drive_node(&self, path: &str) -> Option<u32> {
        // Problems of reading are not reported here.
        let storage = gpuio_host::target_storage(&self.root, Path::new(path), &mut Vec::new());
        storage.device?.numa_node
    }
}

/// The tensors of a file, from its header.
fn tensors(path: &Path) -> Result<Vec<(u64, u64)>, String> {
    let words = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(words)?;
    let length = file.metadata().map_err(words)?.len();
    let header = gpuio_base::safetensors::read(length, |bytes, at| file.read_at(bytes, at));
    let all = header.map_err(|error| error.to_string())?.tensors;
    Ok(all.iter().map(|one| (one.offset, one.length)).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_neighbours_are_looked_at_once_and_names_that_are_taken_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let targets = LiveTargets::default();
        let look = |name: &str| targets.look(&dir.path().join(name).display().to_string());
        let (one, two) = (look("no/a.0"), look("no/a.1"));
        assert!(Arc::ptr_eq(&one, &two), "nothing in it is there");
        std::fs::write(dir.path().join("a.1"), "x").expect("a file");
        std::os::unix::fs::symlink("nowhere", dir.path().join("a.3")).expect("a link");
        let (one, two) = (look("a.0"), look("a.2"));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!((one.length_bytes, look("a.1").length_bytes), (None, Some(1)));
        assert!(!Arc::ptr_eq(&one, &look("a.3")), "a link is a name that is taken");
        assert_eq!(targets.directories.borrow().len(), 2);
    }

    #[test]
    fn the_file_behind_a_link_is_named_and_so_is_a_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let real = dir.path().canonicalize().expect("its path");
        let at = |name: &str| real.join(name);
        std::fs::create_dir(at("data")).expect("a directory");
        std::fs::write(at("data/a"), "x").expect("a file");
        std::os::unix::fs::symlink("data", at("way")).expect("a link");
        std::os::unix::fs::symlink("data/a", at("one")).expect("a link");
        let targets = LiveTargets::default();
        let link = |name: &str| {
            let found = targets.look(&at(name).display().to_string()).link.clone();
            found.map(|one| (PathBuf::from(one.path), PathBuf::from(one.real), one.mount))
        };
        let (path, aim, mount) = link("one").expect("a link");
        assert_eq!((path, aim), (at("one"), at("data/a")));
        assert!(mount.is_some());
        for name in ["way/a", "way/absent.0", "way/absent.1"] {
            let (path, aim, _) = link(name).expect("a link");
            assert_eq!((path, aim), (at("way"), at("data")), "{name}");
        }
        assert_eq!(link("data/a"), None);
        assert_eq!(link("data/absent.0"), None);
    }
}
