//! Decides when a point has enough runs.

use gpuio_base::stat::infer;

/// How often each point is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Minimum number.
    pub min: u32,
    /// Maximum number.
    pub max: u32,
    /// Until the interval of the mean reaches this share to either side (0.02 for 2 %); without it,
    /// `min` times.
    pub confidence: Option<f64>,
}

/// The 95 % interval of a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub mean: f64,
    /// Half its width, in the same unit.
    pub half: f64,
}

impl Interval {
    /// Half its width as a share of the mean.
    pub fn share(&self) -> f64 {
        self.half / self.mean.abs()
    }
}

/// The interval of the mean by Student's t, n - 1 degrees of freedom: `None` for fewer than two
/// values and for a mean of 0. Assumes independent runs with normal noise.
fn at_level(values: &[f64], level: f64) -> Option<Interval> {
    let count = f64::from(u32::try_from(values.len()).ok()?);
    let mean = infer::mean(values)?;
    let t = infer::t_quantile(f64::midpoint(1.0, level), count - 1.0)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = t * (squares / (count - 1.0) / count).sqrt();
    if mean == 0.0 || !half.is_finite() { None } else { Some(Interval { mean, half }) }
}

const LEVEL: f64 = 0.95;
/// The level for repeated checks. A rule that checks after every run and stops at the first narrow
/// interval also stops at intervals that are narrow by chance: of intervals at 95 % only 91 of 100
/// held the mean when runs were stopped from the third on, and 92 from the fifth on. From the fifth
/// on, at this level, 95 of 100 do (simulated, see the test).
const LOOK_LEVEL: f64 = 0.975;

/// Runs before the first of several checks: fewer can't estimate their spread.
pub const LOOKS_FROM: u32 = 5;

impl Rule {
    /// The 95 % interval of the mean of a point's results, wider if the rule checked it more than
    /// once.
    pub fn interval(&self, values: &[f64]) -> Option<Interval> {
        at_level(values, self.level())
    }

    /// The level of the t that makes it.
    pub fn level(&self) -> f64 {
        if self.looks() { LOOK_LEVEL } else { LEVEL }
    }

    /// Whether points are checked more than once.
    pub fn looks(&self) -> bool {
        self.confidence.is_some() && self.min < self.max
    }

    /// Why a point with these results (one per finished run) needs no more runs; `None` if it does.
    pub fn converged(&self, values: &[f64]) -> Option<String> {
        let runs = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if runs < self.min {
            return None;
        }
        let Some(wanted) = self.confidence else {
            return Some(format!("settled: {runs} of {runs} runs"));
        };
        let share = self.interval(values).map(|interval| interval.share());
        match share {
            Some(share) if share <= wanted => Some(format!(
                "settled: the interval is ±{:.2} % after {runs} runs, requested ±{:.2} %",
                share * 100.0,
                wanted * 100.0
            )),
            _ if runs < self.max => None,
            Some(share) => Some(format!(
                "not settled: the limit of {runs} runs is reached; the interval is ±{:.2} %, \
                 not ±{:.2} %",
                share * 100.0,
                wanted * 100.0
            )),
            None => Some(format!(
                "not settled: the limit of {runs} runs is reached; they give \
                no interval"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    // scipy.stats.t.interval(0.95, n - 1, loc=x.mean(), scale=scipy.stats.sem(x)), SciPy 1.
    #[test]
    fn the_interval_is_scipys() {
        for (values, low, high) in [
            (&[10.0, 12.0, 11.0, 13.0, 9.0][..], 9.036_756_838_522_443, 12.963_243_161_477_557),
            (&[812.5, 799.1, 805.7], 789.122_326_064_706_2, 822.411_007_268_627_4),
            (&[1.0, 2.0], -4.853_102_368_087_347, 7.853_102_368_087_347),
        ] {
            let found = at_level(values, LEVEL).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs();
            assert!(near(found.mean - found.half, low), "{values:?}: {found:?}");
            assert!(near(found.mean + found.half, high), "{values:?}: {found:?}");
        }
        assert_eq!(at_level(&[1.0], LEVEL), None);
    }

    #[test]
    fn settled_by_interval_or_by_the_most() {
        let rule = Rule { min: 3, max: 4, confidence: Some(0.02) };
        assert_eq!(rule.converged(&[100.0, 100.0]), None);
        assert_eq!(rule.converged(&[100.0, 120.0, 100.0]), None);
        let close = rule.converged(&[100.0, 100.1, 100.0]).unwrap();
        assert!(close.contains("±0.21 % after 3 runs"), "{close}");
        let once = Rule { max: 3, ..rule }.converged(&[100.0, 100.1, 100.0]).unwrap();
        assert!(once.contains("±0.14 % after 3 runs"), "one look: {once}");
        let wide = rule.converged(&[100.0, 120.0, 90.0, 130.0]).unwrap();
        assert!(wide.starts_with("not settled: the limit of 4 runs is reached"), "{wide}");
        let fixed = Rule { min: 3, max: 3, confidence: None };
        assert_eq!(fixed.converged(&[1.0, 1.0]), None);
        assert!(fixed.converged(&[1.0, 1.0, 1.0]).is_some());
        assert_eq!(rule.converged(&[0.0, 0.0, 0.0]), None, "nothing moved: no interval");
    }

    /// A value from the normal distribution of mean 100 and deviation 1 (Box and Muller).
    fn noisy(random: &mut SplitMix64) -> f64 {
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let (one, two) = (1.0 - uniform(), uniform());
        100.0 + (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    /// How many of 100 intervals at which runs were stopped contain the true mean.
    fn coverage(rule: &Rule, random: &mut SplitMix64) -> f64 {
        const TIMES: u32 = 1000;
        let mut held = 0;
        for _ in 0..TIMES {
            let mut values = Vec::new();
            while rule.converged(&values).is_none() {
                values.push(noisy(random));
            }
            let interval = rule.interval(&values).unwrap();
            held += u32::from((interval.mean - 100.0).abs() <= interval.half);
        }
        f64::from(held) / f64::from(TIMES) * 100.0
    }

    #[test]
    fn intervals_at_which_runs_were_stopped_hold_the_mean() {
        let mut random = SplitMix64::seed_from_u64(11);
        for max in [10, 30] {
            for confidence in [0.004, 0.0065, 0.01] {
                let rule = Rule { min: LOOKS_FROM, max, confidence: Some(confidence) };
                let held = coverage(&rule, &mut random);
                assert!(held >= 93.0, "{held} of 100 at ±{confidence} and {max} runs at most");
            }
        }
        // That is a property of all intervals, not of this rule.
        let fixed = Rule { min: 3, max: 3, confidence: None };
        let held = coverage(&fixed, &mut random);
        assert!((93.0..=97.0).contains(&held), "{held}");
    }
}
