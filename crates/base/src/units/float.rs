//! Integers as floats and back.

/// A count for rounded forms and ratios: above 2^53 it loses its last bits.
#[inline]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// The whole part of a number, held at 0 and at the largest integer; 0 of one that is none.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held at the ends")]
pub fn whole(number: f64) -> u64 {
    number as u64
}
