//! Latencies of one result against each other.

use gpuio_base::stat::Percentile;

use super::words;
use crate::foreign::{Number, Reading};

/// The share by which a mean may lie below its least value, for what tools round.
const MEAN: f64 = 0.05;

/// Why a mean or a percentile can't be of the same I/Os as the least and the highest latency, or
/// as each other.
pub(super) fn contradiction(reading: &Reading) -> Option<String> {
    let outside = |name: &str, number: &Number, span: Option<(f64, f64)>| {
        let (least, most) = span?;
        let off = number.off + number.value * 1e-3;
        (number.value + off < least || number.value - off > most).then(|| {
            let all = [number.value, least, most].map(words::time);
            format!("{name} is {}, and latencies are {} to {}.", all[0], all[1], all[2])
        })
    };
    let mean = reading.figures.get("mean").filter(|mean| mean.value > 0.0);
    let of_mean = mean.and_then(|mean| outside("The mean", mean, reading.mean_span));
    let each = || known(reading).into_iter();
    let of_percentile =
        || each().find_map(|(at, number)| outside(&at.label(), &number, reading.percentile_span));
    // The I/Os above a percentile alone make a mean of that share of it.
    let too_low = || {
        let mean = mean?;
        each().find_map(|(at, number)| {
            let least = (1.0 - at.quantile()) * (number.value - number.off);
            (mean.value + mean.off < least * (1.0 - MEAN)).then(|| {
                let all = [mean.value, number.value].map(words::time);
                let (mean, label) = (&all[0], at.label());
                format!("The mean is {mean}, too low for {label} of {}.", all[1])
            })
        })
    };
    let descends = || {
        let pairs = each().zip(each().skip(1));
        pairs.into_iter().find_map(|((low, lower), (high, higher))| {
            (higher.value + higher.off < lower.value - lower.off).then(|| {
                let [higher, lower] = [higher.value, lower.value].map(words::time);
                format!("{} ({higher}) lies below {} ({lower}).", high.label(), low.label())
            })
        })
    };
    of_mean.or_else(of_percentile).or_else(descends).or_else(too_low)
}

fn known(reading: &Reading) -> Vec<(Percentile, Number)> {
    let of = |(name, number): (&String, &Number)| Some((Percentile::named(name)?, *number));
    let mut all: Vec<(Percentile, Number)> = reading.figures.iter().filter_map(of).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}
