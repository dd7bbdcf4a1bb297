//! Removes what a run made, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gpuio_guard::outfile::Removed;
use thiserror::Error;

use super::error::meaning;
use super::make::Made;
use super::manifest::{self, ManifestError};

/// Something that stayed.
#[derive(Debug, Error)]
pub enum CleanError {
    /// Another file has the name now.
    #[error("{}: not removed: it is not the file that this run made", path.display())]
    Replaced { path: PathBuf },
    /// A system call failed.
    #[error("{}: not removed: {call}: {source}; {meaning}", path.display())]
    Call {
        call: &'static str,
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
        meaning: String,
    },
    /// The list of our files still has entries for files that are gone, which does no harm.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Removes the files of `made` that were created, takes them off the list of our files, and
/// removes `directories` (those that [`super::make::make_directories`] made) where they are empty.
/// Goes on after errors and returns them all; an empty answer means that everything is gone.
///
/// A file is removed from the directory that was held since it was made, wherever that is by now.
/// Linux has no call that unlinks by inode, so a file gets a name that is unpredictable before
/// it is looked at for the last time and removed ([`gpuio_guard::outfile::Directory::remove`]):
/// what another process puts under the old name at the same time stays.
#[must_use = "what could not be removed should be reported"]
pub fn clean(made: &[Made], directories: &[PathBuf]) -> Vec<CleanError> {
    let mut errors = Vec::new();
    let mut gone = Vec::new();
    for file in made.iter().filter(|file| file.created) {
        match remove(file) {
            Ok(()) => {
                gone.extend(file.target.dir_entry().map(|dir_entry| (dir_entry, file.identity)))
            }
            Err(error) => errors.push(error),
        }
    }
    if let Err(error) = manifest::forget(&gone) {
        errors.push(error.into());
    }
    for directory in directories.iter().rev() {
        match fs::remove_dir(directory) {
            Ok(()) => {}
            Err(error) if is_kept(&error) => {}
            Err(source) => errors.push(failed("rmdir", directory, source)),
        }
    }
    errors
}

/// Gone already, or it has something in it, or it is empty and may not go: a mount point, or in a
/// directory that is not the user's.
fn is_kept(error: &io::Error) -> bool {
    use io::ErrorKind::{DirectoryNotEmpty, NotFound, PermissionDenied, ResourceBusy};
    matches!(error.kind(), NotFound | DirectoryNotEmpty | ResourceBusy | PermissionDenied)
}

fn remove(file: &Made) -> Result<(), CleanError> {
    let path = &file.path;
    let replaced = |path: PathBuf| CleanError::Replaced { path };
    let dir_entry = file.target.dir_entry().ok_or_else(|| replaced(path.clone()))?;
    match dir_entry.remove(file.identity) {
        Ok(Removed::Gone) => Ok(()),
        Ok(Removed::Kept(kept)) => {
            let name = kept.file_name().unwrap_or_default();
            Err(replaced(path.with_file_name(name)))
        }
        // Its directory is gone, and it with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed("unlink", path, source)),
    }
}

fn failed(call: &'static str, path: &Path, source: io::Error) -> CleanError {
    let meaning = meaning(&source, path, None);
    CleanError::Call { call, path: path.to_owned(), source, meaning }
}
