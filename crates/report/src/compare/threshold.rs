//! The limit on how much worse a result may be.

use serde::Serialize;

use gpuio_record::Metric;
use gpuio_record::metric::{self, List};

/// A limit on how much worse the other side may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Threshold {
    /// Per cent of the baseline.
    pub percent: f64,
    pub metrics: Vec<Metric>,
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
        Ok(Threshold { percent, metrics: named.iter().map(find).collect::<Result<_, _>>()? })
    }

    /// Whether the whole interval is worse than the threshold allows.
    pub(crate) fn is_beyond(&self, more_is_better: bool, low: f64, high: f64) -> bool {
        let share = self.percent / 100.0;
        if more_is_better { high < 1.0 - share } else { low > 1.0 + share }
    }

    /// Whether any part of the interval is: where the whole is not, more runs have to decide.
    pub(crate) fn may_be_beyond(&self, more_is_better: bool, low: f64, high: f64) -> bool {
        // The end that is worse, alone.
        let worst = if more_is_better { low } else { high };
        self.is_beyond(more_is_better, worst, worst)
    }
}
