//! The spans of a computation, launch by launch, and its rate over a span of time. Pure.

use gpuio_io::clock::Nanos;
use gpuio_record::TimeSpan;

/// Spans that are kept; beyond it two become one, so that a run of days fits into memory. With a
/// span every 2 ms, two minutes.
const MOST: usize = 1 << 16;
/// Fewer make no rate: each may be off by what happened at its ends.
const LEAST: usize = 10;

/// Launches that followed one another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LaunchSpan {
    /// When the first of them could begin and the last had ended, on the run's clock.
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// How long they were at work, nanoseconds.
    pub(super) busy: f64,
    pub(super) launches: u64,
}

/// All spans in order.
#[derive(Debug, Default)]
pub(super) struct LaunchSpans {
    kept: Vec<LaunchSpan>,
    /// Launches in each span, a power of two, and in the last one.
    each: u64,
    in_last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    /// Launches for each second at work.
    pub(super) per_s: f64,
    pub(super) launches: u64,
    /// Share of the span at work, per cent.
    pub(super) busy_percent: f64,
}

impl LaunchSpans {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(super) fn push(&mut self, one: LaunchSpan) {
        self.each = self.each.max(1);
        match self.kept.last_mut() {
            Some(last) if self.in_last < self.each => {
                *last = last.with(&one);
                self.in_last += 1;
            }
            _ => {
                self.kept.push(one);
                self.in_last = 1;
            }
        }
        if self.kept.len() > MOST {
            // The last one has no partner yet: what comes next is added to it.
            self.kept = self.kept.chunks(2).map(joined).collect();
            self.each *= 2;
        }
    }

    /// The rate of what began and ended in the span; why there is none.
    pub(super) fn rate(&self, span: TimeSpan) -> Result<Rate, String> {
        let inside = |one: &&LaunchSpan| one.begin >= span.begin_ns && one.end <= span.end_ns;
        let inside: Vec<&LaunchSpan> = self.kept.iter().filter(inside).collect();
        let (busy, launches) = inside
            .iter()
            .fold((0.0, 0), |(busy, count), one| (busy + one.busy, count + one.launches));
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
            return Err("no launch began and ended in the time".to_owned());
        };
        if inside.len() < LEAST || busy <= 0.0 {
            let spans = inside.len();
            return Err(format!("only {launches} launches, in {spans} groups, ended in the time"));
        }
        Ok(Rate {
            per_s: number(launches) * 1e9 / busy,
            launches,
            busy_percent: (busy * 100.0 / number(last.end - first.begin)).min(100.0),
        })
    }
}

impl LaunchSpan {
    fn with(&self, later: &LaunchSpan) -> LaunchSpan {
        LaunchSpan {
            begin: self.begin,
            end: later.end,
            busy: self.busy + later.busy,
            launches: self.launches + later.launches,
        }
    }
}

fn joined(pair: &[LaunchSpan]) -> LaunchSpan {
    match pair {
        [one, two] => one.with(two),
        // `chunks` gives no empty ones.
        _ => pair[0],
    }
}

fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A span of two launches every 2 ms, of which `busy` ns are work.
    fn steady(count: u64, busy: f64) -> LaunchSpans {
        let mut spans = LaunchSpans::default();
        for nth in 0..count {
            let (begin, end) = (nth * 2 * MS, (nth + 1) * 2 * MS);
            spans.push(LaunchSpan { begin, end, busy, launches: 2 });
        }
        spans
    }

    fn span(begin_ms: u64, end_ms: u64) -> TimeSpan {
        TimeSpan { begin_ns: begin_ms * MS, end_ns: end_ms * MS }
    }

    #[test]
    fn a_rate_is_of_what_lies_in_the_span() {
        let spans = steady(1000, 2e6);
        let rate = spans.rate(span(101, 301)).unwrap();
        // From 102 to 300 ms.
        assert_eq!((rate.launches, rate.per_s, rate.busy_percent), (198, 1000.0, 100.0));
    }

    #[test]
    fn time_without_work_is_no_loss_of_the_work() {
        let rate = steady(1000, 1.5e6).rate(span(0, 2000)).unwrap();
        assert!((rate.per_s - 2.0 / 1.5e-3).abs() < 1e-6, "{rate:?}");
        assert!((rate.busy_percent - 75.0).abs() < 1e-9, "{rate:?}");
    }

    #[test]
    fn too_little_is_unknown() {
        let spans = steady(1000, 2e6);
        assert!(spans.rate(span(3000, 4000)).unwrap_err().contains("no launch"));
        let few = spans.rate(span(100, 118)).unwrap_err();
        assert_eq!(few, "only 18 launches, in 9 groups, ended in the time");
        assert!(spans.rate(span(100, 120)).is_ok());
    }

    #[test]
    fn long_runs_are_kept_in_bounds_and_nothing_is_lost() {
        for count in [MOST as u64 + 1, 3 * MOST as u64, 5 * MOST as u64 + 7] {
            let spans = steady(count, 2e6);
            assert!(spans.kept.len() <= MOST, "{}", spans.kept.len());
            let rate = spans.rate(span(0, count * 2)).unwrap();
            assert_eq!((rate.launches, rate.per_s), (count * 2, 1000.0));
            let pairs = spans.kept.windows(2);
            assert!(pairs.into_iter().all(|pair| pair[0].end == pair[1].begin));
        }
    }
}
