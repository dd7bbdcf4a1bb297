//! The pattern: what every byte of a gpuio data file is, so that any block can be checked by
//! itself.
//!
//! A file is a sequence of little-endian 8-byte words. Word `w`, at byte offset `8 * w`, of a file
//! with key `K` is `mix(K + w * 0x9E3779B97F4A7C15)` in arithmetic modulo 2^64, where `mix` is the
//! finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014). Offsets and lengths need not be multiples of 8: the first and the
//! last word of a range may lie in it in part.
//!
//! These functions are the reference for the kernels in `kernels/pattern.cu` of `gpuio_gpu`.
//!
//! Timed writes carry the pattern of their own offset, so that what a byte must be follows from its
//! location, independent of the last writer. Before the clock the bytes that a job may write are
//! given other contents ([`other_salt`]): a write that never arrived is then found.
//!
//! Every function may be called from any thread; none allocates. Pure: no file, no clock, no
//! environment.

mod lanes;

/// The step between the inputs of the mixing: 2^64 divided by the golden ratio, odd.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Words compared at once before a difference is looked at: the loop over them has no branch, so
/// that it can be vectorised, and the first level cache holds them.
const BLOCK: usize = 512;

/// Bytes that differ from the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// The byte offset in the file of the first word that differs, a multiple of 8. It is less
    /// than the offset of the range if the range starts inside that word.
    pub first_offset: u64,
    /// That word by the rule.
    pub expected: u64,
    /// That word as it was found. Bytes of it outside the range are taken from `expected`.
    pub found: u64,
    /// How many words differ.
    pub bad_words: u64,
}

/// The finaliser of splitmix64, a bijection.
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Undoes the mixing of a word: `unmix(word(key, w))` is `key + w * GOLDEN` modulo 2^64, so that
/// the origin of a word follows from its value.
#[must_use]
pub fn unmix(mut z: u64) -> u64 {
    z ^= z >> 31 ^ z >> 62;
    z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    z ^= z >> 27 ^ z >> 54;
    z = z.wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ z >> 30 ^ z >> 60
}

/// Salt of what lies where timed writes will go, made from the pattern's own.
#[must_use]
pub fn other_salt(salt: u64) -> u64 {
    salt ^ 0xa5a5_5a5a_c3c3_3c3c
}

/// Word `w` (at byte offset `8 * w`) of the file with this key.
#[inline]
#[must_use]
pub fn word(key: u64, w: u64) -> u64 {
    mix(key.wrapping_add(w.wrapping_mul(GOLDEN)))
}

/// The key of file number `file` of a data set with this salt. Two files of one set never share a
/// key; two sets share keys only by chance.
#[must_use]
pub fn file_key(salt: u64, file: u64) -> u64 {
    // Mixed twice: sums of a key and a multiple of GOLDEN would else make file f + 1 the same as
    // file f, one word on.
    mix(mix(salt).wrapping_add(mix(file ^ GOLDEN)))
}

/// How a range divides into a part of a word, whole words and a part of a word.
struct Cut {
    /// The word that the range starts in.
    first: u64,
    /// Bytes of that word before the range; 0 if the range starts with a whole word.
    skip: usize,
    /// Bytes of the range in that first word, if `skip` is not 0.
    head: usize,
    /// The word after `head`.
    whole: u64,
}

fn cut(offset: u64, len: usize) -> Cut {
    let first = offset / 8;
    // Less than 8, so it fits.
    let skip = usize::from(offset.to_le_bytes()[0] % 8);
    let head = if skip == 0 { 0 } else { (8 - skip).min(len) };
    Cut { first, skip, head, whole: if skip == 0 { first } else { first + 1 } }
}

/// Writes the bytes of the file with this key from byte `offset` on into `bytes`.
pub fn fill(bytes: &mut [u8], key: u64, offset: u64) {
    let cut = cut(offset, bytes.len());
    let (head, rest) = bytes.split_at_mut(cut.head);
    let first = word(key, cut.first).to_le_bytes();
    head.copy_from_slice(&first[cut.skip..cut.skip + cut.head]);

    let (words, tail) = rest.as_chunks_mut::<8>();
    lanes::write(words, key.wrapping_add(cut.whole.wrapping_mul(GOLDEN)));
    let last = word(key, cut.whole.wrapping_add(words.len() as u64)).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

/// Compares `bytes` with the file with this key from byte `offset` on. `None` means that all are
/// right.
#[must_use]
pub fn check(bytes: &[u8], key: u64, offset: u64) -> Option<Mismatch> {
    let cut = cut(offset, bytes.len());
    let (head, rest) = bytes.split_at(cut.head);
    let mut bad = None;
    if !head.is_empty() {
        compare(&mut bad, key, cut.first, cut.skip, head);
    }
    let (words, tail) = rest.as_chunks::<8>();
    let mut w = cut.whole;
    for block in words.chunks(BLOCK) {
        if lanes::differ(block, key.wrapping_add(w.wrapping_mul(GOLDEN))) {
            for (i, found) in (0_u64..).zip(block) {
                compare(&mut bad, key, w + i, 0, found);
            }
        }
        w += block.len() as u64;
    }
    if !tail.is_empty() {
        compare(&mut bad, key, w, 0, tail);
    }
    bad
}

/// Compares the bytes `found`, which stand `skip` bytes into word `w`, and notes a difference.
fn compare(bad: &mut Option<Mismatch>, key: u64, w: u64, skip: usize, found: &[u8]) {
    let expected = word(key, w);
    let mut bytes = expected.to_le_bytes();
    bytes[skip..skip + found.len()].copy_from_slice(found);
    let found = u64::from_le_bytes(bytes);
    if found == expected {
        return;
    }
    let first_offset = w.wrapping_mul(8);
    let bad = bad.get_or_insert(Mismatch { first_offset, expected, found, bad_words: 0 });
    bad.bad_words += 1;
}
