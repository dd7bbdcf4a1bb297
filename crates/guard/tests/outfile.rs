//! Files that stand in the way stay, and those of a killed process are found.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use gpuio_guard::outfile::{Directory, Draft, Identity, Private, Removed};

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn begin(dir: &Path, file: &str) -> Draft {
    Draft::begin(Directory::open(dir).unwrap(), name(file)).unwrap()
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_has_its_name_when_it_is_whole_and_takes_nobody_elses() {
    let dir = tempfile::tempdir().unwrap();
    let draft = begin(dir.path(), "r");
    draft.reserve(1 << 20).unwrap();
    draft.fill(b"result").unwrap();
    assert!(!dir.path().join("r").exists());
    drop(draft.give_name().unwrap());
    assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"result");
    // A file, and a link that leads nowhere.
    symlink("victim", dir.path().join("link")).unwrap();
    for taken in ["r", "link"] {
        let draft = begin(dir.path(), taken);
        draft.fill(b"another").unwrap();
        let unnamed = draft.give_name().unwrap_err();
        assert_eq!(unnamed.error.kind(), ErrorKind::AlreadyExists);
        // It is whole all the same, and may have another name.
        drop(unnamed.draft.give_name_as(name(&format!("{taken}.2"))).unwrap());
    }
    assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"result");
    assert_eq!(fs::read(dir.path().join("r.2")).unwrap(), b"another");
    assert_eq!(entries(dir.path()), ["link", "link.2", "r", "r.2"]);
    drop(begin(dir.path(), "none"));
    assert_eq!(entries(dir.path()).len(), 4, "a draft that is dropped is gone");
}

#[test]
fn only_the_file_that_was_meant_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("s");
    let first = begin(dir.path(), "s");
    first.fill(b"first").unwrap();
    let first = first.replace(None).unwrap();
    let second = begin(dir.path(), "s");
    second.fill(b"second").unwrap();
    let second = second.replace(Some(&first)).unwrap();
    assert_eq!(fs::read(&at).unwrap(), b"second");
    assert_eq!(entries(dir.path()), ["s"]);
    // Somebody puts a file of his own there.
    fs::write(dir.path().join("mine"), b"mine").unwrap();
    fs::rename(dir.path().join("mine"), &at).unwrap();
    for old in [Some(&second), None] {
        let third = begin(dir.path(), "s");
        third.fill(b"third").unwrap();
        let unnamed = third.replace(old).unwrap_err();
        assert_eq!(unnamed.error.kind(), ErrorKind::AlreadyExists);
    }
    assert_eq!(fs::read(&at).unwrap(), b"mine");
    assert_eq!(entries(dir.path()), ["s"]);
    // The name is free: nothing is in the way.
    fs::remove_file(&at).unwrap();
    let fourth = begin(dir.path(), "s");
    fourth.fill(b"fourth").unwrap();
    drop(fourth.replace(Some(&second)).unwrap());
    assert_eq!(fs::read(&at).unwrap(), b"fourth");
}

#[test]
fn a_lock_truncates_nothing_and_follows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    fs::write(dir.path().join("notes"), b"notes").unwrap();
    symlink("notes", dir.path().join("link")).unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    assert!(directory.lock(name("link")).is_err());
    assert!(directory.lock(name("folder")).is_err());
    let held = directory.lock(name("notes")).unwrap();
    assert!(held.is_some());
    assert!(directory.lock(name("notes")).unwrap().is_none(), "somebody has it");
    drop(held);
    assert!(directory.lock(name("notes")).unwrap().is_some());
    assert_eq!(fs::read(dir.path().join("notes")).unwrap(), b"notes");
}

/// Who may open a file may lock it, to read alone too.
#[test]
fn a_lock_is_this_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().mode() & 0o777;
    fs::write(dir.path().join("old"), b"").unwrap();
    for lock in ["new", "old"] {
        assert!(directory.lock(name(lock)).unwrap().is_some());
        assert_eq!(mode(lock), 0o600);
    }
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give a file away");
    }
    fs::write(dir.path().join("other"), b"").unwrap();
    chown(dir.path().join("other"), Some(65534), None).unwrap();
    let why = directory.lock(name("other")).unwrap_err();
    assert!(why.to_string().contains("user 65534"), "{why}");
    assert_eq!(mode("other"), 0o644);
    // The directory's owner can do more than hold a lock in it.
    chown(dir.path(), Some(65534), None).unwrap();
    assert!(directory.lock(name("other")).unwrap().is_some());
}

#[test]
fn a_file_is_mine_if_this_user_made_it_and_it_has_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let at = |name: &str| dir.path().join(name);
    for file in ["mine", "linked", "theirs"] {
        fs::write(at(file), b"").unwrap();
    }
    fs::hard_link(at("linked"), at("second")).unwrap();
    symlink("mine", at("link")).unwrap();
    let is_mine = |file: &str| {
        let found = directory.look(name(file)).unwrap().unwrap().is_mine();
        assert_eq!(directory.mine(name(file)).is_ok_and(|mine| mine.is_some()), found, "{file}");
        found
    };
    assert!(is_mine("mine") && !is_mine("linked") && !is_mine("second") && !is_mine("link"));
    assert!(directory.mine(name("absent")).unwrap().is_none());
    directory.mine(name("mine")).unwrap().unwrap().make_read_only().unwrap();
    assert_eq!(fs::metadata(at("mine")).unwrap().mode() & 0o777, 0o400);
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give a file away");
    }
    chown(at("theirs"), Some(65534), None).unwrap();
    assert!(!is_mine("theirs"));
}

#[test]
fn another_file_of_the_name_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let at = dir.path().join("f");
    fs::write(&at, b"ours").unwrap();
    let ours = fs::File::open(&at).unwrap();
    let identity = Identity::of(&ours).unwrap();
    fs::rename(&at, dir.path().join("moved")).unwrap();
    fs::write(&at, b"mine").unwrap();
    assert_eq!(directory.remove(name("f"), identity).unwrap(), Removed::Kept(at.clone()));
    assert_eq!(fs::read(&at).unwrap(), b"mine");
    assert_eq!(directory.remove(name("moved"), identity).unwrap(), Removed::Gone);
    assert_eq!(directory.remove(name("moved"), identity).unwrap(), Removed::Gone);
    assert_eq!(entries(dir.path()), ["f"]);
    assert!(!Directory::open(dir.path()).unwrap().remove_empty(name("f")).is_ok_and(|gone| gone));
}

/// A draft of another process looks like one whose file is closed: the lock is gone with it.
#[test]
fn abandoned_drafts_are_found_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    let living = dir.path().join(".s.00112233445566aa.draft");
    fs::write(&living, b"living").unwrap();
    let held = directory.lock(name(".s.00112233445566aa.draft")).unwrap().unwrap();
    fs::write(dir.path().join(".s.00112233445566bb.draft"), b"dead").unwrap();
    for other in [".s.draft", ".s.notes.draft", ".t.00112233445566bb.draft", "s"] {
        fs::write(dir.path().join(other), b"mine").unwrap();
    }
    symlink("s", dir.path().join(".s.00112233445566cc.draft")).unwrap();
    let abandoned = directory.abandoned_drafts(name("s")).unwrap();
    let found: Vec<&OsStr> = abandoned.iter().map(|abandoned| abandoned.name.as_os_str()).collect();
    assert_eq!(found, [".s.00112233445566bb.draft"]);
    drop(held);
}

#[test]
fn a_private_directory_is_abandoned_when_its_owner_is() {
    let dir = tempfile::tempdir().unwrap();
    let private = Private::make(dir.path(), "gpuio-x").unwrap();
    let at = private.path();
    assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
    drop(private.inside().create(name("cufile.json")).unwrap());
    assert!(Private::abandoned(dir.path(), "gpuio-x").unwrap().is_empty(), "its owner lives");
    drop(private);
    // A user's file there, and directories that are not ours.
    fs::write(at.join("notes"), b"notes").unwrap();
    let empty = dir.path().join("gpuio-x-0011223344556677");
    let open = dir.path().join("gpuio-x-0011223344556688");
    for (path, mode) in [(&empty, 0o700), (&open, 0o755)] {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let named = dir.path().join("gpuio-x-mine");
    fs::create_dir(&named).unwrap();
    symlink(&named, dir.path().join("gpuio-x-0011223344556699")).unwrap();
    let found = Private::abandoned(dir.path(), "gpuio-x").unwrap();
    assert!(found.len() == 1 && found[0].path() == at);
    assert!(!empty.exists() && open.exists() && named.exists());
    let ours = |name: &OsStr| name == "cufile.json";
    assert!(!found[0].remove(ours).unwrap(), "notes are in it");
    assert_eq!(fs::read(at.join("notes")).unwrap(), b"notes");
    assert!(!at.join("cufile.json").exists());
    drop(found);
    fs::remove_file(at.join("notes")).unwrap();
    let found = Private::abandoned(dir.path(), "gpuio-x").unwrap();
    assert!(found[0].remove(ours).unwrap());
    assert!(!at.exists());
}
