//! The surroundings that gpuio trusts: where its own shared objects are, which objects may be
//! loaded ([`trust`], [`load()`]), and what variables say ([`environment`]).
//!
//! gpuio's own objects are the software GPU, the stand-in for cuFile, the drop-in and the C
//! library. In this order:
//!
//! 1. beside the running program (a test binary of cargo lies in `deps` itself);
//! 2. in `deps/` and `../deps`, if cargo built the program: it lies in a directory of a profile, or
//!    in `examples` there;
//! 3. in `../lib/gpuio` (an installed program);
//! 4. at the same places of the library that has this code, in another's program;
//! 5. where the program unpacked those that it carries, if it carries any ([`carried_by`]). That
//!    happens at the first search which finds nothing before.
//!
//! A file that somebody else can change is passed over ([`trust`]), with a line that says so if the
//! program can print one ([`report_with`]). Judging what a file is, is the caller's.

pub mod environment;
mod load;
pub mod trust;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

pub use load::{file_of, load};

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
pub fn unpacked() -> Option<PathBuf> {
    static UNPACKED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let unpack = CARRIED.get()?;
    UNPACKED.get_or_init(unpack).clone()
}

static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Names the function that prints a line about a file that is passed over. The first call counts.
pub fn report_with(report: fn(&str)) {
    let _ = REPORT.set(report);
}

/// Whether this file of gpuio's own may be loaded: its path, links resolved. A refusal is reported
/// once in a process.
///
/// # Errors
/// There is none, or somebody else can change it.
pub fn own(file: &Path) -> Result<PathBuf, trust::Refusal> {
    static REPORTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let judged = trust::object(file);
    if let (Err(refused), Some(report)) = (&judged, REPORT.get())
        && !refused.is_absent()
    {
        // Two names of one file are one refusal.
        let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(file) {
            report(&refused.to_string());
        }
    }
    judged
}

/// Directories that may have objects without unpacking any, as the module's page lists them. Empty
/// if neither the program's own path nor the library's can be read.
pub fn directories() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    // The loader has the name that the program was called by, which may be relative.
    let own = load::own_file().filter(|file| file.is_absolute() && Some(file) != program.as_ref());
    let files = program.iter().chain(&own);
    files.filter_map(|file| file.parent()).flat_map(around).collect()
}

fn around(beside: &Path) -> Vec<PathBuf> {
    // Cargo keeps its notes about what it built beside `deps`.
    let is_cargos = |profile: &Path| profile.join(".fingerprint").is_dir();
    let mut all = vec![beside.to_path_buf()];
    all.extend(is_cargos(beside).then(|| beside.join("deps")));
    all.extend(is_cargos(&beside.join("..")).then(|| beside.join("../deps")));
    all.push(beside.join("../lib/gpuio"));
    all
}

/// The files that may be the object `name`, in the order of the search.
pub fn candidates(name: &str) -> Vec<PathBuf> {
    among(name, &directories(), unpacked)
}

fn among(
    name: &str,
    directories: &[PathBuf],
    unpacked: impl FnOnce() -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = directories.iter().map(|at| at.join(name)).collect();
    if !files.iter().any(|file| own(file).is_ok()) {
        files.extend(unpacked().map(|at| at.join(name)));
    }
    files
}

#[cfg(test)]
mod tests;
