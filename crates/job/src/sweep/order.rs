//! Chooses the next run.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The state of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub runs: u32,
    /// Whether it needs no more runs.
    pub ended: bool,
}

/// The point to run next. A round goes over all points that need runs before any gets another, and
/// each round has a random order by `seed`, so that drift (heat, wear, other users) does not affect
/// one axis only. `None` if no point needs a run.
///
/// It depends on `points` and `seed` only, so a killed sweep resumes as if it had not been
/// interrupted.
pub fn next(points: &[Progress], seed: u64) -> Option<usize> {
    let owed = |at: &usize| points.get(*at).is_some_and(|point| !point.ended);
    let round = points.iter().filter(|point| !point.ended).map(|point| point.runs).min()?;
    shuffled(points.len(), seed, round)
        .into_iter()
        .filter(owed)
        .find(|at| points.get(*at).is_some_and(|point| point.runs == round))
}

/// The order of a round (Fisher and Yates).
fn shuffled(points: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut random =
        SplitMix64::seed_from_u64(seed ^ u64::from(round).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut order: Vec<usize> = (0..points).collect();
    for last in (1..points).rev() {
        let below = last as u64 + 1;
        #[expect(clippy::cast_possible_truncation, reason = "below a length")]
        let other = (random.next_u64() % below) as usize;
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(points: usize, rounds: u32, seed: u64) -> Vec<usize> {
        let mut state = vec![Progress { runs: 0, ended: false }; points];
        let mut order = Vec::new();
        while let Some(at) = next(&state, seed) {
            order.push(at);
            state[at].runs += 1;
            state[at].ended = state[at].runs == rounds;
        }
        order
    }

    #[test]
    fn every_round_has_every_point_in_its_own_order() {
        let order = walk(8, 3, 1);
        assert_eq!(order.len(), 24);
        let rounds: Vec<Vec<usize>> = order.chunks(8).map(<[usize]>::to_vec).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2]);
        assert_eq!(order, walk(8, 3, 1), "one seed, one order");
        assert_ne!(order, walk(8, 3, 2));
    }

    #[test]
    fn ended_points_are_passed_over() {
        let point = |runs, ended| Progress { runs, ended };
        assert_eq!(next(&[point(0, true), point(2, false)], 0), Some(1));
        assert_eq!(next(&[point(0, true)], 0), None);
        assert_eq!(next(&[], 0), None);
    }
}
