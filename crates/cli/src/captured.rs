//! The machine that is asked about: this one, a captured tree, or one from texts.

use std::path::{Path, PathBuf};

use gpuio_capture::{Captured, KINDS};
use gpuio_host::Root;

use crate::failure::Failure;

/// Reads the machine that `--from` names; this one where it names nothing.
pub(crate) fn read(from: &[PathBuf]) -> Result<Captured, Failure> {
    let whole = |root: &Root| Captured { machine: gpuio_load::machine::read(root), matrix: None };
    match from {
        [] => Ok(whole(&Root::live())),
        [dir] if dir.is_dir() => {
            if !dir.join("sys").is_dir() && !dir.join("proc").is_dir() {
                return Err(Failure::Usage(format!(
                    "--from {}: it has no directory sys and none proc; give a tree with copies of \
                     /sys and /proc, or files with what tools printed",
                    dir.display()
                )));
            }
            Ok(whole(&Root::at(dir)))
        }
        files => {
            let mut captured = Captured::default();
            files.iter().try_for_each(|file| add(file, &mut captured))?;
            Ok(captured)
        }
    }
}

fn add(file: &Path, captured: &mut Captured) -> Result<(), Failure> {
    let name = file.display();
    if file.is_dir() {
        let words = "give one directory alone, or files";
        return Err(Failure::Usage(format!("--from {name}: it is a directory; {words}")));
    }
    let bytes =
        std::fs::read(file).map_err(|error| Failure::Usage(format!("--from {name}: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let kind = gpuio_capture::kind_of(&text).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.command).collect();
        let known = known.join(", ");
        Failure::Usage(format!("--from {name}: it looks like none of: {known}"))
    })?;
    gpuio_capture::add(kind, &text, captured)
        .map_err(|error| Failure::Usage(format!("--from {name} ({}): {error}", kind.command)))
}
