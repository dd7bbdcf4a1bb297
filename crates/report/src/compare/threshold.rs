//! The limit on how much worse a result may be.

use serde::Serialize;

use gpuio_base::stat::infer::is_above;
use gpuio_record::Metric;
use gpuio_record::metric::{self, List};

use crate::compare::figure::Row;

/// A limit on how much worse the other side may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Threshold {
    /// Per cent of the baseline.
    pub percent: f64,
    pub metrics: Vec<Metric>,
    /// The worst of all checks; absent before anything was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Each pair and metric.
    pub checks: Vec<Check>,
}

/// Whether a limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is on this side of it.
    Passed,
    /// The figures do not decide it.
    Undetermined,
    /// The whole interval is beyond it.
    Failed,
}

/// Why a check is undetermined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The limit is within the interval.
    MoreRuns,
    /// Others had a part in the runs of a side.
    Disturbed,
    /// There is one run of each side, which does not show how far runs lie apart.
    OneRunEach,
    NotComparable,
    /// One side or both lack the metric.
    Absent,
}

/// One metric of one pair, held against the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Check {
    /// Index of the pair.
    pub pair: usize,
    pub metric: Metric,
    pub outcome: Outcome,
    pub why: Option<Doubt>,
    /// The ratio at which it would fail.
    pub limit: f64,
    /// Ends of the interval of the ratio, where there is one.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Threshold {
    /// A threshold on these metrics, on throughput if none is named.
    ///
    /// # Errors The name of an unknown metric.
    pub fn new(percent: f64, metrics: &[String]) -> Result<Threshold, String> {
        let usual = ["throughput".to_owned()];
        let named = if metrics.is_empty() { &usual[..] } else { metrics };
        let known = List::Compared.metrics(&[]);
        let find = |name: &String| {
            let metric = metric::find(name).filter(|one| one.is_whole() || known.contains(one));
            metric.ok_or_else(|| name.clone())
        };
        let metrics = named.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Threshold { percent, metrics, outcome: None, checks: Vec::new() })
    }

    /// The ratio beyond which a result is too bad.
    fn limit(&self, more_is_better: bool) -> f64 {
        let share = self.percent / 100.0;
        if more_is_better { 1.0 - share } else { 1.0 + share }
    }

    /// Whether the whole interval is worse than the threshold allows.
    pub(crate) fn is_beyond(&self, more_is_better: bool, low: f64, high: f64) -> bool {
        is_above((low, high), self.limit(more_is_better)) == Some(!more_is_better)
    }

    /// A metric of a pair, by its entry; `disturbed` where others were beside runs that are not in
    /// turns.
    pub(crate) fn check(
        &self,
        (pair, disturbed): (usize, bool),
        metric: Metric,
        row: Option<&Row>,
    ) -> Check {
        let more = metric.more_is_better() == Some(true);
        // The end that is worse, alone: where that is beyond it, more runs have to decide.
        let worst = |row: &Row| if more { row.low } else { row.high };
        let (outcome, why) = match row {
            None => (Outcome::Undetermined, Some(Doubt::Absent)),
            Some(row) if !row.is_comparable() => {
                (Outcome::Undetermined, Some(Doubt::NotComparable))
            }
            Some(row) if !row.is_of_all => (Outcome::Undetermined, Some(Doubt::MoreRuns)),
            Some(_) if disturbed => (Outcome::Undetermined, Some(Doubt::Disturbed)),
            Some(row) if row.basis.is_one_run_each() => {
                (Outcome::Undetermined, Some(Doubt::OneRunEach))
            }
            Some(row) if row.beyond == Some(true) => (Outcome::Failed, None),
            Some(row) if self.is_beyond(more, worst(row), worst(row)) => {
                (Outcome::Undetermined, Some(Doubt::MoreRuns))
            }
            Some(_) => (Outcome::Passed, None),
        };
        let row = row.filter(|row| row.is_comparable());
        let (low, high) = (row.map(|row| row.low), row.map(|row| row.high));
        Check { pair, metric, outcome, why, limit: self.limit(more), low, high }
    }
}
