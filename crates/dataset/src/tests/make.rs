use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use gpuio_base::pattern::{Repeats, Salt};

use super::super::clean::clean;
use super::super::fill::BLOCK;
use super::super::make::make_directories;
use super::super::manifest::FILE_NAME;
use super::super::space::within_limit;
use super::*;

const HOLDS: Holds = Holds { salt: Salt { number: 11, repeats: Repeats::NONE }, file_number: 3 };

#[test]
fn a_file_is_made_with_the_pattern_and_listed() {
    let dir = directory();
    for (name, length) in [("a", 1), ("b", 4096), ("c", BLOCK), ("d", 5 * BLOCK + 12_345), ("e", 0)]
    {
        let path = dir.path().join(name);
        let progress = Count::default();
        let made = make_files(&[task(path.clone(), length)], &progress, &AtomicBool::new(false));
        let made = made.unwrap();
        assert_eq!(progress.0.load(Ordering::Relaxed), length);
        let found = fs::metadata(&path).unwrap();
        assert_eq!(found.len(), length);
        assert_eq!(found.permissions().mode() & 0o777 & !0o644, 0);
        assert!(holds_pattern(&path, 11, 3));
        assert_eq!(made[0].identity, identity(&path));
        assert!(made[0].created);
        let entry = find(&path).unwrap().expect("it is ours");
        assert!(entry.holds(HOLDS));
    }
}

#[test]
fn data_is_really_written() {
    let dir = directory();
    let path = dir.path().join("f");
    make_files(&[task(path.clone(), 2 * BLOCK)], &Count::default(), &AtomicBool::new(false))
        .unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 2 * BLOCK);
}

/// Nothing is said of what such a file holds, so the next job that needs its pattern fills it.
#[test]
fn holes_are_left_and_the_rest_holds_the_pattern() {
    let dir = directory();
    let path = dir.path().join("f");
    let length = 2 * BLOCK;
    let holes = vec![4096..BLOCK, BLOCK + 8192..BLOCK + 8200, length - 65536..length];
    let sparse = Wanted { holes: holes.clone(), ..wanted(&path, length) };
    for _ in 0..2 {
        prepare(&sparse).unwrap();
        let mut expected = vec![0; usize::try_from(length).unwrap()];
        gpuio_base::pattern::fill(&mut expected, gpuio_base::pattern::file_key(11, 3), 0);
        for hole in &holes {
            let at = |byte: u64| usize::try_from(byte).unwrap();
            expected[at(hole.start)..at(hole.end)].fill(0);
        }
        assert!(fs::read(&path).unwrap() == expected);
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < length - 3 * BLOCK / 4);
        assert!(!find(&path).unwrap().expect("it is ours").holds(HOLDS));
    }
    prepare(&wanted(&path, length)).unwrap();
    assert!(holds_pattern(&path, 11, 3));
}

#[test]
fn a_short_file_of_ours_is_extended_and_only_its_rest_is_written() {
    let dir = directory();
    let path = dir.path().join("f");
    let short = BLOCK + 1000;
    prepare(&wanted(&path, short)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let longer = wanted(&path, 3 * BLOCK);
    let task = Task::of(&longer, &look(&longer, &permit()).unwrap()).unwrap();
    assert_eq!(task.guard, GuardNote::Remake);
    let progress = Count::default();
    let made = make_files(&[task], &progress, &AtomicBool::new(false)).unwrap();
    assert_eq!(progress.0.load(Ordering::Relaxed), 3 * BLOCK - short);
    assert!(!made[0].created);
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert!(holds_pattern(&path, 11, 3));
}

#[test]
fn another_pattern_is_written_over_the_whole() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, 2 * BLOCK)).unwrap();
    let other = Wanted { salt: 99.into(), needs_pattern: true, ..wanted(&path, BLOCK + 7) };
    let other = Wanted { writes: true, reads: true, ..other };
    prepare(&other).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), BLOCK + 7);
    assert!(holds_pattern(&path, 99, 3));
    assert_eq!(look(&other, &permit()).unwrap().note, GuardNote::Ours);
}

#[test]
fn a_crashed_making_is_done_anew() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, BLOCK)).unwrap();
    begin(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    prepare(&wanted(&path, BLOCK)).unwrap();
    assert!(holds_pattern(&path, 11, 3));
}

#[test]
fn a_file_for_writing_is_made_empty() {
    let dir = directory();
    let path = dir.path().join("f");
    let write = writing(&path, BLOCK);
    prepare(&write).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    begin(&path).unwrap();
    fs::write(&path, "x").unwrap();
    finalize(&path, None).unwrap();
    assert_eq!(look(&writing(&path, 1), &permit()).unwrap().note, GuardNote::Ours);
}

#[test]
fn an_overwritten_foreign_file_stays_foreign_and_keeps_its_length() {
    let dir = directory();
    let path = dir.path().join("f");
    fs::write(&path, vec![7; 10_000]).unwrap();
    let mixed = Wanted { writes: true, needs_pattern: true, ..wanted(&path, 8192) };
    let allowed = Permit { overwrite: true, ..permit() };
    let task = Task::of(&mixed, &look(&mixed, &allowed).unwrap()).unwrap();
    let made = make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap();
    assert!(!made[0].created);
    let bytes = fs::read(&path).unwrap();
    let key = gpuio_base::pattern::file_key(11, 3);
    assert_eq!(gpuio_base::pattern::check(&bytes[..8192], key, 0), None);
    assert_eq!(bytes[8192..], [7; 1808]);
    assert_eq!(find(&path).unwrap(), None);
}

/// Bytes beside the parts lie in the blocks and pages that are written.
#[test]
fn only_the_parts_of_a_foreign_file_are_written() {
    let dir = directory();
    let path = dir.path().join("f");
    let before = vec![7; usize::try_from(3 * BLOCK + 77).unwrap()];
    fs::write(&path, &before).unwrap();
    let parts =
        vec![1..2, 4096..8192, 9000..9001, BLOCK - 5..2 * BLOCK + 3, 3 * BLOCK..3 * BLOCK + 99];
    let foreign = Task {
        guard: GuardNote::ForeignOverwrite,
        target: Some(held(&path)),
        parts: parts.clone(),
        ..task(path.clone(), 3 * BLOCK + 99)
    };
    let progress = Count::default();
    make_files(std::slice::from_ref(&foreign), &progress, &AtomicBool::new(false)).unwrap();
    assert_eq!(progress.0.load(Ordering::Relaxed), foreign.bytes());
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len() as u64, 3 * BLOCK + 99);
    let mut expected = vec![0; after.len()];
    gpuio_base::pattern::fill(&mut expected, gpuio_base::pattern::file_key(11, 3), 0);
    for (at, (found, pattern)) in (0_u64..).zip(after.iter().zip(&expected)) {
        let filled = parts.iter().any(|part| part.contains(&at));
        assert_eq!(*found, if filled { *pattern } else { 7 }, "byte {at}");
    }
}

#[test]
fn a_foreign_file_that_grew_meanwhile_is_not_touched() {
    let dir = directory();
    let path = dir.path().join("f");
    fs::write(&path, "precious").unwrap();
    let mixed = Wanted { writes: true, ..wanted(&path, 4096) };
    let allowed = Permit { overwrite: true, ..permit() };
    let extend = Task::of(&mixed, &look(&mixed, &allowed).unwrap()).unwrap();
    assert_eq!(extend.parts.first(), Some(&(8..4096)));
    fs::write(&path, "precious, and more").unwrap();
    let error = make_files(&[extend], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, MakeError::Replaced { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious, and more");
}

/// More files than are listed at once; the failure is in a later lot.
#[test]
fn many_files_are_made_or_none() {
    let dir = directory();
    let tasks = |of: u64| -> Vec<Task> {
        let name = |n: u64| dir.path().join(format!("f.{n}"));
        (0..of).map(|n| Task { file_number: n, ..task(name(n), 100 + n) }).collect()
    };
    fs::write(dir.path().join("f.140"), "precious").unwrap();
    make_files(&tasks(150), &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(names(dir.path()), ["f.140"]);
    let made = make_files(&tasks(140), &Count::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(made.len(), 140);
    for (task, made) in tasks(140).iter().zip(&made) {
        assert!(holds_pattern(&task.path, 11, task.file_number));
        assert_eq!(made.path, task.path.canonicalize().unwrap());
        let entry = find(&task.path).unwrap().expect("it is ours");
        assert!(entry.holds(Holds { salt: 11.into(), file_number: task.file_number }));
    }
}

/// Raises the stop flag when so many bytes are written.
struct StopAfter<'a>(AtomicU64, &'a AtomicBool);

impl Progress for StopAfter<'_> {
    fn add(&self, bytes: u64) {
        if self.0.fetch_sub(bytes, Ordering::Relaxed) <= bytes {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Stopped within a lot: what was there before stays ours, with its pattern where it was done.
#[test]
fn stopping_among_many_keeps_what_is_known_of_those_before() {
    let dir = directory();
    let path = |n: u64| dir.path().join(format!("f.{n}"));
    for n in 0..4 {
        prepare(&wanted(&path(n), 1000)).unwrap();
    }
    let longer = |n| wanted(&path(n), 2000);
    let remake = |n| Task::of(&longer(n), &look(&longer(n), &permit()).unwrap()).unwrap();
    let tasks: Vec<Task> = (0..4).map(remake).collect();
    let stop = AtomicBool::new(false);
    let error = make_files(&tasks, &StopAfter(AtomicU64::new(2000), &stop), &stop).unwrap_err();
    assert!(matches!(error, MakeError::Stopped { .. }), "{error}");
    let held = |n| find(&path(n)).unwrap().expect("it is still ours").holds(HOLDS);
    // The flag was raised while the second one was written.
    assert_eq!([held(0), held(1), held(2), held(3)], [true, false, false, false]);
}

#[test]
fn a_file_that_appears_meanwhile_is_not_touched() {
    let dir = directory();
    let path = dir.path().join("f");
    let wanted = wanted(&path, BLOCK);
    let make = Task::of(&wanted, &look(&wanted, &permit()).unwrap()).unwrap();
    fs::write(&path, "precious").unwrap();
    let error = make_files(&[make], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("another process made it"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

/// The name is exchanged for a link between judging and making.
#[test]
fn a_link_that_appears_meanwhile_is_not_followed() {
    let dir = directory();
    let aim = dir.path().join("aim");
    fs::write(&aim, "precious").unwrap();
    let (new, ours, foreign) =
        (dir.path().join("new"), dir.path().join("ours"), dir.path().join("foreign"));
    prepare(&wanted(&ours, BLOCK)).unwrap();
    fs::write(&foreign, "given away").unwrap();
    let longer = |path: &Path| Wanted { writes: true, ..wanted(path, 2 * BLOCK) };
    let allowed = Permit { overwrite: true, ..permit() };
    for (path, guard) in [
        (&new, GuardNote::Make),
        (&ours, GuardNote::Remake),
        (&foreign, GuardNote::ForeignOverwrite),
    ] {
        let wanted = longer(path);
        let task = Task::of(&wanted, &look(&wanted, &allowed).unwrap()).unwrap();
        assert_eq!(task.guard, guard);
        if path.exists() {
            fs::rename(path, dir.path().join("away")).unwrap();
        }
        std::os::unix::fs::symlink(&aim, path).unwrap();
        make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap_err();
        assert_eq!(fs::read(&aim).unwrap(), b"precious");
        assert!(path.is_symlink());
    }
}

#[test]
fn a_file_that_was_exchanged_is_not_touched() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, BLOCK)).unwrap();
    let longer = wanted(&path, 2 * BLOCK);
    let remake = Task::of(&longer, &look(&longer, &permit()).unwrap()).unwrap();
    fs::write(dir.path().join("g"), "precious").unwrap();
    fs::rename(dir.path().join("g"), &path).unwrap();
    let error = make_files(&[remake], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, MakeError::Replaced { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

/// Raises the stop flag at the first block.
struct StopAtOnce<'a>(&'a AtomicBool);

impl Progress for StopAtOnce<'_> {
    fn add(&self, _: u64) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn stopping_removes_what_was_created_and_keeps_what_was_there() {
    let dir = directory();
    let old = dir.path().join("old");
    prepare(&wanted(&old, 1000)).unwrap();
    let longer = wanted(&old, 64 * BLOCK);
    let remake = Task::of(&longer, &look(&longer, &permit()).unwrap()).unwrap();
    for task in [task(dir.path().join("new"), 64 * BLOCK), remake] {
        let stop = AtomicBool::new(false);
        let error = make_files(&[task], &StopAtOnce(&stop), &stop).unwrap_err();
        assert!(matches!(error, MakeError::Stopped { .. }), "{error}");
    }
    assert_eq!(names(dir.path()), [FILE_NAME, ".gpuio-files.lock", "old"]);
    let entry = find(&old).unwrap().expect("it is still ours");
    assert!(!entry.holds(HOLDS));
}

#[test]
fn a_failure_removes_the_files_before_it_too() {
    let dir = directory();
    fs::write(dir.path().join("b"), "precious").unwrap();
    let tasks = [task(dir.path().join("a"), BLOCK), task(dir.path().join("b"), BLOCK)];
    make_files(&tasks, &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(names(dir.path()), ["b"]);
    assert_eq!(fs::read(dir.path().join("b")).unwrap(), b"precious");
}

#[test]
fn a_malformed_list_stops_the_making_and_stays() {
    let dir = directory();
    fs::write(dir.path().join(FILE_NAME), "{").unwrap();
    let task = task(dir.path().join("a"), BLOCK);
    let error = make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, MakeError::Manifest(_)), "{error}");
    assert!(!dir.path().join("a").exists());
    assert_eq!(fs::read(dir.path().join(FILE_NAME)).unwrap(), b"{");
}

#[test]
fn more_than_is_free_is_refused_at_once() {
    let dir = directory();
    let tasks = [task(dir.path().join("a"), 1 << 60), task(dir.path().join("b"), 1 << 60)];
    let error = make_files(&tasks, &Count::default(), &AtomicBool::new(false)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Not enough space on /"), "{text}");
    assert!(text.contains(": 2.00 EiB needed, ") && text.contains(" free; "), "{text}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_file_size_limit_is_reported_before_the_kernel_kills() {
    let task = task(PathBuf::from("f"), 1000);
    within_limit(&task, None).unwrap();
    within_limit(&task, Some(1000)).unwrap();
    let text = within_limit(&task, Some(999)).unwrap_err().to_string();
    assert!(text.contains("999") && text.contains("ulimit -f"), "{text}");
}

#[test]
fn directories_are_made_with_those_above_them() {
    let dir = directory();
    let (outer, inner) = (dir.path().join("x"), dir.path().join("x/y"));
    assert_eq!(make_directories(&inner).unwrap(), [outer.clone(), inner.clone()]);
    assert_eq!(make_directories(&inner).unwrap(), [] as [PathBuf; 0]);
    assert!(clean(&[], &[outer.clone(), inner]).is_empty() && !outer.exists());
    fs::write(dir.path().join("file"), "").unwrap();
    for path in ["file", "file/y"] {
        let text = make_directories(&dir.path().join(path)).unwrap_err().to_string();
        assert!(text.contains("mkdir"), "{text}");
    }
}

/// A small tmpfs for as long as it lives.
struct Mounted(TempDir);

impl Mounted {
    fn with(options: &str) -> Option<Mounted> {
        let dir = directory();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Mounted(dir)),
            other => {
                println!("skipped: no tmpfs could be mounted: {other:?}");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

/// Fills the rest of the file system when the first block was written.
struct FillUp<'a>(&'a Path);

impl Progress for FillUp<'_> {
    fn add(&self, _: u64) {
        // Ends with ENOSPC, as it should.
        let _ = fs::write(self.0, vec![1; 64 << 20]);
    }
}

#[test]
fn a_file_system_that_is_full_is_reported_with_the_numbers() {
    let Some(mounted) = Mounted::with("size=16m,mode=755") else {
        return;
    };
    let dir = mounted.0.path();
    let make = |path: PathBuf, length| {
        make_files(&[task(path, length)], &Count::default(), &AtomicBool::new(false))
    };
    let text = make(dir.join("a"), 17 * MIB).unwrap_err().to_string();
    let on = dir.canonicalize().unwrap();
    let plain = format!("Not enough space on {}: 17.0 MiB needed, 16.0 MiB free", on.display());
    assert!(text.starts_with(&plain), "{text}");
    // It fits when it is checked; the list and its lock take the room that is missing later.
    let error = make(dir.join("a"), 16 * MIB).unwrap_err();
    let MakeError::Call { call, offset, source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert!(offset.is_some() && ["fallocate", "pwrite"].contains(call), "{error}");
    let text = error.to_string();
    assert!(text.contains("more bytes;") && text.contains("are free"), "{text}");
    assert!(names(dir).is_empty(), "{:?}", names(dir));
    make(dir.join("a"), 8 * MIB).unwrap();
    assert!(holds_pattern(&dir.join("a"), 11, 3));
}

#[test]
fn a_full_file_system_in_the_middle_leaves_nothing_of_ours() {
    let Some(mounted) = Mounted::with("size=40m,mode=755") else {
        return;
    };
    let dir = mounted.0.path();
    let tasks = [task(dir.join("a"), 4 * MIB), task(dir.join("b"), 12 * MIB)];
    let other = dir.join("other");
    let error = make_files(&tasks, &FillUp(&other), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("the file system is full"), "{error}");
    assert!(!dir.join("a").exists() && !dir.join("b").exists());
    assert!(other.exists());
}

#[test]
fn a_read_only_file_system_is_reported() {
    let Some(mounted) = Mounted::with("size=16m,ro") else {
        return;
    };
    let task = task(mounted.0.path().join("a"), MIB);
    let error = make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[test]
fn a_directory_without_permission_is_reported() {
    let dir = directory();
    if rustix::process::geteuid().is_root() {
        println!("skipped: root may write everywhere");
        return;
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let task = task(dir.path().join("a"), MIB);
    let error = make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("may not do that here"), "{error}");
}
