//! Directories of this user's settings, state and caches (XDG Base Directory Specification 0.8).

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, mkdirat};
use rustix::io::Errno;

use crate::objects::{environment, trust};
use crate::outfile::Directory;

/// Where something of gpuio's lies: by which variable, and where below the home directory without
/// it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    variable: &'static str,
    below_home: &'static str,
}

impl Place {
    /// `$XDG_STATE_HOME/gpuio`, or `~/.local/state/gpuio`.
    pub const STATE: Place = Place { variable: "XDG_STATE_HOME", below_home: ".local/state" };
    /// `$XDG_CACHE_HOME/gpuio`, or `~/.cache/gpuio`.
    pub const CACHE: Place = Place { variable: "XDG_CACHE_HOME", below_home: ".cache" };

    /// As the variables say; `None` where none is set. It may be another user's: [`make_place`].
    pub fn path(self) -> Option<PathBuf> {
        let home = || environment::absolute("HOME").map(|home| home.join(self.below_home));
        Some(environment::absolute(self.variable).or_else(home)?.join("gpuio"))
    }
}

/// The directory of this path, which is made with mode 0700 where it is absent. Every name on the
/// way is root's or this user's, and so is every link: nothing is made or opened where another
/// user decides what a name means.
///
/// # Errors
/// As for [`trust::way`]; mkdirat(2), open(2).
pub fn make_place(path: &Path) -> io::Result<Directory> {
    let trust::Way { there: mut at, absent } = trust::way(path)?;
    for name in absent {
        at.push(name);
        match mkdirat(CWD, &at, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // Another process may have made a name meanwhile, in a sticky directory.
    let foreign = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
    trust::directory(&at).map_err(foreign)?;
    Directory::open(&at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};

    use super::*;

    const OTHER: u32 = 65534;

    #[test]
    fn a_place_is_made_for_this_user_and_through_links_of_its_own() {
        let root = tempfile::tempdir_in("/tmp").unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("data")).unwrap();
        symlink("data", at("link")).unwrap();
        make_place(&at("link/a/../b/gpuio")).unwrap_err();
        let made = make_place(&at("link/b/gpuio")).unwrap();
        assert_eq!(made.path(), std::fs::canonicalize(at("data/b/gpuio")).unwrap());
        assert_eq!(std::fs::metadata(at("data/b")).unwrap().mode() & 0o777, 0o700);
        make_place(&at("link/b/gpuio")).unwrap();
        symlink("loop", at("loop")).unwrap();
        make_place(&at("loop/gpuio")).unwrap_err();
        std::fs::write(at("file"), "").unwrap();
        make_place(&at("file/gpuio")).unwrap_err();
    }

    #[test]
    fn nothing_is_made_below_another_users_directory_nor_through_a_link_of_its() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can give a file away");
            return;
        }
        let root = tempfile::tempdir_in("/tmp").unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["home", "mine"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        symlink(at("mine"), at("home/state")).unwrap();
        symlink(at("mine"), at("link")).unwrap();
        std::os::unix::fs::lchown(at("link"), Some(OTHER), None).unwrap();
        chown(at("home"), Some(OTHER), None).unwrap();
        for name in ["home/gpuio", "home/state/gpuio", "link/gpuio"] {
            let why = make_place(&at(name)).unwrap_err();
            assert!(why.to_string().contains("belongs to user 65534"), "{why}");
        }
        assert_eq!(std::fs::read_dir(at("home")).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(at("mine")).unwrap().count(), 0);
    }
}
