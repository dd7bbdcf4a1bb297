//! Notes of what is read from a directory, so that a capture holds just that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tree::{Entry, Tree, walk};

/// The notes of a root so far. Clones share their notes.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    notes: Arc<Mutex<Tree>>,
}

impl Recorder {
    /// All that was recorded: files with the bytes that were read, links and directories on the way
    /// to them, and the names in directories that were listed, where those are links or
    /// directories themselves.
    pub fn tree(&self) -> Tree {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        // A tree is whole after each call, so a thread that died in between harms nothing.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file's bytes.
    pub(crate) fn file(&self, base: &Path, path: &Path, bytes: &[u8]) {
        let mut notes = self.lock();
        if let Some(real) = trace(&mut notes, base, path, true) {
            notes.put(&real, Entry::File(bytes.to_vec()));
        }
    }

    /// Bytes of a file from `at`; what was not read before and after them is zero.
    pub(crate) fn piece(&self, base: &Path, path: &Path, at: u64, bytes: &[u8]) {
        let mut notes = self.lock();
        let Some(real) = trace(&mut notes, base, path, true) else { return };
        let Some(start) = usize::try_from(at).ok() else { return };
        let mut whole = match notes.at(&real) {
            Some(Entry::File(known)) => known.clone(),
            _ => Vec::new(),
        };
        whole.resize(whole.len().max(start + bytes.len()), 0);
        whole[start..start + bytes.len()].copy_from_slice(bytes);
        notes.put(&real, Entry::File(whole));
    }

    /// That something is there.
    pub(crate) fn there(&self, base: &Path, path: &Path) {
        let mut notes = self.lock();
        let Some(real) = trace(&mut notes, base, path, true) else { return };
        if notes.at(&real).is_none() {
            let directory = base.join(&real).is_dir();
            notes.put(&real, if directory { empty() } else { Entry::File(Vec::new()) });
        }
    }

    /// A link that was read.
    pub(crate) fn link(&self, base: &Path, path: &Path) {
        trace(&mut self.lock(), base, path, false);
    }

    pub(crate) fn list(&self, base: &Path, path: &Path, names: &[String]) {
        let mut notes = self.lock();
        let Some(real) = trace(&mut notes, base, path, true) else { return };
        notes.put(&real, empty());
        for name in names {
            let full = real.join(name);
            let Ok(kind) = fs::symlink_metadata(base.join(&full)) else { continue };
            if kind.is_dir() {
                notes.put(&full, empty());
            } else if let Ok(target) = fs::read_link(base.join(&full)) {
                notes.put(&full, Entry::Link(target));
            }
        }
    }
}

fn empty() -> Entry {
    Entry::Directory(BTreeSet::new())
}

/// Follows a path, records the links on it, and returns where it ends; with `last`, a link
/// at the end is followed too. Links out of `base` are taken as if `base` were the root.
fn trace(notes: &mut Tree, base: &Path, path: &Path, last: bool) -> Option<PathBuf> {
    walk(path, last, |real, is_end| {
        let target = match notes.at(real) {
            Some(Entry::Link(target)) => Some(target.clone()),
            Some(_) => None,
            // `self` is this process: its number means nothing to others.
            None if real == Path::new("proc/self") => None,
            None => fs::read_link(base.join(real)).ok(),
        };
        match &target {
            Some(target) => _ = notes.put(real, Entry::Link(target.clone())),
            None if is_end => {}
            None => _ = notes.put(real, empty()),
        }
        Some(target)
    })
}
