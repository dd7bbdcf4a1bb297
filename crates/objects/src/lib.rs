//! Where gpuio's own shared objects are: the software GPU, the stand-in for cuFile, the drop-in and
//! the C library.
//!
//! In this order:
//!
//! 1. beside the running program, and in `deps/` below it (a program that cargo built; a test
//!    binary of cargo lies in `deps` itself);
//! 2. `../deps` (cargo's examples) and `../lib/gpuio` (an installed program);
//! 3. where the program unpacked those that it carries, if it carries any ([`carried_by`]). That
//!    happens at the first search which finds nothing before.
//!
//! Only names and existence are looked at. Opening, and judging what a file is, is the caller's.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The software GPU.
pub const SOFTWARE_GPU: &str = "libgpuio_softgpu.so";
/// The stand-in for NVIDIA's cuFile.
pub const STAND_IN: &str = "libgpuio_softcufile.so";

/// Unpacks what the program carries, and gives the directory; `None` if it carries nothing, or
/// could not (and has said why).
type Unpack = fn() -> Option<PathBuf>;

static CARRIED: OnceLock<Unpack> = OnceLock::new();

/// Names the function that unpacks what this program carries. The first call counts.
pub fn carried_by(unpack: Unpack) {
    let _ = CARRIED.set(unpack);
}

/// Where the program has unpacked what it carries: the same directory at every call.
#[must_use]
pub fn unpacked() -> Option<PathBuf> {
    static UNPACKED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let unpack = CARRIED.get()?;
    UNPACKED.get_or_init(unpack).clone()
}

/// Directories that may have objects without unpacking any, as the crate's page lists them. Empty
/// if the program's own path can't be read.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let exe = std::env::current_exe().ok();
    exe.as_deref().and_then(Path::parent).map(around).unwrap_or_default()
}

fn around(beside: &Path) -> Vec<PathBuf> {
    let below = ["deps", "../deps", "../lib/gpuio"].map(|below| beside.join(below));
    std::iter::once(beside.to_path_buf()).chain(below).collect()
}

/// The files that may be the object `name`, in the order of the search.
#[must_use]
pub fn candidates(name: &str) -> Vec<PathBuf> {
    among(name, &directories(), unpacked)
}

fn among(
    name: &str,
    directories: &[PathBuf],
    unpacked: impl FnOnce() -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = directories.iter().map(|at| at.join(name)).collect();
    if !files.iter().any(|file| file.exists()) {
        files.extend(unpacked().map(|at| at.join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_unpacked_only_where_nothing_else_is_found() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        let carried = || Some(PathBuf::from("/unpacked"));
        let files = among(SOFTWARE_GPU, &around(&bin), carried);
        assert_eq!(files.len(), 5);
        assert_eq!(files[0], bin.join(SOFTWARE_GPU));
        assert_eq!(files[4], Path::new("/unpacked/libgpuio_softgpu.so"));
        let lib = root.path().join("lib/gpuio");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(lib.join(SOFTWARE_GPU), "").unwrap();
        let files = among(SOFTWARE_GPU, &around(&bin), || panic!("not needed"));
        assert!(files[3].exists() && files.len() == 4, "{files:?}");
    }

    #[test]
    fn a_program_that_carries_nothing_has_its_own_directories() {
        assert_eq!(unpacked(), None);
        let exe = std::env::current_exe().unwrap();
        assert_eq!(directories()[0], exe.parent().unwrap());
    }
}
