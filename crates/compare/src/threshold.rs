//! The limit on how much worse a result may be.

use serde::Serialize;

use crate::metric;

/// A limit on how much worse the other side may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Threshold {
    /// Per cent of the baseline.
    pub percent: f64,
    /// Keys of the metrics that it applies to.
    pub metrics: Vec<&'static str>,
}

impl Threshold {
    /// A threshold on these metrics, on throughput if none is named.
    ///
    /// # Errors The name of an unknown metric.
    pub fn new(percent: f64, metrics: &[String]) -> Result<Threshold, String> {
        let found = metrics
            .iter()
            .map(|key| metric::find(key).map(|metric| metric.key).ok_or_else(|| key.clone()));
        let mut metrics: Vec<&'static str> = found.collect::<Result<_, _>>()?;
        if metrics.is_empty() {
            metrics.push("throughput");
        }
        Ok(Threshold { percent, metrics })
    }

    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.metrics.contains(&key)
    }

    /// Whether the whole interval is worse than the threshold allows.
    pub(crate) fn is_beyond(&self, more_is_better: bool, low: f64, high: f64) -> bool {
        let share = self.percent / 100.0;
        if more_is_better { high < 1.0 - share } else { low > 1.0 + share }
    }
}
