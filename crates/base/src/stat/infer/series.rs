//! How far the mean of a series may be off whose neighbours are alike.

use super::{Spread, count, mean, variance};

/// Fewer batches than this say nothing of their own spread.
const LEAST: usize = 5;

/// The relative standard error of the mean of a series, by batch means: neighbours are joined in
/// pairs, the means of pairs in pairs again, while five batches are left, and the batch
/// length with the widest 95 % interval is taken. Values in a row that are alike (a cache that
/// fills, a drive that clears up) make short batches look surer than they are; long ones show it.
/// After Flyvbjerg and Petersen, J. Chem. Phys. 91 (1989) 461, with the widest in the place of a
/// plateau that a short series does not have. `None` of fewer than five values, or a mean that is
/// not above 0.
pub fn spread(series: &[f64]) -> Option<Spread> {
    let whole = mean(series)?;
    if whole <= 0.0 || series.len() < LEAST {
        return None;
    }
    let mut batches = series.to_vec();
    let mut widest: Option<(f64, Spread)> = None;
    while batches.len() >= LEAST {
        let freedom = count(&batches) - 1.0;
        let relative = (variance(&batches)? / count(&batches)).sqrt() / whole;
        let reach = relative * super::t_quantile(0.975, freedom)?;
        if widest.is_none_or(|(width, _)| reach > width) {
            widest = Some((reach, Spread { relative, freedom }));
        }
        // An odd one at the end is left out of the longer batches.
        batches = batches.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
    }
    widest.map(|(_, spread)| spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_alike_widen_it() {
        let mixed: Vec<f64> = (0..32).map(|n| if n % 2 == 0 { 9.0 } else { 11.0 }).collect();
        let steps: Vec<f64> = (0..32).map(|n| if (n / 4) % 2 == 0 { 9.0 } else { 11.0 }).collect();
        let (mixed, steps) = (spread(&mixed).unwrap(), spread(&steps).unwrap());
        assert!(steps.relative > 1.8 * mixed.relative, "{steps:?} {mixed:?}");
    }

    #[test]
    fn four_points_say_nothing() {
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(spread(&[0.0; 8]), None);
        assert!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]).is_some());
    }
}
