//! The environment, read as secure_getenv(3) reads it.
//!
//! A variable can name a file to write, a directory to search, a library to load or a program to
//! start. Where this process has rights that its caller lacks (set-user-ID, set-group-ID, file
//! capabilities, a security module), the kernel sets `AT_SECURE` (getauxval(3)), and every variable
//! is the caller's word. Then none is read: each function here answers as if it were not set.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The variables that name a file, a directory, a library or a program. All others hold words and
/// numbers.
pub const NAMING: [&str; 24] = [
    "CONDA_PREFIX",
    "CUFILE_ENV_PATH_JSON",
    "CUFILE_LOGFILE_PATH",
    "GPUIO_CHROMIUM",
    "GPUIO_CONFIG",
    "GPUIO_CUFILE_DRIVER",
    "GPUIO_CUFILE_LIB",
    "GPUIO_CUFILE_RECORD",
    "GPUIO_DIRECTORY",
    "GPUIO_LIBCUDA",
    "GPUIO_LIBGPUIO",
    "GPUIO_MPI",
    "GPUIO_PAGES",
    "GPUIO_PROGRAM",
    "HOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "TMPDIR",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Whether this process has rights that its caller lacks, so that no variable is read.
pub fn is_secure() -> bool {
    // SAFETY: any number may be asked for; the kernel gives this one to every program.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The value of a variable. `None` if it is not set, and in secure execution.
pub fn variable(name: &str) -> Option<OsString> {
    if is_secure() { None } else { std::env::var_os(name) }
}

/// The same as text; `None` also for a value that is not UTF-8.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// The absolute path that a variable holds: the XDG Base Directory Specification ignores others.
pub fn absolute(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The paths that a variable lists, with colons between them.
pub fn paths(name: &str) -> Vec<PathBuf> {
    variable(name).map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}

/// All variables whose names begin so. Bytes in a value that are not UTF-8 are replaced.
pub fn beginning(start: &str) -> BTreeMap<String, String> {
    if is_secure() {
        return BTreeMap::new();
    }
    let all = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(start))?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    all.collect()
}

/// The directory for temporary files: `$TMPDIR`, else `/tmp`.
pub fn temporary() -> PathBuf {
    let named = variable("TMPDIR").filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// gpuio's own variables that are set and, in secure execution, not read; empty otherwise.
pub fn ignored() -> Vec<String> {
    if !is_secure() {
        return Vec::new();
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut ours: Vec<String> = names.filter(|name| name.starts_with("GPUIO_")).collect();
    ours.sort();
    ours
}
