//! The results of comparisons of records that were made for the purpose.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "helpers of tests are tests: a panic is their message; figures are made up"
)]

pub(crate) mod made;

use gpuio_report::compare::axis::{Axis, split};
use gpuio_report::compare::{
    ASPECTS, Basis, Comparison, Kind, Options, Outcome, Row, Side, Threshold, Verdict, compare,
    count_once, of_reading, of_record, render,
};
use serde_json::Value;

use gpuio_record::{Warning, WarningKind};
use made::{host, repeats, runs, scale, side, software};

const NEAR: [f64; 5] = [0.99, 1.01, 1.0, 0.995, 1.005];

fn times(factor: f64) -> [f64; 5] {
    NEAR.map(|near| near * factor)
}

fn with_threshold(percent: f64, metrics: &[&str]) -> Options {
    let metrics: Vec<String> = metrics.iter().map(|metric| (*metric).to_owned()).collect();
    let threshold = Some(Threshold::new(percent, &metrics).unwrap());
    Options { threshold, ..Options::default() }
}

/// In a format, for a terminal of so many columns.
fn shown_at(name: &str, comparison: &Comparison, width: u16) -> String {
    render(comparison, gpuio_base::document::find(name).unwrap(), width)
}

fn shown(name: &str, comparison: &Comparison) -> String {
    shown_at(name, comparison, 100)
}

#[track_caller]
fn row<'a>(comparison: &'a Comparison, metric: &str) -> &'a Row {
    let mut rows = comparison.pairs.iter().flat_map(|pair| &pair.rows);
    rows.find(|row| row.metric.word() == metric).unwrap()
}

#[test]
fn repeats_that_are_slower_are_reported_so() {
    let sides = [repeats("before", &NEAR), repeats("after", &times(0.9))];
    let found = compare(&sides, &with_threshold(5.0, &[]));
    for metric in ["throughput", "iops", "mean", "p50", "p99", "p99.9", "cpu"] {
        let row = row(&found, metric);
        assert_eq!((row.verdict, row.basis), (Verdict::Worse, Basis::Repeats), "{metric}");
        assert_eq!((row.baseline_runs, row.other_runs), (5, 5), "{metric}");
    }
    let throughput = row(&found, "throughput");
    assert!((throughput.ratio - 0.9).abs() < 1e-9, "{throughput:?}");
    assert!(throughput.low > 0.88 && throughput.high < 0.92, "{throughput:?}");
    assert_eq!(found.beyond().count(), 1, "the threshold is on throughput alone");
    assert_eq!(compare(&sides, &with_threshold(15.0, &[])).beyond().count(), 0);
    let on = with_threshold(5.0, &["p99", "cpu"]);
    assert_eq!(compare(&sides, &on).beyond().count(), 2);
}

#[test]
fn a_threshold_needs_the_whole_interval() {
    let options = || with_threshold(5.0, &[]);
    let wide = [1.1, 0.9, 1.0, 0.95, 1.05];
    let sides = [repeats("before", &wide), repeats("after", &wide.map(|x| x * 0.93))];
    let found = compare(&sides, &with_threshold(5.0, &[]));
    let row = row(&found, "throughput");
    assert!(row.ratio < 0.95 && row.high > 0.95, "{row:?}");
    assert_eq!(row.beyond, Some(false));
    assert_eq!(row.verdict, Verdict::NotEnoughRuns, "a loss of 5 % is not excluded");
    let page = shown_at("text", &found, 1000);
    assert!(page.contains("threshold: undetermined, throughput may be worse by more"), "{page}");
    assert!(page.contains("undetermined in all") && !page.contains("passed,"), "{page}");
    // The same for programs: in all, by metric with the bounds, and as a word of a table.
    let outcomes = |found: &Comparison| -> [Value; 4] {
        let json: Value = serde_json::from_str(&shown("json", found)).unwrap();
        let threshold = &json["threshold"];
        let check = &threshold["checks"][0];
        let csv = shown("csv", found);
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        let at = rows.headers().unwrap().iter().position(|head| head == "threshold").unwrap();
        let first = rows.records().next().unwrap().unwrap();
        let ends = [&check["low"], &check["high"]].map(|end| end.as_f64().unwrap());
        assert!(ends[0] <= ends[1] && check["pair"] == 0, "{check:#}");
        assert!((check["limit"].as_f64().unwrap() - 0.95).abs() < 1e-9, "{check:#}");
        [&threshold["outcome"], &check["outcome"], &check["why"], &first[at].into()]
            .map(Clone::clone)
    };
    let undetermined = ["undetermined", "undetermined", "more_runs", "undetermined"];
    assert_eq!(outcomes(&found), undetermined.map(Value::from));
    let of = |factor| compare(&[repeats("a", &NEAR), repeats("b", &times(factor))], &options());
    let failed = Value::from("failed");
    assert_eq!(outcomes(&of(0.9)), [failed.clone(), failed.clone(), Value::Null, failed]);
    let passed = Value::from("passed");
    assert_eq!(outcomes(&of(0.97)), [passed.clone(), passed.clone(), Value::Null, passed]);
    assert!(shown_at("text", &of(0.97), 200).contains("threshold: passed, no result is worse"));
}

/// The worst of all metrics decides, and one that a side lacks is no pass.
#[test]
fn a_metric_of_the_threshold_that_is_not_there_is_undetermined() {
    let mut sides = [repeats("before", &NEAR), repeats("after", &NEAR)];
    for run in &mut sides[1].runs {
        run.figures.remove("p99.9");
        run.latency = None;
    }
    let found = compare(&sides, &with_threshold(5.0, &["throughput", "p99.9"]));
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 200);
    assert!(page.contains("threshold: undetermined, a side lacks p99.9: read-64K"), "{page}");
    assert!(page.contains("only on one side: p99.9\n"), "{page}");
    let found = compare(
        &[repeats("a", &NEAR), repeats("b", &times(0.5))],
        &with_threshold(5.0, &["throughput", "p99.9"]),
    );
    assert_eq!(found.outcome(), Some(Outcome::Failed));
}

/// Percentiles of too few I/Os are absent from both records.
#[test]
fn a_metric_of_neither_side_is_not_one_of_one_side() {
    let short = |name: &str| {
        let change = |record: &mut Value| {
            scale(record, 1.0);
            let total = &mut record["jobs"][0]["read"]["latency"]["total"];
            total["count"] = 60.into();
            for key in ["p99_ns", "p99_9_ns"] {
                total[key] = Value::Null;
            }
        };
        side(name, runs(host(), &format!("{name}.json"), change))
    };
    let found = compare(&[short("a"), short("b")], &Options::default());
    for page in [shown_at("text", &found, 200), shown("markdown", &found)] {
        assert!(page.contains("on neither side: p99, p99.9: too few I/Os"), "{page}");
        assert!(!page.contains("only on one side"), "{page}");
    }
    let page = shown("html", &found);
    assert!(page.contains("on neither side of some loads: p99, p99.9: too few I/Os"), "{page}");
    let found = compare(&[short("a"), repeats("b", &[1.0])], &Options::default());
    let page = shown_at("text", &found, 200);
    assert!(page.contains("only on one side: p99, p99.9") && !page.contains("neither"), "{page}");
    // gdsio prints none, of however many I/Os.
    let page = shown_at("text", &compare(&[gdsio("0.9"), gdsio("0.9")], &Options::default()), 200);
    assert!(page.contains("on neither side: p50, p99, p99.9, ") && !page.contains("few"), "{page}");
}

/// Too few runs decide nothing, whichever way the figures point.
#[test]
fn one_run_each_is_no_answer_of_a_threshold() {
    for factor in [0.5, 1.0, 2.0] {
        let sides = [repeats("before", &[1.0]), repeats("after", &[factor])];
        let found = compare(&sides, &with_threshold(5.0, &["throughput", "mean"]));
        let bases = ["throughput", "mean"].map(|metric| row(&found, metric).basis);
        assert_eq!(bases, [Basis::WithinRuns, Basis::Rounding]);
        assert_eq!((found.outcome(), found.beyond().count()), (Some(Outcome::Undetermined), 0));
        let page = shown_at("text", &found, 1000);
        assert!(page.contains("threshold: undetermined: throughput is of one run each"), "{page}");
        assert!(!page.contains("threshold: passed") && !page.contains("regression"), "{page}");
        let json: Value = serde_json::from_str(&shown("json", &found)).unwrap();
        assert_eq!(json["threshold"]["checks"][0]["why"], "one_run_each");
    }
    let sides = [repeats("before", &[1.0]), repeats("after", &NEAR)];
    let found = compare(&sides, &with_threshold(15.0, &[]));
    assert_eq!(found.outcome(), Some(Outcome::Passed), "repeats of one side tell");
}

/// A record that somebody changed is as good as another tool's figures that can't be right.
#[test]
fn a_changed_record_is_not_comparable() {
    let mut sides = [repeats("before", &NEAR), repeats("after", &NEAR)];
    sides[1].runs[2] = runs(host(), "after/2.json", |record| {
        scale(record, NEAR[2]);
        record["content_sha256"] = "0".repeat(64).into();
    })
    .remove(0);
    let found = compare(&sides, &with_threshold(5.0, &[]));
    assert!(found.pairs[0].rows.iter().all(|row| row.verdict == Verdict::NotComparable));
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 1000);
    let note = "Not comparable: nothing is concluded from the figures of after/2.json: its content";
    assert!(page.starts_with(note) && page.contains("not comparable"), "{page}");
    assert_eq!(shown("json", &found).matches("\"ratio\": null").count(), found.pairs[0].rows.len());
    assert!(!shown("csv", &found).contains("'-"));
}

/// A table for programs has the ends of an interval where the page has them.
#[test]
fn ends_that_the_page_does_not_print_are_in_no_table() {
    let sides = [repeats("before", &[1.0, 0.1]), repeats("after", &[1.0, 3.0])];
    let found = compare(&sides, &Options::default());
    assert!(row(&found, "throughput").high > 10.0 * row(&found, "throughput").low);
    let page = shown_at("text", &found, 1000);
    let line = page.lines().find(|line| line.trim_start().starts_with("throughput")).unwrap();
    assert!(!line.contains(" to "), "{line}");
    let csv = shown("csv", &found);
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    for row in rows.records().map(Result::unwrap) {
        assert_eq!((&row[at("low")], &row[at("high")]), ("", ""), "{row:?}");
    }
}

#[test]
fn a_run_far_from_the_others_is_named() {
    let sides = [repeats("before", &NEAR), repeats("after", &[1.0, 1.01, 0.6, 0.99, 1.0])];
    let page = shown_at("text", &compare(&sides, &Options::default()), 200);
    let note =
        "note: after: outlier after/2.json: throughput 572 MiB/s, median of the 5 runs 954 MiB/s";
    assert!(page.contains(note), "{page}");
    assert_eq!(page.matches("outlier").count(), 1, "{page}");
}

/// A rate beside other programs is not that of what is compared alone.
#[test]
fn runs_beside_other_programs_are_named_with_the_worst() {
    let mut sides = [repeats("before", &NEAR), repeats("after", &NEAR)];
    for (nth, device_bytes) in [(1, 4_000_000_000_u64), (3, 100_000_000_000)] {
        let kind = WarningKind::OtherTraffic {
            device: "nvme0n1".to_owned(),
            direction: "read".to_owned(),
            ours_bytes: 1_000_000_000,
            device_bytes,
        };
        let job = host()["jobs"][0]["name"].as_str().map(str::to_owned);
        let warning = Warning { job, text: kind.to_string(), kind };
        sides[1].runs[nth] = runs(host(), "after/other.json", |record| {
            scale(record, NEAR[nth]);
            record["warnings"] = serde_json::to_value([warning]).unwrap();
        })
        .remove(0);
    }
    let page = shown_at("text", &compare(&sides, &Options::default()), 1000);
    let note = "note: after: disturbed in 2 of 5 runs; at worst, other programs moved ";
    assert!(page.contains(note) && !page.contains("before: disturbed"), "{page}");
    assert!(page.contains("noise (disturbed)"), "{page}");

    // Half as fast beside others is no regression, and the page says so first.
    sides[0] = repeats("before", &NEAR.map(|near| near * 2.0));
    let found = compare(&sides, &with_threshold(5.0, &["throughput"]));
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 1000);
    assert!(page.contains("slower (disturbed)") && !page.contains("BEYOND"), "{page}");
    let words = "threshold: undetermined: disturbed, others had a part in throughput; repeat";
    assert!(page.contains(words), "{page}");
    let html = shown_at("html", &found, 1000);
    assert!(
        html.contains("Disturbed in 1 load")
            && html.contains("baseline: none; other: disturbed in 2")
    );
    for (format, page) in ["text", "markdown", "html"].map(|one| (one, shown_at(one, &found, 1000)))
    {
        let (first, verdict) = (page.find("Disturbed in 1 load: "), page.find("(disturbed)"));
        assert!(first.is_some() && first < verdict, "{format}: {page}");
        assert!(page.contains("(after disturbed in 2 of 5 runs; at worst"), "{format}: {page}");
    }
    assert!(!html.contains("Nothing that is recorded"));
    // Runs in turns meet a load on both sides.
    let in_turns = Options { in_turns: true, ..with_threshold(5.0, &["throughput"]) };
    assert!(compare(&sides, &in_turns).beyond().next().is_some());
    // Where both were disturbed, a difference may be theirs too.
    sides[0].runs[0] = sides[1].runs[1].clone();
    let found = compare(&sides, &with_threshold(5.0, &["throughput"]));
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 1000);
    assert!(page.contains(words) && !page.contains("regression"), "{page}");
    sides[1] = sides[0].clone();
    let found = compare(&sides, &with_threshold(50.0, &["throughput"]));
    assert_eq!(found.outcome(), Some(Outcome::Undetermined), "no pass either");
}

/// No warning of others is no knowledge in a run that was too short to count them.
#[test]
fn runs_of_which_the_work_of_others_is_unknown_say_so() {
    let mut sides = [repeats("before", &NEAR), repeats("after", &NEAR)];
    let known = shown_at("text", &compare(&sides, &Options::default()), 1000);
    assert!(!known.contains("thers unknown"), "{known}");
    sides[1].runs[2] = runs(host(), "after/short.json", |record| {
        scale(record, NEAR[2]);
        record["jobs"][0]["others_cpu_unknown"] = "the run was too short".into();
    })
    .remove(0);
    let found = compare(&sides, &Options::default());
    let json: serde_json::Value = serde_json::from_str(&shown_at("json", &found, 1000)).unwrap();
    assert_eq!(
        json["pairs"][0]["others_unknown"],
        serde_json::json!([null, "unknown in 1 of 5 runs"])
    );
    let page = shown_at("text", &found, 1000);
    assert!(page.contains("Others unknown in 1 load: their use of the CPUs was not"), "{page}");
    assert!(!page.contains("(disturbed)"), "{page}");
    let html = shown_at("html", &found, 1000);
    assert!(html.contains("baseline: none; other: unknown in 1 of 5 runs"), "{html}");
}

/// An exit code rests on these ends, however far apart they are.
#[test]
fn an_interval_that_decides_is_printed() {
    let sides = [repeats("before", &[1.0, 2.0]), repeats("after", &[0.001, 0.002])];
    let found = compare(&sides, &with_threshold(5.0, &["throughput"]));
    let row = row(&found, "throughput");
    assert!(row.high > 10.0 * row.low && row.high < 0.95, "{row:?}");
    let page = shown_at("text", &found, 1000);
    assert!(page.contains("regression: ") && !page.contains("interval -"), "{page}");
}

/// A percentile that a side's runs lack, for they had too few I/Os.
#[test]
fn a_metric_that_some_runs_lack_says_how_many_have_it() {
    let wide = [0.6, 1.0, 1.6, 1.1];
    let mut sides = [repeats("before", &wide), repeats("after", &wide)];
    for run in sides.iter_mut().flat_map(|side| &mut side.runs[..2]) {
        run.figures.remove("p99.9");
        run.latency = None;
    }
    let found = compare(&sides, &Options::default());
    assert_eq!(row(&found, "p99.9").runs_needed, None);
    let page = shown_at("text", &found, 1000);
    let line = |name: &str| page.lines().find(|line| line.trim().starts_with(name)).unwrap();
    let short = "not enough runs: only 2 of 4 and 2 of 4 have it; longer runs needed";
    assert!(line("p99.9 ").ends_with(short), "{page}");
    assert!(line("throughput ").contains("not enough runs: about "), "{page}");
    assert!(row(&found, "throughput").runs_needed.unwrap() > 4);
    let few = [repeats("before", &wide[..2]), repeats("after", &wide[..2])];
    let html = shown_at("html", &compare(&few, &Options::default()), 1000);
    assert!(html.contains("-: no interval is shown, since"), "{html}");
    let known = shown_at("html", &found, 1000);
    assert!(!known.contains("-: no interval is shown, since"), "{known}");
    // Far apart or not: the runs that lack it may be those that would have had the worst.
    let mut apart = [repeats("before", &NEAR), repeats("after", &times(0.5))];
    apart[0].runs[0].figures.remove("p99.9");
    apart[0].runs[0].latency = None;
    let found = compare(&apart, &with_threshold(5.0, &["p99.9"]));
    assert_eq!(row(&found, "p99.9").verdict, Verdict::NotEnoughRuns);
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let csv = shown("csv", &found);
    let line = csv.lines().find(|line| line.contains(",p99.9,")).unwrap();
    assert!(line.contains(",p99.9,,,,,,"), "no figure, no dash: {line}");
}

/// The doubts of a report about the figures of a side stand in every format; those of both sides
/// and all loads once.
#[test]
fn doubts_about_a_side_stand_in_every_format() {
    let from = |name: &str, source: &str, seconds: u64| {
        let run = |nth: usize| {
            runs(host(), &format!("{name}/{nth}.json"), |record| {
                scale(record, 1.0);
                record["jobs"][0]["proof"]["verdict"]["source"] = source.into();
                if seconds == 0 {
                    let kind = WarningKind::RunTooShort {
                        elapsed_ns: 300_000_000,
                        ios: 400,
                        of_files: false,
                        of_bytes: false,
                        bytes_of: None,
                    };
                    let warning = Warning { job: None, text: kind.to_string(), kind };
                    record["warnings"] = serde_json::to_value([warning]).unwrap();
                }
            })
        };
        side(name, (0..2).flat_map(run).collect())
    };
    let said = |sides: [Side; 2], words: &[&str], names: [&[&str]; 2]| {
        let found = compare(&sides, &Options::default());
        for format in ["text", "html", "markdown", "csv"] {
            let page = shown_at(format, &found, 1000);
            for words in words {
                assert!(page.contains(words), "{format}: {words}: {page}");
                let once = ["text", "markdown"].contains(&format);
                assert!(!once || page.matches(words).count() == 1, "{format}: {page}");
            }
        }
        let json: Value = serde_json::from_str(&shown("json", &found)).unwrap();
        for (nth, names) in names.into_iter().enumerate() {
            let all = json["pairs"][0]["doubts"][nth].as_array().unwrap();
            let all: Vec<&str> = all.iter().map(|one| one["doubt"].as_str().unwrap()).collect();
            assert_eq!(all, names);
        }
    };
    let cache = "The rate is not that of storage: the page cache served the loads";
    let not: &[&str] = &["not_storage"];
    let both = format!("both sides: {cache}");
    let sides = || [from("before", "page_cache", 1), from("after", "page_cache", 1)];
    said(sides(), &[&both], [not, not]);
    let holes = "The rate is not that of storage: no device holds the bytes";
    let words = [format!("before: {cache}"), format!("after: {holes}")];
    let sides = [from("before", "page_cache", 1), from("after", "holes", 1)];
    said(sides, &[&words[0], &words[1]], [not, not]);
    let short = "after: The job was too short for its rate or percentiles";
    said(
        [from("before", "storage", 1), from("after", "storage", 0)],
        &[short],
        [&[], &["too_short"]],
    );
    // A run of two.
    let mut sides = [from("before", "storage", 1), from("after", "storage", 1)];
    sides[1].runs[1].standing = vec![("not_storage", cache.to_owned())];
    let part = format!("after: {cache} (in 1 of 2 runs)");
    said(sides, &[&part], [&[], not]);
}

#[test]
fn a_faster_side_is_never_a_regression() {
    let sides = [repeats("before", &NEAR), repeats("after", &times(2.0))];
    let all = ["throughput", "iops", "mean", "p50", "p99", "p99.9", "cpu"];
    let found = compare(&sides, &with_threshold(1.0, &all));
    assert_eq!(found.beyond().count(), 0);
    assert!(found.pairs[0].rows.iter().all(|row| row.verdict == Verdict::Better));
}

#[test]
fn one_run_each_is_noise_or_not_enough() {
    let alike = compare(&[repeats("a", &[1.0]), repeats("b", &[1.01])], &Options::default());
    assert_eq!(row(&alike, "throughput").basis, Basis::WithinRuns);
    assert_eq!(row(&alike, "throughput").verdict, Verdict::Noise);
    let far = compare(&[repeats("a", &[1.0]), repeats("b", &[2.0])], &Options::default());
    assert_eq!(row(&far, "throughput").verdict, Verdict::NotEnoughRuns);
    assert_eq!(row(&far, "p99.9").basis, Basis::Rounding);
    assert_eq!(row(&far, "p99.9").verdict, Verdict::NotEnoughRuns);
}

#[test]
fn one_run_against_repeats_has_a_wider_interval() {
    let one = compare(&[repeats("a", &NEAR), repeats("b", &[0.9])], &Options::default());
    let five = compare(&[repeats("a", &NEAR), repeats("b", &times(0.9))], &Options::default());
    let (one, five) = (row(&one, "throughput"), row(&five, "throughput"));
    assert_eq!((one.basis, one.verdict), (Basis::OneAgainstRepeats, Verdict::Worse));
    assert!(one.high - one.low > 1.5 * (five.high - five.low), "{one:?} {five:?}");
    let back = compare(&[repeats("b", &[0.9]), repeats("a", &NEAR)], &Options::default());
    assert!((row(&back, "throughput").low * one.high - 1.0).abs() < 1e-9);
}

#[test]
fn turns_take_drift_out() {
    let drift = [1.0, 0.9, 0.8, 0.7, 0.6];
    let sides = [repeats("a", &drift), repeats("b", &drift.map(|x| x * 1.05))];
    let apart = compare(&sides, &Options::default());
    assert_eq!(row(&apart, "throughput").verdict, Verdict::NotEnoughRuns);
    let turns = compare(&sides, &Options { in_turns: true, ..Options::default() });
    assert_eq!(row(&turns, "throughput").basis, Basis::Turns);
    assert_eq!(row(&turns, "throughput").verdict, Verdict::Better);
}

#[test]
fn ranks_speak_up_where_one_run_carries_a_difference() {
    let found = compare(&[repeats("a", &NEAR), repeats("b", &times(0.9))], &Options::default());
    assert!(row(&found, "throughput").rank_p.unwrap() < 0.01);
    let few = [repeats("a", &[1.0, 1.01, 0.99]), repeats("b", &[0.5, 0.51, 0.49])];
    let few = compare(&few, &Options::default());
    assert_eq!(row(&few, "throughput").rank_p, None, "three against three can't tell");
}

/// Changes of a record, each with the flag that it is refused for.
type Change = (&'static str, fn(&mut Value));

const CHANGES: &[Change] = &[
    ("ended", |r| r["jobs"][0]["ended"] = "interrupted".into()),
    ("ended", |r| r["jobs"][0]["failed"] = 3.into()),
    ("bs", |r| r["plan"]["jobs"][0]["blocks"][0]["max_bytes"] = 131_072.into()),
    ("threads", |r| r["plan"]["jobs"][0]["threads"] = 2.into()),
    ("depth", |r| r["plan"]["jobs"][0]["depth"] = 64.into()),
    ("engine", |r| r["jobs"][0]["engine"][0]["got"] = "psync".into()),
    ("order", |r| {
        r["plan"]["jobs"][0]["order"]["distribution"] =
            serde_json::json!({"kind": "zipf", "theta": 1.2});
    }),
    ("path", |r| r["plan"]["jobs"][0]["path"]["choice"]["got"] = "mapped".into()),
    ("path", |r| r["jobs"][0]["proof"]["verdict"]["route"]["kind"] = "host_memory".into()),
    ("cache", |r| r["jobs"][0]["proof"]["verdict"]["source"] = "page_cache".into()),
    ("direct", |r| r["jobs"][0]["direct_got"] = "buffered".into()),
    ("verify", |r| r["plan"]["jobs"][0]["verify"] = "inline".into()),
    ("inject", |r| r["plan"]["jobs"][0]["inject"] = "eio=1%".into()),
    ("filesystem", |r| r["storage"][0]["mount"]["fs_type"] = "xfs".into()),
    ("device", |r| r["storage"][0]["device"]["model"] = "another drive".into()),
    ("cpu", |r| r["host"]["cpu"]["model"] = "another processor".into()),
    ("cpu", |r| {
        let bytes = r["host"]["memory"]["usable_bytes"].as_u64().unwrap();
        r["host"]["memory"]["usable_bytes"] = (bytes / 100 * 103).into();
    }),
    ("kernel", |r| r["host"]["kernel"]["release"] = "4.18.0-99".into()),
    ("fdatasync", |r| r["plan"]["jobs"][0]["flush"] = flush(1, true)),
    ("fsync", |r| r["plan"]["jobs"][0]["flush"] = flush(8, false)),
    ("thinktime", |r| {
        r["plan"]["jobs"][0]["think"] =
            serde_json::json!({"pause_ns": 1_000_000, "spin_ns": 0, "every_ios": 1});
    }),
    ("nrfiles", |r| r["plan"]["jobs"][0]["files_per_thread"] = 2.into()),
    ("ranks", |r| r["ranks"] = ranks(2, 1)),
    ("hosts", |r| r["ranks"] = ranks(1, 2)),
];

fn flush(every_ios: u64, data_only: bool) -> Value {
    let plan = gpuio_record::FlushPlan {
        every_ios: Some(every_ios),
        data_only,
        at_end: false,
        at_close: false,
    };
    serde_json::to_value(plan).unwrap()
}

/// The part that several ranks add to a record.
fn ranks(ranks: u32, hosts: usize) -> Value {
    let hosts = vec![gpuio_record::RankHost::default(); hosts];
    serde_json::json!({
        "ranks": ranks, "launcher": "", "library": "", "hosts": hosts, "groups": [], "rows": [],
    })
}

#[test]
fn what_decides_the_figures_is_refused_unless_allowed() {
    for (nth, (flag, change)) in CHANGES.iter().enumerate() {
        let changed = side("b", runs(host(), "b.json", change));
        let sides = [side("a", runs(host(), "a.json", |_| ())), changed];
        let found = compare(&sides, &Options::default());
        let flags: Vec<_> = found.refused().map(|(_, difference)| difference.despite).collect();
        assert_eq!(flags, [Some(*flag)], "change {nth}: {:#?}", found.pairs);
        let despite = vec![(*flag).to_owned()];
        let properties = compare(&sides, &Options { despite, ..Options::default() });
        assert_eq!(properties.refused().count(), 0, "change {nth}");
        let relevant =
            properties.pairs[0].differences.iter().filter(|one| one.despite.is_some()).count();
        assert_eq!(relevant, 1, "still shown: change {nth}");
    }
}

/// Runs of cuFile's paths with other settings are refused; without cuFile any settings will do.
#[test]
fn settings_of_cufile_are_a_difference_of_jobs_that_use_it() {
    fn with(r: &mut serde_json::Value, polls: &str) {
        r["plan"]["jobs"][0]["register_buffer"] = true.into();
        r["cufile"] = serde_json::json!({
            "library": "libcufile.so.0", "stand_in": false, "nvidia_fs": null, "version": null,
            "compat_allowed": null, "poll_mode": null, "poll_threshold_kib": null,
            "config_from": null, "config": {"properties.use_poll_mode": polls},
        });
    }
    let polling = || side("b", runs(host(), "b.json", |r| with(r, "true")));
    let flags = |one: Side| {
        let found = compare(&[one, polling()], &Options::default());
        found.refused().map(|(_, difference)| difference.despite).collect::<Vec<_>>()
    };
    assert_eq!(flags(side("a", runs(host(), "a.json", |r| with(r, "false")))), [Some("cufile")]);
    assert!(flags(side("a", runs(host(), "a.json", |r| with(r, "true")))).is_empty());
    assert!(flags(side("a", runs(host(), "a.json", |_| ()))).is_empty());
}

#[test]
fn every_flag_has_a_change_that_it_is_for() {
    let elsewhere = ["software-gpu", "gpu", "load", "cufile"];
    for aspect in ASPECTS.iter().filter(|aspect| aspect.kind != Kind::Note) {
        let tried = CHANGES.iter().any(|(flag, _)| *flag == aspect.flag || *flag == aspect.key);
        assert!(tried || elsewhere.contains(&aspect.flag), "{}", aspect.flag);
    }
}

/// A copy under another name is no second run, wherever it stands; an edited one is.
#[test]
fn a_copy_of_a_run_counts_once() {
    let copy =
        |from: &str, seed: u64| runs(host(), from, |r| r["plan"]["jobs"][0]["seed"] = seed.into());
    let mut sides = vec![side("a", copy("a.json", 1)), side("b", copy("b.json", 2))];
    sides[0].runs.extend(copy("of-a.json", 1));
    sides.push(side("c", copy("b.json", 2)));
    count_once(&mut sides);
    assert_eq!(sides.iter().map(|side| side.runs.len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(sides[0].notes, ["of-a.json: the same run as a.json, counted once"]);
    assert_eq!(sides[1].notes, ["b.json: the same run as b.json, counted once"]);
}

/// The record has no name of the machine: two of one model differ in their boot.
#[test]
fn another_boot_or_machine_is_noted() {
    let with = |from: &str, boot: Value| side(from, runs(host(), from, |r| r["boot"] = boot));
    let differences = |a: Value, b: Value| {
        let found = compare(&[with("a.json", a), with("b.json", b)], &Options::default());
        assert_eq!(found.refused().count(), 0);
        let all = found.pairs[0].differences.iter();
        all.map(|one| (one.baseline.clone(), one.other.clone())).collect::<Vec<_>>()
    };
    assert_eq!(differences("11".into(), "11".into()), []);
    assert_eq!(differences("11".into(), "22".into()), [("11".to_owned(), "22".to_owned())]);
    let unknown = ("11".to_owned(), "unknown".to_owned());
    assert_eq!(differences("11".into(), Value::Null), [unknown]);
}

/// A fact that was not requested on one side is not unknown.
#[test]
fn a_request_that_one_side_lacks_is_shown() {
    let limit = runs(host(), "b.json", |r| r["plan"]["jobs"][0]["max_latency_ns"] = 7.into());
    let sides = [side("a", runs(host(), "a.json", |_| ())), side("b", limit)];
    let found = compare(&sides, &Options::default());
    let all = found.pairs[0].differences.iter();
    let all: Vec<_> = all.map(|one| (&*one.aspect, &*one.baseline, &*one.other)).collect();
    assert_eq!(all, [("plan.max_latency_ns", "none", "7ns")]);
}

/// Beside another boot, what no restart changes says that it is another machine.
#[test]
fn another_machine_is_called_one_by_what_differs() {
    let boot = |change: fn(&mut Value)| {
        let other = runs(host(), "b.json", |r| {
            r["boot"] = "22".into();
            change(r);
        });
        let one = runs(host(), "a.json", |r| r["boot"] = "11".into());
        let found = compare(&[side("a", one), side("b", other)], &Options::default());
        let boot = found.pairs[0].differences.iter().find(|one| one.aspect == "boot");
        boot.map(|one| one.what.to_string())
    };
    let said = |what: &str| Some(format!("boot id ({what})"));
    assert_eq!(boot(|_| ()), said("a restart, or another machine"));
    let kernel = said("a restart with another kernel, or another machine");
    assert_eq!(boot(|r| r["host"]["kernel"]["release"] = "6.99.0".into()), kernel);
    let processors = said("another machine: other processors");
    assert_eq!(boot(|r| r["host"]["cpu"]["model"] = "another".into()), processors);
}

/// A fact that no aspect names is found by its place, and noted; one that changes from run to run
/// on both sides is not.
#[test]
fn every_fact_that_differs_is_listed() {
    let differs = |change: fn(&mut Value)| {
        let sides =
            [side("a", runs(host(), "a.json", |_| ())), side("b", runs(host(), "b.json", change))];
        let found = compare(&sides, &Options::default());
        assert_eq!(found.refused().count(), 0, "{:#?}", found.pairs[0].differences);
        let of = |one: &gpuio_report::compare::Difference| {
            format!("{}: {} | {}", one.what, one.baseline, one.other)
        };
        found.pairs[0].differences.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(
        differs(|r| {
            let bytes = r["host"]["memory"]["usable_bytes"].as_u64().unwrap();
            r["host"]["memory"]["usable_bytes"] = (bytes / 100 * 101).into();
        }),
        [""; 0],
        "the kernel's own part of memory"
    );
    type Change = (fn(&mut Value), &'static str);
    let changes: [Change; 7] = [
        (
            |r| r["storage"][0]["device"]["read_ahead_bytes"] = 4_194_304.into(),
            "storage.device.read_ahead_bytes: 8M | 4M",
        ),
        (
            |r| r["storage"][0]["device"]["scheduler"] = "none".into(),
            "storage.device.scheduler: mq-deadline | none",
        ),
        (
            |r| r["storage"][0]["mount"]["options"] = serde_json::json!(["rw", "noatime"]),
            "storage.mount.options: rw,relatime | rw,noatime",
        ),
        (|r| r["plan"]["jobs"][0]["seed"] = 7.into(), "plan.seed: 1 | 7"),
        (|r| r["plan"]["jobs"][0]["invalidate"] = true.into(), "plan.invalidate: false | true"),
        (
            |r| r["plan"]["jobs"][0]["workers"][0]["cpus"] = serde_json::json!([0, 1]),
            "plan.workers.cpus: none | 0,1",
        ),
        (
            |r| r["host"]["kernel"]["transparent_huge_pages"] = "always".into(),
            "host.kernel.transparent_huge_pages: madvise | always",
        ),
    ];
    for (change, line) in changes {
        assert_eq!(differs(change), [line]);
    }
    assert_eq!(differs(|r| r["host"]["memory"]["available_bytes"] = 1.into()), [""; 0]);
    let each = |name: &str, from: u64| {
        let one = |nth: u64| {
            runs(host(), &format!("{name}{nth}.json"), |r| {
                r["storage"][0]["device"]["queue_requests"] = (from + nth).into();
            })
        };
        side(name, (0..2).flat_map(one).collect())
    };
    let found = compare(&[each("a", 10), each("b", 20)], &Options::default());
    assert_eq!(found.pairs[0].differences, [], "a value that never stays");
}

#[test]
fn a_software_gpu_never_stands_beside_hardware() {
    let hardware = |record: &mut Value| {
        record["plan"]["software_gpu"] = false.into();
        record["plan"]["jobs"][0]["gpus"][0]["software"] = false.into();
    };
    let sides = [
        side("hardware", runs(software(), "a.json", hardware)),
        side("software", runs(software(), "b.json", |_| ())),
    ];
    let found = compare(&sides, &Options::default());
    let flags: Vec<_> = found.refused().map(|(_, difference)| difference.despite).collect();
    assert_eq!(flags, [Some("software-gpu")]);
    let host = [side("host", runs(host(), "a.json", |_| ())), sides[1].clone()];
    let found = compare(&host, &Options::default());
    assert!(found.refused().any(|(_, difference)| difference.aspect == "software-gpu"));
}

/// Figures that are not of hardware are called so first, whatever the format.
#[test]
fn a_comparison_of_software_gpus_begins_with_that() {
    let sides = ["a", "b"].map(|name| side(name, runs(software(), name, |_| ())));
    let found = compare(&sides, &Options::default());
    for (format, begins) in
        [("text", "Software GPU: a and b used no"), ("markdown", "**Software GPU: a and b used no")]
    {
        let page = shown_at(format, &found, 1000);
        assert!(page.trim_start().starts_with(begins), "{format}: {page}");
    }
    let page = shown_at("html", &found, 1000);
    let (first, table) = (page.find("Software GPU: a and b"), page.find("Throughput of"));
    assert!(first.is_some() && first < table, "{page}");
    assert!(shown_at("json", &found, 1000).contains("\"software_gpu\": true"));
    let host = side("host", runs(host(), "a.json", |_| ()));
    let page = shown_at("text", &compare(&[host.clone(), host], &Options::default()), 1000);
    assert!(!page.contains("Software GPU"), "{page}");
}

#[test]
fn another_model_of_gpu_is_refused() {
    let other = |record: &mut Value| record["plan"]["jobs"][0]["gpus"][0]["name"] = "GPU X".into();
    let sides = [
        side("a", runs(software(), "a.json", |_| ())),
        side("b", runs(software(), "b.json", other)),
    ];
    let found = compare(&sides, &Options::default());
    let flags: Vec<_> = found.refused().map(|(_, difference)| difference.despite).collect();
    assert_eq!(flags, [Some("gpu")]);
}

#[test]
fn repeats_that_disagree_among_themselves_are_refused() {
    let mut mixed = runs(host(), "b1.json", |_| ());
    mixed.extend(runs(host(), "b2.json", |record| {
        record["jobs"][0]["proof"]["verdict"]["source"] = "page_cache".into();
    }));
    let sides = [repeats("a", &[1.0]), side("b", mixed)];
    let found = compare(&sides, &Options::default());
    let (_, difference) = found.refused().next().unwrap();
    assert_eq!(difference.other, "page cache or storage");
}

#[test]
fn names_may_differ_where_the_load_does_not() {
    let renamed = |record: &mut Value| {
        record["plan"]["jobs"][0]["name"] = "other".into();
        record["jobs"][0]["name"] = "other".into();
    };
    let sides = [repeats("a", &[1.0]), side("b", runs(host(), "b.json", renamed))];
    let found = compare(&sides, &Options::default());
    assert_eq!(found.pairs.len(), 1);
    assert!(found.alone.is_empty() && found.pairs[0].other.starts_with("other"));
}

/// Two loads of one name and one block size, of which one has hot blocks and a smaller region.
#[test]
fn loads_of_one_side_are_named_with_what_tells_them_apart() {
    let renamed = |record: &mut Value| {
        let plan = &mut record["plan"]["jobs"][0];
        plan["order"]["distribution"] = serde_json::json!({ "kind": "zipf", "theta": 1.2 });
        plan["size_bytes"] = (1 << 20).into();
    };
    let both = |name: &str| {
        let mut both = runs(host(), &format!("{name}/0.json"), |_| {});
        both.extend(runs(host(), &format!("{name}/1.json"), renamed));
        side(name, both)
    };
    let found = compare(&[both("a"), both("b")], &Options::default());
    let labels: Vec<&str> = found.pairs.iter().map(|pair| pair.baseline.as_str()).collect();
    assert_eq!(
        labels,
        [
            "read-64K randread 64K 1×4 host order=uniform size=8M",
            "read-64K randread 64K 1×4 host order=zipf:1.2 size=1M"
        ]
    );
    // One load alone needs none of it.
    let found = compare(&[repeats("a", &[1.0]), both("b")], &Options::default());
    assert_eq!(found.pairs[0].baseline, "read-64K randread 64K 1×4 host");
}

/// A sweep over threads and engine: four points, two repeats each.
fn swept() -> Vec<gpuio_report::compare::Run> {
    let mut all = Vec::new();
    for (threads, engine, factor) in
        [(1, "psync", 1.0), (1, "io_uring", 1.5), (2, "psync", 1.9), (2, "io_uring", 2.0)]
    {
        for near in [0.99, 1.01] {
            let mut record = host();
            scale(&mut record, factor * near);
            record["plan"]["jobs"][0]["threads"] = threads.into();
            record["jobs"][0]["engine"][0]["got"] = engine.into();
            let at = [
                ("threads".to_owned(), threads.to_string()),
                ("engine".to_owned(), engine.to_owned()),
            ];
            let record = serde_json::from_value(record).unwrap();
            all.extend(of_record::runs(&record, &format!("{threads}-{engine}-{near}.json"), &at));
        }
    }
    all
}

#[test]
fn an_axis_of_a_sweep_is_compared_point_by_point() {
    let axis = Axis::parse("engine=psync,io_uring").unwrap();
    let sides = split(&swept(), &axis).unwrap();
    let found = compare(&sides, &Options { axis: Some(axis), ..Options::default() });
    assert_eq!(found.refused().count(), 0, "{:#?}", found.pairs);
    let ratios: Vec<String> =
        found.pairs.iter().map(|pair| format!("{:.2}", pair.rows[0].ratio)).collect();
    assert_eq!(ratios, ["1.50", "1.05"]);
    assert_eq!(found.pairs[0].runs, [2, 2]);
}

#[test]
fn an_axis_that_is_not_there_names_those_that_are() {
    let says = |text: &str, words: &str| {
        let axis = Axis::parse(text).unwrap();
        let error = split(&swept(), &axis).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    says("nosuch", "threads, engine");
    says("engine=psync,libaio", "engine=libaio; available: psync, io_uring");
    says("path", "all runs have path=host");
    assert!(Axis::parse("engine=psync").is_err() && Axis::parse("=a,b").is_err());
}

/// A post with a run of gdsio and a fio job of another rate, size and name.
fn post(name: &str, rates: [f64; 2]) -> Side {
    let [gdsio, fio] = rates;
    let text = format!(
        "$ gdsio -x 0 -I 0\nIoType: READ XferType: GPUD Threads: 4 DataSetSize: \
         4194304/1048576(KiB) IOSize: 1024(KiB) Throughput: {gdsio:.6} GiB/sec, \
         Avg_Latency: {:.6} usecs ops: 4096 total_time {:.6} secs\n$ fio {name}.fio\n{name}: \
         (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) \
         1024KiB-1024KiB, ioengine=libaio, iodepth=4\nfio-3.33\nStarting 1 process\n{name}: \
         (groupid=0, jobs=1): err= 0: pid=7: Thu Jan  1 00:00:00 2026\n  read: \
         IOPS={}, BW={}MiB/s (1MB/s)({}MiB/10000msec)\n",
        4.0 / gdsio * 1e6 / 1024.0,
        4.0 / gdsio,
        fio,
        fio,
        fio * 10.0,
    );
    let (_, output) = gpuio_report::foreign::read(&text).unwrap();
    let name = format!("{name}.txt");
    let runs = output.readings.iter().map(|one| of_reading::run(one, &name, &text)).collect();
    side(&name, runs)
}

#[test]
fn each_result_of_a_text_of_several_tools_is_paired_with_its_like() {
    let of = |side: &Side| -> Vec<String> {
        side.runs.iter().map(|run| run.tool.split(' ').next().unwrap().to_owned()).collect()
    };
    let sides = [post("before", [4.0, 3000.0]), post("after", [2.0, 1500.0])];
    assert_eq!(of(&sides[0]), ["gdsio", "fio"]);
    let found = compare(&sides, &Options::default());
    let labels: Vec<[&str; 2]> =
        found.pairs.iter().map(|pair| [&pair.baseline[..], &pair.other]).collect();
    assert_eq!(labels.len(), 2, "{labels:?}");
    for ([a, b], tool) in labels.into_iter().zip(["gdsio ", "fio "]) {
        assert!(a.starts_with(tool) && b.starts_with(tool), "{a} {b}");
    }
    assert!(found.alone.is_empty() && found.pairs.iter().all(|pair| pair.rows[0].ratio < 0.51));
    // One tool alone beside the post: its like, and the rest is named.
    let mut fio = post("again", [1.0, 3000.0]);
    fio.runs.remove(0);
    let found = compare(&[post("before", [4.0, 3000.0]), fio], &Options::default());
    assert_eq!(found.pairs.len(), 1);
    assert!((found.pairs[0].rows[0].ratio - 1.0).abs() < 0.01, "{:?}", found.pairs[0]);
    assert_eq!(found.alone.len(), 1);
    assert!(found.alone[0].what.starts_with("gdsio "), "{:?}", found.alone);
    // Where several could be the partner, that is the reason.
    let mut three = post("three", [4.0, 3000.0]);
    three.runs = ["x", "y"]
        .map(|job| {
            let mut run = three.runs[1].clone();
            run.job = Some(job.to_owned());
            run
        })
        .into();
    let mut one = three.clone();
    one.runs.truncate(1);
    one.runs[0].job = Some("z".to_owned());
    let page = shown_at("text", &compare(&[three, one], &Options::default()), 200);
    assert_eq!(page.matches("and none is its only match").count(), 3, "{page}");
}

/// `--output-format=normal,json` prints both forms of one run.
#[test]
fn a_run_in_two_forms_of_one_tool_counts_once() {
    let text = "j: (groupid=0, jobs=1): err= 0: pid=7: Thu Jan  1 00:00:00 2026\n  read: \
                IOPS=2000, BW=125MiB/s (131MB/s)(125MiB/1000msec)\n";
    let page = serde_json::json!({"fio version": "fio-3.33", "jobs": [{
        "jobname": "j", "groupid": 0, "error": 0, "job options": {"rw": "read", "bs": "64k"},
        "read": {"io_bytes": 131_072_000, "io_kbytes": 128_000, "bw_bytes": 131_072_000,
            "iops": 2000.0, "runtime": 1000, "total_ios": 2000},
        "write": {"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0},
    }]});
    let read = |text: String| gpuio_report::foreign::read(&text).unwrap().1;
    let both = read(format!("{text}{page}"));
    assert_eq!(both.readings.len(), 1, "{both:?}");
    assert!(both.skipped.iter().any(|one| one.why.contains("in another form")), "{both:?}");
    let other = read(format!("{}{page}", text.replace("125MiB/s", "250MiB/s")));
    assert_eq!(other.readings.len(), 2, "{other:?}");
}

fn gdsio(figure: &str) -> Side {
    // A rate that figures of one digit round up and down.
    let rate = figure.parse::<f64>().unwrap().max(1.5e-6) * 1024.0 * 1024.0 * 1024.0;
    gdsio_line(figure, 65_536.0 / rate * 1e6, 18311.0 * 65_536.0 / rate)
}

/// 18,311 I/Os of 64 KiB.
fn gdsio_line(figure: &str, latency_us: f64, seconds: f64) -> Side {
    let line = format!(
        "IoType: RANDREAD XferType: CPUONLY Threads: 1 DataSetSize: 1171904/8192(KiB) IOSize: \
         64(KiB) Throughput: {figure} GiB/sec, Avg_Latency: {latency_us:.6} usecs ops: 18311 \
         total_time {seconds:.6} secs"
    );
    let (_, output) = gpuio_report::foreign::read(&line).unwrap();
    side(
        figure,
        output.readings.iter().map(|one| of_reading::run(one, "gdsio.txt", figure)).collect(),
    )
}

#[test]
fn gdsio_s_digits_are_taken_for_what_they_are() {
    let found = compare(&[gdsio("0.000001"), gdsio("0.000002")], &Options::default());
    let coarse = row(&found, "throughput");
    assert_eq!(coarse.basis, Basis::Rounding);
    assert!((coarse.low - 1.0).abs() < 1e-9, "1.5 millionths over 1.5: {coarse:?}");
    assert!(coarse.high > 4.9, "2.5 over 0.5: {coarse:?}");
    let found = compare(&[gdsio("0.931323"), gdsio("0.931323")], &Options::default());
    assert_eq!(row(&found, "throughput").verdict, Verdict::NotEnoughRuns);
}

/// No side is called faster by figures that can't all be right: rate, time and data; latency, rate
/// and threads.
#[test]
fn a_result_that_contradicts_itself_gets_no_verdict() {
    let several = |figure, latency_us, seconds| {
        let mut side = gdsio_line(figure, latency_us, seconds);
        side.runs = vec![side.runs.remove(0); 3];
        side
    };
    let sound = || several("0.931323", 65.536, 1.2);
    let half = several("0.465661", 131.072, 2.4);
    assert_eq!(
        row(&compare(&[sound(), half], &Options::default()), "iops").verdict,
        Verdict::Worse
    );
    for (wrong, why) in [
        (several("9.313230", 65.536, 1.2), "Data / time is"),
        (several("0.931323", 6553.6, 1.2), "100.0 I/Os in flight"),
    ] {
        let found = compare(&[sound(), wrong], &with_threshold(5.0, &["throughput"]));
        assert!(found.pairs[0].rows.iter().all(|row| row.verdict == Verdict::NotComparable));
        assert_eq!(found.outcome(), Some(Outcome::Undetermined));
        let page = shown_at("text", &found, 200);
        assert!(page.contains("contradict each other") && page.contains(why), "{page}");
        assert!(!page.contains(".."), "{page}");
        assert!(!page.contains("faster") && !page.contains("slower"), "{page}");
    }
}

#[test]
fn what_a_tool_does_not_report_is_stated() {
    let despite = vec!["depth".to_owned()];
    let sides = [repeats("gpuio", &[1.0]), gdsio("0.931323")];
    let found = compare(&sides, &Options { despite, ..Options::default() });
    let unknown_properties = &found.pairs[0].unknown_properties;
    assert!(
        ["actual path", "kernel"].iter().all(|one| unknown_properties.iter().any(|it| it == one)),
        "{unknown_properties:?}"
    );
    assert!(found.pairs[0].rows.iter().all(|row| row.metric.word() != "p99"), "gdsio has none");
    assert!(found.pairs[0].unknown_of_both.is_empty(), "{:?}", found.pairs[0].unknown_of_both);

    // Two results of other tools lack the same: nothing says that they agree in it.
    let sides = [(); 2].map(|()| fio(serde_json::json!({}), |_| {}));
    let found = compare(&sides, &Options::default());
    assert!(found.pairs[0].unknown_properties.is_empty());
    for format in ["text", "markdown", "html"] {
        let page = shown_at(format, &found, 400);
        let line = page.lines().find(|line| line.contains("unknown for both sides"));
        let line = line.unwrap_or_else(|| panic!("{format}: {page}"));
        assert!(
            ["actual path", "source of the bytes", "kernel"].iter().all(|it| page.contains(it))
        );
        assert!(!line.contains("requested path"), "{line}");
    }
}

/// A load of 2000 IOPS, whose I/Os wait 100 µs for their slot.
fn paced(record: &mut Value, factor: f64) {
    scale(record, factor);
    record["plan"]["jobs"][0]["pacing"] =
        serde_json::json!({"bytes_per_s": null, "iops": 2000, "arrivals": "steady"});
    let read = &mut record["jobs"][0]["read"];
    read["iops"] = (2000.0 * factor).into();
    read["bytes_per_s"] = (2000.0 * factor * 65_536.0).into();
    let mut file = read["latency"]["total"].clone();
    file["p50_ns"] = 140_000.into();
    file["mean_ns"] = 162_144.0.into();
    read["latency"]["file"] = file.clone();
    read["latency"]["queue"] = file;
}

/// fio's JSON of the same load as one entry, with these options beside.
fn fio(more: Value, change: impl FnOnce(&mut Value)) -> Side {
    let mut options = serde_json::json!({
        "rw": "randread", "bs": "64k", "rate_iops": "2000", "direct": "1",
    });
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut job = serde_json::json!({
        "jobname": "read-64K", "groupid": 0, "error": 0, "job options": options,
        "job_runtime": 1000, "usr_cpu": 1.0, "sys_cpu": 1.0,
        "read": {
            "io_bytes": 131_072_000, "io_kbytes": 128_000, "bw_bytes": 131_072_000,
            "iops": 2000.0, "runtime": 1000, "total_ios": 2000, "lat_ns": {"mean": 150_000.0},
            "clat_ns": {"percentile": {"50.000000": 130_000}},
        },
        "write": {"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0},
    });
    change(&mut job);
    let page = serde_json::json!({"fio version": "fio-3.33", "jobs": [job]}).to_string();
    let mut found = side("fio", Vec::new());
    match gpuio_report::foreign::read(&page) {
        Ok((_, output)) => {
            let runs = output.readings.iter().map(|one| of_reading::run(one, "fio.json", &page));
            found.runs.extend(runs);
        }
        Err(error) => found.notes.push(error.to_string()),
    }
    found
}

/// A result of fio's whose figures can't all be right, as one entry or as one of two threads.
#[test]
fn a_result_of_fio_that_contradicts_itself_gets_no_verdict() {
    type Case = (fn(&mut Value), &'static str);
    let cases: [Case; 8] = [
        (|job| job["read"]["runtime"] = 10_000.into(), "Data / time is"),
        (|job| job["read"]["total_ios"] = 3000.into(), "3000 I/Os of 64K"),
        (|job| job["read"]["lat_ns"]["mean"] = 267.into(), "The mean is 267 ns, and latencies"),
        (|job| job["read"]["lat_ns"] = serde_json::json!({"mean": 9000}), "too low for p50"),
        (|job| job["read"]["clat_ns"]["percentile"]["50.000000"] = 10.into(), "p50 is 10 ns"),
        (|job| job["read"]["clat_ns"]["percentile"]["50.000000"] = 999_000.into(), "p50 is 999"),
        (|job| job["read"]["clat_ns"]["percentile"]["99.000000"] = 90_000.into(), "below p50"),
        (
            |job| {
                job["job options"]["bssplit"] = "64k/100".into();
                job["read"]["iops"] = 5000.into();
            },
            "I/Os / time are",
        ),
    ];
    let spans = |job: &mut Value| {
        job["read"]["lat_ns"] = serde_json::json!({"min": 51_000, "max": 900_000, "mean": 150_000});
        job["read"]["clat_ns"]["min"] = 50_000.into();
        job["read"]["clat_ns"]["max"] = 890_000.into();
    };
    let sound = || fio(serde_json::json!({}), spans);
    let found = compare(&[sound(), sound()], &Options::default());
    assert_ne!(row(&found, "throughput").verdict, Verdict::NotComparable);
    for (change, why) in cases {
        let wrong = fio(serde_json::json!({}), |job| {
            spans(job);
            change(job);
        });
        let options = Options { despite: vec!["all".to_owned()], ..Options::default() };
        let page = shown_at("text", &compare(&[sound(), wrong], &options), 200);
        assert!(page.contains("contradict each other") && page.contains(why), "{why}: {page}");
    }
    let entry = |runtime: u64, bytes: u64| {
        serde_json::json!({
            "jobname": "j", "groupid": 0, "error": 0,
            "job options": {"rw": "read", "bs": "64k", "numjobs": "2"},
            "read": {"io_bytes": bytes, "io_kbytes": bytes / 1024, "bw_bytes": 131_072_000,
                "iops": 2000.0, "runtime": runtime, "total_ios": bytes / 65_536},
            "write": {"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0},
        })
    };
    let doubted = |jobs: [Value; 2]| {
        let page = serde_json::json!({"fio version": "fio-3.33", "jobs": jobs}).to_string();
        let (_, output) = gpuio_report::foreign::read(&page).unwrap();
        !of_reading::run(&output.readings[0], "fio.json", &page).doubts.is_empty()
    };
    assert!(!doubted([entry(1000, 131_072_000), entry(2000, 262_144_000)]));
    assert!(doubted([entry(1000, 131_072_000), entry(20_000, 262_144_000)]));
}

/// fio's `error` is 0 where `continue_on_error` let errors pass.
#[test]
fn failed_and_dropped_ios_of_fio_are_refused() {
    let refused = |change: fn(&mut Value)| {
        let sides = [fio(serde_json::json!({}), |_| ()), fio(serde_json::json!({}), change)];
        let found = compare(&sides, &Options::default());
        let mut all = found.refused().map(|(_, it)| (it.aspect.clone(), it.other.clone()));
        all.next()
    };
    assert_eq!(refused(|_| ()), None);
    for (change, words) in [
        ((|job| job["total_err"] = 500.into()) as fn(&mut Value), "total_err is 500"),
        (|job| job["read"]["drop_ios"] = 5000.into(), "drop_ios is 5000"),
    ] {
        let (aspect, other) = refused(change).unwrap();
        assert!(aspect == "ended" && other.contains(words), "{aspect}: {other}");
    }
}

/// gpuio's latency of a paced load counts from when an I/O was due, fio's from submission.
#[test]
fn latencies_from_different_moments_get_no_verdict() {
    let options = || Options { despite: vec!["all".to_owned()], ..with_threshold(5.0, &["p50"]) };
    let with_leg = side("gpuio", runs(host(), "a.json", |r| paced(r, 1.0)));
    let found = compare(&[with_leg, fio(serde_json::json!({}), |_| ())], &options());
    for (metric, own) in [("p50", 140_000.0), ("mean", 162_144.0)] {
        assert!((row(&found, metric).baseline - own).abs() < 1.0, "{:?}", row(&found, metric));
    }
    // One run each, and not what is not comparable.
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 200);
    assert!(page.contains("undetermined: p50 is of one run each"), "{page}");
    let line = "differs: latencies count from: when an I/O was due | submission";
    assert!(page.contains(line) && page.contains("(the file leg)"), "{page}");

    let repeats = |name: &str, change: fn(&mut Value, f64)| {
        let one = |near: f64| runs(host(), &format!("{name}{near}"), |r| change(r, near));
        side(name, [0.999, 1.0, 1.001].into_iter().flat_map(one).collect())
    };
    let without_leg = repeats("gpuio", |r, near| {
        paced(r, near);
        r["jobs"][0]["read"]["latency"]["file"] = Value::Null;
    });
    let several = (0..3).flat_map(|_| fio(serde_json::json!({}), |_| ()).runs).collect();
    let found = compare(&[without_leg, side("fio", several)], &options());
    assert_eq!(row(&found, "p50").verdict, Verdict::NotComparable);
    assert_eq!(row(&found, "mean").verdict, Verdict::NotComparable);
    assert_eq!(found.outcome(), Some(Outcome::Undetermined));
    let page = shown_at("text", &found, 200);
    assert!(page.contains("threshold: undetermined, p50 is not comparable: "), "{page}");
    assert!(!page.contains("no result is certainly worse"), "{page}");
    let json: Value = serde_json::from_str(&shown("json", &found)).unwrap();
    assert!(json.to_string().contains("\"verdict\":\"not_comparable\""), "{json}");
    // Two paced records count from the same moment.
    let same = [repeats("a", paced), repeats("b", |r, near| paced(r, 0.9 * near))];
    assert_eq!(row(&compare(&same, &options()), "p50").verdict, Verdict::Worse);
}

#[test]
fn a_rate_that_both_kept_is_no_difference() {
    let at = |name: &str, factors: [f64; 3]| {
        let one = |factor: f64| runs(host(), &format!("{name}{factor}"), |r| paced(r, factor));
        side(name, factors.into_iter().flat_map(one).collect())
    };
    let kept = || at("kept", [0.999_9, 1.0, 1.000_1]);
    let near = compare(&[kept(), at("near", [0.998_9, 0.999, 0.999_1])], &Options::default());
    for metric in ["throughput", "iops"] {
        assert_eq!(row(&near, metric).verdict, Verdict::RequestedRate, "{metric}");
    }
    assert!(shown("text", &near).contains("same (the requested rate)"));
    let missed = compare(&[kept(), at("missed", [0.949, 0.95, 0.951])], &Options::default());
    assert_eq!(row(&missed, "throughput").verdict, Verdict::Worse);
    // Its options have fio's rate, which is another load where it is another rate.
    let own = || side("gpuio", runs(host(), "a.json", |r| paced(r, 1.0)));
    let refused = |rate: &str| {
        let found = compare(
            &[own(), fio(serde_json::json!({"rate_iops": rate}), |_| ())],
            &Options::default(),
        );
        let rate = found.refused().any(|(_, difference)| difference.aspect == "rate");
        (rate, row(&found, "iops").verdict)
    };
    assert_eq!(refused("2000"), (false, Verdict::RequestedRate));
    assert!(refused("3000").0);
}

/// Options of fio are compared as keys of job files; one that these do not have is named.
#[test]
fn options_of_fio_make_its_load() {
    let found = |more: Value| {
        let own = runs(host(), "a.json", |r| {
            let think = serde_json::json!({"pause_ns": 1_000_000, "spin_ns": 0, "every_ios": 1});
            r["plan"]["jobs"][0]["think"] = think;
        });
        compare(&[side("gpuio", own), fio(more, |_| ())], &Options::default())
    };
    let refused = |key: &str, value: &str| {
        let found = found(serde_json::json!({"thinktime": "1000", key: value}));
        let flags: Vec<_> = found.refused().map(|(_, it)| it.despite.unwrap()).collect();
        flags
            .into_iter()
            .filter(|flag| !["depth", "engine", "rate"].contains(flag))
            .collect::<Vec<_>>()
    };
    assert_eq!(refused("thinktime", "1ms"), Vec::<&str>::new());
    assert_eq!(refused("thinktime", "2000"), ["thinktime"]);
    assert_eq!(refused("fsync", "8"), ["fsync"]);
    assert_eq!(refused("fsync", "0"), Vec::<&str>::new());
    assert_eq!(refused("random_distribution", "zipf:1.1"), ["order"]);
    assert_eq!(refused("percentage_random", "50"), ["order"]);
    assert_eq!(refused("bssplit", "4k/50:64k/50"), ["bs"]);
    assert_eq!(refused("buffer_compress_percentage", "50"), ["data"]);
    let unknown = found(serde_json::json!({"zonemode": "zbd"})).pairs[0].unknown_properties.clone();
    assert!(unknown.contains(&"zonemode=zbd of fio 3.33".to_owned()), "{unknown:?}");
}

/// fio 3.33 lists no option without a value, so that an absent `norandommap` may have been set.
#[test]
fn a_switch_that_fio_may_have_left_out_is_unknown() {
    let unknown = |options: Value| {
        let own = side("gpuio", runs(host(), "a.json", |_| ()));
        let found = compare(&[own, fio(options, |_| ())], &Options::default());
        found.pairs[0].unknown_properties.contains(&"order of offsets".to_owned())
    };
    assert!(unknown(serde_json::json!({"rw": "randread"})));
    // Whether blocks repeat is unknown, and that they are drawn evenly is not.
    let refused = |options: Value| {
        let sides = [fio(serde_json::json!({}), |_| ()), fio(options, |_| ())];
        let found = compare(&sides, &Options::default());
        found.refused().filter_map(|(_, it)| it.despite).collect::<Vec<_>>()
    };
    for other in [
        serde_json::json!({"random_distribution": "zipf:1.4"}),
        serde_json::json!({"random_distribution": "zipf:1.4", "size": "4M"}),
        serde_json::json!({"percentage_random": "50"}),
    ] {
        assert_eq!(refused(other.clone()), ["order"], "{other}");
    }
    for same in [serde_json::json!({}), serde_json::json!({"norandommap": "1"})] {
        assert_eq!(refused(same.clone()), Vec::<&str>::new(), "{same}");
    }
    for known in [
        serde_json::json!({"rw": "randread", "norandommap": "1"}),
        serde_json::json!({"rw": "randread", "norandommap": "0"}),
        serde_json::json!({"rw": "randread", "random_distribution": "zipf:1.1"}),
        // A release that lists such options.
        serde_json::json!({"rw": "randread", "group_reporting": ""}),
    ] {
        assert!(!unknown(known.clone()), "{known}");
    }
}

/// `group_reporting` makes one entry of several sections, with the options of one.
#[test]
fn a_group_of_several_fio_jobs_is_not_read_as_one() {
    type Change = (Value, fn(&mut Value));
    let joined: [Change; 3] = [
        (serde_json::json!({"rw": "write"}), |_| ()),
        (serde_json::json!({"bs": "4k"}), |_| ()),
        (serde_json::json!({}), |job| job["job_runtime"] = 2000.into()),
    ];
    for (mut options, change) in joined {
        assert_eq!(fio(options.clone(), |job| job["job_runtime"] = 1000.into()).runs.len(), 1);
        options["group_reporting"] = "1".into();
        let found = fio(options, change);
        assert_eq!(found.runs.len(), 0);
        let words = "job read-64K: not comparable, group_reporting joined several jobs; run fio \
                     without it";
        assert!(found.notes[0].contains(words), "{:?}", found.notes);
    }
    for one in [
        serde_json::json!({"group_reporting": "1"}),
        serde_json::json!({"group_reporting": "1", "rw": "randrw"}),
        serde_json::json!({"group_reporting": "1", "rw": "randwrite", "verify": "crc32c"}),
    ] {
        assert_eq!(fio(one, |_| ()).runs.len(), 1);
    }
    let threads = serde_json::json!({"group_reporting": "1", "numjobs": "2"});
    assert_eq!(fio(threads, |job| job["job_runtime"] = 2000.into()).runs.len(), 1);
}

fn page() -> Comparison {
    let others = runs(host(), "other.json", |record| {
        scale(record, 0.8);
        record["jobs"][0]["direct_got"] = "buffered".into();
        record["host"]["kernel"]["release"] = "6.18.99".into();
    });
    let mut sides = vec![repeats("before", &NEAR), repeats("after", &times(0.9))];
    sides.push(side("other.json", others));
    sides[2].runs.extend(gdsio("0.931323").runs.into_iter().map(|mut run| {
        run.properties.insert("bs", "1M".to_owned());
        run
    }));
    let despite = vec!["direct".to_owned()];
    let options = Options { despite, ..with_threshold(5.0, &["throughput", "p99"]) };
    let mut found = compare(&sides, &options);
    // The kernel of the machine that made the fixture is no part of the page.
    for difference in found.pairs.iter_mut().flat_map(|pair| &mut pair.differences) {
        if difference.aspect == "release" {
            "6.18.1".clone_into(&mut difference.baseline);
        }
    }
    found
}

#[test]
fn pages() {
    insta::assert_snapshot!("text", shown("text", &page()));
    insta::assert_snapshot!("narrow", shown_at("text", &page(), 60));
    let csv = shown("csv", &page());
    let heads =
        "load,runs,metric,baseline,other,ratio,low,high,basis,verdict,threshold,remark,notes\n";
    assert!(csv.starts_with(heads), "{csv}");
    // A load with a comma is in quotes.
    let load = |line: &str| line.trim_start_matches('"').starts_with("read-64K ");
    assert!(csv.lines().skip(1).all(load), "{csv}");
    for row in csv::Reader::from_reader(csv.as_bytes()).records() {
        let row = row.unwrap();
        let numbers: Vec<f64> = (3..8).map(|nth| row[nth].parse().unwrap()).collect();
        assert!(numbers[3] <= numbers[2] && numbers[2] <= numbers[4], "{row:?}");
        assert!(row[8].parse::<f64>().is_err() && !row[9].contains(' '), "{row:?}");
    }
    insta::assert_snapshot!("markdown", shown("markdown", &page()));
    let json: Value = serde_json::from_str(&shown("json", &page())).unwrap();
    assert_eq!(json["schema"], "gpuio-compare-v1");
    assert_eq!(json["pairs"][0]["rows"][0]["basis"]["from"], "repeats");
    insta::assert_snapshot!("json", format!("{:#}", json["pairs"][1]));
}

/// Metrics that got worse come first, with the ratio drawn; a name from outside is text.
#[test]
fn the_page_begins_with_what_got_worse() {
    let hostile = "<img src=x>&\"after";
    let sides = [repeats("before", &NEAR), repeats(hostile, &times(0.9))];
    let page = shown("html", &compare(&sides, &with_threshold(5.0, &[])));
    assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}: {page}"));
    let (loss, alarm, differs) =
        (place("The largest loss is "), place("class=\"alarm\""), place("<h2>Differences"));
    let worse = place("<details open><summary>Worse: 7</summary>");
    assert!(loss < alarm && alarm < differs && differs < worse);
    assert!(page.contains("Throughput of 1 load: 1 lower."), "{page}");
    assert_eq!(page.matches("<svg ").count(), 7);
    assert!(!page.contains("NaN"), "{page}");
    // The throughput is worse, and left of the middle.
    let bar = page.split("class=\"bar worse\" x1=\"").nth(1).unwrap();
    let left: f64 = bar.split('"').next().unwrap().parse().unwrap();
    assert!(left > 0.0, "{left}");
    let better = shown(
        "html",
        &compare(&[repeats("a", &NEAR), repeats("b", &times(1.2))], &Options::default()),
    );
    assert!(better.contains("Nothing is certainly worse. The largest gain is "), "{better}");
    let noise =
        shown("html", &compare(&[repeats("a", &NEAR), repeats("b", &NEAR)], &Options::default()));
    assert!(
        noise.contains("Throughput of 1 load: 1 without a difference (noise).")
            && noise.contains("<details open><summary>No difference"),
        "{noise}"
    );
    let one =
        shown("html", &compare(&[repeats("a", &[1.0]), repeats("b", &[0.5])], &Options::default()));
    assert!(one.contains("<details open><summary>One run each"), "{one}");
}
