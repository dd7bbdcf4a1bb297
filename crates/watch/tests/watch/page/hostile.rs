//! Pages that somebody broke, on purpose or not.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use gpuio_host::Root;
use gpuio_watch::page::format::{Earlier, Shown, gds_stats, json, text};
use gpuio_watch::page::read::{self, Owner, parse};
use gpuio_watch::page::{Direction, Snapshot};
use proptest::prelude::*;
use serde_json::Value;

use super::{directory, key, own, page, pages};

/// A page with something in it, as bytes.
fn good() -> Vec<u8> {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let slot = page.worker_slot(&key(Some(0), "staged")).unwrap();
    slot.add(Direction::Read, 4096, 1000, false);
    fs::read(page.path()).unwrap()
}

/// Shows it in every format.
fn show(snapshot: &Snapshot) -> usize {
    let owner = Owner::Elsewhere;
    let shown =
        Shown { snapshot, owner: &owner, user: "root", command: None, since: "now", earlier: None };
    let all = [
        text::page(&shown, 3).unbroken(),
        text::list(&[shown]).unbroken(),
        json::value(&shown, 3).to_string(),
        gds_stats::text(snapshot, 3, &[]),
    ];
    assert!(all.iter().all(|text| !text.contains('\u{1b}')), "a terminal would obey");
    all.iter().map(String::len).sum()
}

#[test]
fn each_fault_is_named() {
    let good = good();
    assert!(parse(&good).is_ok());
    let with = |at: usize, bytes: &[u8]| {
        let mut page = good.clone();
        page[at..at + bytes.len()].copy_from_slice(bytes);
        parse(&page).unwrap_err()
    };
    assert!(with(0, b"elf").contains("no page of gpuio"));
    assert!(with(8, &9_u32.to_le_bytes()).contains("layout 9"));
    assert!(with(16, &64_u32.to_le_bytes()).contains("64 bytes"));
    assert!(with(20, &u32::MAX.to_le_bytes()).contains("impossible"));
    assert!(with(20, &6_u32.to_le_bytes()).contains("cut"));
    assert!(with(256, &u64::MAX.to_le_bytes()).contains("names GPU"));
    assert!(parse(&good[..good.len() - 8]).unwrap_err().contains("cut"));
    assert!(parse(&[]).unwrap_err().contains("0 bytes"));
}

/// The layout that `_checkpoint_drain.py` writes.
#[test]
fn saves_are_read_and_half_written_ones_are_not() {
    let mut page = good();
    let mut put = |at: usize, bytes: &[u8]| page[256 + at..][..bytes.len()].copy_from_slice(bytes);
    put(8, b"saves\0\0");
    put(112, &7_u64.to_le_bytes());
    put(160, &9000_u64.to_le_bytes());
    put(160 + 6 * 8, &u64::MAX.to_le_bytes());
    put(288, b"/a/\x1b[2Jb\0c");
    // The last error without an end.
    put(4672, &[b'e'; 4224]);
    assert_eq!(parse(&page).unwrap().saves, None, "half-written");
    page[256 + 120] = 7;
    let snapshot = parse(&page).unwrap();
    let saves = snapshot.saves.as_ref().unwrap();
    assert_eq!((saves.directory.as_str(), saves.bytes), ("/a/?[2Jb", 9000));
    assert_eq!((saves.state(), saves.error.len()), ("?", 4224));
    assert_eq!(snapshot.paths, []);
    assert!(show(&snapshot) > 0);
    // A drain makes no I/Os that are counted: its rate is that of what it has written.
    let mut later = snapshot.clone();
    later.saves.as_mut().unwrap().all_written += 3 << 20;
    let (since, owner) = ("2026-01-01", &Owner::Runs);
    let earlier = Some(Earlier { snapshot: &snapshot, seconds: 1.5 });
    let shown = Shown { snapshot: &later, owner, user: "me", command: None, since, earlier };
    for printed in [text::page(&shown, 3), text::list(&[shown])] {
        assert!(printed.unbroken().contains("2.00 MiB/s"), "{}", printed.unbroken());
    }
    assert!(!text::page(&shown, 3).unbroken().contains("I/Os"));
    let found = json::value(&shown, 1);
    assert_eq!((&found["write"], &found["saves"]["bytes"]), (&Value::Null, &9000.into()));
    assert_eq!(found["saves"]["written_bytes_per_s"], f64::from(2 << 20));
}

#[test]
fn a_process_that_is_gone_is_reported_and_its_page_removed() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let path = page.path().to_owned();
    let mut bytes = fs::read(&path).unwrap();
    // The same number with another start: a later process.
    bytes[32] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let found = own(&pages);
    assert_eq!((found.owner, found.removed), (Owner::Gone, true));
    assert!(found.page.is_ok(), "its last counts are shown");
    assert!(!path.exists());
}

#[test]
fn a_process_of_another_container_is_left_alone() {
    let (_dir, pages) = pages();
    let page = page(&pages, 1);
    let mut bytes = fs::read(page.path()).unwrap();
    bytes[40] ^= 1;
    fs::write(page.path(), &bytes).unwrap();
    let found = own(&pages);
    assert_eq!((found.owner, found.removed), (Owner::Elsewhere, false));
    assert!(page.path().exists());
}

/// Bytes of a slot, and of a header before it.
const SLOT: usize = 8896;

#[test]
fn a_page_has_no_more_paths_than_a_program_can_have() {
    let with = |paths: u32| {
        let mut bytes = good();
        let slot = bytes[256..256 + SLOT].to_vec();
        bytes.truncate(256);
        bytes[20..24].copy_from_slice(&paths.to_le_bytes());
        for nth in 0..paths {
            bytes.extend_from_slice(&slot);
            let state = bytes.len() - SLOT;
            bytes[state..state + 8].copy_from_slice(&u64::from(nth + 2).to_le_bytes());
        }
        parse(&bytes)
    };
    assert_eq!(with(256).unwrap().paths.len(), 256);
    assert!(with(257).unwrap_err().contains("more than 256 paths"));
}

/// Another user can publish any number of pages, of any size.
#[test]
fn of_another_users_pages_only_so_many_are_read() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give a file away; run the tests as root, in a container");
        return;
    }
    let (_dir, pages) = pages();
    let theirs = pages.directory(65_534);
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&theirs, Some(65_534), None).unwrap();
    let publish = |slots: u32, numbers: std::ops::Range<u32>| {
        let mut bytes = good();
        let (head, slot) = (bytes[..256].to_vec(), bytes.split_off(256)[..SLOT].to_vec());
        bytes = head;
        bytes[20..24].copy_from_slice(&slots.to_le_bytes());
        (0..slots).for_each(|_| bytes.extend_from_slice(&slot));
        for number in numbers {
            let path = theirs.join(number.to_string());
            fs::write(&path, &bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(65_534), None).unwrap();
        }
    };
    let listed = || {
        let listing = read::list(&pages, &Root::live());
        (listing.found.len(), listing.notes.concat())
    };
    publish(4, 1..513);
    assert_eq!(listed(), (512, String::new()));
    publish(4, 513..516);
    let (found, note) = listed();
    assert!(found == 512 && note.contains("user 65534 has 3 pages more:"), "{found} {note}");
    (1..516).for_each(|number| fs::remove_file(theirs.join(number.to_string())).unwrap());
    publish(1024, 1..10);
    let (found, note) = listed();
    assert!(found == 8 && note.contains("has 1 page more:"), "{found} {note}");
    assert!(own_is_whole(&pages), "another user's pages are no reason");
}

fn own_is_whole(pages: &gpuio_watch::page::LivePageRoot) -> bool {
    let _page = page(pages, 1);
    own(pages).page.is_ok()
}

#[test]
fn links_pipes_and_directories_are_no_pages() {
    let (_dir, pages) = pages();
    drop(page(&pages, 1));
    let pid = std::process::id();
    let path = directory(&pages).join(pid.to_string());
    let complains = |word: &str| {
        let found = own(&pages);
        let why = found.page.unwrap_err();
        assert!(why.contains(word) && !found.removed, "{why}");
    };
    symlink("/etc/passwd", &path).unwrap();
    complains("symbolic links");
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    complains("no regular file");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    complains("no regular file");
    fs::remove_dir(&path).unwrap();
    fs::write(directory(&pages).join("notes.txt"), "mine").unwrap();
    fs::write(directory(&pages).join("007"), "mine").unwrap();
    assert_eq!(read::list(&pages, &Root::live()).found, [], "names that are not ours");
    assert!(directory(&pages).join("notes.txt").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn changed_pages_are_shown_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..40),
        keep in any::<prop::sample::Index>(),
        cuts in prop::bool::weighted(0.1),
    ) {
        let mut page = good();
        for (at, value) in changes {
            // The first fields decide whether it is read at all: leave them more often.
            let at = 24 + at.index(page.len() - 32);
            page[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        if cuts {
            page.truncate(keep.index(page.len()));
        }
        if let Ok(snapshot) = parse(&page) {
            prop_assert!(show(&snapshot) > 0);
        }
    }
}
