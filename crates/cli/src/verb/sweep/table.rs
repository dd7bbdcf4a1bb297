//! Output of a sweep: the plan, and the results per point.

use std::fmt::Write as _;
use std::time::Duration;

use gpuio_base::document::{
    Cell, Columns, Document, Item, Layout, List, Look, Section, Table, grouped, unique,
};
use gpuio_base::stat::{Percentile, infer};
use gpuio_base::units::{ShellLine, human_ns, human_rate, many};
use gpuio_job::spec::JobSpec;
use gpuio_job::sweep::{Axis, LEAD, Progress, RUNS_MOST, Tried, next};
use gpuio_report::set::knee;
use gpuio_report::{first_of, legend, marks_together};

use super::Why;
use super::directory::{SweepDirectory, axes};
use super::effects;
use super::resolved::{ResolvedSweep, Verdict};
use super::runs::{Feed, Run};
use crate::verb::compare;

/// Estimated time, as far as it is known in advance.
pub(super) fn estimate(resolved: &ResolvedSweep) -> String {
    let most = many(resolved.rule.max.into(), "run");
    let runs = match resolved.rule.min == resolved.rule.max {
        true => most,
        false => format!("{} to {most}", resolved.rule.min),
    };
    let points = many(resolved.points.len() as u64, "point");
    let pause = resolved.cool_down;
    let parts = resolved.cost.words(!pause.is_zero());
    let known = resolved.cost.time(1, pause).is_some();
    if !known && resolved.search.is_none() {
        return format!("{points}, {runs} each; the time per run is unknown.{parts}");
    }
    let words = |times: u64| {
        resolved.cost.time(times, pause).map_or_else(|| "unknown time".to_owned(), long)
    };
    if let Some(search) = &resolved.search {
        let loads = search.loads();
        return match search.runs {
            Some(_) => format!(
                "a search over about {}, {runs} each: {}{}.{parts}",
                many(loads, "load"),
                if known { "about " } else { "" },
                words(loads.saturating_mul(resolved.rule.max.into()))
            ),
            None => {
                let quiet = loads + 2 * u64::from(LEAD - 1);
                format!(
                    "a search, about {} ({}) if runs of a load agree, up to {} of each load if \
                     they do not.{parts}",
                    many(quiet, "run"),
                    words(quiet),
                    RUNS_MOST
                )
            }
        };
    }
    let (least, most) = (u64::from(resolved.rule.min), u64::from(resolved.rule.max));
    let time = match least == most {
        true => words(least),
        false => format!("{} to {}", words(least), words(most)),
    };
    format!("{points}, {runs} each: about {time}.{parts}")
}

/// A point by the values that it ran with.
pub(super) fn named(job: &JobSpec, axes: &[Axis], at: &[String]) -> String {
    let value = |(nth, axis): (usize, &Axis)| {
        format!("{}={}", axis.key, effects::marked(job, axes, at, nth))
    };
    axes.iter().enumerate().map(value).collect::<Vec<_>>().join(" ")
}

/// Points of the load of one before them, because a value has no effect there.
fn again<'d>(resolved: &ResolvedSweep, directory: &'d SweepDirectory) -> Vec<&'d [String]> {
    let points = directory.sweep.points.iter().map(|point| point.at.as_slice());
    let ran = |at: &[String], nth| effects::ran(&resolved.job, &resolved.axes, at, nth);
    let load = |at: &[String]| (0..at.len()).map(|nth| ran(at, nth)).collect::<Vec<_>>();
    let loads = grouped(points.map(|at| (load(at), at))).into_iter();
    loads.flat_map(|(_, same)| same.into_iter().skip(1)).collect()
}

fn marked(resolved: &ResolvedSweep, point: &[String], nth: usize) -> String {
    effects::marked(&resolved.job, &resolved.axes, point, nth)
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
pub(super) fn dry_run(resolved: &ResolvedSweep) -> Document {
    let mut state = vec![Progress { runs: 0, ended: false }; resolved.points.len()];
    let mut order = Vec::new();
    while let Some(at) = next(&state, resolved.order_seed) {
        state[at].ended = true;
        order.push((order.len() + 1, &resolved.points[at]));
    }
    let columns = Columns::<(usize, &Vec<String>)>::new().figures("run", |(nth, _)| *nth);
    let columns = axes(resolved).into_iter().enumerate().fold(columns, |columns, (at, axis)| {
        columns.words(axis.key, move |(_, point)| marked(resolved, point, at))
    });
    let facts = [
        ("page cache", resolved.cache.to_owned()),
        ("note", resolved.note.clone()),
        ("each", ShellLine::new("gpuio bench").words(&resolved.base).to_string()),
    ];
    let facts = facts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut page = Document::new("Points of a sweep");
    let section = page.begin("", "").paragraph(estimate(resolved));
    if let Some(search) = &resolved.search {
        section.item(Layout::labels(0), Item::new("search", search.words.as_str()));
    }
    section.table(columns.table("", order));
    let facts = facts.map(|(label, text)| Item::new(label, text));
    section.list(List::new(Layout::labels(0), facts));
    page
}

fn latency(ns: f64) -> String {
    if ns.is_nan() { "unknown".to_owned() } else { human_ns(ns) }
}

/// A finished run in a line; in a search with what its limit is of.
pub(super) fn of_run(resolved: &ResolvedSweep, run: &Run) -> String {
    let rate = human_rate(run.bytes_per_s);
    let Some(search) = &resolved.search else {
        return format!("{rate}, {} {}", Percentile::TAIL.label(), latency(run.tail_ns));
    };
    let label = search.bound.at.label();
    let verdict = search.verdict(std::slice::from_ref(run)).word();
    format!("{rate}, {label} {}, within the limit: {verdict}", latency(run.limited_ns))
}

/// The median of a figure over runs, NaN where some lack it; `None` of no runs.
pub(super) fn median_of(runs: &[Run], of: impl Fn(&Run) -> f64) -> Option<f64> {
    let median = infer::median_of_all(runs.iter().map(|run| Some(of(run))));
    (!runs.is_empty()).then(|| median.unwrap_or(f64::NAN))
}

/// The table of results, and the next steps.
pub(super) fn results(resolved: &ResolvedSweep, directory: &SweepDirectory, why: Why) -> Document {
    let sweep = &directory.sweep;
    // A run's output and a preset's remarks may have lines.
    let paragraph = |text: String| {
        let mut section = Section::default();
        text.lines().for_each(|line| _ = section.paragraph(line));
        section
    };
    let mut page = Document::new(format!("Sweep {}", directory.path.display()));
    page.begin("", "").table(points(resolved, directory));
    page.sections.extend(misled(directory).map(paragraph));
    if resolved.search.is_none() {
        page.sections.extend(knees(resolved, directory).map(paragraph));
    }
    page.sections.extend(sweep.answer.clone().map(paragraph));
    page.push(paragraph(unsettled(directory)));
    let runs = || directory.runs.iter().flatten();
    let all = runs().count();
    let end = |runs: &&Vec<Run>| infer::mean_ends(&rates(runs), resolved.rule.level());
    let of = |runs: &&Vec<Run>| match end(runs) {
        None => runs.len() > 1,
        Some([low, _]) => low <= 0.0,
    };
    let unknown = directory.runs.iter().filter(of).count();
    let warned = runs().filter(|run| run.warned).count();
    let unsteady = runs().filter(|run| run.unsteady).count();
    let disturbed = runs().filter(|run| run.disturbed).count();
    // A search says it with its answer.
    let disturbed = if resolved.search.is_some() { 0 } else { disturbed };
    let software = runs().any(|run| run.software_gpu);
    let name = directory.path.display();
    let texts = [
        (unknown > 0).then(|| {
            format!(
                "No interval of use for {}: not enough runs for their spread. Use more \
                 (--repeats {}).",
                many(unknown as u64, "point"),
                more_runs(resolved.rule.max)
            )
        }),
        marks_in_words(runs()),
        doubts_in_words(runs()),
        (disturbed > 0).then(|| disturbed_in(disturbed, &format!(" of {all}"))),
        (warned > 0).then(|| {
            format!("Warnings in {warned} of {}; gpuio report lists them.", many(all as u64, "run"))
        }),
        (unsteady > 0).then(|| {
            format!(
                "NOT STEADY in {unsteady} of {}: the load was still changing when its runtime \
                 ended.",
                many(all as u64, "run")
            )
        }),
        (!again(resolved, directory).is_empty()).then(|| {
            "No share of best where a value has no effect and the load is that of a row above."
                .to_owned()
        }),
        Some(resolved.note.clone()).filter(|note| !note.is_empty()),
        software.then(|| {
            "This sweep used gpuio's software GPU: its results say nothing about hardware."
                .to_owned()
        }),
        (why != Why::Done)
            .then(|| "Not finished: run the same command again to resume.".to_owned()),
        Some(format!(
            "Sweep: {name} ({}{})",
            ShellLine::new("gpuio report").file(&directory.path),
            suggestion(directory)
        )),
    ];
    page.sections.extend(texts.into_iter().flatten().map(paragraph));
    page
}

/// How points ended that did not settle, a line for each way.
fn unsettled(directory: &SweepDirectory) -> String {
    let sweep = &directory.sweep;
    let ended = sweep.points.iter().filter_map(|point| {
        let ended = point.ended.as_deref().unwrap_or("runs are missing");
        let settled = ended.starts_with("settled");
        (!settled).then(|| (ended, sweep.point(&point.at)))
    });
    let ended = grouped(ended).into_iter().map(|(ended, points)| match points.as_slice() {
        [one] => format!("{one}: {ended}"),
        [first, others @ ..] => {
            format!("{first} and {}: {ended}", many(others.len() as u64, "more point"))
        }
        [] => String::new(),
    });
    ended.collect::<Vec<_>>().join("\n")
}

/// Runs of a point to ask for where those that it had were too few.
fn more_runs(had: u32) -> u32 {
    had.saturating_mul(2).max(5)
}

/// The marks of runs, each once.
fn marks_of<'r>(runs: impl Iterator<Item = &'r Run>) -> String {
    marks_together(runs.map(|run| &run.marks))
}

/// The meaning of the marks behind rates, with the number of runs that have each.
fn marks_in_words<'r>(runs: impl Iterator<Item = &'r Run> + Clone) -> Option<String> {
    let all = marks_of(runs.clone());
    let words = legend(&all).map(|(mark, meaning)| {
        let of = runs.clone().filter(|run| run.marks.contains(mark)).count();
        format!("{mark} {meaning} ({of} of {})", many(runs.clone().count() as u64, "run"))
    });
    let words = words.collect::<Vec<_>>().join("; ");
    (!words.is_empty()).then_some(words)
}

/// Kinds of doubts that a mark or a sentence of its own says.
const SAID: [&str; 2] = ["too_short", "disturbed"];

/// The reasons of the other doubts, each with the number of runs that have it.
fn doubts_in_words<'r>(runs: impl Iterator<Item = &'r Run> + Clone) -> Option<String> {
    let all = runs.clone().flat_map(|run| run.doubts.iter().map(|(doubt, why)| (*doubt, why)));
    let kinds = grouped(all.filter(|(doubt, _)| !SAID.contains(doubt))).into_iter();
    let words = kinds.map(|(doubt, whys)| {
        let of = runs.clone().filter(|run| run.doubts.iter().any(|(one, _)| *one == doubt));
        let (of, all) = (of.count(), many(runs.clone().count() as u64, "run"));
        format!("{} ({of} of {all})", first_of(whys))
    });
    let words = words.collect::<Vec<_>>().join("; ");
    (!words.is_empty()).then(|| format!("Doubts: {words}."))
}

fn disturbed_in(runs: usize, of_all: &str) -> String {
    let runs = many(runs as u64, "run");
    format!(
        "Disturbed: others used the drive or the CPUs in {runs}{of_all} (other_traffic, \
         other_cpu_time)."
    )
}

/// The comparison of paths, if the sweep varies them; else of the first axis. It is tried first, so
/// that the printed command works.
fn suggestion(directory: &SweepDirectory) -> String {
    let axes = || directory.sweep.axes.iter().filter(|axis| axis.values.len() > 1);
    let axis = axes().find(|axis| axis.key == "path").or_else(|| axes().next());
    let command = axis.and_then(|axis| compare::command_that_runs(&directory.path, &axis.key));
    command.map_or_else(String::new, |command| format!(", {command}"))
}

/// Curves whose knees are listed; a report draws them.
const CURVES_MOST: usize = 8;

/// The knee of each curve of loads that push harder and harder, and the rule; nothing for a sweep
/// without such loads.
fn knees(resolved: &ResolvedSweep, directory: &SweepDirectory) -> Option<String> {
    let axes = &directory.sweep.axes;
    let nth = knee::KEYS.iter().find_map(|key| axes.iter().position(|axis| axis.key == *key))?;
    let key = axes[nth].key.as_str();
    let again = again(resolved, directory);
    let points = directory.sweep.points.iter().zip(&directory.runs);
    let points = points.filter(|(point, _)| !again.contains(&point.at.as_slice()));
    let steps = points.filter_map(|(point, runs)| {
        let middle = |of: fn(&Run) -> f64| median_of(runs, of);
        let time = |of: fn(&Run) -> f64| middle(of).filter(|ns| !ns.is_nan());
        let word = point.at.get(nth)?;
        let others = axes.iter().zip(&point.at).filter(|(axis, _)| axis.key != key);
        let others: Vec<String> =
            others.map(|(axis, value)| format!("{}={value}", axis.key)).collect();
        let step = knee::Step {
            load: knee::number(key, word)?,
            word: word.clone(),
            rates: rates(runs),
            iops: middle(|run| run.iops)?,
            latency: [time(|run| run.median_ns), time(|run| run.tail_ns)],
        };
        Some((others.join(", "), step))
    });
    let sentences = grouped(steps).into_iter().filter_map(|(about, mut steps)| {
        steps.sort_by(|a, b| a.load.total_cmp(&b.load));
        knee::sentence(&about, key, &steps)
    });
    let mut lines: Vec<String> = sentences.collect();
    let more = lines.len().saturating_sub(CURVES_MOST);
    lines.truncate(CURVES_MOST);
    lines.extend(
        (more > 0).then(|| format!("{} left out here.", many(more as u64, "curve is|curves are"))),
    );
    (!lines.is_empty()).then(|| format!("{}\n{}", lines.join("\n"), knee::rule(key)))
}

fn interval(runs: &[Run], level: f64) -> Option<Cell> {
    let words = infer::mean_share_words(&rates(runs), level)?;
    let (mean, half) = mean_and_half(runs, level)?;
    Some(Cell::shown(words, half / mean * 100.0))
}

/// The mean throughput, and half the width of its interval.
fn mean_and_half(runs: &[Run], level: f64) -> Option<(f64, f64)> {
    let rates = rates(runs);
    infer::mean(&rates).zip(infer::mean_half(&rates, level))
}

/// A figure that only programs get.
fn figure(value: Option<f64>) -> Option<Cell> {
    value.map(|value| Cell::shown(value.to_string(), value))
}

fn rates(runs: &[Run]) -> Vec<f64> {
    runs.iter().map(|run| run.bytes_per_s).collect()
}

/// Whether the bytes of all runs took the requested path: one that did not decides, then one that
/// is not proved.
fn as_requested(runs: &[Run]) -> Option<bool> {
    let not = |is: Option<bool>| runs.iter().any(|run| run.as_requested == is);
    if not(Some(false)) { Some(false) } else { (!not(None)).then_some(true) }
}

/// A sentence on the points whose bytes did not take the requested path, or may not have.
fn misled(directory: &SweepDirectory) -> Option<String> {
    let of = |is: Option<bool>| {
        let points = directory.sweep.points.iter().zip(&directory.runs);
        let points = points.filter(|(_, runs)| !runs.is_empty() && as_requested(runs) == is);
        let named = points.map(|(point, runs)| {
            let wrong = runs.iter().filter(|run| run.as_requested == is);
            let taken = unique(wrong.flat_map(|run| run.taken.clone())).join(" or ");
            (taken, directory.sweep.point(&point.at))
        });
        let parts = grouped(named).into_iter().map(|(taken, points)| match points.as_slice() {
            [first, others @ ..] if !others.is_empty() => {
                format!("{first} and {} ({taken})", many(others.len() as u64, "more point"))
            }
            points => format!("{} ({taken})", points.concat()),
        });
        parts.collect::<Vec<_>>().join("; ")
    };
    let [wrong, open] = [of(Some(false)), of(None)];
    let wrong = (!wrong.is_empty())
        .then(|| format!("error: The bytes did not take the requested path at {wrong}."));
    let open = (!open.is_empty())
        .then(|| format!("warning: The path of the bytes could not be proved at {open}."));
    let all: Vec<String> = [wrong, open].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// A point and its runs, at least one.
type Point<'s> = (&'s [String], &'s Vec<Run>);

/// A row for each point: medians of its runs.
#[expect(clippy::too_many_lines, reason = "one line for each column")]
fn points(resolved: &ResolvedSweep, directory: &SweepDirectory) -> Table {
    let runs = || directory.runs.iter().flatten();
    let sweep = &directory.sweep;
    let rate = |runs: &[Run]| median_of(runs, |run| run.bytes_per_s);
    let search = resolved.search.as_ref();
    let limited = search.map(|search| search.bound.at);
    let may_be_best = |runs: &[Run]| search.is_none_or(|it| it.verdict(runs) == Verdict::Within);
    let (again, level) = (again(resolved, directory), resolved.rule.level());
    let firsts = sweep.points.iter().zip(&directory.runs);
    let firsts = firsts.filter(|(point, _)| !again.contains(&point.at.as_slice()));
    let best = firsts.map(|(_, runs)| runs).filter(|runs| may_be_best(runs));
    let best = best.filter_map(|runs| rate(runs)).fold(0.0, f64::max);
    let middle = |of: fn(&Run) -> f64| move |runs: &[Run]| median_of(runs, of);
    // Absent where too few I/Os completed for it.
    let time_of = |of: fn(&Run) -> f64| {
        move |(_, runs): &Point<'_>| {
            let ns = median_of(runs, of).filter(|ns| !ns.is_nan());
            ns.map(|ns| Cell::shown(human_ns(ns), ns))
        }
    };
    let of_feed = |of: fn(&Feed) -> f64| {
        move |(_, runs): &Point<'_>| {
            infer::median_of_all(runs.iter().map(|run| run.feed.as_ref().map(of)))
        }
    };
    let percent = |of: fn(&Feed) -> f64| {
        let of = of_feed(of);
        move |point: &Point<'_>| of(point).map(|percent| Cell::percent(percent, 1))
    };
    // Accelerators take what they need: a rate says nothing of the best point.
    let computes = runs().any(|run| !enough(std::slice::from_ref(run)).is_empty());
    let axes = sweep.axes.iter().enumerate();
    let columns = axes.fold(Columns::<Point<'_>>::new(), |columns, (nth, axis)| {
        columns.words(axis.key.clone(), move |(at, _)| marked(resolved, at, nth))
    });
    let table = columns
        .figures("throughput", move |(_, runs)| {
            rate(runs).map(|rate| Cell::shown(human_rate(rate) + &marks_of(runs.iter()), rate))
        })
        .key("bytes_per_s")
        .figures("IOPS", move |(_, runs)| middle(|run| run.iops)(runs).map(Cell::count))
        .figures(Percentile::MEDIAN.label(), time_of(|run| run.median_ns))
        .key(format!("{}_ns", Percentile::MEDIAN.key()))
        .figures(Percentile::TAIL.label(), time_of(|run| run.tail_ns))
        .key(format!("{}_ns", Percentile::TAIL.key()))
        .when(limited.is_some_and(|at| at != Percentile::TAIL), |columns| {
            let of = |name: fn(Percentile) -> String| limited.map(name).unwrap_or_default();
            let key = format!("{}_ns", of(Percentile::key));
            columns.figures(of(Percentile::label), time_of(|run| run.limited_ns)).key(key)
        })
        .when(search.is_some(), |columns| {
            let word = |(_, runs): &Point<'_>| search.map(|search| search.verdict(runs).word());
            columns.words("within limit", word).key("within_limit")
        })
        .figures("CPUs", move |(_, runs)| {
            middle(|run| run.cores)(runs).map(|cores| Cell::shown(format!("{cores:.2}"), cores))
        })
        .figures("95 %", move |(_, runs)| interval(runs, level))
        .key("ci95_percent")
        .figures("n", |(_, runs)| runs.len())
        .when(!computes, |columns| {
            let columns = columns.figures("of best", move |(at, runs)| {
                let ranked = best > 0.0 && may_be_best(runs) && !again.contains(at);
                let rate = rate(runs).filter(|_| ranked)?;
                Some(Cell::percent(rate / best * 100.0, 0))
            });
            columns.key("of_best_percent")
        })
        .when(runs().any(|run| run.of_ceiling.is_some()), |columns| {
            let columns = columns.figures("of ceiling", |(_, runs)| {
                let median = infer::median_of_all(runs.iter().map(|run| run.of_ceiling));
                median.map(|percent| Cell::percent(percent, 0))
            });
            columns.key("of_ceiling_percent")
        })
        .when(runs().any(|run| run.feed.is_some()), |columns| {
            let samples = of_feed(|feed| feed.samples_per_s);
            columns
                .figures("samples/s", move |point| samples(point).map(Cell::count))
                .key("samples_per_s")
                .figures("stalled", percent(|feed| feed.stalled))
                .key("stalled_percent")
                .figures("utilisation", percent(|feed| feed.utilisation))
                .key("utilisation_percent")
        })
        .when(computes, |columns| {
            columns.words("fast enough", |(_, runs)| enough(runs).join(" or ")).key("fast_enough")
        });
    let end = |nth: usize| {
        move |(_, runs): &Point<'_>| {
            figure(infer::mean_ends(&rates(runs), level).map(|ends| ends[nth]))
        }
    };
    let taken = |runs: &[Run]| unique(runs.iter().flat_map(|run| run.taken.clone())).join(" or ");
    let table = table
        .figures("mean_bytes_per_s", |(_, runs)| figure(infer::mean(&rates(runs))))
        .data()
        .figures("ci95_low_bytes_per_s", end(0))
        .data()
        .figures("ci95_high_bytes_per_s", end(1))
        .data()
        .words("path_taken", move |(_, runs)| Some(taken(runs)).filter(|taken| !taken.is_empty()))
        .data()
        .words("as_requested", |(_, runs)| {
            let known = runs.iter().any(|run| !run.taken.is_empty());
            let all = as_requested(runs).filter(|_| known);
            all.map(|all| Cell::shown(if all { "yes" } else { "no" }, all))
        })
        .data()
        .words("software_gpu", |(_, runs)| {
            let is = runs.iter().any(|run| run.software_gpu);
            Cell::shown(if is { "yes" } else { "no" }, is)
        })
        .data()
        .figures("disturbed_runs", |(_, runs)| runs.iter().filter(|run| run.disturbed).count())
        .data()
        .words("marks", |(_, runs)| marks_of(runs.iter()))
        .data()
        .words("doubts", |(_, runs)| {
            let all = unique(runs.iter().flat_map(|run| run.doubts.iter().cloned())).into_iter();
            all.map(|(doubt, why)| format!("{doubt}: {why}")).collect::<Vec<_>>().join("; ")
        })
        .data();
    let points = sweep.points.iter().map(|point| point.at.as_slice()).zip(&directory.runs);
    let points = points.filter(|(_, runs)| !runs.is_empty());
    table.table("points", points).look(Look::Indented(0))
}

/// Whether storage was fast enough for accelerators, each answer of some runs once.
fn enough(runs: &[Run]) -> Vec<&'static str> {
    unique(runs.iter().filter_map(|run| run.feed.as_ref()?.enough))
}

/// A load of a search, for its result.
struct Load<'s> {
    load: &'s str,
    latency: Option<f64>,
    /// The share of its rate that it reached, where that is too little.
    reached: Option<f64>,
    /// Its runs, as the search counted them.
    tried: Tried,
    /// Runs in which other programs used the drive.
    disturbed: usize,
    verdict: Verdict,
}

impl Load<'_> {
    /// Whether the search went on to higher loads.
    fn passed(&self) -> bool {
        self.tried.holds()
    }

    /// The runs that met the limit, where they disagree.
    fn votes(&self) -> Option<String> {
        let Tried { within_limit, failed, .. } = self.tried;
        // A load that could not run has no votes.
        let all = within_limit.checked_add(failed).filter(|_| within_limit > 0 && failed > 0)?;
        Some(format!("{within_limit} of {} met it", many(all.into(), "run")))
    }
}

/// The result of a search in words, and whether even its lowest load was over the limit.
pub(super) fn answer(
    resolved: &ResolvedSweep,
    directory: &SweepDirectory,
    why: Why,
) -> Option<(String, bool)> {
    let search = resolved.search.as_ref()?;
    if why != Why::Done {
        return None;
    }
    let key = directory.sweep.axes.first().map_or("", |axis| axis.key.as_str());
    let points = directory.sweep.points.iter().zip(&directory.runs);
    let found: Vec<Load<'_>> = points
        .filter_map(|(point, runs)| {
            let load = point.at.first()?.as_str();
            let tried = search.tried(load.parse().ok()?, runs, point.ended.as_deref());
            let reached = median_of(runs, |run| search.missed(run).unwrap_or(1.0));
            Some(Load {
                load,
                latency: median_of(runs, |run| run.limited_ns),
                reached: reached.filter(|share| *share < 1.0),
                tried,
                disturbed: runs.iter().filter(|run| run.disturbed).count(),
                verdict: search.verdict(runs),
            })
        })
        .collect();
    let first = found.first();
    let is_missed = first.is_some_and(|load| !load.passed() && load.verdict == Verdict::Over);
    Some((said(&search.words, key, search.bound.at, &found), is_missed))
}

/// The result of these loads, in words: where the limit is reached, and what is not known.
fn said(words: &str, key: &str, percentile: Percentile, found: &[Load<'_>]) -> String {
    let passed = || found.iter().take_while(|load| load.passed());
    let under = passed().filter(|load| load.verdict == Verdict::Within).last();
    let over = found.iter().find(|load| !load.passed());
    let highest = passed().last();
    let at = |load: &Load<'_>| format!("{key}={}", load.load);
    let say = |load: &Load<'_>| {
        let latency = load.latency.map_or_else(|| "without a result".to_owned(), latency);
        let share = load.reached.map(|share| format!(", {:.1} % of the rate", share * 100.0));
        let votes = load.votes().map(|votes| format!("; {votes}"));
        let [share, votes] = [share, votes].map(Option::unwrap_or_default);
        format!("{} ({latency}{share}{votes})", at(load))
    };
    let unknown = |load: &Load<'_>| load.latency.is_some() && load.verdict == Verdict::Unknown;
    let undecided = |load: &Load<'_>| load.verdict == Verdict::Undecided;
    let not = |load: &Load<'_>| match unknown(load) {
        true => format!("unknown at {}", at(load)),
        false if undecided(load) => format!("undecided at {}", say(load)),
        false => format!("not at {}", say(load)),
    };
    let mut text = match (under, over) {
        (Some(under), Some(over)) => format!("{words}: reached at {}, {}", say(under), not(over)),
        (Some(under), None) if highest.is_some_and(|last| last.load == under.load) => {
            format!("{words}: kept up to {}, the highest load tried; try higher", say(under))
        }
        (Some(under), None) => format!("{words}: reached at {}", say(under)),
        (None, Some(over)) if highest.is_none() && !unknown(over) => match undecided(over) {
            true => format!("{words}: {}", not(over)),
            false => format!("{words}: not reached even at {}", say(over)),
        },
        (None, Some(over)) if !unknown(over) => {
            format!("{words}: unknown below {}, which is over it", say(over))
        }
        (None, _) if found.is_empty() => format!("{words}: no measurement"),
        (None, _) => format!("{words}: unknown at every load"),
    };
    if found.iter().any(unknown) {
        _ = write!(
            text,
            "\nUnknown: fewer than the {} I/Os completed that {} needs; use a longer --runtime.",
            percentile.least_values(),
            percentile.label()
        );
    }
    let disturbed: usize = found.iter().map(|load| load.disturbed).sum();
    if disturbed > 0 {
        let words = disturbed_in(disturbed, "");
        let words = words.trim_end_matches('.');
        _ = write!(text, "\n{words}, so the limit may be met at a higher load without them.");
    }
    text
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
    fn a_search_says_where_runs_disagree_and_who_disturbed_them() {
        let load = |load, (within_limit, failed), disturbed, verdict| Load {
            load,
            latency: Some(2_070_000.0),
            reached: None,
            tried: Tried { load: 0, within_limit, failed },
            disturbed,
            verdict,
        };
        let said = |all: &[Load<'_>]| said("p99=2ms", "depth", Percentile::TAIL, all);
        let (over, within, undecided) = (Verdict::Over, Verdict::Within, Verdict::Undecided);
        let plain = "p99=2ms: not reached even at depth=1 (2.07 ms)";
        assert_eq!(said(&[load("1", (0, 3), 0, over)]), plain);
        let split = said(&[load("1", (2, 5), 7, undecided)]);
        let words = "p99=2ms: undecided at depth=1 (2.07 ms; 2 of 7 runs met it)\nDisturbed: \
                     others used the drive or the CPUs in 7 runs (other_traffic, other_cpu_time)";
        assert!(split.starts_with(words), "{split}");
        let both = [load("1", (4, 1), 0, within), load("2", (1, 4), 0, undecided)];
        let words = "p99=2ms: reached at depth=1 (2.07 ms; 4 of 5 runs met it), undecided at \
                     depth=2 (2.07 ms; 1 of 5 runs met it)";
        assert_eq!(said(&both), words);
        let failed = said(&[load("1", (0, u32::MAX), 0, over)]);
        assert!(failed.starts_with("p99=2ms: not reached even at"), "{failed}");
    }

    #[test]
    fn each_kind_of_doubt_has_its_reason_and_count() {
        let of = |doubts: &[(&'static str, &str)]| Run {
            doubts: doubts.iter().map(|(name, why)| (*name, (*why).to_owned())).collect(),
            ..run(1.0)
        };
        let all = [
            of(&[("too_short", "short"), ("not_storage", "the page cache served the loads")]),
            of(&[("not_storage", "no device holds the bytes"), ("content", "zeros")]),
            of(&[("disturbed", "others")]),
        ];
        let words = "Doubts: the page cache served the loads, or alike (2 of 3 runs); zeros (1 of \
                     3 runs).";
        assert_eq!(doubts_in_words(all.iter()).unwrap(), words);
        assert_eq!(doubts_in_words(all[2..].iter()), None);
    }

    #[test]
    fn a_grid_asks_for_more_runs_than_it_had() {
        assert_eq!([1, 2, 3, 5, 9].map(more_runs), [5, 5, 6, 10, 18]);
        let words = "Disturbed: others used the drive or the CPUs in 1 run of 5 (";
        assert!(disturbed_in(1, " of 5").starts_with(words));
    }

    fn run(rate: f64) -> Run {
        Run {
            bytes_per_s: rate,
            marks: String::new(),
            doubts: Vec::new(),
            iops: 0.0,
            median_ns: 0.0,
            tail_ns: 0.0,
            limited_ns: 0.0,
            max_ns: 0.0,
            cores: 0.0,
            of_ceiling: None,
            software_gpu: false,
            warned: false,
            disturbed: false,
            taken: Vec::new(),
            as_requested: Some(true),
            unsteady: false,
            short_of_rate: None,
            feed: None,
        }
    }

    /// Programs read numbers alone: what a terminal leaves out is there, however wide.
    #[test]
    fn an_interval_is_a_number_for_programs() {
        let runs = [1.0, 1.2, 4.0].map(run);
        let (mean, half) = mean_and_half(&runs, 0.95).unwrap();
        let percent = half / mean * 100.0;
        assert!((189.0..202.0).contains(&percent), "{percent}");
        assert_eq!(interval(&runs, 0.95), Some(Cell::shown("includes 0", percent)));
        assert_eq!(interval(&runs[..2], 0.95), None);
    }

    #[test]
    fn one_run_that_took_another_path_decides() {
        let of = |all: &[Option<bool>]| {
            let runs = all.iter().map(|is| Run { as_requested: *is, ..run(1.0) });
            as_requested(&runs.collect::<Vec<_>>())
        };
        assert_eq!(of(&[Some(true), Some(true)]), Some(true));
        assert_eq!(of(&[Some(true), None]), None);
        assert_eq!(of(&[Some(true), None, Some(false)]), Some(false));
    }

    #[test]
    fn medians() {
        let median = |rates: &[f64]| {
            median_of(&rates.iter().copied().map(run).collect::<Vec<_>>(), |run| run.bytes_per_s)
        };
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert!(median(&[4.0, f64::NAN, 1.0]).is_some_and(f64::is_nan), "one run lacks it");
    }
}
