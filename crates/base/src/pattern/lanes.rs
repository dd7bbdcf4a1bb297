//! The loops over whole words, each compiled for the vector instructions that machines have.
//!
//! SSE2, which every x86-64 CPU has, lacks a 64-bit multiplication; with AVX2 the loops run three
//! times as fast, with AVX-512DQ, which has that multiplication, five times.
#![allow(unsafe_code)]

use super::{GOLDEN, mix};

#[inline(always)]
fn write_each(words: &mut [[u8; 8]], mut state: u64) {
    for to in words {
        *to = mix(state).to_le_bytes();
        state = state.wrapping_add(GOLDEN);
    }
}

#[inline(always)]
fn differ_any(words: &[[u8; 8]], mut state: u64) -> bool {
    let mut differ = 0;
    for found in words {
        differ |= u64::from_le_bytes(*found) ^ mix(state);
        state = state.wrapping_add(GOLDEN);
    }
    differ != 0
}

#[inline(always)]
fn sum_each(words: &[[u8; 8]], mut state: u64) -> u64 {
    let mut sum = 0_u64;
    for word in words {
        sum = sum.wrapping_add(mix(u64::from_le_bytes(*word).wrapping_add(state)));
        state = state.wrapping_add(GOLDEN);
    }
    sum
}

/// Writes the words of the rule from the one with this state on.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn write(words: &mut [[u8; 8]], state: u64) {
    write_each(words, state);
}

/// True if any word from this state on differs from the pattern.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn differ(words: &[[u8; 8]], state: u64) -> bool {
    differ_any(words, state)
}

/// The sum of the words, each mixed with its state.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn sum(words: &[[u8; 8]], state: u64) -> u64 {
    sum_each(words, state)
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{differ, sum, write};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{differ_any, sum_each, write_each};

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
    fn write_avx512(words: &mut [[u8; 8]], state: u64) {
        write_each(words, state);
    }

    #[target_feature(enable = "avx2")]
    fn write_avx2(words: &mut [[u8; 8]], state: u64) {
        write_each(words, state);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
    fn differ_avx512(words: &[[u8; 8]], state: u64) -> bool {
        differ_any(words, state)
    }

    #[target_feature(enable = "avx2")]
    fn differ_avx2(words: &[[u8; 8]], state: u64) -> bool {
        differ_any(words, state)
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
    fn sum_avx512(words: &[[u8; 8]], state: u64) -> u64 {
        sum_each(words, state)
    }

    #[target_feature(enable = "avx2")]
    fn sum_avx2(words: &[[u8; 8]], state: u64) -> u64 {
        sum_each(words, state)
    }

    /// The standard library caches both results.
    fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && has_avx2()
    }

    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
    }

    /// Writes the words of the rule from the one with this state on.
    pub(crate) fn write(words: &mut [[u8; 8]], state: u64) {
        if has_avx512() {
            // SAFETY: the CPU has the instructions the function is compiled for.
            unsafe { write_avx512(words, state) }
        } else if has_avx2() {
            // SAFETY: as above.
            unsafe { write_avx2(words, state) }
        } else {
            write_each(words, state);
        }
    }

    /// True if any word from this state on differs from the pattern.
    pub(crate) fn differ(words: &[[u8; 8]], state: u64) -> bool {
        if has_avx512() {
            // SAFETY: the CPU has the instructions the function is compiled for.
            unsafe { differ_avx512(words, state) }
        } else if has_avx2() {
            // SAFETY: as above.
            unsafe { differ_avx2(words, state) }
        } else {
            differ_any(words, state)
        }
    }

    /// The sum of the words, each mixed with its state.
    pub(crate) fn sum(words: &[[u8; 8]], state: u64) -> u64 {
        if has_avx512() {
            // SAFETY: the CPU has the instructions the function is compiled for.
            unsafe { sum_avx512(words, state) }
        } else if has_avx2() {
            // SAFETY: as above.
            unsafe { sum_avx2(words, state) }
        } else {
            sum_each(words, state)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::pattern::word;

        /// Whatever this machine has, every version that it can run says the same.
        #[test]
        fn every_version_is_the_rule() {
            let key = 0xFACE;
            let rule: Vec<[u8; 8]> = (0..101).map(|w| word(key, w).to_le_bytes()).collect();
            let mut spoilt = rule.clone();
            spoilt[100][7] ^= 1;
            let mut words = vec![[0; 8]; 101];
            write_each(&mut words, key);
            assert_eq!(words, rule);
            assert!(!differ_any(&rule, key) && differ_any(&spoilt, key));
            let whole = sum_each(&rule, key);
            assert_ne!(whole, sum_each(&spoilt, key));
            if has_avx2() {
                words.fill([0; 8]);
                // SAFETY: the CPU has AVX2.
                unsafe { write_avx2(&mut words, key) };
                assert_eq!(words, rule);
                // SAFETY: as above.
                assert!(unsafe { !differ_avx2(&rule, key) });
                // SAFETY: as above.
                assert!(unsafe { differ_avx2(&spoilt, key) });
                // SAFETY: as above.
                assert_eq!(unsafe { sum_avx2(&rule, key) }, whole);
            }
            if has_avx512() {
                words.fill([0; 8]);
                // SAFETY: the CPU has AVX-512F, DQ and VL.
                unsafe { write_avx512(&mut words, key) };
                assert_eq!(words, rule);
                // SAFETY: as above.
                assert!(unsafe { !differ_avx512(&rule, key) });
                // SAFETY: as above.
                assert!(unsafe { differ_avx512(&spoilt, key) });
                // SAFETY: as above.
                assert_eq!(unsafe { sum_avx512(&rule, key) }, whole);
            }
        }
    }
}
