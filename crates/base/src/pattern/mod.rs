//! The pattern: what every byte of a gpuio data file is, so that any block can be checked by
//! itself.
//!
//! A file is a sequence of little-endian 8-byte words. Word `w`, at byte offset `8 * w`, of a file
//! with key `K` is `mix(K + w * 0x9E3779B97F4A7C15)` in arithmetic modulo 2^64, where `mix` is the
//! finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014). Offsets and lengths need not be multiples of 8: the first and the
//! last word of a range may lie in it in part.
//!
//! A key may say that a share of each chunk repeats ([`Repeats`]), so that storage which compresses
//! finds something to save: a chunk's first words are as above, and each of the others is the
//! chunk's first one again. So every word still tells its chunk; a shift by whole words within
//! the words that repeat is not seen there, and is in the others.
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

/// Which words of each chunk of a file repeat its first one; the default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Repeats(u64);

impl Repeats {
    pub const NONE: Self = Self(0);
    /// Bytes of the smallest and the largest chunk.
    pub const CHUNKS: std::ops::RangeInclusive<u32> = 64..=1 << 30;

    /// That so many per cent of each chunk of so many bytes repeat, as nearly as whole words can
    /// be, and at most all but the first word. `None` for more than 100 per cent, and for a chunk
    /// that is not a power of two within [`Repeats::CHUNKS`].
    pub fn new(percent: u8, chunk_bytes: u32) -> Option<Self> {
        if percent > 100 || !chunk_bytes.is_power_of_two() || !Self::CHUNKS.contains(&chunk_bytes) {
            return None;
        }
        let words = u64::from(chunk_bytes / 8);
        let fresh = (words * u64::from(100 - percent)).div_ceil(100).max(1);
        Some(if fresh == words { Self::NONE } else { Self(fresh << 8 | u64::from(words.ilog2())) })
    }

    /// For the kernels: the binary logarithm of a chunk's words in the lowest 8 bits, and above
    /// them how many of these do not repeat. 0 if nothing repeats.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The value that [`Repeats::bits`] returned. `None` for a number that it never says.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let (log, own) = (bits & 0xff, bits >> 8);
        let possible = (3..=27).contains(&log) && (1..1 << log).contains(&own);
        (bits == 0 || possible).then_some(Self(bits))
    }

    /// The first word of the chunk of `w`, the word after the last of it that is its own, and the
    /// word after the chunk.
    fn chunk(self, w: u64) -> (u64, u64, u64) {
        if self == Self::NONE {
            return (0, u64::MAX, u64::MAX);
        }
        let words = 1 << (self.0 & 63);
        let begin = w & !(words - 1);
        (begin, begin + (self.0 >> 8), begin + words)
    }

    /// The word whose value word `w` has: itself, or the first one of its chunk.
    pub fn source(self, w: u64) -> u64 {
        let (begin, own_end, _) = self.chunk(w);
        if w < own_end { w } else { begin }
    }

    /// Whether words repeat, and a chunk begins with `w`.
    pub fn begins(self, w: u64) -> bool {
        self != Self::NONE && self.chunk(w).0 == w
    }

    /// `count` words from `first` on, cut where words begin or end to repeat: the first word of
    /// each run, how many it has, and the word that all of them repeat.
    fn runs(self, first: u64, count: usize) -> impl Iterator<Item = (u64, usize, Option<u64>)> {
        let mut w = first;
        let mut left = count;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let (begin, own_end, end) = self.chunk(w);
            let (end, repeats) = if w < own_end { (own_end, None) } else { (end, Some(begin)) };
            let len = usize::try_from(end - w).map_or(left, |len| len.min(left));
            let run = (w, len, repeats);
            w += len as u64;
            left -= len;
            Some(run)
        })
    }
}

/// The key from which the words of a file follow. A number alone is a key of which nothing repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The state of the generator before word 0.
    pub seed: u64,
    pub repeats: Repeats,
}

impl From<u64> for Key {
    fn from(seed: u64) -> Self {
        Self { seed, repeats: Repeats::NONE }
    }
}

impl Key {
    /// The number that the generator mixes for word `w`.
    pub fn state(self, w: u64) -> u64 {
        self.seed.wrapping_add(self.repeats.source(w).wrapping_mul(GOLDEN))
    }
}

/// Bytes that differ from the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternMismatch {
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

/// Undoes the mixing of a word: `unmix(word(key, w))` is `key.state(w)`, so that the origin of a
/// word follows from its value.
pub fn unmix(mut z: u64) -> u64 {
    z ^= z >> 31 ^ z >> 62;
    z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    z ^= z >> 27 ^ z >> 54;
    z = z.wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ z >> 30 ^ z >> 60
}

/// The number from which the keys of a data set's files follow. A number alone is a salt of whose
/// files nothing repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Salt {
    pub number: u64,
    /// Which words repeat in its files.
    pub repeats: Repeats,
}

impl From<u64> for Salt {
    fn from(number: u64) -> Self {
        Self { number, repeats: Repeats::NONE }
    }
}

/// Salt of what lies where timed writes will go, made from the pattern's own.
pub fn other_salt(salt: impl Into<Salt>) -> Salt {
    let salt = salt.into();
    Salt { number: salt.number ^ 0xa5a5_5a5a_c3c3_3c3c, ..salt }
}

/// Word `w` (at byte offset `8 * w`) of the file with this key.
#[inline]
pub fn word(key: impl Into<Key>, w: u64) -> u64 {
    mix(key.into().state(w))
}

/// The digest of bytes: the sum, modulo 2^64, of their little-endian 8-byte words, each mixed with
/// its number, the last one filled up with zeros. `first` is the number of the first word here, so
/// that the digests of parts, cut at multiples of 8 bytes, add up to the digest of the whole.
///
/// Mixing is a bijection: a change within one word always shows. It is no cryptographic digest.
pub fn digest(bytes: &[u8], first: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = lanes::sum(words, first.wrapping_add(1).wrapping_mul(GOLDEN));
    if rest.is_empty() {
        return whole;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let number = first.wrapping_add(words.len() as u64).wrapping_add(1);
    whole.wrapping_add(word(u64::from_le_bytes(last), number))
}

/// The key of file number `file` of a data set with this salt. Two files of one set never share a
/// key; two sets share keys only by chance.
pub fn file_key(salt: impl Into<Salt>, file: u64) -> Key {
    let Salt { number, repeats } = salt.into();
    // Mixed twice: sums of a key and a multiple of GOLDEN would else make file f + 1 the same as
    // file f, one word on.
    Key { seed: mix(mix(number).wrapping_add(mix(file ^ GOLDEN))), repeats }
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
pub fn fill(bytes: &mut [u8], key: impl Into<Key>, offset: u64) {
    let key = key.into();
    let cut = cut(offset, bytes.len());
    let (head, rest) = bytes.split_at_mut(cut.head);
    let first = word(key, cut.first).to_le_bytes();
    head.copy_from_slice(&first[cut.skip..cut.skip + cut.head]);

    let (words, tail) = rest.as_chunks_mut::<8>();
    let mut rest = &mut *words;
    for (w, len, repeats) in key.repeats.runs(cut.whole, rest.len()) {
        let (run, others) = rest.split_at_mut(len);
        match repeats {
            None => lanes::write(run, key.state(w)),
            Some(source) => run.fill(word(key, source).to_le_bytes()),
        }
        rest = others;
    }
    let last = word(key, cut.whole.wrapping_add(words.len() as u64)).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

/// Compares `bytes` with the file with this key from byte `offset` on. `None` means that all are
/// right.
pub fn check(bytes: &[u8], key: impl Into<Key>, offset: u64) -> Option<PatternMismatch> {
    let key = key.into();
    let cut = cut(offset, bytes.len());
    let (head, rest) = bytes.split_at(cut.head);
    let mut bad = None;
    if !head.is_empty() {
        compare(&mut bad, key, cut.first, cut.skip, head);
    }
    let (words, tail) = rest.as_chunks::<8>();
    let mut rest = words;
    for (mut w, len, repeats) in key.repeats.runs(cut.whole, words.len()) {
        let (run, others) = rest.split_at(len);
        for block in run.chunks(BLOCK) {
            let differ = match repeats {
                None => lanes::differ(block, key.state(w)),
                Some(source) => {
                    let expected = word(key, source).to_le_bytes();
                    block.iter().any(|found| *found != expected)
                }
            };
            if differ {
                for (i, found) in (0_u64..).zip(block) {
                    compare(&mut bad, key, w + i, 0, found);
                }
            }
            w += block.len() as u64;
        }
        rest = others;
    }
    if !tail.is_empty() {
        compare(&mut bad, key, cut.whole.wrapping_add(words.len() as u64), 0, tail);
    }
    bad
}

/// Compares the bytes `found`, which stand `skip` bytes into word `w`, and notes a difference.
fn compare(bad: &mut Option<PatternMismatch>, key: Key, w: u64, skip: usize, found: &[u8]) {
    let expected = word(key, w);
    let mut bytes = expected.to_le_bytes();
    bytes[skip..skip + found.len()].copy_from_slice(found);
    let found = u64::from_le_bytes(bytes);
    if found == expected {
        return;
    }
    let first_offset = w.wrapping_mul(8);
    let bad = bad.get_or_insert(PatternMismatch { first_offset, expected, found, bad_words: 0 });
    bad.bad_words += 1;
}
