//! Takes away what is proven ours in a directory that may hold other people's files too.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gpuio_base::pattern::Salt;
use gpuio_guard::outfile::{Directory, Removed};
use gpuio_host::Root;
use gpuio_record::GuardNote;

use super::Identity;
use super::manifest::{self, Lists};
use super::ownership::{Permit, Wanted, check_with};
use super::scratch;

/// Removes the data set in the directory `name` of `parent`: the files that the list in the
/// directory of them and their own state prove ours, then the list, then the directory if nothing
/// else is in it. Links are not followed. Files that stay are reported, a line for each kind of
/// thing.
#[must_use = "what stays should be reported"]
pub fn remove_ours(parent: &Directory, name: &OsStr, root: &Root) -> Vec<String> {
    let at = parent.path().join(name);
    let directory = match parent.below(name) {
        Ok(directory) => directory,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("{}: it stays: {error}", at.display())],
    };
    let mut lines = remove_files(&directory, root);
    match parent.remove_empty(name) {
        Ok(true) => {}
        Ok(false) => lines.push(stays(&at, &directory)),
        Err(error) => lines.push(format!("{}: it stays: {error}", at.display())),
    }
    lines
}

/// The files alone, and their list, of an open directory.
#[must_use = "what stays should be reported"]
pub fn remove_files(directory: &Directory, root: &Root) -> Vec<String> {
    let mut lines = scratch::clear_in(directory.path(), root, None);
    // The list has files by the real path of their directory.
    let real = directory.path().canonicalize().unwrap_or(directory.path().to_owned());
    let mut lists = Lists::default();
    let mut gone: Vec<(PathBuf, Identity)> = Vec::new();
    for file in directory.names().unwrap_or_default() {
        let path = real.join(&file);
        let Some(identity) = ours(&mut lists, &path, root) else { continue };
        match directory.remove(&file, identity) {
            Ok(Removed::Gone) => gone.push((path, identity)),
            Ok(Removed::Kept(kept)) => {
                lines.push(format!("{}: another file has the name, and stays", kept.display()));
            }
            Err(error) => lines.push(format!("{}: it stays: {error}", path.display())),
        }
    }
    // With nothing to forget it still takes away what a run that was killed here left of the list.
    let nothing = (real.join(manifest::FILE_NAME), Identity { dev: 0, ino: 0 });
    let gone: Vec<(&Path, Identity)> =
        gone.iter().chain([&nothing]).map(|(path, id)| (path.as_path(), *id)).collect();
    if let Err(error) = manifest::forget_named(&gone) {
        lines.push(error.to_string());
    }
    lines
}

/// Removes this user's files of a data set that are empty: a run that was killed between making a
/// file and listing it left it so. Nothing is lost with one.
pub fn remove_empty(parent: &Directory, name: &OsStr) {
    let Ok(directory) = parent.below(name) else { return };
    let real = directory.path().canonicalize().unwrap_or(directory.path().to_owned());
    let mut gone = Vec::new();
    for file in directory.names().unwrap_or_default() {
        let found = directory.look(&file).ok().flatten();
        let empty = found.filter(|found| found.is_mine() && found.size == 0);
        if let Some(found) = empty.filter(|_| is_of_a_data_set(&file)) {
            // One that stays is checked by the next run.
            let removed = directory.remove(&file, found.identity);
            if removed.is_ok_and(|removed| removed == Removed::Gone) {
                gone.push((real.join(&file), found.identity));
            }
        }
    }
    let gone: Vec<(&Path, Identity)> =
        gone.iter().map(|(path, id)| (path.as_path(), *id)).collect();
    // Entries of files that are gone would keep the list, and so the directory.
    let _ = manifest::forget_named(&gone);
}

/// `PREFIX.NUMBER`, as files of `--directory` are called.
fn is_of_a_data_set(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| Some(name.rsplit_once('.')?.1));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The identity of a file that the guard would let a run overwrite without the user's consent.
pub(super) fn ours(lists: &mut Lists<'_>, path: &Path, root: &Root) -> Option<Identity> {
    let wanted = Wanted {
        path: path.to_owned(),
        first: 0,
        length: 0,
        writes: true,
        reads: false,
        as_planned: false,
        needs_pattern: false,
        laid_out: false,
        other: None,
        holes: Vec::new(),
        rest: false,
        directory: path.parent().map(Path::to_owned),
        salt: Salt::from(0),
        file_number: 0,
    };
    let verdict = check_with(lists, &wanted, &Permit::default(), root).ok()?;
    // A link leads to a file that is not here.
    let here = verdict.path == path;
    let own = matches!(verdict.note, GuardNote::Ours | GuardNote::Remake);
    verdict.target.filter(|_| own && here).map(|target| target.identity())
}

fn stays(at: &Path, directory: &Directory) -> String {
    let names = directory.names().unwrap_or_default();
    let count = names.len();
    let first = names.iter().min().map_or_else(String::new, |name| name.display().to_string());
    format!("{}: it stays, since {count} files in it are not gpuio's ({first} …)", at.display())
}
