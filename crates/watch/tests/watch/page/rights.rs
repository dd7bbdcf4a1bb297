//! Who may open what.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use gpuio_host::Root;
use gpuio_watch::page::{LivePage, LivePageError, read};

use super::{directory, own, page, pages};

#[test]
fn only_the_owner_may_open_it() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&directory(&pages)), mode(page.path())), (0o700, 0o600));
}

#[test]
fn a_directory_that_others_may_enter_or_a_link_is_not_used() {
    let (dir, pages) = pages();
    let refused = |word: &str| {
        let error = LivePage::create(&pages, 1, "test", 0).unwrap_err();
        assert!(matches!(&error, LivePageError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        let listing = read::list(&pages, &Root::live());
        assert!(listing.found.is_empty() && listing.notes.len() == 1, "{listing:?}");
    };
    let path = directory(&pages);
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    refused("mode 755");
    fs::remove_dir(&path).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    refused("not a directory");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was put there");
}

#[test]
fn what_belongs_to_somebody_else_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give a file away; run the tests as root, in a container");
        return;
    }
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    chown(page.path(), Some(12_345), None).unwrap();
    let why = own(&pages).page.unwrap_err();
    assert!(why.contains("12345"), "{why}");
    chown(directory(&pages), Some(12_345), None).unwrap();
    let listing = read::list(&pages, &Root::live());
    assert!(listing.found.is_empty() && listing.notes[0].contains("12345"), "{listing:?}");
    chown(directory(&pages), Some(0), None).unwrap();
}

#[test]
fn a_directorys_name_that_another_user_has_taken_hides_no_run() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give a file away; run the tests as root, in a container");
        return;
    }
    let (dir, pages) = pages();
    fs::create_dir(directory(&pages)).unwrap();
    chown(directory(&pages), Some(12_345), None).unwrap();
    // Another that looks like this user's.
    let false_one = dir.path().join("gpuio-0-0011223344556677");
    fs::create_dir(&false_one).unwrap();
    chown(&false_one, Some(12_345), None).unwrap();
    let place = page(&pages, 1).path().parent().unwrap().to_owned();
    assert!(place != false_one && place != directory(&pages), "{}", place.display());
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
    let page = page(&pages, 1);
    assert_eq!(page.path().parent(), Some(place.as_path()), "one directory for all");
    assert_eq!(own(&pages).page.unwrap().pid, std::process::id());
    let listing = read::list(&pages, &Root::live());
    assert_eq!((listing.found.len(), listing.notes.len()), (1, 1), "{listing:?}");
}

#[test]
fn a_page_that_others_may_write_is_not_believed() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    fs::set_permissions(page.path(), Permissions::from_mode(0o622)).unwrap();
    assert!(own(&pages).page.unwrap_err().contains("others may write"));
}

#[test]
fn the_page_of_a_process_is_made_once() {
    let (_dir, pages) = pages();
    let first = page(&pages, 1);
    let error = LivePage::create(&pages, 1, "test", 0).unwrap_err();
    assert!(error.to_string().contains("another library of gpuio in this process"), "{error}");
    assert!(own(&pages).page.is_ok() && first.path().exists());
}

#[test]
fn without_shared_memory_it_says_so() {
    let (dir, _) = pages();
    let pages = gpuio_watch::page::LivePageRoot::at(dir.path().join("missing"));
    let error = LivePage::create(&pages, 1, "test", 0).unwrap_err();
    assert!(error.to_string().starts_with("mkdirat "), "{error}");
    assert_eq!(read::list(&pages, &Root::live()), read::Listing::default());
}
