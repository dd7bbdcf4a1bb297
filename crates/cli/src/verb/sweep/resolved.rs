//! A sweep with all settings resolved: values that its other parts read.

use std::path::PathBuf;
use std::time::Duration;

use gpuio_job::spec::JobSpec;
use gpuio_job::sweep::{Axis, Bound, Rule, Tried};

use super::cost::Cost;
use super::effects::{self, RANKS, keyed};
use super::runs::Run;

pub(super) struct ResolvedSweep {
    pub(super) name: String,
    pub(super) directory: PathBuf,
    pub(super) axes: Vec<Axis>,
    pub(super) points: Vec<Vec<String>>,
    /// The requested settings that all points share.
    pub(super) job: JobSpec,
    /// Arguments for `gpuio bench` that all points share.
    pub(super) base: Vec<String>,
    /// The job file's text.
    pub(super) job_file: Option<Vec<u8>>,
    pub(super) search: Option<Search>,
    pub(super) rule: Rule,
    pub(super) order_seed: u64,
    pub(super) budget: Option<Duration>,
    pub(super) cool_down: Duration,
    /// The cost of one run of each point, or of a search of one run at its highest load.
    pub(super) cost: Cost,
    /// State of the page cache before each run.
    pub(super) cache: &'static str,
    /// Note about a preset's results.
    pub(super) note: String,
    /// Whether the data is in the sweep's directory.
    pub(super) own_data: bool,
    /// Number of the GPU through which points of path `routed` copy, if a preset sets it.
    pub(super) via: Option<String>,
    /// How many ranks were started, where a launcher did.
    pub(super) ranks: Option<u32>,
}

/// A search for the highest load.
pub(super) struct Search {
    pub(super) bound: Bound,
    pub(super) words: String,
    /// Whether the load is a rate, which has to be reached.
    pub(super) is_rate: bool,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Runs of each load, where the command says how many.
    pub(super) runs: Option<u32>,
}

/// How a load stands to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Within,
    Over,
    /// Runs disagree, and no more are within than over it; the search takes it for over.
    Undecided,
    /// Too few I/Os completed for the percentile.
    Unknown,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Within => "yes",
            Verdict::Over => "no",
            Verdict::Undecided => "undecided",
            Verdict::Unknown => "unknown",
        }
    }
}

impl Search {
    /// The lowest and the highest load.
    pub(super) fn ends(&self) -> [Vec<String>; 2] {
        [self.from, self.to].map(|load| vec![load.to_string()])
    }

    /// About how many loads it tries: doubled, then halved.
    pub(super) fn loads(&self) -> u64 {
        let doubled = u64::from((self.to / self.from.max(1)).max(1).ilog2());
        1 + 2 * doubled
    }

    /// How many runs of a load let the search go on to higher loads, and how many did not. A load
    /// that could not run counts as failed: nothing is known about higher loads. So does a rate
    /// that was not reached: a queue that grows has low latencies as long as the run is short.
    pub(super) fn tried(&self, load: u64, runs: &[Run], ended: Option<&str>) -> Tried {
        if ended.is_some_and(|why| !why.contains("settled")) {
            return Tried { load, within_limit: 0, failed: u32::MAX };
        }
        let within_limit = runs.iter().filter(|run| self.met_it(run)).count();
        let count = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
        Tried { load, within_limit: count(within_limit), failed: count(runs.len() - within_limit) }
    }

    /// Whether a load is within the limit: what most of its runs say.
    pub(super) fn verdict(&self, runs: &[Run]) -> Verdict {
        let share = |one| runs.iter().filter(|run| self.verdict_of(run) == one).count() * 2;
        match runs.len() {
            all if share(Verdict::Within) > all => Verdict::Within,
            all if share(Verdict::Over) >= all && runs.iter().any(|run| self.met_it(run)) => {
                Verdict::Undecided
            }
            all if share(Verdict::Over) >= all && all > 0 => Verdict::Over,
            _ => Verdict::Unknown,
        }
    }

    /// Whether a run lets the search go on: where too few I/Os completed for the percentile, the
    /// maximum shows the way.
    fn met_it(&self, run: &Run) -> bool {
        match self.verdict_of(run) {
            Verdict::Within => true,
            Verdict::Over | Verdict::Undecided => false,
            Verdict::Unknown => run.max_ns <= self.bound_ns(),
        }
    }

    fn verdict_of(&self, run: &Run) -> Verdict {
        match run.limited_ns {
            _ if self.missed(run).is_some() => Verdict::Over,
            unknown if unknown.is_nan() => Verdict::Unknown,
            ns if ns <= self.bound_ns() => Verdict::Within,
            _ => Verdict::Over,
        }
    }

    /// The share of its rate that a run reached, where that is too little.
    pub(super) fn missed(&self, run: &Run) -> Option<f64> {
        run.short_of_rate.filter(|_| self.is_rate)
    }

    fn bound_ns(&self) -> f64 {
        self.bound.ns as f64
    }
}

impl ResolvedSweep {
    /// How many ranks take part in this point; all where the sweep does not vary that.
    pub(super) fn ranks_of(&self, at: &[String]) -> Option<u32> {
        let (_, value) = self.axes.iter().zip(at).find(|(axis, _)| axis.key == RANKS)?;
        value.parse().ok()
    }

    pub(super) fn varies_ranks(&self) -> bool {
        self.axes.iter().any(|axis| axis.key == RANKS)
    }

    /// Arguments for `gpuio` that run this point.
    pub(super) fn arguments_of(&self, at: &[String]) -> Vec<String> {
        let mut words = self.base.clone();
        for (axis, value) in self.axes.iter().zip(at).filter(|(axis, _)| axis.key != RANKS) {
            let (key, value) = keyed(&axis.key, value);
            words.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        let routed =
            self.axes.iter().zip(at).any(|(axis, at)| axis.key == "path" && at == "routed");
        let mut all = vec!["bench".to_owned()];
        all.extend(effects::used(words, effects::at(&self.job, &self.axes, at).as_ref()));
        if let Some(via) = self.via.as_ref().filter(|_| routed) {
            all.extend(["--set".to_owned(), format!("via_gpu={via}")]);
        }
        all
    }
}
