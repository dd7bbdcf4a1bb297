//! Whether the file system at a path answers at all.
//!
//! A hard mount of NFS whose server is gone keeps every call waiting, for ever. So the first look
//! at a path that a user names is [`answers`], and nothing else touches it before.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Root;
use crate::mount::{self, Mount};

/// A disk that has to spin up first, and a server that is started anew, answer sooner.
pub const LIMIT: Duration = Duration::from_secs(10);

/// A path whose file system did not answer within [`LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    /// The path as it was named.
    pub path: PathBuf,
    /// Where the look at it came to a stop.
    pub at: PathBuf,
    /// The mount there, its type and its source; absent where the table of mounts has none.
    pub mount: Option<(PathBuf, String, String)>,
}

impl std::error::Error for Silent {}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no answer in {} s from ", self.path.display(), LIMIT.as_secs())?;
        match &self.mount {
            Some((place, kind, source)) => {
                write!(f, "the mount {} ({kind}, {source})", place.display())?;
            }
            None => write!(f, "{}", self.at.display())?,
        }
        f.write_str(
            ": its server may be gone. Mount it anew (umount -l takes it away), or name another \
             path",
        )
    }
}

/// Looks at `path`, or at the nearest directory above it that is there, on a thread of its own:
/// each name on the way, and then the file system (statvfs(3), for which a client of NFS asks the
/// server each time).
///
/// # Errors
/// [`Silent`] if that takes longer than [`LIMIT`]. The thread then waits on, until the file system
/// answers or the process ends.
pub fn answers(path: &Path) -> Result<(), Silent> {
    let Ok(absolute) = std::path::absolute(path) else { return Ok(()) };
    let at = Arc::new(Mutex::new(PathBuf::from("/")));
    let walk = {
        let (at, absolute) = (Arc::clone(&at), absolute);
        let note = move |now: &Path| {
            now.clone_into(&mut at.lock().unwrap_or_else(PoisonError::into_inner));
        };
        move || walk(&absolute, note)
    };
    if in_time(LIMIT, walk).is_some() {
        return Ok(());
    }
    let at = at.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mounts = mount::read(&Root::live()).unwrap_or_default();
    let of = |mount: &Mount| {
        let source = mount.source.to_string_lossy().into_owned();
        (mount.mount_point.clone(), mount.fs_type.clone(), source)
    };
    Err(Silent { path: path.to_owned(), mount: mount::find(&mounts, &at).map(of), at })
}

/// Goes from the root to `path`, and calls `before` with each place before it is touched.
fn walk(path: &Path, before: impl Fn(&Path)) {
    let mut at = PathBuf::from("/");
    for name in path.components().skip(1) {
        let next = at.join(name);
        before(&next);
        // Links are followed by the kernel, unless what they name is elsewhere: then it is there
        // that the next call waits.
        if let Ok(to) = std::fs::read_link(&next) {
            before(&at.join(to));
        }
        match next.canonicalize() {
            Ok(found) => at = found,
            Err(_) => break,
        }
    }
    before(&at);
    // The caller finds out what is wrong with a file system that answers.
    let _ = rustix::fs::statvfs(&at);
}

/// The result of `call`, if it comes in this time; its thread is left behind otherwise.
fn in_time<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (to, from) = sync_channel(1);
    let builder = std::thread::Builder::new().name("gpuio-look".to_owned());
    // The receiver is gone where it took too long.
    builder.spawn(move || drop(to.send(call()))).ok()?;
    from.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn paths_that_are_there_and_those_that_are_not_answer() {
        for path in ["/", ".", "/proc/self/exe", "no/such/file", "/proc/none/x"] {
            assert_eq!(answers(Path::new(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_call_that_never_returns_is_left_behind() {
        let (keep, never) = channel::<()>();
        let waits = move || never.recv().is_ok();
        assert_eq!(in_time(Duration::from_millis(20), waits), None);
        assert_eq!(in_time(LIMIT, || 7), Some(7));
        drop(keep);
    }

    #[test]
    fn the_places_on_the_way_are_named_before_they_are_touched() {
        let dir = std::env::temp_dir().canonicalize().unwrap();
        let seen = Mutex::new(Vec::new());
        walk(&dir.join("no-such-file-of-gpuio"), |at| seen.lock().unwrap().push(at.to_owned()));
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.last(), Some(&dir));
        assert!(seen.contains(&dir.join("no-such-file-of-gpuio")), "{seen:?}");
    }

    #[test]
    fn the_mount_is_named() {
        let mount = Some(("/mnt/a".into(), "nfs4".to_owned(), "filer:/a".to_owned()));
        let silent = Silent { path: "d".into(), at: "/mnt/a/d".into(), mount };
        let said = silent.to_string();
        assert!(said.starts_with("d: no answer in 10 s from the mount /mnt/a (nfs4, filer:/a): "));
    }
}
