//! The summary of a histogram, as records keep it.

use crate::units::whole;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stat::{Histogram, Percentile, enough_for};

/// The summary of a histogram, in nanoseconds. A percentile for which there were too few values
/// (see [`enough_for`]) is absent; those of records of before the rule are dropped as they are
/// read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Summary {
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

impl Summary {
    /// Sets the percentiles that have a field.
    pub(super) fn with(mut self, percentile: impl Fn(Percentile) -> Option<u64>) -> Summary {
        self.p50_ns = percentile(Percentile::MEDIAN).unwrap_or(self.max_ns);
        for (field, at) in self.absent_with_few() {
            *field = percentile(at);
        }
        self
    }

    /// The percentiles for which there may be too few values.
    fn absent_with_few(&mut self) -> impl Iterator<Item = (&mut Option<u64>, Percentile)> {
        let fields = [&mut self.p90_ns, &mut self.p99_ns, &mut self.p99_9_ns, &mut self.p99_99_ns];
        fields.into_iter().zip(Percentile::ALL.into_iter().skip(1))
    }

    /// A percentile; `None` with too few values for it. One that has no field is computed of the
    /// buckets.
    pub fn percentile(&self, at: Percentile) -> Option<u64> {
        let fields = [Some(self.p50_ns), self.p90_ns, self.p99_ns, self.p99_9_ns, self.p99_99_ns];
        match Percentile::ALL.iter().position(|one| *one == at) {
            Some(nth) => fields[nth],
            None if self.buckets.is_empty() => None,
            None => Histogram::from_summary(self).percentile(at.quantile()),
        }
    }

    /// Whether the percentile `quantile` (0 to 1) would be another one if `missing` more values had
    /// been recorded, all of them above it: it lies so many ranks further on, where the buckets
    /// hold other values or none. Without buckets nothing is known, and any missing value counts.
    pub fn could_be_higher(&self, quantile: f64, missing: u64) -> bool {
        let wanted = rank(quantile, self.count.saturating_add(missing));
        if missing == 0 || wanted > self.count {
            return missing > 0;
        }
        let bucket = |rank: u64| {
            let mut seen = 0_u64;
            self.buckets.iter().position(|(_, count)| {
                seen = seen.saturating_add(*count);
                seen >= rank
            })
        };
        let [now, then] = [rank(quantile, self.count), wanted].map(bucket);
        now.is_none() || now != then
    }
}

/// The rank of a quantile among so many values, from 1.
fn rank(quantile: f64, count: u64) -> u64 {
    whole((quantile * count as f64).ceil().max(1.0))
}

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Summary, D::Error> {
        let mut read = Summary::deserialize(deserializer)?;
        let count = read.count;
        for (field, at) in read.absent_with_few() {
            *field = field.filter(|_| enough_for(at.quantile(), count));
        }
        Ok(read)
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Summary::serialize(self, serializer)
    }
}

#[cfg(test)]
mod rank_tests {
    use super::*;
    use crate::stat::Histogram;

    /// 10,000 values: 9,890 of 1 ms, 100 of 5 ms, 10 of 20 ms.
    fn summary() -> Summary {
        let mut all = Histogram::default();
        for (count, ns) in [(9_890, 1_000_000), (100, 5_000_000), (10, 20_000_000)] {
            (0..count).for_each(|_| all.record(ns));
        }
        all.summary().unwrap()
    }

    #[test]
    fn a_percentile_moves_by_as_many_ranks_as_values_are_missing() {
        let all = summary();
        // p99 is rank 9,900 of 10,000, in the bucket of 5 ms up to rank 9,990.
        assert!(!all.could_be_higher(0.99, 0));
        assert!(!all.could_be_higher(0.99, 3), "rank 9,903");
        assert!(!all.could_be_higher(0.99, 90), "rank 9,990");
        assert!(all.could_be_higher(0.99, 91), "rank 9,991 is in the next bucket");
        assert!(all.could_be_higher(0.99, 200), "rank 10,098 of 10,000 is none of them");
        // p99.9 is rank 9,990: the last of its bucket.
        assert!(all.could_be_higher(0.999, 1), "rank 9,991");
        assert!(!all.could_be_higher(0.5, 3));
        let without = Summary { buckets: Vec::new(), ..all };
        assert!(without.could_be_higher(0.5, 1) && !without.could_be_higher(0.5, 0));
    }
}
