//! Files that another host made: the same file has other numbers there.

use super::super::manifest::{Entry, Lists, change_list};
use super::super::shared_file::{self, Part};
use super::*;

type Change = fn(&mut Entry);

/// As if another host, or this one before it mounted the file system anew, had written the list.
fn listed_elsewhere(path: &Path, change: impl Fn(&mut Entry)) {
    change_list(&held(path), |entries| entries.iter_mut().for_each(&change)).unwrap();
}

fn made(path: &Path) -> Wanted {
    let wanted = wanted(path, MIB);
    prepare(&wanted).unwrap();
    wanted
}

#[test]
fn another_device_number_makes_no_other_file() {
    let dir = directory();
    let path = dir.path().join("f");
    let read = made(&path);
    listed_elsewhere(&path, |entry| entry.dev += 7);
    for wanted in [read, writing(&path, MIB)] {
        assert_eq!(look(&wanted, &permit()).unwrap().note, GuardNote::Ours);
    }
    // To list it again writes its present identity.
    begin(&path).unwrap();
    listed_elsewhere(&path, |entry| entry.dev += 7);
    finalize(&path, None).unwrap();
    assert_eq!(find(&path).unwrap().unwrap().dev, identity(&path).dev);
}

#[test]
fn a_file_that_differs_in_anything_else_is_not_taken_for_ours() {
    let differs: [(&str, Change); 3] = [
        ("inode", |entry| entry.ino += 1),
        ("birth", |entry| entry.birth_ns = entry.birth_ns.map(|ns| ns + 1)),
        ("both", |entry| (entry.ino, entry.birth_ns) = (entry.ino + 1, None)),
    ];
    for (what, change) in differs {
        let dir = directory();
        let path = dir.path().join("f");
        made(&path);
        if what == "birth" && held(&path).stamp().birth_ns.is_none() {
            continue;
        }
        listed_elsewhere(&path, |entry| entry.dev += 7);
        listed_elsewhere(&path, change);
        let refusal = look(&writing(&path, MIB), &permit()).expect_err(what);
        assert!(matches!(refusal, Refusal::Changed { .. }), "{what}: {refusal}");
        let read = look(&Wanted { needs_pattern: true, ..wanted(&path, MIB) }, &permit()).unwrap();
        assert_eq!((read.note, read.fill), (GuardNote::Changed, false), "{what}");
    }
}

#[test]
fn with_other_times_what_it_holds_decides() {
    let times: [Change; 3] = [
        |entry| entry.mtime_ns += 1,
        |entry| entry.ctime_ns = Some(1),
        |entry| entry.in_use = true,
    ];
    for change in times {
        let dir = directory();
        let path = dir.path().join("f");
        made(&path);
        listed_elsewhere(&path, |entry| entry.dev += 7);
        listed_elsewhere(&path, change);
        assert_eq!(look(&writing(&path, MIB), &permit()).unwrap().note, GuardNote::Ours);
        // One byte of a user's.
        let mut bytes = fs::read(&path).unwrap();
        bytes[70_000] ^= 1;
        fs::write(&path, bytes).unwrap();
        let refusal = look(&writing(&path, MIB), &permit()).unwrap_err();
        assert!(matches!(refusal, Refusal::Changed { .. }), "{refusal}");
    }
}

fn with_word(path: &Path, word: &str) -> Result<Held, String> {
    shared_file::follow(&writing(path, MIB), Some(word), MIB)
}

#[test]
fn a_process_follows_by_the_word_of_its_run_whatever_the_file_is_numbered() {
    let dir = directory();
    let path = dir.path().join("f");
    let of = |path: &Path| Task { target: None, ..task(path.to_owned(), MIB) };
    let (run, budget) = (shared_file::word(), Budget::of(None, 0));
    let made = shared_file::begin(&[of(&path)], &[], &run, &budget).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), MIB);
    // Inode, device and times as another host has them.
    listed_elsewhere(&path, |entry| {
        (entry.dev, entry.ino) = (entry.dev + 7, entry.ino + 9);
        (entry.mtime_ns, entry.ctime_ns, entry.birth_ns) = (1, Some(1), Some(1));
    });
    let other = with_word(&path, &run).unwrap();
    assert_eq!(other.identity(), identity(&path));
    // Each of three fills a share, and all of it is the pattern.
    let fills = shared_file::fills(&of(&path));
    for nth in 0..3 {
        let held = if nth == 0 { &made[0].target } else { &Arc::new(Held::named(&path).unwrap()) };
        let part = Part { fills: &fills, salt: 11.into(), file_number: 3, share: (nth, 3) };
        let stop = AtomicBool::new(false);
        assert!(shared_file::fill(held, part, &Count::default(), &stop).unwrap() > 0);
    }
    assert!(holds_pattern(&path, 11, 3));
    assert!(shared_file::is_still_named(&made[0].target));
}

#[test]
fn no_other_file_is_followed() {
    let dir = directory();
    let path = dir.path().join("f");
    let budget = Budget::of(None, 0);
    let run = shared_file::word();
    let one = Task { target: None, ..task(path.clone(), MIB) };
    let made = shared_file::begin(&[one], &[], &run, &budget).unwrap();
    let is_refused = |path: &Path, run: &str, part: &str| {
        let why = with_word(path, run).err().unwrap_or_default();
        assert!(why.contains(part), "{part}: {why}");
    };
    let another = "it is another file: the list of gpuio's files beside it is not the one";
    is_refused(&path, &shared_file::word(), another);
    // A user's file of the same name on what this host has there.
    let local = dir.path().join("local");
    fs::create_dir(&local).unwrap();
    fs::write(local.join("f"), vec![7; 1 << 20]).unwrap();
    is_refused(&local.join("f"), &run, another);
    // And with a list of a run before.
    prepare(&wanted(&local.join("g"), MIB)).unwrap();
    is_refused(&local.join("g"), &run, another);
    is_refused(&dir.path().join("absent"), &run, "No such file");
    is_refused(&local, &run, "not a regular file");
    let why = shared_file::follow(&writing(&path, MIB), Some(&run), 2 * MIB).unwrap_err();
    assert!(why.contains("1048576 bytes, 2097152 are needed"), "{why}");
    // Once it is finalized no one follows any more.
    super::super::manifest::finalize(&[(Arc::clone(&made[0].target), None)]).unwrap();
    is_refused(&path, &run, another);
    fs::rename(local.join("f"), &path).unwrap();
    assert!(!shared_file::is_still_named(&made[0].target), "another file has its name");
}

#[test]
fn a_list_with_a_run_is_of_the_new_format_and_one_without_of_the_old() {
    let dir = directory();
    let path = dir.path().join("f");
    let format = || {
        let text = fs::read_to_string(dir.path().join(".gpuio-files.json")).unwrap();
        text.lines().nth(1).unwrap().trim().to_owned()
    };
    let one = Task { target: None, ..task(path.clone(), MIB) };
    let made = shared_file::begin(&[one], &[], "word", &Budget::of(None, 0)).unwrap();
    assert_eq!(format(), "\"format\": 3,");
    // A run that died in between left it in use: it is ours by what it holds.
    let dir_entry = made[0].target.dir_entry().unwrap();
    let mut lists = Lists::default();
    assert!(lists.claim(dir_entry, &made[0].target.stamp()).is_ok());
    assert_eq!(look(&writing(&path, MIB), &permit()).unwrap().note, GuardNote::Ours);
    super::super::manifest::finalize(&[(Arc::clone(&made[0].target), None)]).unwrap();
    assert_eq!(format(), "\"format\": 2,");
    let holds = Holds { salt: 11.into(), file_number: 3 };
    let part = Known { holds, parts: vec![0..8, 16..24] };
    super::super::manifest::finalize(&[(Arc::clone(&made[0].target), Some(part))]).unwrap();
    assert_eq!(format(), "\"format\": 4,");
}
