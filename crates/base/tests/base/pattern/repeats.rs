//! Data of which a part repeats: what each byte is, what a check sees, what a compressor saves.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use gpuio_base::pattern::{Key, Repeats, Salt, check, file_key, fill, other_salt, word};
use proptest::prelude::*;

fn key(percent: u8, chunk: u32) -> Key {
    Key { seed: 0xfeed, repeats: Repeats::new(percent, chunk).unwrap() }
}

/// By the rule alone, byte by byte.
fn expected(percent: u64, chunk: u64, byte: u64) -> u8 {
    let own = (chunk / 8 * (100 - percent)).div_ceil(100).max(1);
    let (w, within) = (byte / 8, byte / 8 % (chunk / 8));
    let source = if within < own { w } else { w - within };
    word(0xfeed_u64, source).to_le_bytes()[usize::try_from(byte % 8).unwrap()]
}

proptest! {
    #[test]
    fn any_cut_of_a_file_is_the_rule_and_any_change_of_it_is_seen(
        percent in 0_u8..=100,
        log in 6_u32..=13,
        offset in 0_u64..100_000,
        len in 1_usize..20_000,
        at in any::<proptest::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let key = key(percent, 1 << log);
        let mut bytes = vec![0; len];
        fill(&mut bytes, key, offset);
        for (nth, byte) in (0_u64..).zip(&bytes) {
            prop_assert_eq!(*byte, expected(percent.into(), 1 << log, offset + nth));
        }
        prop_assert_eq!(check(&bytes, key, offset), None);
        let at = at.index(len);
        bytes[at] ^= 1 << bit;
        let bad = check(&bytes, key, offset).unwrap();
        prop_assert_eq!(bad.bad_words, 1);
        prop_assert_eq!(bad.first_offset, (offset + at as u64) / 8 * 8);
    }
}

#[test]
fn a_compressor_saves_what_repeats() {
    let compressed = |percent, chunk| {
        let mut bytes = vec![0; 1 << 20];
        fill(&mut bytes, key(percent, chunk), 0);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap().len() * 100 / bytes.len()
    };
    assert!((99..=101).contains(&compressed(0, 512)));
    for chunk in [512, 4096, 65536] {
        let (half, quarter) = (compressed(50, chunk), compressed(75, chunk));
        assert!((49..=53).contains(&half) && (24..=28).contains(&quarter), "{half} {quarter}");
    }
}

#[test]
fn blocks_of_other_places_and_files_are_not_taken_for_the_right_ones() {
    let key = key(90, 4096);
    let mut bytes = vec![0; 4096];
    fill(&mut bytes, key, 4096);
    for (other, offset) in [(key, 0), (key, 8192), (0xfeed_u64.into(), 4096)] {
        assert!(check(&bytes, other, offset).is_some_and(|bad| bad.bad_words > 300));
    }
    let salt = Salt { number: 1, repeats: key.repeats };
    assert_eq!(file_key(salt, 2).repeats, key.repeats);
    assert_eq!(file_key(other_salt(salt), 2).repeats, key.repeats);
    assert_eq!(file_key(salt, 2).seed, file_key(1, 2).seed);
}

#[test]
fn the_numbers_of_kernels_and_lists_are_checked() {
    for (percent, chunk) in [(0, 512), (50, 64), (99, 1 << 30), (100, 512)] {
        let repeats = Repeats::new(percent, chunk).unwrap();
        assert_eq!(Repeats::from_bits(repeats.bits()), Some(repeats));
    }
    assert_eq!(Repeats::new(0, 512), Some(Repeats::NONE));
    for (percent, chunk) in [(101, 512), (50, 0), (50, 32), (50, 1000), (50, 1 << 31)] {
        assert_eq!(Repeats::new(percent, chunk), None);
    }
    for bits in [1, 2, 3, 3 | 8 << 8, 40 | 1 << 8, u64::MAX] {
        assert_eq!(Repeats::from_bits(bits), None, "{bits:#x}");
    }
}
