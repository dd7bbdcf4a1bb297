use std::fs;

use super::*;

#[test]
fn a_file_that_can_not_be_linked_is_copied_and_takes_nobodys_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut draft = Draft::begin(Directory::open(dir.path()).unwrap(), OsStr::new("r")).unwrap();
    draft.fill(b"result").unwrap();
    draft.copy(OsStr::new("r")).unwrap();
    assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"result");
    assert_eq!(draft.copy(OsStr::new("r")), Err(Errno::EXIST));
    drop(draft);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft stays");
}

/// A draft for `r`, of which the caller made `old`; a user's file has the name by now.
fn exchanged() -> (tempfile::TempDir, Draft, Identity) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    fs::write(&path, "old").unwrap();
    let old = Identity::of(File::open(&path).unwrap()).unwrap();
    fs::rename(&path, dir.path().join("old")).unwrap();
    fs::write(&path, "precious").unwrap();
    let open = Directory::open(dir.path()).unwrap();
    let draft = Draft::begin_named(open, OsStr::new("r")).unwrap();
    draft.fill(b"new").unwrap();
    (dir, draft, old)
}

/// The name is exchanged after the look at it: with and without `RENAME_EXCHANGE`.
#[test]
fn a_file_that_came_between_look_and_exchange_stays() {
    type Method = fn(&Draft, &OsStr, Identity) -> io::Result<bool>;
    let methods: [Method; 2] = [
        |draft, wanted, old| draft.swap(draft.name().unwrap(), wanted, old),
        |draft, wanted, old| draft.step_in(wanted, old),
    ];
    for method in methods {
        let (dir, draft, old) = exchanged();
        let error = method(&draft, OsStr::new("r"), old).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST), "{error}");
        drop(draft);
        assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no draft stays");
        // The file that was meant is replaced.
        let (dir, draft, old) = exchanged();
        fs::rename(dir.path().join("old"), dir.path().join("r")).unwrap();
        if !method(&draft, OsStr::new("r"), old).unwrap() {
            draft.give_name().unwrap();
        }
        assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"new");
    }
}

/// Another process takes the new file away, or puts another one there, while the user's file has
/// the draft's own name: no draft's name stays, by which the next run would remove it.
#[test]
fn a_file_that_cannot_be_exchanged_back_gets_a_name_that_is_no_drafts() {
    for (there, stays_as) in [(false, "r"), (true, "r.1")] {
        let (dir, draft, _) = exchanged();
        let own = draft.name().unwrap().to_owned();
        fs::rename(dir.path().join("r"), dir.path().join(&own)).unwrap();
        if there {
            fs::write(dir.path().join("r"), "another").unwrap();
        }
        let error = draft.put_back(&own, OsStr::new("r"), Err(Errno::NOENT));
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        drop(draft);
        assert_eq!(fs::read(dir.path().join(stays_as)).unwrap(), b"precious");
        let open = Directory::open(dir.path()).unwrap();
        assert!(open.abandoned_drafts(OsStr::new("r")).unwrap().is_empty());
    }
}

/// A user's file has the draft's own name when the draft goes.
#[test]
fn a_draft_removes_itself_alone() {
    let (dir, draft, _) = exchanged();
    let own = dir.path().join(draft.name().unwrap());
    fs::rename(dir.path().join("r"), &own).unwrap();
    drop(draft);
    assert_eq!(fs::read(&own).unwrap(), b"precious");
}

#[test]
fn a_draft_without_proc_replaces_by_a_copy() {
    let (dir, named, _) = exchanged();
    drop(named);
    let open = Directory::open(dir.path()).unwrap();
    let mut draft = Draft::begin(open, OsStr::new("r")).unwrap();
    draft.fill(b"new").unwrap();
    draft.become_named().unwrap();
    let own = draft.own_name().unwrap();
    assert_eq!(fs::read(dir.path().join(own)).unwrap(), b"new");
    draft.replace(Some(&File::open(dir.path().join("r")).unwrap())).unwrap();
    assert_eq!(fs::read(dir.path().join("r")).unwrap(), b"new");
}

/// On a real file system and in memory: both answer as for any other name that is not there, so
/// that whoever makes a directory beside one who clears up can make another.
#[test]
fn in_a_directory_that_was_removed_there_is_no_draft() {
    let target = std::env::current_exe().unwrap();
    for base in [target.parent().unwrap().to_owned(), std::env::temp_dir()] {
        let gone = || {
            let dir = tempfile::tempdir_in(&base).unwrap();
            Directory::open(dir.path()).unwrap()
        };
        let text = OsStr::new("r");
        let named = |draft: Draft| draft.give_name().map(drop).map_err(|unnamed| unnamed.error);
        let error = Draft::begin(gone(), text).and_then(named).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
        let dir = tempfile::tempdir_in(&base).unwrap();
        let draft = Draft::begin(Directory::open(dir.path()).unwrap(), text).unwrap();
        drop(dir);
        assert_eq!(named(draft).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
