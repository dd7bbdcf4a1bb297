mod clean;
mod content;
mod held;
mod hosts;
mod make;
mod manifest;
mod ownership;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpuio_host::Root;
use gpuio_host::target::Directory;
use gpuio_record::GuardNote;
use tempfile::TempDir;

use super::held::{Budget, DirEntry, Held};
use super::make::{Contents, Made, Task, make};
use super::manifest::{Holds, Known, ManifestError, find};
use super::ownership::{Permit, Verdict, Wanted, check as check_target};
use super::{Identity, MakeError, Progress, Refusal};

const MIB: u64 = 1 << 20;

#[derive(Default)]
struct Count(AtomicU64);

impl Progress for Count {
    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// On the file system of the build, which mostly does O_DIRECT; `/tmp` is often tmpfs.
fn directory() -> TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

fn wanted(path: &Path, length: u64) -> Wanted {
    Wanted {
        path: path.to_owned(),
        first: 0,
        length,
        writes: false,
        reads: true,
        as_planned: false,
        needs_pattern: false,
        laid_out: true,
        other: None,
        holes: Vec::new(),
        rest: false,
        directory: path.parent().map(Path::to_owned),
        salt: 11.into(),
        file_number: 3,
    }
}

fn writing(path: &Path, length: u64) -> Wanted {
    Wanted { writes: true, reads: false, laid_out: false, ..wanted(path, length) }
}

fn permit() -> Permit {
    Permit { make_missing: true, ..Permit::default() }
}

fn look(wanted: &Wanted, permit: &Permit) -> Result<Verdict, Refusal> {
    check_target(wanted, permit, &Root::live())
}

fn make_files(
    tasks: &[Task],
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Vec<Made>, MakeError> {
    make(tasks, progress, stop, &Budget::of(None, 0))
}

/// The file with this name now.
fn held(path: &Path) -> Arc<Held> {
    Arc::new(Held::named(path).unwrap())
}

fn identity(path: &Path) -> Identity {
    held(path).identity()
}

/// Marks one file as in use.
fn begin(path: &Path) -> Result<(), ManifestError> {
    super::manifest::begin(&[held(path)])
}

/// Lists one file anew.
fn finalize(path: &Path, holds: Option<Holds>) -> Result<(), ManifestError> {
    super::manifest::finalize(&[(held(path), holds.map(Known::whole))])
}

/// Checks with the usual permit and makes what that asks for.
fn prepare(wanted: &Wanted) -> Result<Vec<Made>, MakeError> {
    let verdict = look(wanted, &permit()).expect("the target may be used");
    let task = Task::of(wanted, &verdict).expect("there is something to make");
    make_files(&[task], &Count::default(), &AtomicBool::new(false))
}

fn holds_pattern(path: &Path, salt: u64, file_number: u64) -> bool {
    let key = gpuio_base::pattern::file_key(salt, file_number);
    gpuio_base::pattern::check(&fs::read(path).unwrap(), key, 0).is_none()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn task(path: PathBuf, length: u64) -> Task {
    let above = Directory::open(path.parent().unwrap()).ok();
    Task {
        dir_entry: above.map(|above| DirEntry::new(above, path.file_name().unwrap())),
        path,
        length,
        salt: 11.into(),
        file_number: 3,
        contents: Contents::Pattern,
        anew: true,
        guard: GuardNote::Make,
        target: None,
        kept: 0,
        parts: Vec::new(),
        other: Vec::new(),
        holes: Vec::new(),
    }
}
