//! Output of a sweep: the plan, and the results per point.

use std::fmt::Write;
use std::time::Duration;

use gpuio_base::stat::{Percentile, infer};
use gpuio_base::units::{human_count, human_ns, human_rate};
use gpuio_job::sweep::{Progress, next};
use gpuio_record::SweepAxis;
use gpuio_table::in_columns;

use super::Why;
use super::directory::{Feed, Run, SweepDirectory, axes};
use super::request::ResolvedSweep;
use crate::verb::compare;

/// `threads=4 bs=64k`.
pub(super) fn point_text(axes: &[SweepAxis], at: &[String]) -> String {
    let words = axes.iter().zip(at).map(|(axis, value)| format!("{}={value}", axis.key));
    words.collect::<Vec<_>>().join(" ")
}

/// Estimated time, as far as it is known in advance.
pub(super) fn estimate(resolved: &ResolvedSweep) -> String {
    let runs = if resolved.rule.max == 1 {
        "1 run".to_owned()
    } else if resolved.rule.min == resolved.rule.max {
        format!("{} runs", resolved.rule.min)
    } else {
        format!("{} to {} runs", resolved.rule.min, resolved.rule.max)
    };
    let Some(each) = resolved.each else {
        let count = resolved.points.len();
        return format!("{count} points, {runs} each; the time per run is unknown");
    };
    let each = each + resolved.cool_down;
    let words = |times: u64| long(each.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)));
    if resolved.search.is_some() {
        return format!("a search, {runs} of about {} for each load", words(1));
    }
    let count = resolved.points.len() as u64;
    let (least, most) =
        (count * u64::from(resolved.rule.min), count * u64::from(resolved.rule.max));
    let time = match least == most {
        true => words(least),
        false => format!("{} to {}", words(least), words(most)),
    };
    format!("{count} points, {runs} each: about {time}, plus creating data files")
}

/// A readable time: `48s`, `7m 42s`, `3h 5m`; seconds are rounded up.
pub(super) fn long(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// Points in the order of the first round.
pub(super) fn dry_run(resolved: &ResolvedSweep) -> String {
    let mut text = estimate(resolved) + "\n";
    if let Some(search) = &resolved.search {
        let _ = writeln!(text, "search: {}", search.words);
    }
    let axes = axes(resolved);
    let mut state = vec![Progress { runs: 0, ended: false }; resolved.points.len()];
    let mut nth = 0;
    while let Some(at) = next(&state, resolved.order_seed) {
        nth += 1;
        if let (Some(stand), Some(point)) = (state.get_mut(at), resolved.points.get(at)) {
            stand.ended = true;
            let _ = writeln!(text, "{nth:>5}  {}", point_text(&axes, point));
        }
    }
    let _ = writeln!(text, "page cache: {}", resolved.cache);
    if !resolved.note.is_empty() {
        let _ = writeln!(text, "{}", resolved.note);
    }
    let _ = writeln!(text, "each: gpuio bench {}", resolved.base.join(" "));
    text
}

/// The median of a figure over runs; the mean of the middle two of an even number.
pub(super) fn median_of(runs: &[Run], of: impl Fn(&Run) -> f64) -> Option<f64> {
    gpuio_base::stat::infer::median(&runs.iter().map(of).collect::<Vec<f64>>())
}

/// The table of results, and the next steps.
pub(super) fn results(resolved: &ResolvedSweep, directory: &SweepDirectory, why: Why) -> String {
    let sweep = &directory.sweep;
    let ceilings = directory.runs.iter().flatten().any(|run| run.of_ceiling.is_some());
    let feeds = directory.runs.iter().flatten().any(|run| run.feed.is_some());
    let mut rows = vec![head(&sweep.axes, ceilings, feeds)];
    let best = directory
        .runs
        .iter()
        .filter_map(|runs| median_of(runs, |run| run.bytes_per_s))
        .fold(0.0, f64::max);
    let mut notes = String::new();
    for (point, runs) in sweep.points.iter().zip(&directory.runs) {
        if let Some(row) = row(&point.at, runs, resolved, best, (ceilings, feeds)) {
            rows.push(row);
        }
        let converged = point.ended.as_ref().is_some_and(|ended| ended.starts_with("settled"));
        if !converged {
            let ended = point.ended.as_deref().unwrap_or("runs are missing");
            let _ = writeln!(notes, "{}: {ended}", point_text(&sweep.axes, &point.at));
        }
    }
    let mut text = if rows.len() > 1 { in_columns(&rows, sweep.axes.len()) } else { String::new() };
    if let Some(answer) = answer(resolved, directory, why) {
        let _ = write!(text, "\n{answer}");
    }
    if !notes.is_empty() {
        let _ = write!(text, "\n{notes}");
    }
    let all = directory.runs.iter().flatten().count();
    let unknown = |runs: &&Vec<Run>| runs.len() > 1 && spread(runs, resolved).is_none();
    let unknown = directory.runs.iter().filter(unknown).count();
    if unknown > 0 {
        let _ = writeln!(
            text,
            "\nNo interval for {}: not enough runs for their spread. Use more (--repeats 5).",
            if unknown == 1 { "1 point".to_owned() } else { format!("{unknown} points") }
        );
    }
    let warned = directory.runs.iter().flatten().filter(|run| run.warned).count();
    if warned > 0 {
        let _ = writeln!(text, "\nWarnings in {warned} of {all} runs; gpuio report lists them.");
    }
    let unsteady = directory.runs.iter().flatten().filter(|run| run.unsteady).count();
    if unsteady > 0 {
        let _ = writeln!(
            text,
            "\nNOT STEADY in {unsteady} of {all} runs: the load was still changing when its \
             runtime ended."
        );
    }
    if !resolved.note.is_empty() {
        let _ = writeln!(text, "\n{}", resolved.note);
    }
    if directory.runs.iter().flatten().any(|run| run.software_gpu) {
        let _ = writeln!(
            text,
            "\nThis sweep used gpuio's software GPU: its results say nothing \
            about hardware."
        );
    }
    let name = directory.path.display();
    if why != Why::Done {
        let _ = writeln!(text, "\nNot finished: run the same command again to resume.");
    }
    let _ = writeln!(text, "\nSweep: {name} (gpuio report {name}{})", suggestion(directory));
    text
}

/// A percentile, or `-` where too few I/Os completed for it.
fn latency(ns: f64) -> String {
    if ns.is_nan() { "-".to_owned() } else { human_ns(ns) }
}

/// The comparison of paths, if the sweep varies them; else of the first axis. It is tried first, so
/// that the printed command works.
fn suggestion(directory: &SweepDirectory) -> String {
    let axes = || directory.sweep.axes.iter().filter(|axis| axis.values.len() > 1);
    let axis = axes().find(|axis| axis.key == "path").or_else(|| axes().next());
    let words = axis.and_then(|axis| compare::arguments_that_run(&directory.path, &axis.key));
    words.map_or_else(String::new, |words| format!(", gpuio compare {words}"))
}

/// The confidence interval of a point's throughput, as reports print it.
fn spread(runs: &[Run], resolved: &ResolvedSweep) -> Option<f64> {
    let values: Vec<f64> = runs.iter().map(|run| run.bytes_per_s).collect();
    infer::mean_share(&values, resolved.rule.level())
}

/// Names of the columns.
fn head(axes: &[SweepAxis], ceilings: bool, feeds: bool) -> Vec<String> {
    let mut head: Vec<String> = axes.iter().map(|axis| axis.key.clone()).collect();
    let tail = Percentile::TAIL.label();
    let figures = ["throughput", "IOPS", &tail, "CPUs", "95 %", "n", "of best"];
    head.extend(figures.map(String::from));
    if ceilings {
        head.push("of ceiling".to_owned());
    }
    if feeds {
        head.extend(["samples/s", "stalled", "utilisation"].map(String::from));
    }
    head
}

fn row(
    at: &[String],
    runs: &[Run],
    resolved: &ResolvedSweep,
    best: f64,
    (ceilings, feeds): (bool, bool),
) -> Option<Vec<String>> {
    let rate = median_of(runs, |run| run.bytes_per_s)?;
    let middle = |of: fn(&Run) -> f64| median_of(runs, of).unwrap_or(f64::NAN);
    let mut row: Vec<String> = at.to_vec();
    row.extend([
        human_rate(rate),
        human_count(middle(|run| run.iops)),
        latency(middle(|run| run.tail_ns)),
        format!("{:.2}", middle(|run| run.cores)),
        spread(runs, resolved).map_or("-".to_owned(), |share| format!("±{:.1} %", share * 100.0)),
        runs.len().to_string(),
        if best > 0.0 { format!("{:.0} %", rate / best * 100.0) } else { "-".to_owned() },
    ]);
    if ceilings {
        let known: Vec<Run> = runs.iter().filter(|run| run.of_ceiling.is_some()).copied().collect();
        let percent = median_of(&known, |run| run.of_ceiling.unwrap_or(f64::NAN));
        row.push(percent.map_or("-".to_owned(), |percent| format!("{percent:.0} %")));
    }
    if feeds {
        let known: Vec<Run> = runs.iter().filter(|run| run.feed.is_some()).copied().collect();
        let middle = |of: fn(&Feed) -> f64| {
            let value = median_of(&known, |run| run.feed.as_ref().map_or(f64::NAN, of));
            value.filter(|value| !value.is_nan())
        };
        let percent = |of| middle(of).map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
        row.extend([
            middle(|feed| feed.samples_per_s).map_or("-".to_owned(), human_count),
            percent(|feed| feed.stalled),
            percent(|feed| feed.utilisation),
        ]);
    }
    Some(row)
}

/// The result of a search.
fn answer(resolved: &ResolvedSweep, directory: &SweepDirectory, why: Why) -> Option<String> {
    let search = resolved.search.as_ref()?;
    if why != Why::Done {
        return None;
    }
    let key = directory.sweep.axes.first().map_or("", |axis| axis.key.as_str());
    let found: Vec<(&str, Option<f64>, Option<f64>, bool)> = directory
        .sweep
        .points
        .iter()
        .zip(&directory.runs)
        .filter_map(|(point, runs)| {
            let load = point.at.first()?.as_str();
            let tried = search.tried(load.parse().ok()?, runs, point.ended.as_deref());
            let latency = median_of(runs, |run| search.latency(run));
            let reached = median_of(runs, |run| search.missed(run).unwrap_or(1.0));
            Some((load, latency, reached.filter(|share| *share < 1.0), tried.holds()))
        })
        .collect();
    let under = found.iter().take_while(|(.., within_limit)| *within_limit).last();
    let over = found.iter().find(|(.., within_limit)| !within_limit);
    let say = |(load, latency, reached, _): &(&str, Option<f64>, Option<f64>, bool)| {
        let latency = match latency {
            None => "without a result".to_owned(),
            Some(ns) if ns.is_nan() => {
                "unknown: too few I/Os for it; use a longer --runtime".to_owned()
            }
            Some(ns) => human_ns(*ns),
        };
        let share = reached.map(|share| format!(", {:.1} % of the rate", share * 100.0));
        format!("{key}={load} ({latency}{})", share.unwrap_or_default())
    };
    Some(match (under, over) {
        (Some(under), Some(over)) => {
            format!("{}: reached at {}, not at {}\n", search.words, say(under), say(over))
        }
        (Some(under), None) => {
            format!("{}: reached at {}, the highest load tried\n", search.words, say(under))
        }
        (None, Some(over)) => {
            format!("{}: not reached even at {}\n", search.words, say(over))
        }
        (None, None) => format!("{}: no measurement\n", search.words),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        let printed = |ms| long(Duration::from_millis(ms));
        assert_eq!([printed(0), printed(200), printed(462_000)], ["0s", "1s", "7m 42s"]);
        assert_eq!(printed(11_100_000), "3h 5m");
    }

    #[test]
    fn medians() {
        let run = |rate| Run {
            bytes_per_s: rate,
            iops: 0.0,
            tail_ns: 0.0,
            limited_ns: 0.0,
            max_ns: 0.0,
            cores: 0.0,
            of_ceiling: None,
            software_gpu: false,
            warned: false,
            unsteady: false,
            short_of_rate: None,
            feed: None,
        };
        let median = |rates: &[f64]| {
            median_of(&rates.iter().copied().map(run).collect::<Vec<_>>(), |run| run.bytes_per_s)
        };
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}
