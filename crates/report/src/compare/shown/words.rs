//! The words of formats about a comparison.

use gpuio_base::document::{grouped, unique};
use gpuio_record::Metric;
use gpuio_record::metric::Unit;

use crate::compare::comparison::{Alone, CHOSEN, Comparison, Pair};
use crate::compare::evaluate::{MOST_RUNS, ranks_disagree};
use crate::compare::figure::{Basis, Row, Verdict};
use crate::compare::threshold::{Doubt, Outcome};
use crate::number::many;

/// The meaning of an interval that is not there.
const NO_INTERVAL: &str = "-: no interval is shown, since there are too few runs for one, since \
                           its ends lie too far apart to be of use (of a decided result they lie \
                           on one side of 1), or since the figures are not comparable";

/// Both ends; none if they mean nothing, unless they decide over a threshold, or if they cover
/// rounding alone, which is no noise.
pub(super) fn interval(row: &Row) -> String {
    let (low, high) = (ratio(row.low), ratio(row.high));
    let mark = row.basis.mark();
    match row.has_ends() {
        true => format!("{low} to {high}{mark}"),
        false if row.is_comparable() && row.is_of_all && !row.is_boundless() => {
            format!("unknown{mark}")
        }
        false => format!("-{mark}"),
    }
}

/// A ratio with three figures; with three decimals around 1, where small differences count.
pub(super) fn ratio(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 2.0 => format!("{value:.2}"),
        _ if value >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

/// The verdict in a word or two.
pub(super) fn verdict(pair: &Pair, row: &Row) -> String {
    let (better, worse) = match row.metric.unit() {
        Unit::MicrosecondsPerMib => ("less CPU", "more CPU"),
        Unit::BytesPerSecond | Unit::PerSecond | Unit::Nanoseconds => ("faster", "slower"),
        _ => ("better", "worse"),
    };
    let word = match row.verdict {
        Verdict::Better => better.to_owned(),
        Verdict::Worse => worse.to_owned(),
        Verdict::Noise => "noise".to_owned(),
        Verdict::RequestedRate => "same (the requested rate)".to_owned(),
        Verdict::NotComparable => "not comparable".to_owned(),
        Verdict::NotEnoughRuns => not_enough(pair, row),
    };
    let doubt = if ranks_disagree(row) { " (ranks: noise)" } else { "" };
    let marked = [Verdict::Better, Verdict::Worse, Verdict::Noise].contains(&row.verdict);
    let disturbed = if marked { disturbed(pair) } else { "" };
    let beyond = if row.beyond == Some(true) { ", BEYOND THRESHOLD" } else { "" };
    format!("{word}{disturbed}{doubt}{beyond}")
}

/// The mark of figures that others had a part in.
pub(super) fn disturbed(pair: &Pair) -> &'static str {
    if pair.is_disturbed() { " (disturbed)" } else { "" }
}

/// That nothing can be concluded, and how many runs would do where that is known. A percentile is
/// absent from runs of too few I/Os, so longer runs and not more of them have it.
fn not_enough(pair: &Pair, row: &Row) -> String {
    let ([a, b], have) = (pair.runs, [row.baseline_runs, row.other_runs]);
    let why = match (row.runs_needed, have) {
        (_, [x, y]) if have != pair.runs => {
            let longer = matches!(row.metric, Metric::Percentile(..));
            let longer = if longer { "; longer runs needed" } else { "" };
            format!(": only {x} of {a} and {y} of {b} have it{longer}")
        }
        (Some(runs), _) => format!(": about {runs} each"),
        (None, [1, 1]) => ": one each".to_owned(),
        (None, _) => format!(": more than {MOST_RUNS} each, or unknown how many"),
    };
    format!("not enough runs{why}")
}

/// Runs of a pair, and how its figures are made of them.
pub(super) fn runs(pair: &Pair) -> String {
    let means = pair.rows.iter().any(|row| row.is_of_all);
    match pair.runs {
        [1, 1] => "one run each".to_owned(),
        [a, b] if !means && a == b => format!("{a} runs each"),
        [a, b] if !means => format!("{} and {}", many(a as u64, "run"), many(b as u64, "run")),
        [a, b] if a == b => format!("geometric means of {a} runs each"),
        [a, b] => format!("geometric means of {a} and {b} runs"),
    }
}

/// Where a result without a partner is, behind its name and `between`.
pub(super) fn alone(comparison: &Comparison, alone: &Alone, between: &str) -> String {
    let name = |side: usize| comparison.sides[side].name.as_str();
    let (what, own, other) = (&alone.what, name(alone.side), name(alone.not_in));
    match alone.rivals {
        0 => format!("{what}{between}in {own}, not in {other}"),
        count => {
            let left =
                many(count as u64, "result of its direction is|results of its direction are");
            format!("{what}{between}in {own}; {left} left in {other}, and none is its only match")
        }
    }
}

/// A metric, and whether the first and the second side have it.
type Sided = (Metric, [bool; 2]);

/// Metrics without a ratio, by the reason; a line each. `of` stands behind the reason.
pub(super) fn absent(all: &[Sided], counts_each_io: bool, of: &str) -> Vec<String> {
    let names = |fits: &dyn Fn(&Sided) -> bool| {
        let names = all.iter().filter(|one| fits(one)).map(|(metric, _)| metric.name());
        unique(names).join(", ")
    };
    let is_few = |metric: &Metric| counts_each_io && matches!(metric, Metric::Percentile(..));
    let neither = |(_, has): &Sided| *has == [false; 2];
    let found = [
        ("only on one side", names(&|(_, has)| has[0] != has[1]), ""),
        ("on neither side", names(&|one| neither(one) && is_few(&one.0)), ": too few I/Os"),
        ("on neither side", names(&|one| neither(one) && !is_few(&one.0)), ""),
        ("without a ratio", names(&|(_, has)| *has == [true; 2]), ": a value is 0"),
    ];
    let found = found.into_iter().filter(|(_, names, _)| !names.is_empty());
    found.map(|(place, names, why)| format!("{place}{of}: {names}{why}")).collect()
}

/// A difference or an unknown property, one line each.
pub(super) fn remarks(comparison: &Comparison, pair: &Pair) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for difference in &pair.differences {
        let end = match difference.despite {
            Some(flag) if difference.refused => format!(" (REFUSED; --despite {flag})"),
            Some(_) => " (matters)".to_owned(),
            None => String::new(),
        };
        let (a, b) = (&difference.baseline, &difference.other);
        lines.push(format!("differs: {}: {a} | {b}{end}", difference.what));
    }
    for (of, unknown) in
        [("one side", &pair.unknown_properties), ("both sides", &pair.unknown_of_both)]
    {
        if !unknown.is_empty() {
            lines.push(format!("unknown for {of}, may differ: {}", unknown.join(", ")));
        }
    }
    lines.extend(pair.notes.iter().map(|note| format!("note: {note}")));
    // One that all pairs have stands above them.
    let is_of_all = |doubt: &String| {
        comparison.pairs.iter().all(|other| doubts_of(comparison, other).contains(doubt))
    };
    let own = doubts_of(comparison, pair).into_iter().filter(|doubt| !is_of_all(doubt));
    lines.extend(own.map(|doubt| format!("note: {doubt}")));
    lines.extend(absent(&pair.absent, pair.counts_each_io, ""));
    lines
}

/// The basis of the page's intervals, and caveats, one line each.
pub(super) fn legend(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let all = [
        Basis::Repeats,
        Basis::Turns,
        Basis::OneAgainstRepeats,
        Basis::WithinRuns,
        Basis::Rounding,
    ];
    let used: Vec<Basis> = all.into_iter().filter(|basis| comparison.rests_on(*basis)).collect();
    if !used.is_empty() {
        lines.push("ratio: other / baseline".to_owned());
    }
    for basis in &used {
        let mark = match basis.mark().trim() {
            "" => "95 % intervals".to_owned(),
            mark => format!("intervals with {mark}"),
        };
        lines.push(format!("{mark}: {}", basis.words()));
    }
    if comparison.sides.iter().any(|side| side.may_be_chosen) {
        lines.push(CHOSEN.to_owned());
    }
    let rows = || comparison.pairs.iter().flat_map(|pair| &pair.rows);
    let relevant = rows().filter(|row| !matches!(row.basis, Basis::Rounding)).count();
    if relevant >= 20 {
        let off = many((relevant / 20) as u64, "of them misses|of them miss");
        lines.push(format!("{relevant} intervals: about {off} the true ratio by chance alone"));
    }
    if rows().any(|row| row.is_of_all && interval(row).starts_with('-')) {
        lines.push(NO_INTERVAL.to_owned());
    }
    if rows().any(ranks_disagree) {
        lines.push(
            "(ranks: noise): the rank-sum test, which assumes no distribution, reports no \
             difference: it may come from a single run"
                .to_owned(),
        );
    }
    lines
}

/// Kinds of doubts that have lines of their own.
const SAID: [&str; 2] = ["disturbed", "others_unknown"];

/// The other doubts about the figures of a pair, in the words of `report`; one that both sides have
/// alike once.
pub(super) fn doubts_of(comparison: &Comparison, pair: &Pair) -> Vec<String> {
    let names = [0, pair.side].map(|side| comparison.sides[side].name.as_str());
    let of_side = |nth: usize| {
        let own = pair.doubts[nth].iter().filter(|one| !SAID.contains(&one.doubt));
        own.map(move |one| match pair.runs[nth] {
            runs if one.runs == runs => one.why.clone(),
            runs => format!("{} (in {} of {})", one.why, one.runs, many(runs as u64, "run")),
        })
    };
    let sides = [0, 1].map(|nth| of_side(nth).collect::<Vec<String>>());
    let each = sides[0].iter().map(|why| match sides[1].contains(why) {
        true => format!("both sides: {why}"),
        false => format!("{}: {why}", names[0]),
    });
    let other = sides[1].iter().filter(|why| !sides[0].contains(why));
    each.chain(other.map(|why| format!("{}: {why}", names[1]))).collect()
}

/// A line for each of these doubts, with how many pairs have it.
fn doubts_of_pairs(comparison: &Comparison) -> impl Iterator<Item = String> {
    let pairs = comparison.pairs.iter();
    let all = pairs.flat_map(|pair| doubts_of(comparison, pair).into_iter().map(|one| (one, ())));
    let of = comparison.pairs.len();
    grouped(all).into_iter().map(move |(doubt, times)| {
        let times = times.len();
        let all = if times == of { String::new() } else { format!(" of {of}") };
        format!("Doubt in {}{all}: {doubt}.", many(times as u64, "load"))
    })
}

/// The cautions on top of the page, the gravest first: figures from which nothing is concluded, or
/// that are not of hardware, and loads that others had a part in, or may have had.
pub(super) fn cautions(comparison: &Comparison) -> Vec<String> {
    let doubts = comparison.sides.iter().flat_map(|side| &side.doubts);
    let mut lines: Vec<String> = doubts.map(|why| format!("Not comparable: {why}.")).collect();
    let software = comparison.sides.iter().filter(|side| side.software_gpu);
    let software: Vec<&str> = software.map(|side| side.name.as_str()).collect();
    if !software.is_empty() {
        lines.push(format!(
            "Software GPU: {} used no hardware GPU: its figures are those of host memory and CPU \
             threads. Never compare them with those of a GPU.",
            software.join(" and ")
        ));
    }
    for side in comparison.sides.iter().filter(|side| !side.lacks.is_empty()) {
        let reasons = side.lacks.join("; ");
        lines.push(format!("Not all runs that were made are in {}: {reasons}.", side.name));
    }
    lines.extend(doubts_of_pairs(comparison));
    let (all, disturbed) = (comparison.pairs.len(), comparison.pairs.iter());
    let disturbed: Vec<&Pair> = disturbed.filter(|pair| pair.is_disturbed()).collect();
    if let Some(pair) = disturbed.first() {
        let names = [0, pair.side].map(|side| comparison.sides[side].name.as_str());
        let how = names.iter().zip(&pair.disturbed);
        let how = how.filter_map(|(name, how)| Some(format!("{name} {}", how.as_ref()?)));
        let of = if all == 1 { String::new() } else { format!(" of {all}") };
        let first = if disturbed.len() == 1 { "" } else { "the first: " };
        lines.push(format!(
            "Disturbed in {}{of}: others used the drive or the CPUs, so a difference may be theirs \
             ({first}{}).",
            many(disturbed.len() as u64, "load"),
            how.collect::<Vec<_>>().join("; ")
        ));
    }
    let unknown = comparison.pairs.iter().filter(|pair| !pair.is_disturbed());
    let unknown = unknown.filter(|pair| pair.others_unknown.iter().any(Option::is_some)).count();
    if unknown > 0 {
        lines.push(format!(
            "Others unknown in {}{}: their use of the CPUs was not counted, so a difference may be \
             theirs.",
            many(unknown as u64, "load"),
            if all == 1 { String::new() } else { format!(" of {all}") },
        ));
    }
    lines
}

/// Results of the threshold: one line for each entry beyond it, one for metrics that may be, and
/// one for those that could not be checked.
pub(super) fn threshold(comparison: &Comparison) -> Vec<String> {
    let Some(threshold) = &comparison.threshold else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (pair, row) in comparison.beyond() {
        let other = &comparison.sides[pair.side].name;
        lines.push(format!(
            "regression: {}, {}: {} → {} ({other}), ratio {}, interval {}: entirely worse by \
             more than {} %",
            pair.baseline,
            row.metric.name(),
            row.metric.print(row.baseline),
            row.metric.print(row.other),
            ratio(row.ratio),
            interval(row),
            threshold.percent,
        ));
    }
    for metric in &threshold.metrics {
        let (word, percent) = (metric.word(), threshold.percent);
        let doubts = [
            Doubt::Disturbed,
            Doubt::OneRunEach,
            Doubt::MoreRuns,
            Doubt::NotComparable,
            Doubt::Absent,
        ];
        for doubt in doubts {
            let of = threshold.checks.iter().filter(|check| check.metric == *metric);
            let pairs = of.filter(|check| check.why == Some(doubt));
            let pairs: Vec<&str> =
                pairs.map(|check| comparison.pairs[check.pair].baseline.as_str()).collect();
            let why = match doubt {
                _ if pairs.is_empty() => continue,
                Doubt::Disturbed => format!(
                    ": disturbed, others had a part in {word}; repeat the runs without them"
                ),
                Doubt::OneRunEach => format!(
                    ": {word} is of one run each, which does not show how far runs lie apart; \
                     repeat them"
                ),
                Doubt::MoreRuns => format!(
                    ", {word} may be worse by more than {percent} %, and more runs are needed"
                ),
                Doubt::NotComparable => format!(", {word} is not comparable"),
                Doubt::Absent => format!(", a side lacks {word}"),
            };
            lines.push(format!("threshold: undetermined{why}: {}", pairs.join("; ")));
        }
    }
    match threshold.outcome {
        Some(Outcome::Undetermined) => {
            lines.push("threshold: undetermined in all: neither passed nor failed".to_owned());
        }
        Some(Outcome::Passed) => {
            let metrics: Vec<String> = threshold.metrics.iter().map(Metric::word).collect();
            let (metrics, percent) = (metrics.join(", "), threshold.percent);
            lines.push(format!(
                "threshold: passed, no result is worse by more than {percent} % in {metrics}"
            ));
        }
        Some(Outcome::Failed) | None => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_keep_three_figures() {
        let printed = [0.012_345, 0.5, 1.234_56, 4.314_9, 12.345, 1234.5].map(ratio);
        assert_eq!(printed, ["0.01235", "0.500", "1.235", "4.31", "12.3", "1234"]);
    }
}
