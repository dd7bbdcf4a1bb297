//! Values of a training feed.

use gpuio_base::units::parse_percent;
use gpuio_record::{
    Column, ComputationKind, Distribution, FeedCompute, RangeKind, SampleOrder, SampleSize,
    ServiceLevel,
};

use super::choice::distribution;
use super::number::{at_least_one_u32, size};
use super::some_time;
use super::{Read, ValueError, pieces, wrong};

/// Most columns of a file.
const COLUMNS_MOST: usize = 4096;
/// Most bytes of a sample in a column, so that no sum of columns is out of range.
const COLUMN_MOST: u32 = 1 << 20;

/// `114660`, or `146600628+-68341808` with the standard deviation.
pub(crate) fn sample_size(value: &str) -> Read<SampleSize> {
    const MOST: u64 = 1 << 40;
    let (mean, deviation) = match value.split_once("+-") {
        Some((mean, deviation)) => (mean, Some(deviation)),
        None => (value, None),
    };
    let mean_bytes = size(mean)?;
    let at = mean.len() + 2;
    let deviation_bytes =
        deviation.map_or(Ok(0), size).map_err(|error: ValueError| error.shifted(at))?;
    if mean_bytes > MOST {
        return wrong(0, "a sample above 1 TiB; give a smaller size");
    }
    if deviation_bytes > mean_bytes {
        let what = "the deviation is above the mean; give a smaller one, such as 100k+-10k";
        return wrong(at, what);
    }
    Ok(SampleSize { mean_bytes, deviation_bytes })
}

/// `0.01`: above 0, and a number of files at the end.
pub(crate) fn scale(value: &str) -> Read<f64> {
    match value.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1e6 => Ok(scale),
        _ => wrong(0, "expected a factor above 0, such as 0.01 or 1"),
    }
}

/// How often a job runs.
pub(crate) fn repeat(value: &str) -> Read<u32> {
    const MOST: u32 = 1000;
    match at_least_one_u32(value)? {
        times if times <= MOST => Ok(times),
        _ => wrong(0, "more than 1000 times; give a smaller number"),
    }
}

/// The parts of files that are read.
pub(crate) fn ranges(value: &str) -> Read<RangeKind> {
    [RangeKind::Files, RangeKind::Tensors]
        .into_iter()
        .find(|kind| kind.word() == value)
        .ok_or_else(|| ValueError::new(0, "expected files or tensors"))
}

/// `4`: how many times smaller something is stored.
pub(crate) fn ratio(value: &str) -> Read<f64> {
    match value.parse::<f64>() {
        Ok(ratio) if (1.0..=1e6).contains(&ratio) => Ok(ratio),
        _ => wrong(0, "expected a number from 1 on, such as 4 or 2.5"),
    }
}

/// `interactive`, `responsive`, `batch`, or two times with a slash.
pub(crate) fn slo(value: &str) -> Read<ServiceLevel> {
    if let Some(level) = ServiceLevel::NAMED.iter().find(|(name, _)| *name == value) {
        return Ok(level.1);
    }
    let Some((most, nearly_all)) = value.split_once('/') else {
        let what = "expected interactive, responsive, batch, or two times: 50ms/100ms";
        return wrong(0, what);
    };
    let second = most.len() + 1;
    let times = [some_time(most)?, some_time(nearly_all).map_err(|error| error.shifted(second))?];
    match times.is_sorted() {
        true => Ok(ServiceLevel::within(times)),
        false => {
            let what = "99 % of the batches can't be faster than 95 %; give the shorter time first";
            wrong(second, what)
        }
    }
}

/// A percentage above 0.
pub(crate) fn share(value: &str) -> Read<f64> {
    match parse_percent(value).map_err(ValueError::from)? {
        0.0 => wrong(0, "0 has no effect; give a percentage above 0"),
        percent => Ok(percent),
    }
}

/// Bytes of a sample in each column, those that are read with a `+`, and `*N` for N alike:
/// `4+,8,2*3`.
pub(crate) fn columns(value: &str) -> Read<Vec<Column>> {
    let mut all = Vec::new();
    for (at, piece) in pieces(value, ',') {
        let bad = |error: ValueError| error.shifted(at);
        let trimmed = piece.trim();
        let at = at + (piece.len() - piece.trim_start().len());
        let (one, count) = match trimmed.split_once('*') {
            Some((one, count)) => {
                let by = at + one.len() + 1;
                (one, at_least_one_u32(count).map_err(|error| error.shifted(by))?)
            }
            None => (trimmed, 1),
        };
        let (bytes, read) = one.strip_suffix('+').map_or((one, false), |bytes| (bytes, true));
        let bytes = at_least_one_u32(bytes).map_err(bad)?;
        if bytes > COLUMN_MOST {
            return wrong(at, "a column above 1 MiB for each sample; give less");
        }
        if all.len() + count as usize > COLUMNS_MOST {
            let what = format!("more than {COLUMNS_MOST} columns; give fewer");
            return wrong(at, what);
        }
        all.extend(std::iter::repeat_n(Column { bytes, read }, count as usize));
    }
    match all.iter().any(|column| column.read) {
        true => Ok(all),
        false => wrong(0, "no column is read; put a + behind those that are: 4+,8"),
    }
}

/// Order of samples.
pub(crate) fn sample_order(value: &str) -> Read<SampleOrder> {
    use SampleOrder::{InOrder, Reverse, Shuffle, ShuffleFiles, Zipf};
    if value.split(':').next() == Some("zipf")
        && let Distribution::Zipf { theta } = distribution(value)?
    {
        return Ok(Zipf { theta });
    }
    let what = "expected shuffle, shuffle-files, in-order, reverse or zipf:THETA";
    [Shuffle, ShuffleFiles, InOrder, Reverse]
        .into_iter()
        .find(|order| order.key() == value)
        .ok_or_else(|| ValueError::new(0, what))
}

pub(crate) const COMPUTE: [(&str, FeedCompute); 4] = [
    ("kernel", FeedCompute::Kernel { with: ComputationKind::Compute, share_percent: 100.0 }),
    ("memory", FeedCompute::Kernel { with: ComputationKind::Memory, share_percent: 100.0 }),
    ("sleep", FeedCompute::Sleep),
    ("none", FeedCompute::None),
];

/// `kernel`, `kernel:50%`, `memory`, `memory:50%`, `sleep`, `none`.
pub(crate) fn compute(value: &str) -> Read<FeedCompute> {
    let (word, share) = match value.split_once(':') {
        Some((word, share)) => (word, Some(share)),
        None => (value, None),
    };
    let known = COMPUTE.iter().find(|(known, _)| *known == word).map(|(_, compute)| *compute);
    match known {
        Some(FeedCompute::Kernel { with, share_percent }) => {
            let share = share.map_or(Ok(share_percent), self::share);
            let share_percent = share.map_err(|error| error.shifted(word.len() + 1))?;
            Ok(FeedCompute::Kernel { with, share_percent })
        }
        Some(compute) if share.is_none() => Ok(compute),
        _ => {
            let what = "expected kernel, memory, sleep or none; kernel and memory take a share of \
                the multiprocessors: kernel:50%";
            wrong(0, what)
        }
    }
}
