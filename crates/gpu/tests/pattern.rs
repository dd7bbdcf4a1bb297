//! The data rule on the CPU.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use gpuio_gpu::pattern::{Key, check, digest, file_key, fill, word};
use proptest::prelude::*;

/// Outputs of splitmix64 for the seed 0, from its authors' reference program.
const SPLITMIX64: [u64; 4] =
    [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F, 0xF88B_B8A8_724C_81EC];

#[test]
fn words_are_those_of_splitmix64() {
    for (w, expected) in (1..).zip(SPLITMIX64) {
        assert_eq!(word(0, w), expected);
    }
    assert_eq!(word(0, 0), 0);
}

#[test]
fn a_file_is_its_words_in_little_endian() {
    let mut bytes = [0; 24];
    fill(&mut bytes, 0, 8);
    let expected: Vec<u8> = SPLITMIX64[..3].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(bytes, expected[..]);
}

#[test]
fn files_of_a_set_differ_and_so_do_sets() {
    let mut keys: Vec<Key> =
        (0..4).flat_map(|salt| (0..1000).map(move |file| file_key(salt, file))).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4000);
    // No file is another one, moved by a few words.
    let first: Vec<u64> = (0..64).map(|w| word(file_key(7, 1), w)).collect();
    assert!((0..64).all(|w| !first.contains(&word(file_key(7, 2), w))));
}

/// The rule, byte by byte, as it reads.
fn byte(key: u64, offset: u64) -> u8 {
    word(key, offset / 8).to_le_bytes()[usize::try_from(offset % 8).unwrap()]
}

#[test]
fn a_digest_sees_order_length_and_each_bit() {
    assert_eq!(digest(&[], 5), 0);
    assert_eq!(digest(&7_u64.to_le_bytes(), 2), word(7, 3));
    assert_eq!(digest(&[7], 2), word(7, 3));
    let bytes: Vec<u8> = (0..77).collect();
    let whole = digest(&bytes, 0);
    for at in 0..bytes.len() * 8 {
        let mut other = bytes.clone();
        other[at / 8] ^= 1 << (at % 8);
        assert_ne!(digest(&other, 0), whole, "bit {at}");
    }
    let mut swapped = bytes.clone();
    swapped.swap(0, 8);
    assert_ne!(digest(&swapped, 0), whole);
    assert_ne!(digest(&[bytes.clone(), vec![0; 8]].concat(), 0), whole);
}

proptest! {
    #[test]
    fn digests_of_parts_add_up(bytes in prop::collection::vec(any::<u8>(), 0..3000), cut: u8) {
        let cut = (usize::from(cut) * 8).min(bytes.len() / 8 * 8);
        let (one, other) = bytes.split_at(cut);
        let parts = digest(one, 0).wrapping_add(digest(other, cut as u64 / 8));
        prop_assert_eq!(parts, digest(&bytes, 0));
    }

    #[test]
    fn fill_is_the_rule(key: u64, offset in 0..1_u64 << 60, len in 0..700_usize) {
        let mut bytes = vec![0; len];
        fill(&mut bytes, key, offset);
        let expected: Vec<u8> = (offset..offset + len as u64).map(|at| byte(key, at)).collect();
        prop_assert_eq!(bytes, expected);
    }

    #[test]
    fn check_finds_what_fill_wrote(key: u64, offset in 0..1_u64 << 60, len in 0..3000_usize) {
        let mut bytes = vec![0; len];
        fill(&mut bytes, key, offset);
        prop_assert_eq!(check(&bytes, key, offset), None);
    }

    #[test]
    fn check_counts_words_and_reports_the_first(
        key: u64,
        offset in 0..1_u64 << 60,
        len in 1..3000_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..9),
    ) {
        let mut bytes = vec![0; len];
        fill(&mut bytes, key, offset);
        let right = bytes.clone();
        for (at, bits) in &flips {
            bytes[at.index(len)] ^= bits;
        }
        let mut bad: Vec<u64> = (0..len)
            .filter(|&i| bytes[i] != right[i])
            .map(|i| (offset + i as u64) / 8)
            .collect();
        bad.dedup();
        let found = check(&bytes, key, offset);
        prop_assert_eq!(found.map_or(0, |found| found.bad_words), bad.len() as u64);
        if let Some(found) = found {
            prop_assert_eq!(found.first_offset, bad[0] * 8);
            prop_assert_eq!(found.expected, word(key, bad[0]));
            // The bytes that differ are those of the range that were changed.
            for (i, (a, b)) in
                found.expected.to_le_bytes().iter().zip(found.found.to_le_bytes()).enumerate()
            {
                let at = (found.first_offset + i as u64).checked_sub(offset);
                let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < len);
                prop_assert_eq!(at.map_or(*a, |at| bytes[at]), b);
            }
        }
    }
}
