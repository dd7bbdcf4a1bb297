use std::fs;

use super::*;

fn setting() -> (tempfile::TempDir, Directory) {
    let dir = tempfile::tempdir().unwrap();
    let open = Directory::open(dir.path()).unwrap();
    (dir, open)
}

fn identity(path: &Path) -> Identity {
    Identity::of(File::open(path).unwrap()).unwrap()
}

/// The name was exchanged after the look: what comes away is another file, and goes back.
#[test]
fn a_file_that_came_between_look_and_removal_gets_its_name_back() {
    let (dir, open) = setting();
    let (path, name) = (dir.path().join("f"), OsStr::new("f"));
    fs::write(&path, "ours").unwrap();
    let ours = identity(&path);
    fs::rename(&path, dir.path().join("ours")).unwrap();
    fs::write(&path, "precious").unwrap();
    assert_eq!(open.take_away(name, ours).unwrap(), Removed::Kept(path.clone()));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("ours", &path).unwrap();
    assert_eq!(open.take_away(name, ours).unwrap(), Removed::Kept(path.clone()));
    assert!(path.is_symlink() && dir.path().join("ours").exists());
    fs::remove_file(&path).unwrap();
    assert_eq!(open.take_away(name, ours).unwrap(), Removed::Gone);
    assert_eq!(open.take_away(OsStr::new("ours"), ours).unwrap(), Removed::Gone);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Every method to give a new name refuses one that is taken, and leaves both files.
#[test]
fn no_way_to_a_new_name_takes_one_that_is_taken() {
    type Method = fn(&Directory, &OsStr, &OsStr) -> Result<(), Errno>;
    let methods: [Method; 3] = [Directory::rename_new, Directory::link_new, Directory::claim_new];
    for method in methods {
        let (dir, open) = setting();
        fs::write(dir.path().join("own"), "own").unwrap();
        fs::write(dir.path().join("taken"), "precious").unwrap();
        let (own, taken) = (OsStr::new("own"), OsStr::new("taken"));
        assert_eq!(method(&open, own, taken), Err(Errno::EXIST));
        assert_eq!(fs::read(dir.path().join("taken")).unwrap(), b"precious");
        method(&open, own, OsStr::new("new")).unwrap();
        assert_eq!(fs::read(dir.path().join("new")).unwrap(), b"own");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        // A directory that came away goes back too.
        fs::create_dir_all(dir.path().join("away/full")).unwrap();
        method(&open, OsStr::new("away"), OsStr::new("back")).unwrap();
        assert!(dir.path().join("back/full").is_dir());
    }
}

#[test]
fn a_directory_that_is_open_needs_no_name() {
    let (dir, _) = setting();
    let below = dir.path().join("below");
    fs::create_dir(&below).unwrap();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&below, flags, Mode::empty()).unwrap();
    fs::rename(&below, dir.path().join("moved")).unwrap();
    let open = Directory::of_open(&fd, &below).unwrap();
    open.create(OsStr::new("f")).unwrap();
    assert_eq!(open.names().unwrap(), ["f"]);
    assert!(dir.path().join("moved/f").exists());
}
