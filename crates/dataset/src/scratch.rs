//! Records who owns scratch files, so that a later run can remove those of a crashed one.
//!
//! Beside files that this run makes and does not keep lies `.gpuio-scratch-RANDOM`, from before the
//! first of them is made until the last is gone. It names them, and its lock dies with the process
//! (flock(2)): who gets the lock has found a run that was killed, and takes away what is proven
//! ours.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gpuio_base::units::ShellLine;
use gpuio_guard::outfile::{Directory, Draft, Identity, Removed};
use gpuio_host::Root;
use gpuio_record::JobPlan;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::MakeError;
use super::content::Looks;
use super::directory::directory_of;
use super::leftover::ours;
use super::manifest::{self, Lists};

const PREFIX: &str = ".gpuio-scratch-";
/// Names of a thousand files take some 20 KB.
const MOST_BYTES: u64 = 16 << 20;

/// The contents of an owner file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Says {
    /// Version of this form.
    gpuio_scratch: u32,
    /// For a person who finds it.
    pid: u32,
    /// Whether the run made the directory.
    made_directory: bool,
    /// Names that it was about to make, and to remove at its end.
    files: Vec<String>,
    /// Names that it was about to make and to keep: of these only what is empty goes.
    #[serde(default)]
    kept: Vec<String>,
}

/// A file that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Coming<'a> {
    pub path: &'a Path,
    pub keep: bool,
}

/// The owner of the scratch files in one directory, which go by [`Owner::remove`].
#[derive(Debug)]
pub struct Owner {
    directory: Directory,
    name: OsString,
    /// Holds the lock.
    file: File,
}

impl Owner {
    /// Names the files before they are made.
    fn put(path: &Path, files: &[Coming<'_>], made_directory: bool) -> std::io::Result<Owner> {
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!("{PREFIX}{random:016x}"));
        let names = |keep: bool| {
            let those = files.iter().filter(|file| file.keep == keep);
            let names = those.filter_map(|file| file.path.file_name()?.to_str());
            names.map(str::to_owned).collect()
        };
        let (files, kept) = (names(false), names(true));
        let says = Says { gpuio_scratch: 1, pid: std::process::id(), made_directory, files, kept };
        let directory = Directory::open(path)?;
        let draft = Draft::begin(directory.try_clone()?, &name)?;
        draft.fill(&serde_json::to_vec(&says)?)?;
        let file = draft.give_name().map_err(|unnamed| unnamed.error)?;
        Ok(Owner { directory, name, file })
    }

    /// When the files are gone.
    pub fn remove(self) {
        // One that stays is found by the next run, and then names nothing that is there.
        let _ = Identity::of(&self.file).and_then(|own| self.directory.remove(&self.name, own));
    }
}

/// Owners for `files` in each of their directories; `made` are those that this run made and is to
/// remove.
///
/// # Errors
/// [`MakeError::Call`] with `open`.
pub fn own(files: &[Coming<'_>], made: &[PathBuf]) -> Result<Vec<Owner>, MakeError> {
    let mut directories: BTreeMap<&Path, Vec<Coming<'_>>> = BTreeMap::new();
    for file in files {
        directories.entry(directory_of(file.path)).or_default().push(*file);
    }
    let put = |(path, files): (&Path, Vec<Coming<'_>>)| {
        let made = made.iter().any(|made| made == path);
        Owner::put(path, &files, made)
            .map_err(|source| MakeError::call("open", path, None, source, None))
    };
    directories.into_iter().map(put).collect()
}

/// Takes away what runs of this user that were killed left where these jobs have their files, as
/// far as it is proven ours. A line for each thing that was found and stays.
#[must_use = "what stays should be reported"]
pub fn clear(jobs: &[JobPlan], root: &Root, looks: &Looks<'_>) -> Vec<String> {
    let targets = jobs.iter().flat_map(|job| &job.targets);
    let mut places: Vec<&Path> = targets.map(|t| directory_of(Path::new(&t.path))).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().flat_map(|place| clear_in(place, root, Some(looks))).collect()
}

/// The same in one directory.
pub(super) fn clear_in(path: &Path, root: &Root, looks: Option<&Looks<'_>>) -> Vec<String> {
    let Ok(directory) = Directory::open(path) else { return Vec::new() };
    let names = directory.names().unwrap_or_default();
    let owners = names.into_iter().filter(|name| is_owner(name));
    owners.filter_map(|name| dead(&directory, &name, root, looks)).flatten().collect()
}

fn is_owner(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    random.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The leftovers of a run, if it was this user's and is dead.
fn dead(
    directory: &Directory,
    name: &OsStr,
    root: &Root,
    looks: Option<&Looks<'_>>,
) -> Option<Vec<String>> {
    let file = directory.mine(name).ok()??.into_file();
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut text = Vec::new();
    (&file).take(MOST_BYTES).read_to_end(&mut text).ok()?;
    let says: Says = serde_json::from_slice(&text).ok()?;
    let real = directory.path().canonicalize().ok()?;
    let mut lines = Vec::new();
    let mut gone = Vec::new();
    let mut lists = Lists::with(looks, Vec::new());
    for name in says.kept.iter().filter(|name| !name.contains('/')) {
        let found = directory.look(OsStr::new(name)).ok().flatten();
        if let Some(found) = found.filter(|found| found.is_mine() && found.size == 0) {
            // It was made and not listed yet, and would stand in the way as another owner's.
            let _ = directory.remove(OsStr::new(name), found.identity);
        }
    }
    for name in says.files.iter().filter(|name| !name.contains('/')) {
        let path = real.join(name);
        match take_away(directory, &path, &mut lists, root) {
            Taken::Gone(identity) => gone.push((path, identity)),
            Taken::Absent => {}
            Taken::Stays(why) => {
                lines.push(format!(
                    "a run that was killed (process {}) left {}, which stays: {why}; if it may \
                     go: {}",
                    says.pid,
                    path.display(),
                    ShellLine::new("rm").file(&path)
                ));
            }
        }
    }
    // With nothing to forget it still takes away the lock of a list that is not there.
    let nothing = (real.join(name), Identity { dev: 0, ino: 0 });
    let all = gone.iter().chain([&nothing]).map(|(path, id)| (path.as_path(), *id));
    if let Err(error) = manifest::forget_named(&all.collect::<Vec<_>>()) {
        lines.push(error.to_string());
    }
    let _ = Identity::of(&file).and_then(|own| directory.remove(name, own));
    if says.made_directory
        && let (Some(parent), Some(name)) = (real.parent(), real.file_name())
        && let Ok(parent) = Directory::open(parent)
    {
        // It stays with what someone has put into it.
        let _ = parent.remove_empty(name);
    }
    Some(lines)
}

enum Taken {
    Gone(Identity),
    Absent,
    Stays(String),
}

fn take_away(directory: &Directory, path: &Path, lists: &mut Lists<'_>, root: &Root) -> Taken {
    let Some(name) = path.file_name() else { return Taken::Absent };
    let found = match directory.look(name) {
        Ok(Some(found)) => found,
        Ok(None) => return Taken::Absent,
        Err(error) => return Taken::Stays(error.to_string()),
    };
    // One that is empty was made and not listed yet, and holds nothing that could be lost.
    let empty = found.is_mine() && found.size == 0;
    let known = ours(lists, path, root);
    let identity = known.or_else(|| empty.then_some(found.identity));
    let Some(identity) = identity else {
        return Taken::Stays("what is in it now is not gpuio's".to_owned());
    };
    match directory.remove(name, identity) {
        Ok(Removed::Gone) => Taken::Gone(identity),
        Ok(Removed::Kept(_)) => Taken::Stays("another file took its name just now".to_owned()),
        Err(error) => Taken::Stays(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
    }

    /// An owner whose process is gone, as one is whose file is closed.
    fn killed(dir: &Path, coming: &[(&str, bool)]) {
        let paths: Vec<PathBuf> = coming.iter().map(|(name, _)| dir.join(name)).collect();
        let files = paths.iter().zip(coming).map(|(path, (_, keep))| Coming { path, keep: *keep });
        drop(own(&files.collect::<Vec<_>>(), &[]).unwrap());
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_made_and_not_listed_goes_while_it_is_empty() {
        let dir = directory();
        killed(dir.path(), &[("gone", false), ("kept", true), ("full", true), ("own", false)]);
        for (name, text) in [("gone", ""), ("kept", ""), ("full", "mine"), ("own", "mine")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::write(dir.path().join("other"), "").unwrap();
        let lines = clear_in(dir.path(), &Root::live(), None);
        assert!(lines.len() == 1 && lines[0].ends_with("/own"), "{lines:?}");
        assert_eq!(names(dir.path()), ["full", "other", "own"]);
    }

    /// In a directory where others may write, one of them gives the name to an own empty file.
    #[test]
    fn an_empty_file_of_another_user_stays() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: only root can give a file away");
        }
        let dir = directory();
        killed(dir.path(), &[("f", false), ("kept", true)]);
        for name in ["f", "kept", "gpuio.0"] {
            std::fs::write(dir.path().join(name), "").unwrap();
            std::os::unix::fs::chown(dir.path().join(name), Some(65534), None).unwrap();
        }
        let lines = clear_in(dir.path(), &Root::live(), None);
        assert!(lines.len() == 1 && lines[0].contains("is not gpuio's"), "{lines:?}");
        let parent = Directory::open(dir.path().parent().unwrap()).unwrap();
        crate::leftover::remove_empty(&parent, dir.path().file_name().unwrap());
        assert_eq!(names(dir.path()), ["f", "gpuio.0", "kept"]);
    }

    #[test]
    fn the_files_of_a_run_that_lives_stay() {
        let dir = directory();
        let path = dir.path().join("f");
        let owners = own(&[Coming { path: &path, keep: false }], &[]).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(clear_in(dir.path(), &Root::live(), None), Vec::<String>::new());
        assert!(path.exists());
        owners.into_iter().for_each(Owner::remove);
        assert_eq!(names(dir.path()), ["f"]);
    }
}
