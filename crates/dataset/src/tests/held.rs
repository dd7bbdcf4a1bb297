use std::os::unix::fs::symlink;

use gpuio_host::target::ReopenError;
use rustix::fs::OFlags;

use super::super::held::Targets;
use super::*;

/// The name is exchanged for a link to somebody's file after it was checked.
fn swap(path: &Path, victim: &Path) {
    fs::rename(path, path.with_extension("away")).unwrap();
    symlink(victim, path).unwrap();
}

#[test]
fn what_was_checked_is_what_is_opened() {
    let dir = directory();
    let (path, victim) = (dir.path().join("f"), dir.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    prepare(&wanted(&path, MIB)).unwrap();
    let verdict = look(&writing(&path, MIB), &permit()).unwrap();
    let mut targets = Targets::default();
    targets.hold("f", verdict.target.as_ref().unwrap());
    swap(&path, &victim);
    let file = fs::File::from(targets.open("f", OFlags::RDWR).unwrap());
    std::os::unix::fs::FileExt::write_all_at(&file, b"written", 0).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(fs::read(path.with_extension("away")).unwrap().starts_with(b"written"));
    // Listed, extended or removed under the name is nothing either.
    let error = super::super::manifest::begin(&[verdict.target.unwrap()]).unwrap_err();
    assert!(error.to_string().contains("nothing was written to it"), "{error}");
}

/// In a data set of more files than descriptors, what was checked is compared when it is opened.
#[test]
fn what_was_let_go_is_compared() {
    let dir = directory();
    let (path, victim) = (dir.path().join("f"), dir.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    prepare(&wanted(&path, MIB)).unwrap();
    let none = Budget::of(Some(0), 0);
    let check = |wanted: &Wanted| {
        let mut verdict = look(wanted, &permit()).unwrap();
        verdict.within(&none);
        verdict.target.unwrap()
    };
    let named = Wanted { directory: None, ..wanted(&path, MIB) };
    for held in [check(&wanted(&path, MIB)), check(&named)] {
        let flags = rustix::fs::fcntl_getfl(held.reopen(OFlags::RDWR).unwrap()).unwrap();
        // NVIDIA's cuFile refuses such a descriptor.
        assert!(!flags.contains(OFlags::NOFOLLOW), "{flags:?}");
        assert_eq!(held.look().unwrap().size, MIB);
        swap(&path, &victim);
        assert!(held.reopen(OFlags::RDWR).is_err());
        assert!(held.look().is_err());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&victim, &path).unwrap();
        let error = held.reopen(OFlags::RDWR).unwrap_err();
        assert!(matches!(error, ReopenError::Replaced), "{error}");
        assert!(error.to_string().contains("Nothing was written to it"), "{error}");
        fs::rename(path.with_extension("away"), &path).unwrap();
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

/// The directory's name is exchanged; files are made, listed and removed in what was checked.
#[test]
fn a_directory_that_was_exchanged_gets_nothing() {
    let dir = directory();
    let (data, away, victims) =
        (dir.path().join("data"), dir.path().join("away"), dir.path().join("victims"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&victims).unwrap();
    fs::write(victims.join("f"), "precious").unwrap();
    let wanted = wanted(&data.join("f"), MIB);
    let task = Task::of(&wanted, &look(&wanted, &permit()).unwrap()).unwrap();
    fs::rename(&data, &away).unwrap();
    symlink(&victims, &data).unwrap();
    let made = make_files(&[task], &Count::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(names(&victims), ["f"]);
    assert!(holds_pattern(&away.join("f"), 11, 3));
    assert!(super::super::clean::clean(&made, &[]).is_empty());
    assert!(names(&away).is_empty());
    assert_eq!(fs::read(victims.join("f")).unwrap(), b"precious");
}

#[test]
fn only_what_was_checked_is_opened() {
    let targets = Targets::default();
    targets.open("/dev/null", OFlags::RDWR).unwrap();
    let path = std::env::current_exe().unwrap();
    assert!(targets.open(path.to_str().unwrap(), OFlags::RDONLY).is_err());
}

#[test]
fn as_many_stay_held_as_the_limit_leaves_beside_the_workers() {
    let dir = directory();
    let path = dir.path().join("f");
    prepare(&wanted(&path, 8)).unwrap();
    let stay = |limit, workers| {
        let budget = Budget::of(limit, workers);
        let open = |_: &u32| {
            let held = budget.hold(Held::named(&path).unwrap());
            fs::remove_file(&path).unwrap();
            // A held file needs no name.
            let stays = held.look().is_ok();
            fs::write(&path, "12345678").unwrap();
            stays
        };
        (0..10).filter(open).count()
    };
    assert_eq!(stay(None, 1000), 10);
    assert_eq!(stay(Some(1024), 470), 10);
    assert_eq!(stay(Some(1024), 478), 4);
    assert_eq!(stay(Some(1024), 900), 0);
}
