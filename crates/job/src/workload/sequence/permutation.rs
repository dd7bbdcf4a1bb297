//! A random order of 0 to n-1 that needs no memory.

use super::stream::{Use, derive};

const ROUNDS: usize = 6;

/// A permutation of `0..count`, chosen by a seed.
///
/// A Feistel network over the least power of two that holds `count`; results outside are sent
/// through again until they are inside ("cycle walking", Black and Rogaway, CT-RSA 2002). As the
/// network is a bijection and `count` is more than half of its range, that takes less than two
/// passes on average and always ends.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    count: u64,
    /// Bits of the lower half; the upper has as many or one fewer.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of this seed and pass; `count` is at least 1.
    pub(crate) fn new(count: u64, seed: u64, pass: u64) -> Permutation {
        debug_assert!(count > 0);
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits.div_ceil(2);
        let high_bits = bits - low_bits;
        let mut keys = [0; ROUNDS];
        let mut value = derive(seed, Use::Permutation, pass);
        for key in &mut keys {
            value = super::stream::splitmix(value);
            *key = value;
        }
        Permutation {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << high_bits) - 1,
            keys,
        }
    }

    /// How many numbers it permutes.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Where `index` goes; `index` is below the count.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.count);
        let mut value = index;
        loop {
            value = self.pass(value);
            if value < self.count {
                return value;
            }
        }
    }

    #[inline]
    fn pass(&self, value: u64) -> u64 {
        let mut low = value & self.low_mask;
        let mut high = value >> self.low_bits;
        for pair in self.keys.as_chunks::<2>().0 {
            high ^= round(low, pair[0]) & self.high_mask;
            low ^= round(high, pair[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

/// Spreads a half. Need not be a bijection; upper bits of the product are the well mixed ones.
#[inline]
fn round(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product >> 32 ^ product >> 17
}
