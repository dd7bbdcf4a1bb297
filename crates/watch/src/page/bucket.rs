//! Which counter a latency and a size belong to.

/// Coarser than the histograms of `base::stat`, so that a worker slot takes 9 KiB: percentiles are
/// within 1/32 (3 %). Latencies from 2^36 ns (69 s) on share the last.
pub(crate) type Latencies = gpuio_base::stat::Buckets<4, 36>;

/// Classes of the size histogram: below 4 KiB, twelve powers of two up to 16 MiB, and so on; those
/// of gds_stats (docs/stats.md).
pub const SIZES: usize = 16;

/// The class of a size in bytes: 0 below 4 KiB, 1 below 8 KiB, …, 15 from 64 MiB on.
#[inline]
pub fn size_class(bytes: u64) -> usize {
    let bits = (64 - (bytes >> 12).leading_zeros()) as usize;
    bits.min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_the_classes_of_gds_stats() {
        let kib = |n: u64| size_class(n << 10);
        assert_eq!((size_class(0), size_class(4095), kib(4), kib(8)), (0, 0, 1, 2));
        // NVIDIA's own sample counts 1 MiB under 1024-2048 and 4 KiB under 4-8.
        assert_eq!((kib(1024), kib(65535), kib(65536), size_class(u64::MAX)), (9, 14, 15, 15));
    }
}
