//! Errors in the making of files, and their remedies.

use std::io;
use std::path::{Path, PathBuf};

use gpuio_base::units::human_bytes;
use gpuio_host::target::ReopenError;
use rustix::io::Errno;
use thiserror::Error;

use super::directory::free;
use super::manifest::ManifestError;

/// The flag that makes a data set smaller. Verbs with another one put it in its place.
pub(super) const LESS: &str = "a smaller --size";

/// A data set that could not be made. Files that this call created are removed again.
#[derive(Debug, Error)]
pub enum MakeError {
    /// Not enough space; nothing was started.
    #[error(
        "Not enough space on {}: {}; use {less} or fewer threads, or another --directory",
        mount.display(),
        room(*needed, *free),
        less = LESS
    )]
    NoSpace {
        /// Where the file system is mounted.
        mount: PathBuf,
        /// Bytes still to be allocated.
        needed: u64,
        /// Bytes free for this user.
        free: u64,
    },
    #[error(
        "{}: {length} bytes are more than this process may write to one file ({limit}); \
         raise the limit with `ulimit -f unlimited`",
        path.display()
    )]
    FileSizeLimit {
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// RLIMIT_FSIZE in bytes.
        limit: u64,
    },
    /// A system call failed.
    #[error("{}: {call}{}: {source}; {meaning}", path.display(), at(*offset))]
    Call {
        call: &'static str,
        path: PathBuf,
        /// Byte offset in the file, where there is one.
        offset: Option<u64>,
        /// The kernel's error.
        source: io::Error,
        meaning: String,
    },
    /// The file is not the one that was checked, or not as long.
    #[error(
        "{}: replaced or changed since it was checked; nothing was written to it; run again",
        path.display()
    )]
    Replaced { path: PathBuf },
    /// The stop flag was raised.
    #[error("{}: stopped before it was complete", path.display())]
    Stopped {
        /// The file that was being written.
        path: PathBuf,
    },
    /// A directory of gpuio's own name that is no directory of this user's alone.
    #[error(
        "{} is not used ({source}): it must be a directory of this user, with mode 700, and no \
         link; remove it, or choose another --directory",
        path.display()
    )]
    NotOwn { path: PathBuf, source: io::Error },
    /// The list of our files.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl MakeError {
    /// A failed call, with `left` bytes still to be written where that is known.
    pub fn call(
        call: &'static str,
        path: &Path,
        offset: Option<u64>,
        source: io::Error,
        left: Option<u64>,
    ) -> MakeError {
        let meaning = meaning(&source, path, left);
        MakeError::Call { call, path: path.to_owned(), offset, source, meaning }
    }

    /// A file that could not be opened, or is not the one that was checked.
    pub fn reopen(path: &Path, error: ReopenError) -> MakeError {
        match error {
            ReopenError::Call(source) => MakeError::call("open", path, None, source, None),
            ReopenError::Replaced => MakeError::Replaced { path: path.to_owned() },
        }
    }
}

/// In words; to the byte where rounded figures would be the same.
fn room(needed: u64, free: u64) -> String {
    let (more, there) = (human_bytes(needed as f64), human_bytes(free as f64));
    match more == there {
        true => format!("{needed} bytes needed, {free} bytes free"),
        false => format!("{more} needed, {there} free"),
    }
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at offset {offset}")).unwrap_or_default()
}

/// The meaning of a file's error for a person, and the next step (errno(3)).
pub(super) fn meaning(error: &io::Error, path: &Path, left: Option<u64>) -> String {
    let text = match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => return full(path, left),
        Some(Errno::DQUOT) => "this user's quota is used up; free some space or raise the quota",
        Some(Errno::IO) => "the storage failed; see the kernel log (dmesg)",
        Some(Errno::ACCESS | Errno::PERM) => {
            "this user may not do that here; use another --directory or change its permissions"
        }
        Some(Errno::ROFS) => "the file system is mounted read-only; use another --directory",
        Some(Errno::FBIG) => {
            return format!("larger than the file system or `ulimit -f` allows; use {LESS}");
        }
        Some(Errno::EXIST) => "another process made it after the check; run again",
        Some(Errno::NOENT) => "it or its directory does not exist; name another --directory",
        Some(Errno::LOOP) => "it is a symbolic link, which gpuio does not follow here; remove it",
        Some(Errno::BUSY) => "the system uses it; release it first",
        Some(Errno::MFILE | Errno::NFILE) => "too many open files; raise `ulimit -n`",
        Some(Errno::STALE) => "the server does not know the file any more; run again",
        _ => "this was not expected here; check the file system and the kernel log",
    };
    text.to_owned()
}

fn full(path: &Path, left: Option<u64>) -> String {
    no_space(left, free(path.parent().unwrap_or(path)))
}

/// The meaning of ENOSPC where so many bytes were still to be written, and so many are free by the
/// file system's own account.
fn no_space(left: Option<u64>, free: Option<u64>) -> String {
    if let Some((left, free)) = left.zip(free).filter(|(left, free)| free >= left) {
        return format!(
            "the file system has room ({free} bytes are free for the {left} that are missing), but \
             the storage below it has none: a thin volume, a pool, a sparse file or a quota that \
             is used up. Give that more space or use {LESS}"
        );
    }
    let needs = left.map_or_else(String::new, |left| format!(": it needs {left} more bytes"));
    let free = free.map(|free| format!("; {free} bytes are free")).unwrap_or_default();
    format!("the file system is full{needs}{free}; free some space or use {LESS}")
}

#[cfg(test)]
mod tests {
    use super::no_space;

    #[test]
    fn a_file_system_with_room_is_not_called_full() {
        let thin = no_space(Some(90_177_536), Some(107_059_200));
        assert!(thin.starts_with("the file system has room (107059200 bytes are free"), "{thin}");
        assert!(thin.contains("the storage below it has none") && !thin.contains("full"), "{thin}");
        let full = no_space(Some(90_177_536), Some(4096));
        let words = "the file system is full: it needs 90177536 more bytes; 4096 bytes are free;";
        assert!(full.starts_with(words), "{full}");
        for (left, free) in [(None, Some(9)), (Some(9), None), (None, None)] {
            assert!(
                no_space(left, free).starts_with("the file system is full"),
                "{left:?} {free:?}"
            );
        }
    }
}
