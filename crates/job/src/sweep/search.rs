//! Searches the highest load whose latency stays within a limit.

use gpuio_base::stat::Percentile;
use gpuio_base::units::parse_duration_ns;

/// A latency limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub at: Percentile,
    /// At most this, nanoseconds.
    pub ns: u64,
}

/// Why the text is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a latency limit; write a percentile and a time, such as {example}",
    example = Bound::example()
)]
pub struct BoundError(String);

impl Bound {
    /// One as people write it.
    pub fn example() -> String {
        format!("{}=200us", Percentile::TAIL.label())
    }

    /// Reads one like the example.
    ///
    /// # Errors
    /// No percentile, or no time above 0.
    pub fn parse(text: &str) -> Result<Bound, BoundError> {
        let wrong = || BoundError(text.to_owned());
        let (name, time) = text.split_once('=').ok_or_else(wrong)?;
        let at = Percentile::named(name).ok_or_else(wrong)?;
        let ns = parse_duration_ns(time).ok().filter(|ns| *ns > 0).ok_or_else(wrong)?;
        Ok(Bound { at, ns })
    }
}

/// A load that was run, and how many of its runs were within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// The load: threads, depth or I/Os per second.
    pub load: u64,
    pub within_limit: u32,
    /// Runs above it.
    pub failed: u32,
}

/// A load is decided once one of the two exceeds the other by this, ...
pub const LEAD: u32 = 3;
/// ... or after this many runs, by the majority: a load whose latency equals the limit would never
/// be.
pub const RUNS_MOST: u32 = 9;

impl Tried {
    /// Whether it is within the limit, by its runs so far.
    pub fn holds(&self) -> bool {
        self.within_limit > self.failed
    }

    /// Whether its runs agree well enough to end a search on it; where their number is given, as
    /// soon as there are so many.
    pub fn is_decided(&self, runs: Option<u32>) -> bool {
        let lead = self.within_limit.abs_diff(self.failed);
        let made = self.within_limit.saturating_add(self.failed);
        made >= runs.unwrap_or(RUNS_MOST) || (runs.is_none() && lead >= LEAD)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run this load, which may have been run before.
    Try(u64),
    Done {
        /// The highest load below the first that failed, if any was within the limit.
        best: Option<u64>,
    },
}

/// The next load between `from` and `to`: doubled until one fails, then halved between the highest
/// success below it and it, until they are adjacent or within 1 % of each other. Then the two are
/// repeated until each is decided: one disturbed run moves the search but does not end it. Where
/// `runs` is given, each load has so many and is decided.
///
/// Assumes that latency rises with load; a success above a failed load is ignored.
pub fn step(tried: &[Tried], from: u64, to: u64, runs: Option<u32>) -> Step {
    let above = tried.iter().filter(|run| !run.holds()).min_by_key(|run| run.load);
    let below = |run: &&Tried| run.holds() && above.is_none_or(|above| run.load < above.load);
    let best = tried.iter().filter(below).max_by_key(|run| run.load);
    let near = match (best, above) {
        (None, None) => return Step::Try(from),
        (None, Some(above)) if above.load > from => return Step::Try(from),
        (Some(best), None) if best.load < to => {
            return Step::Try(best.load.saturating_mul(2).max(1).min(to));
        }
        (Some(best), Some(above)) if above.load - best.load > (best.load / 100).max(1) => {
            return Step::Try(best.load + (above.load - best.load) / 2);
        }
        (best, above) => above.into_iter().chain(best),
    };
    match near.into_iter().find(|run| !run.is_decided(runs)) {
        Some(run) => Step::Try(run.load),
        None => Step::Done { best: best.map(|run| run.load) },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    /// Runs a search whose runs give the wrong result if `wrong` says so; returns its answer, the
    /// loads that it ran and how often it repeated one.
    fn search(
        limit: u64,
        (from, to): (u64, u64),
        wrong: &mut dyn FnMut() -> bool,
    ) -> (Option<u64>, usize, usize) {
        let mut tried: Vec<Tried> = Vec::new();
        for runs in 0..2000 {
            let load = match step(&tried, from, to, None) {
                Step::Try(load) => load,
                Step::Done { best } => return (best, tried.len(), runs),
            };
            let at = tried.iter().position(|run| run.load == load).unwrap_or_else(|| {
                tried.push(Tried { load, within_limit: 0, failed: 0 });
                tried.len() - 1
            });
            let within_limit = (load <= limit) != wrong();
            tried[at].within_limit += u32::from(within_limit);
            tried[at].failed += u32::from(!within_limit);
        }
        panic!("no end: {tried:?}");
    }

    fn find(limit: u64, from: u64, to: u64) -> (Option<u64>, usize) {
        let (best, loads, _) = search(limit, (from, to), &mut || false);
        (best, loads)
    }

    #[test]
    fn known_answers() {
        assert_eq!(find(37, 1, 256), (Some(37), 12));
        assert_eq!(find(0, 1, 256), (None, 1));
        assert_eq!(find(999, 1, 256), (Some(256), 9));
        assert_eq!(find(5, 3, 3), (Some(3), 1));
    }

    #[test]
    fn one_disturbed_run_does_not_cap_the_result() {
        for disturbed in 0..16 {
            let mut nth = 0;
            let mut wrong = || {
                nth += 1;
                nth == disturbed + 1
            };
            let (best, _, runs) = search(200, (1, 256), &mut wrong);
            assert_eq!(best, Some(200), "run {disturbed} was disturbed");
            assert!(runs <= 40, "{runs} runs");
        }
    }

    #[test]
    fn a_given_number_of_runs_is_all_that_a_load_gets() {
        let load = |within_limit, failed| Tried { load: 4, within_limit, failed };
        assert_eq!(step(&[load(1, 0)], 4, 4, Some(1)), Step::Done { best: Some(4) });
        assert_eq!(step(&[load(2, 2)], 4, 4, Some(5)), Step::Try(4));
        assert_eq!(step(&[load(3, 2)], 4, 4, Some(5)), Step::Done { best: Some(4) });
        assert_eq!(step(&[load(3, 2)], 4, 4, None), Step::Try(4));
    }

    /// If one run in ten is wrong, most searches of single runs end elsewhere.
    #[test]
    fn noise_at_one_run_in_ten_leaves_the_answer() {
        let mut random = SplitMix64::seed_from_u64(7);
        for limit in [3, 37, 200] {
            let mut right = 0;
            for _ in 0..400 {
                let mut wrong = || random.next_u64() % 10 == 0;
                let (best, _, runs) = search(limit, (1, 256), &mut wrong);
                right += u32::from(best == Some(limit));
                assert!(runs <= 200, "{runs} runs");
            }
            assert!(right >= 360, "{right} of 400 found {limit}");
        }
    }

    #[test]
    fn bounds() {
        let bound = Bound { at: Percentile::TAIL, ns: 200_000 };
        assert_eq!(Bound::parse(&Bound::example()), Ok(bound));
        let tail = ["", "=0", "=fast"].map(|ns| format!("{}{ns}", Percentile::TAIL.label()));
        for text in ["slow=1ms", "p100=1ms"].into_iter().chain(tail.iter().map(String::as_str)) {
            assert!(Bound::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_answer_holds_and_is_near(limit in 1_u64..2_000_000, to in 1_u64..4_000_000) {
            let (best, runs) = find(limit, 1, to);
            let best = best.unwrap();
            let truth = limit.min(to);
            prop_assert!(best <= truth && truth - best <= (best / 100).max(1));
            prop_assert!(runs <= 64);
        }
    }
}
