//! When a load is steady: fio's `steadystate` rules on a window of a series.
//!
//! The behaviour is that of fio's HOWTO, "Steady state": either every value of the window is nearer
//! to the window's mean than the limit, or the line of least squares through the window rises or
//! falls by less than the limit from one value to the next. Both limits may be per cent of the
//! mean.

/// The limit, and which value must stay below it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// The slope of the line through the window, in place of the largest deviation from its mean.
    pub slope: bool,
    /// In the values' unit, per value for a slope; in per cent of the mean with `percent`.
    pub limit: f64,
    /// Whether the limit is in per cent of the mean.
    pub percent: bool,
}

/// The result of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadySeen {
    /// Mean of the window, in the values' unit.
    pub mean: f64,
    /// The largest deviation or the slope, in the limit's unit; a slope keeps its sign. Not a
    /// number where per cent of a mean of 0 were requested.
    pub value: f64,
    /// Whether the value, without its sign, is below the limit.
    pub attained: bool,
}

impl SteadyRule {
    /// Judges a whole window, oldest value first; `None` for fewer than two values, which have
    /// neither a spread nor a slope.
    pub fn check(&self, window: &[f64]) -> Option<SteadySeen> {
        if window.len() < 2 {
            return None;
        }
        let count = window.len() as f64;
        let mean = window.iter().sum::<f64>() / count;
        let value = if self.slope {
            // Positions count from 0, so their mean is half of the last one.
            let middle = (count - 1.0) / 2.0;
            let positions = || (0..window.len()).map(|position| position as f64 - middle);
            let along: f64 = positions().zip(window).map(|(x, y)| x * (y - mean)).sum();
            along / positions().map(|x| x * x).sum::<f64>()
        } else {
            window.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
        };
        let value = if self.percent { 100.0 * value / mean } else { value };
        // Not a number is below no limit: a load that stands still is not steady.
        Some(SteadySeen { mean, value, attained: value.abs() < self.limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(slope: bool, limit: f64, percent: bool, window: &[f64]) -> SteadySeen {
        SteadyRule { slope, limit, percent }.check(window).unwrap()
    }

    #[test]
    fn a_flat_series_is_steady_by_every_rule() {
        let flat = [500.0; 8];
        for (slope, percent) in [(false, false), (false, true), (true, false), (true, true)] {
            let seen = seen(slope, 0.001, percent, &flat);
            assert_eq!((seen.mean, seen.value, seen.attained), (500.0, 0.0, true));
        }
    }

    #[test]
    fn a_drift_has_its_slope_and_the_deviation_of_its_ends() {
        // 100, 98, …, 82: 2 less each time, mean 91, ends 9 away from it.
        let falling: Vec<f64> = (0..10).map(|n| 100.0 - 2.0 * f64::from(n)).collect();
        let line = seen(true, 2.1, false, &falling);
        assert!((line.value + 2.0).abs() < 1e-9 && line.attained, "{line:?}");
        assert!(!seen(true, 1.9, false, &falling).attained, "a fall counts as a rise does");
        let share = seen(true, 2.3, true, &falling);
        assert!((share.value + 200.0 / 91.0).abs() < 1e-9 && share.attained, "{share:?}");
        let spread = seen(false, 9.5, false, &falling);
        assert!((spread.value - 9.0).abs() < 1e-9 && spread.attained, "{spread:?}");
        assert!(!seen(false, 9.5, true, &falling).attained, "9 of 91 are 9.9 %");
    }

    #[test]
    fn noise_without_a_drift_has_a_slope_near_none_and_a_large_deviation() {
        let noisy = [90.0, 110.0, 110.0, 90.0, 90.0, 110.0, 110.0, 90.0];
        assert!(seen(true, 0.1, true, &noisy).attained);
        let spread = seen(false, 10.0, true, &noisy);
        assert!((spread.value - 10.0).abs() < 1e-9, "{spread:?}");
        assert!(!spread.attained, "at the limit is not below it");
        assert!(seen(false, 10.1, true, &noisy).attained);
    }

    #[test]
    fn one_value_is_no_window_and_nothing_moved_is_not_steady_by_per_cent() {
        let rule = SteadyRule { slope: false, limit: 50.0, percent: true };
        assert_eq!(rule.check(&[1.0]), None);
        assert!(!rule.check(&[0.0, 0.0, 0.0]).unwrap().attained);
    }
}
