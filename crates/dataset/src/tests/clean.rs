use super::super::clean::{CleanError, clean};
use super::super::manifest::FILE_NAME;
use super::*;

#[test]
fn everything_that_was_made_goes() {
    let dir = directory();
    let sub = dir.path().join("d");
    assert_eq!(super::super::make::make_directories(&sub).unwrap(), std::slice::from_ref(&sub));
    let mut made = prepare(&wanted(&sub.join("a"), MIB)).unwrap();
    made.extend(prepare(&wanted(&sub.join("b"), MIB)).unwrap());
    let errors = clean(&made, std::slice::from_ref(&sub));
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!sub.exists());
}

#[test]
fn what_others_put_there_stays_and_so_does_its_directory() {
    let dir = directory();
    let sub = dir.path().join("d");
    super::super::make::make_directories(&sub).unwrap();
    let made = prepare(&wanted(&sub.join("a"), MIB)).unwrap();
    fs::write(sub.join("other"), "precious").unwrap();
    let errors = clean(&made, std::slice::from_ref(&sub));
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(names(&sub), ["other"]);
}

#[test]
fn files_of_earlier_runs_stay() {
    let dir = directory();
    let path = dir.path().join("a");
    prepare(&wanted(&path, 1000)).unwrap();
    let made = prepare(&wanted(&path, MIB)).unwrap();
    assert!(clean(&made, &[]).is_empty());
    assert!(path.exists());
    assert!(find(&path).unwrap().is_some());
}

#[test]
fn a_file_that_took_the_name_stays() {
    let dir = directory();
    let path = dir.path().join("a");
    let made = prepare(&wanted(&path, 1000)).unwrap();
    fs::write(dir.path().join("g"), "precious").unwrap();
    fs::rename(dir.path().join("g"), &path).unwrap();
    let errors = clean(&made, &[]);
    assert!(matches!(errors.as_slice(), [CleanError::Replaced { .. }]), "{errors:?}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_file_that_is_gone_already_is_no_error() {
    let dir = directory();
    let path = dir.path().join("a");
    let made = prepare(&wanted(&path, 1000)).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(clean(&made, &[]).is_empty());
    assert!(names(dir.path()).is_empty(), "the entry went, and the list with it");
}

#[test]
fn the_list_of_other_files_stays() {
    let dir = directory();
    prepare(&wanted(&dir.path().join("a"), 1000)).unwrap();
    let made = prepare(&wanted(&dir.path().join("b"), 1000)).unwrap();
    assert!(clean(&made, &[]).is_empty());
    assert_eq!(names(dir.path()), [FILE_NAME, ".gpuio-files.lock", "a"]);
    assert!(find(&dir.path().join("a")).unwrap().is_some());
}

/// Here the kernel answers EPERM.
#[test]
fn an_empty_directory_that_may_not_go_stays() {
    let errors = clean(&[], &["/proc/self/task".into()]);
    assert!(errors.is_empty(), "{errors:?}");
}
