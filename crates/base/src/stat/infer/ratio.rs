//! Ratios with their intervals.

use super::{count, logs, mean, t_quantile, variance};

/// A ratio, other over baseline, with the interval that holds the true one at the requested level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Degrees of freedom of the t that made the interval.
    pub freedom: f64,
}

/// Whether the value of an interval is above a limit; `None` where the interval includes the limit,
/// which leaves that open.
#[must_use]
pub fn is_above((low, high): (f64, f64), limit: f64) -> Option<bool> {
    let includes = low <= limit && limit <= high;
    (!includes).then_some(low > limit)
}

/// A relative standard error and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard error over mean.
    pub relative: f64,
    pub freedom: f64,
}

/// Ratio of the geometric means of two independent samples by Welch's t on logarithms, which does
/// not take both for equally noisy. `None` unless each has two values, all above 0.
pub fn welch(baseline: &[f64], other: &[f64], level: f64) -> Option<Ratio> {
    let (a, b) = (logs(baseline)?, logs(other)?);
    let difference = mean(&b)? - mean(&a)?;
    let (va, vb) = (variance(&a)? / count(&a), variance(&b)? / count(&b));
    around(difference, (va, count(&a) - 1.0), (vb, count(&b) - 1.0), level)
}

/// Ratio of two samples that were taken in turns, the nth of one paired with the nth of the other:
/// a t interval of the mean of the logarithms of their ratios. Slow drift falls out. `None` unless
/// both are equally long, of two values at least, all above 0.
pub fn paired(baseline: &[f64], other: &[f64], level: f64) -> Option<Ratio> {
    let (a, b) = (logs(baseline)?, logs(other)?);
    if a.len() != b.len() {
        return None;
    }
    let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
    let freedom = count(&ratios) - 1.0;
    let error = (variance(&ratios)? / count(&ratios)).sqrt();
    finish(mean(&ratios)?, error, freedom, level)
}

/// Ratio where one side is a single value: the interval in which it would lie if it came from the
/// same source as the sample, moved to where it lies. It takes the single run for as noisy as the
/// runs of the sample. `single_is_baseline` says which side it is. `None` unless the sample has
/// two values and all are above 0.
pub fn predicted(
    single: f64,
    sample: &[f64],
    single_is_baseline: bool,
    level: f64,
) -> Option<Ratio> {
    let (one, many) = (logs(&[single])?, logs(sample)?);
    let difference = mean(&many)? - mean(&one)?;
    let error = (variance(&many)? * (1.0 + 1.0 / count(&many))).sqrt();
    let difference = if single_is_baseline { difference } else { -difference };
    finish(difference, error, count(&many) - 1.0, level)
}

/// Ratio of two values whose relative errors are known from within each: the errors add as
/// variances of logarithms do, degrees of freedom by Welch and Satterthwaite. `None` unless both
/// are above 0.
pub fn within(baseline: (f64, Spread), other: (f64, Spread), level: f64) -> Option<Ratio> {
    let (a, b) = (logs(&[baseline.0])?, logs(&[other.0])?);
    let difference = mean(&b)? - mean(&a)?;
    let part = |spread: Spread| (spread.relative.powi(2), spread.freedom);
    around(difference, part(baseline.1), part(other.1), level)
}

/// An interval around a difference of logarithms, each side with its squared standard error and
/// degrees of freedom.
fn around(difference: f64, a: (f64, f64), b: (f64, f64), level: f64) -> Option<Ratio> {
    let total = a.0 + b.0;
    let parts = a.0.powi(2) / a.1 + b.0.powi(2) / b.1;
    // Values that are all the same leave 0 over 0; any degrees of freedom give the same interval.
    let freedom = if parts > 0.0 { total.powi(2) / parts } else { a.1 + b.1 };
    finish(difference, total.sqrt(), freedom, level)
}

fn finish(difference: f64, error: f64, freedom: f64, level: f64) -> Option<Ratio> {
    let reach = error * t_quantile(f64::midpoint(1.0, level), freedom)?;
    let (low, high) = ((difference - reach).exp(), (difference + reach).exp());
    Some(Ratio { ratio: difference.exp(), low, high, freedom })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_may_be_swapped() {
        let (a, b) = ([10.0, 11.0, 9.5], [12.0, 14.0, 13.0, 12.5]);
        let (there, back) = (welch(&a, &b, 0.95).unwrap(), welch(&b, &a, 0.95).unwrap());
        assert!((there.low * back.high - 1.0).abs() < 1e-12);
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        let there = predicted(10.0, &b, true, 0.95).unwrap();
        let back = predicted(10.0, &b, false, 0.95).unwrap();
        assert!((there.low * back.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_same_values_give_a_point() {
        let same = welch(&[2.0, 2.0], &[4.0, 4.0], 0.95).unwrap();
        assert!((same.low - 2.0).abs() < 1e-12 && (same.high - 2.0).abs() < 1e-12, "{same:?}");
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(welch(&[1.0, 0.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(paired(&[1.0, 2.0], &[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(paired(&[1.0], &[1.0], 0.95), None);
        assert_eq!(predicted(1.0, &[1.0], true, 0.95), None);
        let none = Spread { relative: 0.1, freedom: 4.0 };
        assert_eq!(within((0.0, none), (1.0, none), 0.95), None);
    }

    #[test]
    fn pairs_let_drift_fall_out() {
        let a = [100.0, 80.0, 60.0, 40.0];
        let b = a.map(|x| x * 1.1);
        let pairs = paired(&a, &b, 0.95).unwrap();
        assert!(pairs.low > 1.09, "{pairs:?}");
        assert!(welch(&a, &b, 0.95).unwrap().low < 1.0);
    }
}
