//! The rank-sum test of Mann, Whitney and Wilcoxon.

use libm::erfc;

/// Up to so many pairs of values the distribution is counted out.
const EXACT_PAIRS: usize = 2_500;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// Pairs in which the second sample's value is the larger; ties count half.
    pub u: f64,
    /// How often two samples of one source lie at least as far apart (two-sided).
    pub p: f64,
    /// Whether `p` was counted out; else it is by the normal approximation, with corrections for
    /// ties and continuity.
    pub exact: bool,
    /// The smallest `p` that samples of these sizes can have: with few runs no difference, however
    /// large, gets below it.
    pub least_p: f64,
}

/// The two-sided rank-sum test. `None` where a sample is empty or a value is not a number.
pub fn rank_sum(first: &[f64], second: &[f64]) -> Option<RankSum> {
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 || first.iter().chain(second).any(|x| x.is_nan()) {
        return None;
    }
    let pairs = || second.iter().flat_map(|b| first.iter().map(move |a| b.total_cmp(a)));
    let larger = pairs().filter(|order| order.is_gt()).count();
    let ties = pairs().filter(|order| order.is_eq()).count();
    let u = float(larger) + float(ties) / 2.0;
    let tied = tie_groups(first, second);
    let exact = tied.is_empty() && n * m <= EXACT_PAIRS;
    let p = if exact { exact_p(n, m, larger) } else { normal_p(n, m, u, &tied) };
    let least_p = if exact { exact_p(n, m, 0) } else { normal_p(n, m, 0.0, &tied) };
    Some(RankSum { u, p, exact, least_p })
}

/// Sizes of the groups of equal values, those of one left out.
fn tie_groups(first: &[f64], second: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = first.iter().chain(second).copied().collect();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|a, b| a.total_cmp(b).is_eq());
    groups.map(<[f64]>::len).filter(|size| *size > 1).map(float).collect()
}

/// Twice the smaller tail of the distribution of U, at most 1.
fn exact_p(n: usize, m: usize, u: usize) -> f64 {
    let ways = ways(n, m);
    let all: f64 = ways.iter().sum();
    let tail: f64 = ways.iter().take(u.min(n * m - u) + 1).sum();
    (2.0 * tail / all).min(1.0)
}

/// In how many orders of n and m values U is 0, 1, …, n m: the coefficients of the Gaussian
/// binomial, made by multiplying (1 - q^(m+i)) and dividing by (1 - q^i).
fn ways(n: usize, m: usize) -> Vec<f64> {
    let top = n * m;
    let mut ways = vec![0.0; top + 1];
    ways[0] = 1.0;
    for i in 1..=n {
        for at in (m + i..=top).rev() {
            ways[at] -= ways[at - m - i];
        }
        for at in i..=top {
            ways[at] += ways[at - i];
        }
    }
    ways
}

fn normal_p(n: usize, m: usize, u: f64, tied: &[f64]) -> f64 {
    let (n, m) = (float(n), float(m));
    let all = n + m;
    let ties: f64 = tied.iter().map(|t| t.powi(3) - t).sum();
    let variance = n * m / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let off = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    erfc(off / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
}

fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_counted_once() {
        assert_eq!(ways(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert!((ways(5, 5).iter().sum::<f64>() - 252.0).abs() < 1e-9);
        assert!((ways(1, 4).iter().sum::<f64>() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn three_against_three_can_not_reach_five_per_cent() {
        let ranks = rank_sum(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]).unwrap();
        assert!((ranks.p - 0.1).abs() < 1e-12 && ranks.exact, "{ranks:?}");
        assert!((ranks.least_p - 0.1).abs() < 1e-12);
    }

    #[test]
    fn alike_and_empty() {
        assert!((rank_sum(&[1.0, 1.0], &[1.0, 1.0]).unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(rank_sum(&[], &[1.0]), None);
        assert_eq!(rank_sum(&[f64::NAN], &[1.0]), None);
    }
}
