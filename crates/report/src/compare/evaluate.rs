//! Evaluates a metric of two cells: ratio, interval, verdict.

use gpuio_base::stat::infer::{
    Ratio, geometric_mean, is_above, paired, predicted, rank_sum, t_quantile, welch, within,
};
use gpuio_record::Metric;

use crate::compare::LEVEL;
use crate::compare::cell::Cell;
use crate::compare::figure::{Basis, Row, Verdict};
use crate::compare::run::Figure;
use crate::compare::threshold::Threshold;

/// The p below which the rank test reports a difference.
const RANK_LEVEL: f64 = 1.0 - LEVEL;

/// A gain or loss by this factor matters where no threshold says which one does: an interval that
/// includes 1 and either allows no conclusion.
const LARGE: f64 = 1.1;

/// More runs than this are not proposed.
pub(crate) const MOST_RUNS: usize = 1000;

/// The entry of a metric; `None` if a side has no figure. `in_turns` means that the nth run of one
/// side was made next to the nth of the other.
pub(crate) fn row(
    metric: Metric,
    baseline: &Cell<'_>,
    other: &Cell<'_>,
    in_turns: bool,
    threshold: Option<&Threshold>,
) -> Option<Row> {
    let as_known = (baseline.figures(&metric), other.figures(&metric));
    let is_latency = metric.is_whole() || metric.word() == "mean";
    let clash = is_latency && !baseline.counts_as(other);
    let submitted = || {
        let (a, b) = (baseline.since_submission(&metric)?, other.since_submission(&metric)?);
        clash.then_some((a, b))
    };
    let submitted = submitted();
    let doubtful = |cell: &Cell<'_>| cell.runs.iter().any(|run| !run.doubts.is_empty());
    let comparable = (!clash || submitted.is_some()) && !doubtful(baseline) && !doubtful(other);
    let (a, b) = submitted.unwrap_or(as_known);
    let is_of_all = a.len() == baseline.runs.len() && b.len() == other.runs.len();
    let (va, vb) = (values(&a), values(&b));
    let (ga, gb) = (geometric_mean(&va)?, geometric_mean(&vb)?);
    let (basis, ratio) = interval(&a, &b, in_turns)?;
    let (off_a, off_b) = (off(&a), off(&b));
    let low = ratio.low * (1.0 - off_b).max(0.0) / (1.0 + off_a);
    let high = ratio.high * (1.0 + off_b) / (1.0 - off_a).max(f64::MIN_POSITIVE);
    let on = threshold.filter(|threshold| threshold.metrics.contains(&metric));
    let large = on.map_or(LARGE, |threshold| 1.0 + threshold.percent / 100.0);
    let is_more = metric.more_is_better() == Some(true);
    let beyond = on.filter(|_| comparable && is_of_all);
    let beyond = beyond.map(|threshold| threshold.is_beyond(is_more, low, high));
    // A difference beside others may be theirs, whichever side they disturbed.
    let disturbed = [baseline, other].iter().any(|cell| cell.disturbed().is_some());
    let met = baseline.met(&metric).filter(|rate| other.met(&metric) == Some(*rate));
    let verdict = match met {
        _ if !comparable => Verdict::NotComparable,
        Some(_) if beyond != Some(true) => Verdict::RequestedRate,
        // Runs that lack a figure may be those that would have had the worst.
        _ if !is_of_all => Verdict::NotEnoughRuns,
        _ => verdict(&metric, (low, high), basis, large),
    };
    // How many further runs would have a figure that some runs lack is unknown.
    let few = verdict == Verdict::NotEnoughRuns && is_of_all;
    let needed = few.then(|| runs_needed(&ratio, basis, (a.len(), b.len()), large)).flatten();
    // Programs get no ratio of figures that can't be compared.
    let known = |value: f64| if comparable { value } else { f64::NAN };
    Some(Row {
        metric,
        unit: metric.unit().word(),
        baseline: ga,
        other: gb,
        baseline_runs: a.len(),
        other_runs: b.len(),
        ratio: known(ratio.ratio),
        low: known(low),
        high: known(high),
        is_of_all,
        basis,
        verdict,
        runs_needed: needed,
        rank_p: rank_sum(&va, &vb).filter(|rank| rank.least_p < RANK_LEVEL).map(|rank| rank.p),
        beyond: beyond.filter(|_| !basis.is_one_run_each() && (in_turns || !disturbed)),
    })
}

fn interval(a: &[Figure], b: &[Figure], in_turns: bool) -> Option<(Basis, Ratio)> {
    let (va, vb) = (values(a), values(b));
    let made = match (va.as_slice(), vb.as_slice()) {
        ([one], [other]) => {
            return single(a[0], b[0]).or_else(|| Some((Basis::Rounding, rounding(*one, *other))));
        }
        ([one], many) => (Basis::OneAgainstRepeats, predicted(*one, many, true, LEVEL)),
        (many, [one]) => (Basis::OneAgainstRepeats, predicted(*one, many, false, LEVEL)),
        _ if in_turns && va.len() == vb.len() => (Basis::Turns, paired(&va, &vb, LEVEL)),
        _ => (Basis::Repeats, welch(&va, &vb, LEVEL)),
    };
    Some((made.0, made.1?))
}

fn single(a: Figure, b: Figure) -> Option<(Basis, Ratio)> {
    let ratio = within((a.value, a.spread?), (b.value, b.spread?), LEVEL)?;
    Some((Basis::WithinRuns, ratio))
}

/// A single value, which rounding will widen.
fn rounding(a: f64, b: f64) -> Ratio {
    let ratio = b / a;
    Ratio { ratio, low: ratio, high: ratio, freedom: 0.0 }
}

fn values(figures: &[Figure]) -> Vec<f64> {
    figures.iter().map(|figure| figure.value).collect()
}

fn off(figures: &[Figure]) -> f64 {
    figures.iter().map(|figure| figure.off).fold(0.0, f64::max)
}

fn verdict(metric: &Metric, (low, high): (f64, f64), basis: Basis, large: f64) -> Verdict {
    // Two single values say nothing about how far runs lie apart, be they equal or not.
    if basis == Basis::Rounding {
        return Verdict::NotEnoughRuns;
    }
    let Some(is_more) = is_above((low, high), 1.0) else {
        let is_open = low < 1.0 / large || high > large;
        return if is_open { Verdict::NotEnoughRuns } else { Verdict::Noise };
    };
    if basis == Basis::WithinRuns {
        return Verdict::NotEnoughRuns;
    }
    if Some(is_more) == metric.more_is_better() { Verdict::Better } else { Verdict::Worse }
}

/// How many runs of each side would decide: make the interval exclude 1, or a large gain and a
/// large loss, if runs vary as these do.
fn runs_needed(ratio: &Ratio, basis: Basis, (a, b): (usize, usize), large: f64) -> Option<usize> {
    if matches!(basis, Basis::WithinRuns | Basis::Rounding) {
        return None;
    }
    let quantile = |freedom: f64| t_quantile(f64::midpoint(1.0, LEVEL), freedom);
    let float = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let error = half / quantile(ratio.freedom)?;
    // The variance of one run, on average over both sides.
    let variance = error.powi(2) / (1.0 / float(a) + 1.0 / float(b));
    let far = ratio.ratio.ln().abs();
    let wanted = far.max(large.ln() - far);
    let enough = |runs: usize| {
        let freedom = float(runs - 1) * if basis == Basis::Turns { 1.0 } else { 2.0 };
        quantile(freedom).is_some_and(|t| t * (2.0 * variance / float(runs)).sqrt() <= wanted)
    };
    let (mut low, mut high) = (a.max(b).max(2), MOST_RUNS);
    if !half.is_finite() || low >= high || !enough(high) {
        return None;
    }
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Whether the rank test contradicts the interval.
pub(crate) fn ranks_disagree(row: &Row) -> bool {
    let has_verdict = matches!(row.verdict, Verdict::Better | Verdict::Worse);
    has_verdict && row.rank_p.is_some_and(|p| p >= RANK_LEVEL)
}

#[cfg(test)]
mod tests {
    use gpuio_record::metric;

    use super::*;

    fn figures(values: [f64; 2]) -> Vec<Figure> {
        values.map(|value| Figure { value, off: 0.0, spread: None }).to_vec()
    }

    /// By the tables, Welch's interval of two logarithms against two with equal spread s has two
    /// degrees of freedom and the half-width t s, with t(0.975, 2) = 4.302653.
    #[test]
    fn two_against_two_have_the_interval_of_the_tables() {
        let (a, b) = (figures([100.0, 110.0]), figures([200.0, 220.0]));
        let (basis, ratio) = interval(&a, &b, false).unwrap();
        let half = 4.302_653 * 1.1_f64.ln() / 2.0_f64.sqrt();
        assert_eq!(basis, Basis::Repeats);
        assert!((ratio.ratio - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.low - 2.0 * (-half).exp()).abs() < 1e-4, "{ratio:?}");
        assert!((ratio.high - 2.0 * half.exp()).abs() < 1e-4, "{ratio:?}");
        // With alternating runs the two ratios are equal, so the interval has no width.
        let (basis, paired) = interval(&a, &b, true).unwrap();
        assert_eq!(basis, Basis::Turns);
        assert!((paired.high - paired.low).abs() < 1e-9, "{paired:?}");
    }

    /// Two runs that scatter allow no conclusion, whatever their ratio.
    #[test]
    fn two_runs_that_scatter_need_more() {
        let (_, wide) = interval(&figures([1.0, 40.0]), &figures([30.0, 900.0]), false).unwrap();
        assert!(wide.low < 1e-3 && wide.high > 1e3, "{wide:?}");
        let throughput = &metric::find("throughput").unwrap();
        assert_eq!(
            verdict(throughput, (wide.low, wide.high), Basis::Repeats, LARGE),
            Verdict::NotEnoughRuns
        );
    }

    /// Four runs each that vary by 30 to 40 %, and a ratio of 1.25.
    #[test]
    fn an_interval_with_large_gain_and_large_loss_says_how_many_runs_would_do() {
        let throughput = &metric::find("throughput").unwrap();
        let figures = |values: &[f64]| -> Vec<Figure> {
            values.iter().map(|value| Figure { value: *value, off: 0.0, spread: None }).collect()
        };
        let (a, b) = ([80.0, 110.0, 130.0, 160.0], [90.0, 130.0, 170.0, 220.0]);
        let (basis, found) = interval(&figures(&a), &figures(&b), false).unwrap();
        assert!(found.low < 0.9 && found.high > 1.1, "{found:?}");
        let verdict = |low, high, basis| verdict(throughput, (low, high), basis, LARGE);
        assert_eq!(verdict(found.low, found.high, basis), Verdict::NotEnoughRuns);
        let needed = runs_needed(&found, basis, (4, 4), LARGE).unwrap();
        // So many runs of the same variation decide, and half as many do not.
        let times = |sample: &[f64], times: usize| -> Vec<Figure> {
            figures(&sample.iter().copied().cycle().take(times).collect::<Vec<_>>())
        };
        let with = |runs: usize| interval(&times(&a, runs), &times(&b, runs), false).unwrap().1;
        assert!((8..40).contains(&needed), "{needed}");
        assert!(with(needed.next_multiple_of(4) + 4).low > 1.0, "{:?}", with(needed));
        assert!(with(needed / 2 / 4 * 4).low < 1.0);
        // Noise is neither a gain nor a loss of a tenth: to exclude one of them is not enough.
        assert_eq!(verdict(0.95, 1.05, basis), Verdict::Noise);
        assert_eq!(verdict(0.936, 3.90, basis), Verdict::NotEnoughRuns);
        assert_eq!(verdict(0.7, 1.05, basis), Verdict::NotEnoughRuns);
        assert_eq!(verdict(0.7, 1.4, Basis::WithinRuns), Verdict::NotEnoughRuns);
        assert_eq!(verdict(1.0, 1.0, Basis::Rounding), Verdict::NotEnoughRuns, "no spread known");
        assert_eq!(verdict(0.99, 1.01, Basis::Rounding), Verdict::NotEnoughRuns, "rounded");
        assert_eq!(runs_needed(&found, Basis::WithinRuns, (1, 1), LARGE), None, "one each");
        // A ratio near a large gain needs a narrower interval than one at 1.
        let at = |ratio: f64| Ratio { ratio, low: ratio * 0.8, high: ratio / 0.8, ..found };
        let runs = |ratio| runs_needed(&at(ratio), basis, (4, 4), LARGE).unwrap();
        assert!(runs(1.04) > 2 * runs(1.0), "{} {}", runs(1.04), runs(1.0));
    }
}
