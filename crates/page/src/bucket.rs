//! Which counter a latency and a size belong to.

/// Sub-buckets per power of two: 2^SUB_BITS. Coarser than the histogram of crate `stat`, so that a
/// worker slot takes 9 KiB.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;
/// Latencies from 2^MAX_BITS ns (69 s) on share the last bucket.
const MAX_BITS: u32 = 36;
/// Latency counters per direction.
pub(crate) const BUCKETS: usize = (MAX_BITS - SUB_BITS + 1) as usize * (1 << SUB_BITS);

/// Classes of the size histogram: below 4 KiB, twelve powers of two up to 16 MiB, and so on; those
/// of gds_stats (docs/stats.md).
pub const SIZES: usize = 16;

/// The bucket of a latency in nanoseconds.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an index below BUCKETS, which is a usize")]
pub(crate) fn bucket(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let bits = 63 - ns.leading_zeros();
    if bits >= MAX_BITS {
        return BUCKETS - 1;
    }
    let shift = bits - SUB_BITS;
    (u64::from(shift) * SUB + (ns >> shift)) as usize
}

/// The bucket that begins at this power of two, from 2^SUB_BITS on, in nanoseconds.
pub(crate) fn starts_at_power(power: u32) -> usize {
    bucket(1 << power)
}

/// The middle of a bucket, nanoseconds; the lowest value of the last, which has no end.
fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * SUB {
        return index;
    }
    let shift = index / SUB - 1;
    let low = (index - shift * SUB) << shift;
    low + (1 << shift) / 2
}

/// The class of a size in bytes: 0 below 4 KiB, 1 below 8 KiB, …, 15 from 64 MiB on.
#[must_use]
#[inline]
pub fn size_class(bytes: u64) -> usize {
    let bits = (64 - (bytes >> 12).leading_zeros()) as usize;
    bits.min(SIZES - 1)
}

/// The value at or below which `quantile` (0 to 1) of the counted latencies lie, within 1/32 (3 %),
/// or `None` without any.
pub(crate) fn percentile(counts: &[u64], quantile: f64) -> Option<u64> {
    let all = counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    if all == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rank needs no 64 bits")]
    let wanted = (quantile.clamp(0.0, 1.0) * all as f64).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1; a float beyond u64 saturates"
    )]
    let wanted = (wanted as u64).min(all);
    let mut seen = 0_u64;
    for (index, &count) in counts.iter().enumerate() {
        seen = seen.saturating_add(count);
        if seen >= wanted {
            return Some(middle(index));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_fall_into_the_classes_of_gds_stats() {
        let kib = |n: u64| size_class(n << 10);
        assert_eq!((size_class(0), size_class(4095), kib(4), kib(8)), (0, 0, 1, 2));
        // NVIDIA's own sample counts 1 MiB under 1024-2048 and 4 KiB under 4-8.
        assert_eq!((kib(1024), kib(65535), kib(65536), size_class(u64::MAX)), (9, 14, 15, 15));
    }

    #[test]
    fn the_last_bucket_takes_what_is_too_long() {
        assert_eq!(bucket((1 << MAX_BITS) - 1), BUCKETS - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(percentile(&[0; BUCKETS], 0.5), None);
    }

    proptest! {
        #[test]
        fn a_bucket_is_within_a_thirty_second(ns in 0_u64..(1 << MAX_BITS)) {
            let at = bucket(ns);
            prop_assert!(at < BUCKETS);
            let middle = middle(at);
            prop_assert!(middle.abs_diff(ns) <= ns / 32 + 1, "{ns} in {at}: {middle}");
            prop_assert!(at == 0 || bucket(ns.saturating_sub(1)) <= at);
        }

        #[test]
        fn any_counts_have_percentiles(counts in prop::collection::vec(any::<u64>(), BUCKETS)) {
            let (low, high) = (percentile(&counts, 0.1), percentile(&counts, 0.9));
            prop_assert!(low <= high);
        }
    }
}
