//! The directory of a file: whether it is there, where its file system is mounted, and how much is
//! free.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory that holds a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// The nearest directory that is there already.
pub(super) fn existing(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|above| above.is_dir());
    there.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Where the file system of a directory is mounted, or the directory itself where that is
/// unknown.
pub(super) fn mount_of(directory: &Path) -> PathBuf {
    let Ok(real) = directory.canonicalize() else { return directory.to_owned() };
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let own = device(&real);
    let same = real.ancestors().take_while(|above| device(above) == own);
    same.last().unwrap_or(&real).to_owned()
}

/// Bytes free for this user on the file system of `directory` (statvfs(3), `f_bavail`); `None`
/// where it does not say, as some network file systems do not.
pub(super) fn free(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}
