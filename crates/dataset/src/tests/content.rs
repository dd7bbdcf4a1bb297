use std::fs::File;
use std::os::unix::fs::FileExt;

use gpuio_base::pattern::{Key, Repeats, fill, word};
use proptest::prelude::*;

use super::super::content::{Looks, Proof, find_key, prove};
use super::*;

const KEY: u64 = 99;

fn proof_of(bytes: &[u8], zeros: bool) -> Proof {
    let dir = directory();
    let path = dir.path().join("f");
    fs::write(&path, bytes).unwrap();
    prove(&held(&path), KEY.into(), zeros, None).unwrap()
}

fn pattern(length: usize, key: u64, from: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(&mut bytes, key, from);
    bytes
}

#[test]
fn a_pattern_from_end_to_end_is_whole() {
    for length in [1, 7, 8, 9, 4095, 4096, 100_003, (2 << 20) + 5] {
        let proof = proof_of(&pattern(length, KEY, 0), false);
        assert!(proof.is_ours() && proof.whole, "{length}: {proof:?}");
    }
    let empty = proof_of(&[], false);
    assert!(empty.is_ours(), "nothing is there to be lost");
    // Another key, or another place, is ours all the same, and not whole.
    for bytes in [pattern(100_000, 3, 0), pattern(100_000, KEY, 8)] {
        let proof = proof_of(&bytes, false);
        assert!(proof.is_ours() && !proof.whole, "{proof:?}");
    }
}

/// Data that repeats, too: a block that a run wrote for another place is ours, and one word of a
/// user's among the words that repeat is found.
#[test]
fn data_that_repeats_is_ours_wherever_it_stands() {
    for (percent, chunk) in [(50, 512), (75, 4096), (90, 1 << 20)] {
        let key = Key { seed: KEY, repeats: Repeats::new(percent, chunk).unwrap() };
        let dir = directory();
        let path = dir.path().join("f");
        let proof = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            prove(&held(&path), key, false, None).unwrap()
        };
        let mut bytes = vec![0; 5 << 20];
        fill(&mut bytes, key, 0);
        assert!(proof(&bytes).whole);
        fill(&mut bytes[1 << 20..2 << 20], key, 2 << 20);
        let moved = proof(&bytes);
        assert!(moved.is_ours() && !moved.whole, "{percent} {chunk}: {moved:?}");
        // A word that repeats, and the last of the file.
        for w in [key.repeats.bits() >> 8, (5 << 17) - 1] {
            let at = usize::try_from(w * 8).unwrap();
            let mut changed = bytes.clone();
            changed[at..at + 8].copy_from_slice(b"precious");
            assert_eq!(proof(&changed).foreign_at, Some(w * 8), "{percent} {chunk}");
        }
        // A user's file that repeats itself in the same places.
        let mut own = vec![0; 1 << 20];
        for (w, to) in (0_u64..).zip(own.as_chunks_mut::<8>().0) {
            *to = word(word(7_u64, key.repeats.source(w)), 3).to_le_bytes();
        }
        assert!(!proof(&own).is_ours());
        assert_eq!(find_key(&held(&path), key, 0..u64::MAX).unwrap(), None);
    }
}

#[test]
fn holes_and_zeros_are_nobodys_where_something_is_ours() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = File::create(&path).unwrap();
    file.set_len(4 << 20).unwrap();
    let hollow = prove(&held(&path), KEY.into(), false, None).unwrap();
    assert!(hollow.is_ours() && !hollow.whole, "{hollow:?}");
    file.write_all_at(&pattern(8192, 5, 64), 1 << 20).unwrap();
    assert!(prove(&held(&path), KEY.into(), false, None).unwrap().is_ours());
    // Zeros that were written; they follow the pattern without a hole.
    let mut bytes = pattern(8192, KEY, 0);
    bytes.resize(16384, 0);
    assert!(proof_of(&bytes, true).is_ours());
    assert_eq!(proof_of(&bytes, false).foreign_at, Some(8192));
    assert!(proof_of(&[0; 8192], true).blank);
}

#[test]
fn lone_words_and_ends_of_words_are_foreign() {
    let ours = pattern(8192, 5, 0);
    for (at, length) in [(0, 8), (8184, 8), (4096, 8), (4090, 1), (8191, 1), (0, 16)] {
        let mut bytes = ours.clone();
        bytes[at..at + length].fill(0x41);
        let proof = proof_of(&bytes, true);
        let word = (at / 8 * 8) as u64;
        assert!(proof.foreign_at.is_some_and(|found| found.abs_diff(word) <= 8), "{at}: {proof:?}");
    }
    let mut longer = ours;
    longer.extend(b"note");
    assert_eq!(proof_of(&longer, true).foreign_at, Some(8192));
}

/// No part of a long file is left out: eight bytes of a user's anywhere in 8 GiB are found, and one
/// of each page that was written of it is looked at.
#[test]
fn one_word_of_a_users_in_a_long_file_is_found() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = File::create(&path).unwrap();
    let size = 8 << 30;
    file.set_len(size).unwrap();
    for at in [0, size / 2, size - 4096] {
        file.write_all_at(&pattern(4096, KEY, at), at).unwrap();
    }
    let proof = || prove(&held(&path), KEY.into(), true, None).unwrap();
    assert!(proof().is_ours() && !proof().whole);
    // The second of the MiB, of which every eighth would be a window of a thousand.
    for at in [1 << 20, (3 << 20) + 8 * 511, size / 2 + (5 << 20)] {
        file.write_all_at(b"precious", at).unwrap();
        assert_eq!(proof().foreign_at, Some(at));
        file.write_all_at(&[0; 8], at).unwrap();
        assert!(proof().is_ours());
    }
}

/// A long look is reported, can be stopped, and is not done again while the file is as it was.
#[test]
fn looks_are_reported_and_stopped_and_known() {
    let dir = directory();
    let path = dir.path().join("f");
    let file = File::create(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    let (begin, end) = (pattern(4096, KEY, 0), pattern(4096, KEY, (1 << 30) - 4096));
    file.write_all_at(&begin, 0).unwrap();
    file.write_all_at(&end, (1 << 30) - 4096).unwrap();
    let stop = AtomicBool::new(false);
    let reported = std::cell::RefCell::new(Vec::new());
    let report = |done, of| reported.borrow_mut().push((done, of));
    let clock = std::cell::Cell::new(fs::metadata(&path).unwrap().modified().unwrap());
    let now = || clock.get();
    let looks = Looks::new(&report, &stop, &now);
    let look = || prove(&held(&path), KEY.into(), true, Some(&looks));
    // Its times may still pass over a change: it is looked at each time.
    for _ in 0..2 {
        assert!(look().unwrap().is_ours());
        assert_eq!(reported.take(), [(4096, 1 << 30), (1 << 30, 1 << 30)]);
    }
    clock.set(clock.get() + std::time::Duration::from_secs(2));
    for known in [false, true] {
        assert!(look().unwrap().is_ours());
        assert_eq!(reported.take().is_empty(), known);
    }
    // Its size tells that it changed, however slow the clock of inodes is.
    clock.set(std::time::UNIX_EPOCH);
    file.set_len((1 << 30) + 8).unwrap();
    file.write_all_at(b"precious", 1 << 20).unwrap();
    assert_eq!(look().unwrap().foreign_at, Some(1 << 20));
    assert!(!reported.take().is_empty(), "it is looked at again");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = look().unwrap_err().to_string();
    assert!(error.contains("nterrupted"), "{error}");
}

#[test]
fn the_key_is_found_in_what_a_file_holds() {
    let dir = directory();
    let path = dir.path().join("f");
    let find = |bytes: &[u8], known: u64| {
        fs::write(&path, bytes).unwrap();
        find_key(&held(&path), known.into(), 0..u64::MAX).unwrap().map(|key| key.seed)
    };
    let mut bytes = pattern(100_000, KEY, 0);
    assert_eq!(find(&bytes, 5), Some(KEY));
    bytes[50_000] ^= 1;
    bytes[..40_000].fill(1);
    assert_eq!(find(&bytes, 5), Some(KEY), "the larger part is enough");
    bytes[..51_000].fill(1);
    assert_eq!(find(&bytes, 5), None);
    assert_eq!(find(&pattern(8, KEY, 0), KEY), Some(KEY));
    assert_eq!(find(&pattern(8, KEY, 0), 5), None);
    assert_eq!(find(b"nothing of ours, in any word of it", KEY), None);
    assert_eq!(find(b"", KEY), None);
    // Several jobs have a part each: a job's part says what it is.
    for (part, key) in (1..9_u64).enumerate() {
        let at = part * 12_500;
        fill(&mut bytes[at..at + 12_500], key, at as u64);
    }
    assert_eq!(find(&bytes, 5), None);
    let part = find_key(&held(&path), 99.into(), 12_500..25_000).unwrap();
    assert_eq!(part.map(|key| key.seed), Some(2));
}

/// The bytes that a run writes to a file: blocks of words of any key, from any place of theirs.
fn written() -> impl Strategy<Value = (u64, Vec<(usize, usize, u64, u64)>)> {
    let block = (0..60_usize, 1..9_usize, any::<u64>(), 0..1_000_000_u64);
    (2..9_u32, prop::collection::vec(block, 1..12)).prop_map(|(shift, blocks)| (1 << shift, blocks))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever timed writes leave is ours, and with any byte of it changed it is not.
    #[test]
    fn timed_writes_are_ours_and_every_changed_byte_is_seen(
        (unit, blocks) in written(),
        flip in any::<prop::sample::Index>(),
    ) {
        let unit = usize::try_from(unit).unwrap() * 8;
        let mut bytes = Vec::new();
        for (at, length, key, from) in blocks {
            let (at, length) = (at * unit, length * unit);
            bytes.resize(bytes.len().max(at + length), 0);
            fill(&mut bytes[at..at + length], key, from * 8);
        }
        prop_assert!(proof_of(&bytes, true).is_ours());
        let at = flip.index(bytes.len());
        bytes[at] ^= 0x55;
        let proof = proof_of(&bytes, true);
        prop_assert!(proof.foreign_at.is_some(), "byte {}: {:?}", at, proof);
    }
}
