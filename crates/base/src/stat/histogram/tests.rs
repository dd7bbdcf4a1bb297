use super::*;
use proptest::prelude::*;

#[test]
fn an_empty_histogram_has_no_summary() {
    assert_eq!(Histogram::default().summary(), None);
    assert_eq!(Histogram::default().percentile(0.5), None);
}

#[test]
fn a_percentile_needs_ten_values_beyond_it() {
    let of = |count: u64| {
        let mut h = Histogram::default();
        (1..=count).for_each(|v| h.record(v));
        h.summary().unwrap()
    };
    // 18 I/Os have a median and a largest, and nothing between that another run would repeat.
    let few = of(18);
    assert_eq!((few.p50_ns, few.max_ns), (9, 18));
    assert_eq!([few.p90_ns, few.p99_ns, few.p99_9_ns, few.p99_99_ns], [None; 4]);
    for (needs, quantile) in [(100, 0.9), (1000, 0.99), (10_000, 0.999), (100_000, 0.9999)] {
        assert!(enough_for(quantile, needs) && !enough_for(quantile, needs - 1), "{quantile}");
    }
    assert_eq!((of(999).p99_ns, of(1000).p99_ns.is_some()), (None, true));
    assert!(!enough_for(0.5, 0) && !enough_for(1.0, u64::MAX));
}

#[test]
fn a_stored_percentile_of_too_few_values_is_dropped_when_it_is_read() {
    let mut h = Histogram::default();
    (0..18).for_each(|_| h.record(100));
    let mut json = serde_json::to_value(h.summary().unwrap()).unwrap();
    assert_eq!((&json["p50_ns"], &json["p99_9_ns"]), (&100.into(), &serde_json::Value::Null));
    // As records of before have it.
    json["p99_9_ns"] = 100.into();
    let read: crate::stat::Summary = serde_json::from_value(json).unwrap();
    assert_eq!((read.p99_9_ns, read), (None, h.summary().unwrap()));
}

#[test]
fn what_came_since_a_reading_is_apart_from_what_was_before() {
    let mut h = Histogram::default();
    (0..500).for_each(|_| h.record(1_000_000));
    let before = h.clone();
    assert_eq!(h.since(&before).count(), 0);
    (0..20).for_each(|_| h.record(2000));
    let part = h.since(&before);
    assert_eq!((part.count(), part.sum()), (20, 40_000));
    assert_eq!(part.min, 2000);
    assert!((2000..2016).contains(&part.percentile(0.5).unwrap()), "{part:?}");
    assert!((2000..2016).contains(&part.max().unwrap()), "{part:?}");
    h.record(3_000_000);
    assert_eq!(h.since(&before).max(), Some(3_000_000), "new to the whole, so exact");
    assert_eq!(before.since(&Histogram::default()), before);
}

#[test]
fn values_past_the_last_bucket_keep_an_exact_maximum() {
    let mut h = Histogram::default();
    h.record(u64::MAX);
    h.record(5);
    assert_eq!(h.summary().unwrap().max_ns, u64::MAX);
    assert_eq!(h.summary().unwrap().min_ns, 5);
}

#[test]
fn clear_forgets_all_counts() {
    let mut h = Histogram::default();
    for v in [0, 1, 999, 123_456_789] {
        h.record(v);
    }
    h.clear();
    assert_eq!(h.summary(), None);
    h.record(7);
    assert_eq!(h.summary().unwrap().buckets, [(7, 1)]);
}

/// The percentile by definition: the smallest value at or below which `q` of all values lie.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between 1 and the number of values"
)]
fn exact(values: &mut [u64], q: f64) -> u64 {
    values.sort_unstable();
    let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
    values[rank - 1]
}

proptest! {
    #[test]
    fn percentiles_are_within_half_a_per_cent(
        mut values in prop::collection::vec(1u64..10_000_000_000, 1..400),
        q in 0.0f64..=1.0,
    ) {
        let mut h = Histogram::default();
        values.iter().for_each(|v| h.record(*v));
        let truth = exact(&mut values, q) as f64;
        let found = h.at(q).unwrap() as f64;
        prop_assert!((found - truth).abs() <= truth * 0.005 + 0.5, "{found} against {truth}");
    }

    #[test]
    fn a_merge_equals_recording_everything_in_one(
        a in prop::collection::vec(any::<u64>().prop_map(|v| v >> 20), 0..200),
        b in prop::collection::vec(0u64..1_000_000, 0..200),
    ) {
        let (mut left, mut right, mut both): (Histogram, Histogram, Histogram) =
            Default::default();
        let fill = |h: &mut Histogram, vs: &[u64]| vs.iter().for_each(|v| h.record(*v));
        fill(&mut left, &a);
        fill(&mut right, &b);
        fill(&mut both, &a);
        fill(&mut both, &b);
        left.merge(&right);
        prop_assert_eq!(&left.counts, &both.counts);
        prop_assert_eq!((left.count, left.min, left.max), (both.count, both.min, both.max));
    }

    #[test]
    fn a_summary_gives_its_histogram_back(
        values in prop::collection::vec(0u64..50_000_000_000, 1..200),
    ) {
        let mut h = Histogram::default();
        values.iter().for_each(|v| h.record(*v));
        let first = h.summary().unwrap();
        let second = Histogram::from_summary(&first).summary().unwrap();
        prop_assert_eq!(&first.buckets, &second.buckets);
        prop_assert_eq!((first.min_ns, first.p99_ns, first.max_ns),
            (second.min_ns, second.p99_ns, second.max_ns));
        prop_assert!((first.mean_ns - second.mean_ns).abs() <= 1e-6 * first.mean_ns + 1.0);
    }

    #[test]
    fn mean_and_deviation_match_the_textbook(
        values in prop::collection::vec(0u64..1_000_000, 2..300),
    ) {
        let mut h = Histogram::default();
        values.iter().for_each(|v| h.record(*v));
        let n = values.len() as f64;
        let mean = values.iter().sum::<u64>() as f64 / n;
        let var = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n;
        let s = h.summary().unwrap();
        prop_assert!((s.mean_ns - mean).abs() < 1e-6 * mean.max(1.0));
        prop_assert!((s.stddev_ns - var.sqrt()).abs() < 1e-3 * var.sqrt().max(1.0));
    }
}
