//! The conclusions from few measurements about the next: how far a ratio may be off, and whether
//! two samples can come from one source.
//!
//! Ratios are worked out on logarithms: rates and times are positive, noise multiplies rather than
//! adds, and an interval of a ratio comes out the same whichever side is the baseline. All
//! functions are pure. Samples of SciPy's answers stand in `tests/scipy`.

mod rank;
mod ratio;
mod series;
mod student;

pub use rank::{RankSum, rank_sum};
pub use ratio::{Ratio, Spread, is_above, paired, predicted, welch, within};
pub use series::spread;
pub use student::t_quantile;

/// Arithmetic mean; `None` of nothing.
pub fn mean(sample: &[f64]) -> Option<f64> {
    if sample.is_empty() { None } else { Some(sample.iter().sum::<f64>() / count(sample)) }
}

/// Runs for an interval of a mean: with two it is too wide to be of use.
pub const INTERVAL_RUNS: usize = 3;

/// Half the width of the interval of a mean (Student's t) as a share of it: what is printed as ±.
/// `None` where there are not enough runs for one: fewer than [`INTERVAL_RUNS`], or so far apart
/// that it includes 0.
pub fn mean_share(sample: &[f64], level: f64) -> Option<f64> {
    let share = mean_half(sample, level)? / mean(sample)?;
    Some(share).filter(|share| *share < 1.0)
}

/// Half the width of the interval of a mean, in the unit of the values and however wide; `None` of
/// fewer than [`INTERVAL_RUNS`].
pub fn mean_half(sample: &[f64], level: f64) -> Option<f64> {
    if sample.len() < INTERVAL_RUNS {
        return None;
    }
    let t = t_quantile(f64::midpoint(1.0, level), count(sample) - 1.0)?;
    Some(t * (variance(sample)? / count(sample)).sqrt())
}

/// An interval of a rate that says nothing of it.
pub const INCLUDES_0: &str = "includes 0";

/// Both ends of the interval of a mean of rates, which are never negative: one that includes 0
/// begins there. `None` of fewer than [`INTERVAL_RUNS`].
pub fn mean_ends(sample: &[f64], level: f64) -> Option<[f64; 2]> {
    let (mean, half) = (mean(sample)?, mean_half(sample, level)?);
    Some([(mean - half).max(0.0), mean + half])
}

/// The share in words: `±3.2 %`, or `includes 0`; `None` of fewer runs.
pub fn mean_share_words(sample: &[f64], level: f64) -> Option<String> {
    let known = mean_share(sample, level).map(|share| format!("±{:.1} %", share * 100.0));
    known.or_else(|| (sample.len() >= INTERVAL_RUNS).then(|| INCLUDES_0.to_owned()))
}

/// Geometric mean; `None` of nothing, and where a value is not above 0.
pub fn geometric_mean(sample: &[f64]) -> Option<f64> {
    mean(&logs(sample)?).map(f64::exp)
}

/// Median; of an even number the mean of the two in the middle. `None` of nothing.
pub fn median(sample: &[f64]) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = sorted.get(half)?;
    if sorted.len() % 2 == 1 { Some(*upper) } else { Some(f64::midpoint(sorted[half - 1], *upper)) }
}

/// Median of a figure of some runs; `None` unless every run has it (NaN is none): runs that lack a
/// percentile had the fewest I/Os, so the others do not stand for them.
pub fn median_of_all(runs: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let known = |value: Option<f64>| value.filter(|value| !value.is_nan());
    median(&runs.into_iter().map(known).collect::<Option<Vec<f64>>>()?)
}

/// Values for outliers: of fewer, half may be on either side.
const OUTLIER_VALUES: usize = 5;

/// Indices of values that are far from the others: more than 3.5 times the median absolute
/// deviation, scaled to a normal distribution, of their logarithms (Iglewicz and Hoaglin, How to
/// Detect and Handle Outliers, 1993), and more than a tenth. None of fewer than five.
pub fn outliers(sample: &[f64]) -> Vec<usize> {
    let Some(logs) = logs(sample).filter(|logs| logs.len() >= OUTLIER_VALUES) else {
        return Vec::new();
    };
    let middle = median(&logs).unwrap_or_default();
    let far: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let most = (median(&far).unwrap_or_default() * 3.5 / 0.6745).max(1.1f64.ln());
    (0..far.len()).filter(|nth| far[*nth] > most).collect()
}

/// Variance with n - 1; `None` of fewer than two.
fn variance(sample: &[f64]) -> Option<f64> {
    let mean = mean(sample)?;
    let squares: f64 = sample.iter().map(|x| (x - mean).powi(2)).sum();
    if sample.len() < 2 { None } else { Some(squares / (count(sample) - 1.0)) }
}

fn logs(sample: &[f64]) -> Option<Vec<f64>> {
    let fit = |x: &f64| *x > 0.0 && x.is_finite();
    if sample.iter().all(fit) { Some(sample.iter().map(|x| x.ln()).collect()) } else { None }
}

fn count(sample: &[f64]) -> f64 {
    sample.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of NIST's e-Handbook of Statistical Methods, 1.3.5.17.
    #[test]
    fn outliers_are_far_from_the_others_on_the_scale_of_their_spread() {
        assert_eq!(outliers(&[2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]), [8, 9]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 0.7]), [4]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 0.95]), [0usize; 0], "less than a tenth");
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 0.1]), [0usize; 0], "too few");
        assert_eq!(outliers(&[0.5, 1.0, 2.0, 4.0, 8.0]), [0usize; 0], "spread evenly");
    }

    #[test]
    fn a_share_of_the_mean_needs_runs_that_exclude_zero() {
        // scipy.stats.t.interval(0.95, 4, loc=mean, scale=sem) of 10, 11, 12, 13, 14: 12 ± 1.96324.
        let share = mean_share(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.95).unwrap();
        assert!((share * 12.0 - 1.963_243_16).abs() < 1e-6, "{share}");
        assert_eq!(mean_share(&[1.0, 2.0], 0.95), None, "one degree of freedom");
        assert_eq!(mean_share(&[0.0; 5], 0.95), None, "nothing moved");
        assert_eq!(mean_share(&[1.0, 1.2, 4.0], 0.95), None, "±190 % includes 0");
        let words = |sample: &[f64]| mean_share_words(sample, 0.95);
        assert_eq!(words(&[1.0, 1.2, 4.0]).as_deref(), Some("includes 0"));
        assert_eq!(words(&[10.0, 11.0, 12.0]).as_deref(), Some("±22.6 %"));
        assert_eq!(words(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median_of_all([Some(3.0), Some(1.0), Some(2.0)]), Some(2.0));
        for lacking in [None, Some(f64::NAN)] {
            assert_eq!(median_of_all([Some(3.0), lacking, Some(2.0)]), None);
        }
    }
}
