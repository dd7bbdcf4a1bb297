use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use gpuio_base::pattern::{Repeats, Salt};
use rustix::fs::inotify;

use super::super::manifest::{
    Claim, FILE_NAME, Holds, Lists, ManifestError, Take, find, forget, parse, print, take,
};
use super::{Held, Identity, begin, directory, finalize, held, identity, names};

const HOLDS: Holds = Holds { salt: Salt { number: 11, repeats: Repeats::NONE }, file_number: 3 };

fn adopt(path: &Path, holds: Holds) -> Result<(), ManifestError> {
    take(&[(&held(path), Take::New(holds))], None)
}

fn ours(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    adopt(path, HOLDS).unwrap();
    finalize(path, Some(HOLDS)).unwrap();
}

#[test]
fn a_finalized_file_is_ours_until_it_changes() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let entry = find(&path).unwrap().expect("it is ours");
    assert!(entry.holds(HOLDS));
    assert!(!entry.holds(Holds { salt: 12.into(), ..HOLDS }));
    assert!(!entry.holds(Holds { file_number: 4, ..HOLDS }));
    assert_eq!((entry.size, entry.in_use), (8, false));

    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(find(&path).unwrap(), None, "its time of change is another");
}

#[test]
fn a_file_that_grew_is_not_ours() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"9").unwrap();
    file.set_modified(before).unwrap();
    assert_eq!(find(&path).unwrap(), None);
}

#[test]
fn a_crashed_run_leaves_a_file_that_is_ours_without_a_pattern() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    begin(&path).unwrap();
    // The run writes and never settles.
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(b"other, longer").unwrap();
    let entry = find(&path).unwrap().expect("in use means ours");
    assert!(entry.in_use);
    assert!(!entry.holds(HOLDS));
    finalize(&path, None).unwrap();
    let entry = find(&path).unwrap().expect("finalized again");
    assert!(!entry.in_use && !entry.pattern);
}

#[test]
fn a_file_of_the_same_name_is_not_ours() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    begin(&path).unwrap();
    fs::write(dir.path().join("other"), "12345678").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    assert_eq!(find(&path).unwrap(), None);
    assert!(matches!(begin(&path), Err(ManifestError::NotOurs { .. })));
    assert!(matches!(finalize(&path, None), Err(ManifestError::Moved { .. })));
}

#[test]
fn links_are_followed_to_the_list_beside_the_file() {
    let (one, two) = (directory(), directory());
    let path = one.path().join("a.0");
    ours(&path, "12345678");
    let link = two.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(find(&link).unwrap().is_some());
    fs::write(two.path().join("foreign"), "x").unwrap();
    let inside = one.path().join("link");
    std::os::unix::fs::symlink(two.path().join("foreign"), &inside).unwrap();
    assert_eq!(find(&inside).unwrap(), None);
}

#[test]
fn forgetting_the_last_file_leaves_nothing() {
    let dir = directory();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    ours(&a, "1");
    ours(&b, "2");
    let forget = |path: &Path, which| forget(&[(held(path).dir_entry().unwrap(), which)]).unwrap();
    forget(&a, identity(&a));
    assert!(find(&a).unwrap().is_none() && find(&b).unwrap().is_some());
    forget(&b, Identity { dev: 0, ino: 0 });
    assert!(find(&b).unwrap().is_some(), "another file's entry stays");
    forget(&b, identity(&b));
    assert_eq!(names(dir.path()), ["a", "b"]);
}

#[test]
fn a_malformed_list_is_reported_with_its_place_and_left_alone() {
    let dir = directory();
    let path = dir.path().join("a.0");
    fs::write(&path, "x").unwrap();
    let list = dir.path().join(FILE_NAME);
    let entry = r#"{"name":"NAME","dev":1,"ino":1,"size":1,"mtime_ns":1,"salt":1,
        "file_number":1,"pattern":true,"in_use":true}"#;
    let named = |name: &str| entry.replace("NAME", name);
    let with = |files: &str| format!("{{\"format\":1,\"files\":[{files}]}}");
    let cases = [
        ("{\n  \"format\": 1,\n  oops\n}".to_owned(), "line 3, column 3"),
        (String::new(), "line 1, column 0"),
        ("{\"format\":5,\"files\":[]}".to_owned(), "its format is 5"),
        (with(&named("../a")), "\"../a\" is not the name"),
        (with(&named("")), "is not the name"),
        (with(&format!("{},{}", named("a.0"), named("a.0"))), "lists \"a.0\" twice"),
        (with("{\"name\":7}"), "line 1, column"),
        ("[".repeat(100_000), "line 1, column 1"),
    ];
    for (text, wanted) in cases {
        fs::write(&list, &text).unwrap();
        for error in [find(&path).unwrap_err(), adopt(&path, HOLDS).unwrap_err()] {
            let message = error.to_string();
            let reported =
                matches!(error, ManifestError::Malformed { .. } | ManifestError::Rejected { .. });
            assert!(reported, "{message}");
            assert!(message.contains(wanted), "{wanted:?} is missing from {message:?}");
            assert!(message.contains(FILE_NAME), "{message}");
        }
        assert_eq!(fs::read_to_string(&list).unwrap(), text, "it must stay as it was");
    }
}

#[test]
fn a_list_that_is_a_link_or_a_pipe_is_not_read() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let list = dir.path().join(FILE_NAME);
    fs::rename(&list, dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", &list).unwrap();
    assert!(find(&path).unwrap_err().to_string().contains("symbolic link"));
    fs::remove_file(&list).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &list,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(find(&path).unwrap_err().to_string().contains("not a regular file"));
}

/// Whether the list is heard about this file, which a change of owner or mode changes too.
fn is_believed(path: &Path) -> bool {
    let held = held(path);
    Lists::default().claim(held.dir_entry().unwrap(), &held.stamp()).unwrap() != Claim::None
}

#[test]
fn a_list_that_others_may_write_proves_no_ownership() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let list = dir.path().join(FILE_NAME);
    fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(!is_believed(&path));
    // Where others may write the file itself, the list gives them nothing new.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(is_believed(&path));
}

/// Who may open a file may lock it (flock(2)), and so stop every run that writes.
#[test]
fn the_lock_of_a_list_is_this_users_alone() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let lock = dir.path().join(".gpuio-files.lock");
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_list_of_another_user_proves_no_ownership_of_a_third() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a file away");
        return;
    }
    std::os::unix::fs::chown(dir.path().join(FILE_NAME), Some(12345), None).unwrap();
    assert!(!is_believed(&path), "user 12345 may not vouch for root's file");
    std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
    assert!(is_believed(&path), "but for his own");
    assert_eq!(fs::metadata(&path).unwrap().uid(), 12345);
}

#[test]
fn many_at_once_lose_nothing() {
    let dir = directory();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                for number in 0..10 {
                    let path = dir.join(format!("f.{thread}.{number}"));
                    ours(&path, "12345678");
                    // Others see the list whole at any moment.
                    assert!(find(&path).unwrap().is_some());
                    if number % 2 == 1 {
                        let held = held(&path);
                        forget(&[(held.dir_entry().unwrap(), held.identity())]).unwrap();
                    }
                }
            });
        }
    });
    for thread in 0..4 {
        for number in 0..10 {
            let path = dir.path().join(format!("f.{thread}.{number}"));
            assert_eq!(find(&path).unwrap().is_some(), number % 2 == 0, "{}", path.display());
        }
    }
}

#[test]
fn a_change_waits_for_the_lock() {
    let dir = directory();
    let path = dir.path().join("a.0");
    fs::write(&path, "x").unwrap();
    let lock = File::create(dir.path().join(".gpuio-files.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // Opened and closed by turns: events that are alike and follow one another would be one.
    let watch = inotify::init(inotify::CreateFlags::empty()).unwrap();
    let lock_file = dir.path().join(".gpuio-files.lock");
    let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE;
    inotify::add_watch(&watch, &lock_file, flags).unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| adopt(&path, HOLDS));
        // Each try opens the lock file again: it tries on and on, and changes nothing.
        let mut tries = 0;
        while tries < 20 {
            assert!(!waiting.is_finished(), "it has not waited");
            let event = events.next().unwrap();
            tries += usize::from(event.events().contains(inotify::ReadFlags::OPEN));
        }
        assert!(!dir.path().join(FILE_NAME).exists());
        drop(lock);
        waiting.join().unwrap().unwrap();
    });
    assert!(find(&path).unwrap().is_some());
}

/// Lists as gpuio writes and wrote them; seeds of the fuzzer too.
#[test]
fn a_list_prints_as_it_was_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lists");
    for (file, count) in [("format-1.json", 1), ("format-2.json", 2)] {
        let entries = parse(&folder, &fs::read(folder.join(file)).unwrap()).unwrap();
        assert_eq!(entries.len(), count);
        assert_eq!(parse(&folder, &print(&entries).unwrap()).unwrap(), entries);
    }
    let twice = parse(&folder, &fs::read(folder.join("twice.json")).unwrap());
    assert!(twice.unwrap_err().to_string().contains("lists \"a\" twice"));
}

/// As a run leaves it that is killed while it writes a list.
#[test]
fn a_draft_left_by_a_crash_goes() {
    let dir = directory();
    let path = dir.path().join("a.0");
    let draft = |digit: char| format!(".{FILE_NAME}.{}.draft", digit.to_string().repeat(16));
    let (half, empty, mine, whole) = (draft('1'), draft('2'), draft('3'), draft('4'));
    // A text that begins like a list may be a user's.
    let text = "{\n  \"format\": 2,\n  \"files\": [\n    {\n      \"na";
    let list = String::from_utf8(print(&[]).unwrap()).unwrap();
    let drafts = [(&half, text), (&empty, ""), (&mine, "{\"format\": 2}"), (&whole, &list)];
    for (name, text) in drafts {
        fs::write(dir.path().join(name), text).unwrap();
    }
    ours(&path, "12345678");
    assert!(find(&path).unwrap().is_some());
    assert_eq!(names(dir.path()), [&half, &mine, FILE_NAME, ".gpuio-files.lock", "a.0"]);
}

/// Names that gpuio would use are nobody's property: what is not ours stays, and is not followed.
#[test]
fn files_of_the_user_with_our_names_stay() {
    let dir = directory();
    let path = dir.path().join("a.0");
    let lock = dir.path().join(".gpuio-files.lock");
    fs::write(&lock, "my own lock").unwrap();
    ours(&path, "12345678");
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let mine = held(&path);
    forget(&[(mine.dir_entry().unwrap(), mine.identity())]).unwrap();
    assert_eq!(fs::read_to_string(&lock).unwrap(), "my own lock");
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink("victim", &lock).unwrap();
    assert!(adopt(&path, HOLDS).unwrap_err().to_string().contains("symbolic link"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(names(dir.path()), [".gpuio-files.lock", "a.0", "victim"]);
}

/// The list is exchanged for a user's file after it was read, and while it is changed.
#[test]
fn a_file_that_took_the_name_of_the_list_stays() {
    use super::super::manifest::change_list;
    let dir = directory();
    let path = dir.path().join("a.0");
    let list = dir.path().join(FILE_NAME);
    let precious = "{\n  \"format\": 2,\n  \"files\": []\n}\n";
    let take_name = || {
        let own = dir.path().join("own");
        fs::write(&own, precious).unwrap();
        fs::rename(&own, &list).unwrap();
    };
    let entry = r#"{"name":"b","dev":1,"ino":1,"size":1,"mtime_ns":1,"salt":1,"file_number":1,
        "pattern":true,"in_use":false}"#;
    // There was a list, and it is replaced; or removed, since nothing is left to list; or there was
    // none.
    for (before, empties) in [(true, false), (true, true), (false, false)] {
        let _ = fs::remove_file(&list);
        if before {
            ours(&path, "12345678");
        } else {
            fs::write(&path, "12345678").unwrap();
        }
        let change = change_list(&held(&path), |entries| {
            take_name();
            match empties {
                true => entries.clear(),
                false => entries.push(serde_json::from_str(entry).unwrap()),
            }
        });
        let error = change.unwrap_err().to_string();
        assert!(error.contains(FILE_NAME) && error.contains("exists"), "{error}");
        assert_eq!(fs::read_to_string(&list).unwrap(), precious);
        assert_eq!(names(dir.path()), [FILE_NAME, ".gpuio-files.lock", "a.0"]);
    }
}

/// `touch -r` sets the time of change back; only the kernel sets the inode's.
#[test]
fn an_edit_whose_time_was_set_back_is_seen() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let before = fs::metadata(&path).unwrap();
    // The clock of inodes ticks some hundred times a second.
    while fs::metadata(&path).unwrap().ctime_nsec() == before.ctime_nsec() {
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all(b"87654321").unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
    assert_eq!((after.len(), after.ino()), (before.len(), before.ino()));
    assert_eq!(find(&path).unwrap(), None);
}

/// Lists of the first format have neither time: what the file holds decides.
#[test]
fn a_list_of_the_first_format_is_read() {
    let dir = directory();
    let path = dir.path().join("a.0");
    ours(&path, "12345678");
    let list = dir.path().join(FILE_NAME);
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
    text["format"] = 1.into();
    let entry = text["files"][0].as_object_mut().unwrap();
    entry.remove("ctime_ns").unwrap();
    entry.remove("birth_ns").unwrap();
    fs::write(&list, text.to_string()).unwrap();
    assert_eq!(find(&path).unwrap(), None, "it is not known as unchanged");
    begin(&path).unwrap();
    assert!(find(&path).unwrap().expect("it was checked ours").in_use);
}

#[test]
fn a_list_is_read_once_for_many_looks_and_changed_once_for_many_files() {
    let dir = directory();
    let paths: Vec<_> = (0..3).map(|n| dir.path().join(format!("a.{n}"))).collect();
    for path in &paths {
        fs::write(path, "12345678").unwrap();
    }
    ours(&paths[2], "12345678");
    let all = [Take::New(HOLDS), Take::New(HOLDS), Take::Again];
    let list = dir.path().join(FILE_NAME);
    let before = fs::metadata(&list).unwrap().ino();
    let files: Vec<Held> = paths.iter().map(|path| Held::named(path).unwrap()).collect();
    take(&files.iter().zip(all).collect::<Vec<_>>(), None).unwrap();
    assert_ne!(fs::metadata(&list).unwrap().ino(), before, "a list is replaced, not written to");
    let mut lists = Lists::default();
    assert!(lists.find(&paths[0]).unwrap().expect("it is listed").in_use);
    fs::remove_file(&list).unwrap();
    for path in &paths[1..] {
        assert!(lists.find(path).unwrap().expect("it was listed when the list was read").in_use);
        assert_eq!(find(path).unwrap(), None);
    }
}

#[test]
fn a_file_that_is_not_ours_takes_no_other_with_it() {
    let dir = directory();
    let (mine, foreign) = (dir.path().join("a.0"), dir.path().join("b"));
    ours(&mine, "12345678");
    fs::write(&foreign, "precious").unwrap();
    let (one, other) = (held(&mine), held(&foreign));
    let error = take(&[(&one, Take::Again), (&other, Take::Again)], None).unwrap_err();
    assert!(matches!(error, ManifestError::NotOurs { .. }), "{error}");
    assert!(!find(&mine).unwrap().expect("it is still ours").in_use, "the list is as it was");
}
