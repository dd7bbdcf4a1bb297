//! Buckets of log-linear histograms.

use crate::units::whole;

/// Values below 2^SUB_BITS have a bucket each; above, each power of two is cut into 2^SUB_BITS
/// buckets, so that the middle of a bucket is within 1/2^(SUB_BITS + 1) of every value in it.
/// Values from 2^MAX_BITS on share the last.
#[derive(Debug)]
pub struct Buckets<const SUB_BITS: u32, const MAX_BITS: u32>;

impl<const SUB_BITS: u32, const MAX_BITS: u32> Buckets<SUB_BITS, MAX_BITS> {
    const SUB: u64 = 1 << SUB_BITS;
    /// How many there are.
    pub const COUNT: usize = (MAX_BITS - SUB_BITS + 1) as usize * (1 << SUB_BITS);

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an index below COUNT, which is a usize")]
    pub const fn of(value: u64) -> usize {
        if value < Self::SUB {
            return value as usize;
        }
        let bits = 63 - value.leading_zeros();
        if bits >= MAX_BITS {
            return Self::COUNT - 1;
        }
        let shift = bits - SUB_BITS;
        // The leading one is bit SUB_BITS of `value >> shift`, so this adds `shift + 1` whole rows.
        (shift as u64 * Self::SUB + (value >> shift)) as usize
    }

    /// First value of a bucket, and the number of values in it.
    pub const fn bounds(index: usize) -> (u64, u64) {
        let index = index as u64;
        if index < 2 * Self::SUB {
            return (index, 1);
        }
        let shift = index / Self::SUB - 1;
        ((index - shift * Self::SUB) << shift, 1 << shift)
    }

    /// The middle of the bucket in which `quantile` (0 to 1) of what was counted ends, or `None`
    /// when nothing was counted.
    pub fn at(counts: &[u64], quantile: f64) -> Option<u64> {
        let all = counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
        let wanted = (quantile.clamp(0.0, 1.0) * all as f64).ceil().max(1.0);
        let wanted = whole(wanted).min(all.max(1));
        let mut seen = 0_u64;
        let index = counts.iter().position(|&count| {
            seen = seen.saturating_add(count);
            seen >= wanted
        });
        let (low, width) = Self::bounds(index?);
        Some(low + width / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket_after_bucket<const SUB_BITS: u32, const MAX_BITS: u32>() {
        let mut next = 0;
        for index in 0..Buckets::<SUB_BITS, MAX_BITS>::COUNT {
            let (low, width) = Buckets::<SUB_BITS, MAX_BITS>::bounds(index);
            assert_eq!(low, next, "bucket {index}");
            assert_eq!(Buckets::<SUB_BITS, MAX_BITS>::of(low), index);
            assert_eq!(Buckets::<SUB_BITS, MAX_BITS>::of(low + width - 1), index);
            next = low + width;
        }
        assert_eq!(next, 1 << MAX_BITS);
        let last = Buckets::<SUB_BITS, MAX_BITS>::COUNT - 1;
        assert_eq!(Buckets::<SUB_BITS, MAX_BITS>::of(u64::MAX), last);
    }

    #[test]
    fn every_bucket_starts_where_the_one_before_ends() {
        bucket_after_bucket::<7, 44>();
        bucket_after_bucket::<4, 36>();
    }

    proptest! {
        #[test]
        fn any_counts_have_percentiles(counts in prop::collection::vec(any::<u64>(), 528)) {
            let at = |quantile| Buckets::<4, 36>::at(&counts, quantile);
            prop_assert!(at(0.1) <= at(0.9) && at(0.9).is_some());
        }
    }
}
