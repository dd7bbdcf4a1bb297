//! Random numbers that are the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One step of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that spreads
/// neighbouring inputs over the whole range.
#[inline]
pub(crate) fn splitmix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The use of a stream. Streams of one seed are independent, so that a draw more in one does not
/// move another: offsets stay the same whatever the mix of reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Offsets = 1,
    Sizes = 2,
    Directions = 3,
    Permutation = 4,
    Arrivals = 5,
    Samples = 6,
    Follow = 7,
}

/// The seed of one stream, or of one pass within it.
#[inline]
pub(crate) fn derive(seed: u64, what: Use, pass: u64) -> u64 {
    splitmix(splitmix(splitmix(seed) ^ what as u64) ^ pass)
}

/// A stream of random numbers: xoshiro256++, whose values are fixed by its published definition.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    rng: Xoshiro256PlusPlus,
}

impl Stream {
    pub(crate) fn new(seed: u64, what: Use) -> Stream {
        let mut state = [0; 32];
        let mut value = derive(seed, what, 0);
        for part in state.chunks_exact_mut(8) {
            value = splitmix(value);
            part.copy_from_slice(&value.to_le_bytes());
        }
        Stream { rng: Xoshiro256PlusPlus::from_seed(state) }
    }

    /// A number below `bound`, by one draw and one multiplication. The bias, at most
    /// `bound / 2^64`, is far below what a run could show.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `(0, 1]`, on a grid of 2^-53: never 0, so that its logarithm is finite.
    #[inline]
    pub(crate) fn share(&mut self) -> f64 {
        const GRID: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.rng.next_u64() >> 11) + 1) as f64 * GRID
    }
}
