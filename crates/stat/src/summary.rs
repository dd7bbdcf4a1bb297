//! What a histogram says, as records keep it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enough_for;

/// What a histogram says, in nanoseconds. A percentile for which there were too few values (see
/// [`enough_for`]) is absent; those of records of before the rule are dropped as they are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Stored")]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Smallest value, exact.
    pub min_ns: u64,
    /// Mean, exact.
    pub mean_ns: f64,
    /// Standard deviation of the values.
    pub stddev_ns: f64,
    /// Median, within 0.4 %, as are all percentiles here.
    pub p50_ns: u64,
    /// 90th percentile; absent with fewer than 100 values.
    pub p90_ns: Option<u64>,
    /// 99th percentile; absent with fewer than 1000 values.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile; absent with fewer than 10,000 values.
    pub p99_9_ns: Option<u64>,
    /// 99.99th percentile; absent with fewer than 100,000 values.
    pub p99_99_ns: Option<u64>,
    /// Largest value, exact.
    pub max_ns: u64,
    /// Buckets that hold something: `[lowest value in ns, count]`. Buckets of records made by the
    /// same schema version may be added to merge runs.
    pub buckets: Vec<(u64, u64)>,
}

/// A summary as a record has it, before the rule is applied.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Summary")]
struct Stored {
    count: u64,
    min_ns: u64,
    mean_ns: f64,
    stddev_ns: f64,
    p50_ns: u64,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    p99_99_ns: Option<u64>,
    max_ns: u64,
    buckets: Vec<(u64, u64)>,
}

impl From<Stored> for Summary {
    fn from(stored: Stored) -> Summary {
        let reported =
            |value: Option<u64>, quantile| value.filter(|_| enough_for(quantile, stored.count));
        Summary {
            count: stored.count,
            min_ns: stored.min_ns,
            mean_ns: stored.mean_ns,
            stddev_ns: stored.stddev_ns,
            p50_ns: stored.p50_ns,
            p90_ns: reported(stored.p90_ns, 0.9),
            p99_ns: reported(stored.p99_ns, 0.99),
            p99_9_ns: reported(stored.p99_9_ns, 0.999),
            p99_99_ns: reported(stored.p99_99_ns, 0.9999),
            max_ns: stored.max_ns,
            buckets: stored.buckets,
        }
    }
}
