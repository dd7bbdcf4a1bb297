//! The mount and the GPU that `--mount` and `--gpu` name.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use gpuio_base::units::ShellLine;
use gpuio_drivers::cufile::{Absent, Library};
use gpuio_host::answers::answers;
use gpuio_host::{Root, mount};
use gpuio_machine::check::{Gpu, Pair, gpu_of, mount_of};
use gpuio_record::facts::{Fact, GpuFacts, Machine};

use crate::args::CufileFlags;
use crate::failure::Failure;

/// The path as the machine has it: on this machine with links resolved, on another as given.
pub(in crate::verb) fn resolve(path: &Path, live: bool) -> Result<String, Failure> {
    let name = path.display();
    if !live {
        let path = path.to_str().filter(|path| path.starts_with('/'));
        return path.map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("--mount {name}: give an absolute path on that machine"))
        });
    }
    answers(path)?;
    let whole = path.canonicalize().map_err(|error| {
        Failure::Usage(format!("--mount {name}: {error}; give an existing path"))
    })?;
    if std::fs::metadata(&whole).is_ok_and(|of| of.file_type().is_block_device()) {
        let bench = ShellLine::new("gpuio bench").word("--filename").file(path);
        return Err(Failure::Usage(format!(
            "--mount {name}: it is a block device; name a directory of the file system on it, or \
             measure the device itself: {bench}"
        )));
    }
    let found = mount::of_path(&Root::live(), &whole).ok().flatten();
    if let Some(found) = found.filter(|found| gpuio_host::mounted::is_kernels_own(&found.fs_type)) {
        return Err(Failure::Usage(format!(
            "--mount {name}: it is on {}, a file system of the kernel that holds no data; name a \
             path on storage",
            found.fs_type
        )));
    }
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Usage(format!("--mount {name}: the path is not UTF-8 text")))
}

/// The directory in which a file can be created next to the named path.
pub(super) fn directory(path: &str) -> PathBuf {
    let path = Path::new(path);
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// NVIDIA's library, loaded but not opened, so that it starts nothing.
pub(in crate::verb) fn library() -> Fact<Option<String>> {
    let search = crate::cufile::search(&CufileFlags::default(), false);
    match Library::load(&search) {
        Ok(library) => Fact::Known(Some(library.path().display().to_string())),
        Err(Absent::NoLibrary { .. }) => Fact::Known(None),
        Err(absent) => Fact::unknown(absent.to_string()),
    }
}

/// [`find`] for a path that the user named. Whether one of another machine exists is not
/// known, so one that no mount but `/` holds may be misspelt: it is refused where other mounts are
/// known.
pub(in crate::verb) fn find_named<'m>(
    machine: &'m Machine,
    (path, live): (&str, bool),
    gpu: Option<&str>,
) -> Result<Pair<'m>, Failure> {
    let pair = find(machine, path, gpu)?;
    let at_root = pair.mount.mount.mount_point == "/" && !path.trim_end_matches('/').is_empty();
    if at_root && !live && machine.mounts.len() > 1 {
        return Err(Failure::Usage(format!(
            "--mount {path}: no mount but / holds this path; known mounts: {}; --mount / names it",
            known(machine)
        )));
    }
    Ok(pair)
}

/// The mount that serves the path, and the GPU: the one that was named, else the first.
pub(in crate::verb) fn find<'m>(
    machine: &'m Machine,
    path: &str,
    gpu: Option<&str>,
) -> Result<Pair<'m>, Failure> {
    let mount = mount_of(machine, path).ok_or_else(|| {
        let known = known(machine);
        Failure::Usage(format!("--mount {path}: no mount holds this path; known mounts: {known}"))
    })?;
    let gpu = match gpu {
        Some("software") => Gpu::Software,
        Some("none") => Gpu::None,
        Some(name) => Gpu::Real(gpu_of(machine, name).ok_or_else(|| no_such(machine, name))?),
        None => first(machine).map_or(Gpu::None, Gpu::Real),
    };
    Ok(Pair { machine, mount, gpu })
}

/// The mount points of a machine.
fn known(machine: &Machine) -> String {
    let all: Vec<&str> = machine.mounts.iter().map(|one| one.mount.mount_point.as_str()).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn first(machine: &Machine) -> Option<&GpuFacts> {
    let by_number = machine.gpus.iter().filter(|gpu| gpu.index.known().is_some());
    by_number.min_by_key(|gpu| gpu.index.known().copied()).or(machine.gpus.first())
}

fn no_such(machine: &Machine, name: &str) -> Failure {
    let known: Vec<&str> = machine.gpus.iter().filter_map(|gpu| gpu.pci.as_deref()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Failure::Usage(format!("--gpu {name}: no such GPU; known: {known}, and software"))
}
