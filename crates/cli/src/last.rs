//! The record of this user's last run, beside the journals: what the screen of a run leaves out
//! stands there until the next one ends. Runs that end together leave one of theirs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gpuio_guard::outfile::{Draft, Place, make_place};
use gpuio_record::Record;
use gpuio_report::format::json;

use crate::child;
use crate::journal::begins_as_record;

/// The word for it where a record is named, and its file's name without `.json`.
pub(crate) const LAST: &str = "last";
const FILE: &str = "last.json";

/// Where it lies, if anything does.
pub(crate) fn path() -> Option<PathBuf> {
    let path = Place::STATE.path()?.join(FILE);
    path.is_file().then_some(path)
}

/// The file that is meant by the name of a record: that of the last run, for its word, where no
/// file has this name.
pub(crate) fn meant(named: &Path) -> PathBuf {
    let last = (named == Path::new(LAST) && !named.exists()).then(path).flatten();
    last.unwrap_or_else(|| named.to_owned())
}

/// Puts this record in its place; whether it is there. A run of a sweep is none of its user's.
pub(crate) fn keep(record: &Record) -> bool {
    !child::is_of_a_sweep() && !child::is_of_ab() && put(record).is_ok()
}

/// It is there for a user who looks now: nothing waits for storage.
fn put(record: &Record) -> std::io::Result<()> {
    let at = Place::STATE.path().ok_or(std::io::ErrorKind::NotFound)?;
    let directory = make_place(&at)?;
    let name = OsStr::new(FILE);
    let _ = directory.clear_drafts(name, begins_as_record);
    let old = directory.mine(name)?.filter(|old| begins_as_record(old.file()));
    let draft = Draft::begin(directory, name)?;
    draft.fill_unsynced(json::render(record).as_bytes())?;
    let replaced = draft.replace(old.as_ref().map(|old| old.file()));
    replaced.map(drop).map_err(|unnamed| unnamed.error)
}
