//! Sizes of samples that are drawn from a distribution.

use gpuio_base::units::{float, whole};
use gpuio_record::SampleSize;

use crate::workload::sequence::stream::{Stream, Use};

/// The size of the sample of a file, in bytes: normal, and the same on every machine and in every
/// run, since it follows from the number of the file alone. Sizes below the mean divided by 16, or
/// more than four standard deviations above it, are cut off there.
pub(super) fn drawn(size: SampleSize, file: u64) -> u64 {
    let mut stream = Stream::new(file, Use::Sizes);
    let [one, two] = [stream.share(), stream.share()];
    // Box and Muller, "A note on the generation of random normal deviates", 1958.
    let normal = libm::sqrt(-2.0 * libm::log(one)) * libm::cos(std::f64::consts::TAU * two);
    let (mean, deviation) = (float(size.mean_bytes), float(size.deviation_bytes));
    whole((mean + normal.min(4.0) * deviation).max(mean / 16.0))
}

/// Bytes that are stored of a sample which is compressed by this ratio: one at least.
pub(super) fn stored(bytes: u64, ratio: f64) -> u64 {
    if ratio.total_cmp(&1.0).is_eq() { bytes } else { whole(float(bytes) / ratio).max(1) }
}
