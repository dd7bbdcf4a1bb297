use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::*;

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("data/sub")).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("data/sub/f"), "ours").unwrap();
    fs::write(dir.path().join("other/f"), "precious").unwrap();
    symlink("../other/f", dir.path().join("data/link")).unwrap();
    symlink("../other", dir.path().join("data/away")).unwrap();
    symlink("sub", dir.path().join("data/within")).unwrap();
    symlink("data", dir.path().join("named")).unwrap();
    dir
}

fn errno(result: io::Result<OwnedFd>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

type Open<'a> = &'a dyn Fn(BorrowedFd<'_>, &Path, OFlags) -> io::Result<OwnedFd>;

/// openat2 and the walk that stands in for it give the same answers.
#[test]
fn no_link_is_followed_below_a_directory() {
    let dir = tree();
    let data = Directory::open(&dir.path().join("named")).unwrap();
    assert_eq!(data.path(), dir.path().canonicalize().unwrap().join("data"));
    let by_walk = |dir: BorrowedFd<'_>, path: &Path, flags| Ok(walk(dir, path, flags)?);
    let methods: [Open<'_>; 2] = [&open_below, &by_walk];
    for method in methods {
        let open = |path: &str| method(data.as_fd(), Path::new(path), MARK);
        let opened = statx::stamp(&open("sub/f").unwrap()).unwrap();
        assert_eq!(opened.size, 4);
        open("./sub/./f").unwrap();
        for path in ["link", "away/f", "away", "within", "within/f"] {
            assert_eq!(errno(open(path)), Some(Errno::LOOP), "{path}");
        }
        for path in ["../other/f", "/etc/passwd", "sub/../../other/f"] {
            assert_eq!(errno(open(path)), Some(Errno::XDEV), "{path}");
        }
        assert_eq!(errno(open("none")), Some(Errno::NOENT));
        assert_eq!(errno(open("sub/f/g")), Some(Errno::NOTDIR));
        let below = |path: &str| method(data.as_fd(), Path::new(path), MARK | OFlags::DIRECTORY);
        below("sub").unwrap();
        assert_eq!(errno(below("within")), Some(Errno::LOOP));
        assert_eq!(errno(below("sub/f")), Some(Errno::NOTDIR));
    }
}

/// The name is exchanged between check and open: the file that was checked is opened.
#[test]
fn what_was_held_is_opened_whatever_has_its_name() {
    let dir = tree();
    let (path, victim) = (dir.path().join("data/sub/f"), dir.path().join("other/f"));
    let held = Opened::named(&path).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&victim, &path).unwrap();
    let again = held.reopen(OFlags::RDWR).unwrap();
    assert_eq!(fs::File::from(again).metadata().unwrap().len(), 4);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

/// Without /proc the path is all there is: a link is not followed, another file is refused.
#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    let dir = tree();
    let (path, victim) = (dir.path().join("data/sub/f"), dir.path().join("other/f"));
    let held = Opened::named(&path).unwrap();
    held.reopen_by_path(OFlags::RDWR).unwrap();
    fs::rename(&path, dir.path().join("kept")).unwrap();
    fs::hard_link(&victim, &path).unwrap();
    let error = held.reopen_by_path(OFlags::RDWR).unwrap_err();
    assert!(matches!(error, ReopenError::Replaced), "{error}");
    assert!(error.to_string().contains("Nothing was written"), "{error}");
    fs::remove_file(&path).unwrap();
    symlink(&victim, &path).unwrap();
    let error = held.reopen_by_path(OFlags::RDWR).unwrap_err();
    assert!(matches!(error, ReopenError::Call(_)), "{error}");
}

/// NVIDIA's cuFile takes no descriptor with that flag.
#[test]
fn what_is_opened_again_has_no_o_nofollow() {
    let dir = tree();
    let path = dir.path().join("data/sub/f");
    let held = Opened::named(&path).unwrap();
    let again = Opened::again(&path, &held.stamp()).unwrap();
    for held in [&held, &again] {
        for fd in [held.reopen(OFlags::RDWR), held.reopen_by_path(OFlags::RDWR)] {
            let flags = rustix::fs::fcntl_getfl(fd.unwrap()).unwrap();
            assert!(!flags.contains(OFlags::NOFOLLOW), "{flags:?}");
        }
    }
    let victim = dir.path().join("other/f");
    fs::rename(&path, dir.path().join("kept")).unwrap();
    symlink(&victim, &path).unwrap();
    let error = Opened::again(&path, &held.stamp()).unwrap_err();
    assert!(matches!(error, ReopenError::Replaced), "{error}");
}

#[test]
fn a_stamp_distinguishes_files_and_their_changes() {
    let dir = tree();
    let path = dir.path().join("data/sub/f");
    let held = Opened::named(&path).unwrap();
    let first = held.look().unwrap();
    assert!(first.is_same_file(&held.stamp()) && first.is_unchanged(&held.stamp()));
    let file = File::options().write(true).open(&path).unwrap();
    let mtime = file.metadata().unwrap().modified().unwrap();
    rustix::fs::ftruncate(&file, 3).unwrap();
    rustix::fs::ftruncate(&file, 4).unwrap();
    file.set_modified(mtime).unwrap();
    let edited = held.look().unwrap();
    assert!(edited.is_same_file(&first));
    assert_eq!((edited.size, edited.mtime_ns), (first.size, first.mtime_ns));
    assert!(edited.ctime_ns >= first.ctime_ns);
    let other = statx::stamp(&File::open(dir.path().join("other/f")).unwrap()).unwrap();
    assert!(!other.is_same_file(&first));
    let reborn = Stamp { birth_ns: first.birth_ns.map(|at| at + 1), ..first };
    assert_eq!(reborn.is_same_file(&first), first.birth_ns.is_none());
}
