//! The highest load whose latency stays under a bound.

use gpuio_units::parse_duration_ns;

/// What the bound is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

/// A latency that is not to be passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Which latency.
    pub figure: Figure,
    /// At most this, nanoseconds.
    pub ns: u64,
}

/// What is wrong with a bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no bound; write p50=TIME, p99=TIME or p99.9=TIME, such as p99=200us")]
pub struct BoundError(String);

impl Bound {
    /// Reads `p99=200us`.
    ///
    /// # Errors
    ///
    /// Another figure, or no time above 0.
    pub fn parse(text: &str) -> Result<Bound, BoundError> {
        let wrong = || BoundError(text.to_owned());
        let (figure, time) = text.split_once('=').ok_or_else(wrong)?;
        let figure = match figure {
            "p50" => Figure::P50,
            "p99" => Figure::P99,
            "p99.9" => Figure::P999,
            _ => return Err(wrong()),
        };
        let ns = parse_duration_ns(time).ok().filter(|ns| *ns > 0).ok_or_else(wrong)?;
        Ok(Bound { figure, ns })
    }
}

/// A load that was run, and whether its latency stayed under the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// The load: threads, depth or I/Os per second.
    pub load: u64,
    /// Whether it held.
    pub held: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run this load.
    Try(u64),
    /// Done.
    Done {
        /// The highest load below the first that failed, if any held.
        best: Option<u64>,
    },
}

/// The next load between `from` and `to`: doubled until one fails, then halved between the highest
/// that held below it and it, until they are neighbours or within 1 % of each other.
///
/// Latency is taken to rise with load; a load that holds above one that failed counts for nothing.
#[must_use]
pub fn step(tried: &[Tried], from: u64, to: u64) -> Step {
    let above = tried.iter().filter(|run| !run.held).map(|run| run.load).min();
    let below = |run: &&Tried| run.held && above.is_none_or(|above| run.load < above);
    let best = tried.iter().filter(below).map(|run| run.load).max();
    match (best, above) {
        (None, None) => Step::Try(from),
        (None, Some(above)) if above > from => Step::Try(from),
        (Some(best), None) if best < to => Step::Try(best.saturating_mul(2).max(1).min(to)),
        (Some(best), Some(above)) if above - best > (best / 100).max(1) => {
            Step::Try(best + (above - best) / 2)
        }
        _ => Step::Done { best },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(limit: u64, from: u64, to: u64) -> (Option<u64>, usize) {
        let mut tried: Vec<Tried> = Vec::new();
        loop {
            match step(&tried, from, to) {
                Step::Try(load) => tried.push(Tried { load, held: load <= limit }),
                Step::Done { best } => return (best, tried.len()),
            }
        }
    }

    #[test]
    fn known_answers() {
        assert_eq!(find(37, 1, 256), (Some(37), 12));
        assert_eq!(find(0, 1, 256), (None, 1));
        assert_eq!(find(999, 1, 256), (Some(256), 9));
        assert_eq!(find(5, 3, 3), (Some(3), 1));
    }

    #[test]
    fn bounds() {
        let bound = Bound { figure: Figure::P99, ns: 200_000 };
        assert_eq!(Bound::parse("p99=200us"), Ok(bound));
        for text in ["p98=1ms", "p99", "p99=0", "p99=fast"] {
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
