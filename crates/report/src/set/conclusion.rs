//! The conclusion from a set, in two sentences: the first words of a report. The result of a search
//! for the highest load stands before them, and first of all the answers of loads with
//! a question of their own.
//!
//! The first sentence compares paths into GPU memory where they ran the same load, else it names
//! the rate of the only load, or the lowest and the highest. A path counts as the fastest of a
//! load only if its 95 % interval does not overlap that of the next one, or if there are too few
//! runs for intervals, which is said. The second sentence names what a reader must not overlook: a
//! run that ended early or was too short, wrong data, failed I/Os, bytes that took another path
//! than requested.

use std::collections::BTreeMap;

use gpuio_base::document::{grouped, unique};
use gpuio_base::stat::Percentile;
use gpuio_base::stat::infer::median;
use gpuio_record::{EndedHow, JobPlan, JobResult, Metric, Sweep};

use super::axes::{Column, Role, columns, shared_settings, with_settings};
use super::fix::points;
use super::rows::{Row, rows};
use super::summary::{interval, interval_words, median_of};
use super::{Member, Set};
use crate::fast_enough::fast_enough;
use crate::format::text;
use crate::number::{iops, many, throughput};
use crate::others;
use crate::printable;
use crate::standing;
use crate::workload::{
    is_mix, jobs, load_word, own_question, paced, rate_with_set_up, set_up_ns, sizes_short,
};
use gpuio_base::units::human_ns;

/// All runs of one load.
struct Point<'a> {
    rows: Vec<Row<'a>>,
    /// Values on the axes of the load, without the path.
    load: Vec<usize>,
    median: f64,
    /// 95 % interval of the mean rate; `None` with fewer than three runs.
    interval: Option<[f64; 2]>,
}

impl Point<'_> {
    fn path(&self) -> &str {
        &self.rows[0].plan.path.choice.actual
    }

    fn rate(&self) -> String {
        let mapped = self.rows.iter().any(|row| set_up_ns(row.plan, row.result).is_some());
        let with = if mapped { " with the time to map the files" } else { "" };
        format!("{}{with}", throughput(self.median))
    }

    /// Whether a run is known not to have moved its bytes as requested, so that it wins nothing.
    fn is_misled(&self) -> bool {
        let mut proofs = self.rows.iter().filter_map(|row| row.result.proof.as_ref());
        proofs.any(|proof| proof.is_as_requested() == Some(false))
    }

    /// With its depth, without which no two rates can be compared.
    fn rate_at_depth(&self) -> String {
        format!("{} {} at depth {}", self.path(), self.rate(), self.rows[0].plan.depth)
    }

    /// Whether it is faster than another beyond doubt; `None` without intervals.
    fn beats(&self, other: &Point<'_>) -> Option<bool> {
        Some(self.interval?[0] > other.interval?[1])
    }
}

pub(super) fn conclusion(set: &Set) -> Vec<String> {
    let rows = rows(set);
    if rows.is_empty() {
        let why = match set.members.is_empty() && !set.lacks.is_empty() {
            true => "No figure is shown: none of the records is the run that gpuio recorded there.",
            false => "No job of these records has a result.",
        };
        return vec![why.to_owned()];
    }
    let columns = columns(set, &rows);
    let points = measured(set, &rows, &columns);
    let mut result = match points.as_slice() {
        [one] => single(set, one),
        several => compared(several).unwrap_or_else(|| range(several)),
    };
    if points.len() > 1 && points.iter().any(|point| point.rows.len() > 1) {
        result.push_str(" Rates are medians over the runs of a load.");
    }
    let answers = set.sweeps.iter().filter_map(|sweep| sweep.answer.as_deref());
    let answers = answers.flat_map(str::lines).map(str::to_owned);
    let answers = set.sweeps.iter().filter_map(Sweep::unfinished).chain(answers);
    let answers = own_answers(set).into_iter().chain(answers);
    // Rates of a job that did not do its work come after that it did not.
    let is_wrong = |row: &Row<'_>| {
        let outcome = row.result.verify.as_ref();
        outcome.is_some_and(|outcome| outcome.bad_blocks > 0)
    };
    let mut sentences: Vec<String> =
        answers.chain([Some(result), caution(&rows)].into_iter().flatten()).collect();
    if rows.iter().any(is_wrong) {
        sentences.rotate_right(1);
    }
    sentences
}

/// Records at most whose answers stand here; with more, each has its answer in its own part.
pub(super) const ANSWERS_MOST: usize = 4;

/// The answer of each load that has a question of its own; of many, how many feeds have which.
fn own_answers(set: &Set) -> Vec<String> {
    let many_records = set.members.len() > ANSWERS_MOST;
    let several = set.members.len() > 1;
    let of = |member: &Member| {
        let name = if several { format!("{}: ", member.name) } else { String::new() };
        let answers = text::answers_in_words(&printable::record(&member.record), many_records);
        answers.into_iter().map(move |answer| format!("{name}{answer}")).collect::<Vec<String>>()
    };
    let own: Vec<Vec<String>> =
        set.members.iter().map(of).filter(|answers| !answers.is_empty()).collect();
    let feeds = many_records.then(|| feeds_in_words(set)).flatten();
    let own = match own.len() {
        0..=ANSWERS_MOST => own.concat(),
        records => vec![format!("{records} records have answers of their own: each in its part.")],
    };
    feeds.into_iter().chain(own).collect()
}

/// `Fast enough for the accelerators? no in 5 runs (utilisation 41.2 % to 46.9 %), yes in 1 run`
fn feeds_in_words(set: &Set) -> Option<String> {
    let judged = set.members.iter().flat_map(|member| {
        let of_job = |(plan, job)| {
            let (plan, job): (&JobPlan, &JobResult) = (plan, job);
            let word = fast_enough(&member.record, plan, job)?.word();
            Some((word, job.feed.as_ref()?.utilisation_percent))
        };
        jobs(&member.record).filter_map(of_job).collect::<Vec<_>>()
    });
    let words = |(word, reached): (&str, Vec<Option<f64>>)| {
        let known = || reached.iter().flatten().copied();
        let (least, most) = (known().reduce(f64::min), known().reduce(f64::max));
        let span = match (least, most) {
            (Some(least), Some(most)) if least < most => {
                format!(" (utilisation {least:.1} % to {most:.1} %)")
            }
            (Some(one), _) => format!(" (utilisation {one:.1} %)"),
            _ => String::new(),
        };
        format!("{word} in {}{span}", many(reached.len() as u64, "run"))
    };
    let all: Vec<String> = grouped(judged).into_iter().map(words).collect();
    (!all.is_empty()).then(|| format!("Fast enough for the accelerators? {}.", all.join(", ")))
}

fn measured<'a>(set: &Set, rows: &[Row<'a>], columns: &[Column]) -> Vec<Point<'a>> {
    let records: Vec<usize> = rows.iter().map(|row| row.nth).collect();
    let is_load = |column: &&Column| column.role == Role::Load && column.key != "path";
    let point = |of: Vec<usize>| {
        let load = columns.iter().filter(is_load).map(|column| column.of[of[0]]).collect();
        let rates: Vec<f64> = of.iter().map(|row| rate_of(&rows[*row])).collect();
        Point {
            load,
            median: median(&rates).unwrap_or(0.0),
            interval: interval(set, &rates),
            rows: of.iter().map(|row| rows[*row]).collect(),
        }
    };
    // A mix is one load: its first direction stands for both.
    let all = points(columns, &records).into_iter().filter(|of| !rows[of[0]].is_second());
    all.map(point).collect()
}

fn single(set: &Set, point: &Point<'_>) -> String {
    let first = &point.rows[0];
    let runs = match (point.rows.len(), interval_words(set, &rates(point))) {
        (1, _) => " (one run)".to_owned(),
        (runs, None) => format!(" (median of {runs} runs)"),
        (runs, Some(ends)) => {
            format!(" (median of {runs} runs; 95 % interval of the mean: {ends})")
        }
    };
    let load = first.whole_load_in_words();
    let mut text = format!("{}, {load}: {}{runs}", point.path(), point.rate());
    // Before the figure, which is not one of the storage.
    if let Some(doubt) = point.rows.iter().find_map(doubt) {
        text.insert_str(0, &format!("{doubt}. "));
    }
    let ios: Vec<f64> = point.rows.iter().map(|row| row.whole_rates().1).collect();
    text.extend(median(&ios).map(|value| format!(", {} IOPS", iops(value))));
    if is_mix(first.plan) {
        return text + ", reads and writes together.";
    }
    for at in Percentile::shown(&set.percentiles(), &Percentile::SHORT) {
        let value = median_of(&point.rows, &Metric::percentile(at));
        text.extend(value.map(|value| format!(", {} {}", at.label(), human_ns(value))));
    }
    text + "."
}

fn rates(point: &Point<'_>) -> Vec<f64> {
    point.rows.iter().map(rate_of).collect()
}

fn rate_of(row: &Row<'_>) -> f64 {
    rate_with_set_up(row.plan, row.result, row.whole_rates().0)
}

/// Loads that at least two paths into GPU memory ran as requested, each with its points, the
/// fastest first.
fn contests<'p, 'a>(points: &'p [Point<'a>]) -> Vec<Vec<&'p Point<'a>>> {
    let mut loads: BTreeMap<&[usize], Vec<&Point<'_>>> = BTreeMap::new();
    let to_gpu = |point: &&Point<'_>| !point.rows[0].plan.gpus.is_empty();
    for point in points.iter().filter(to_gpu).filter(|point| !point.is_misled()) {
        loads.entry(&point.load).or_default().push(point);
    }
    let several = |group: &Vec<&Point<'_>>| group.iter().any(|one| one.path() != group[0].path());
    let mut all: Vec<Vec<&Point<'_>>> = loads.into_values().filter(several).collect();
    all.iter_mut().for_each(|group| group.sort_by(|a, b| b.median.total_cmp(&a.median)));
    all
}

/// Loads at most that are named with their fastest path; of more the tables have each.
const LOADS_MOST: usize = 4;

fn compared(points: &[Point<'_>]) -> Option<String> {
    let contests = contests(points);
    if contests.is_empty() {
        return None;
    }
    let mut paths = unique(contests.iter().flatten().map(|point| point.path()));
    let mut wins: Vec<(&str, Vec<String>)> = Vec::new();
    let (mut unclear, mut without) = (0, false);
    for contest in &contests {
        let (first, next) = (contest.first()?, contest.get(1)?);
        let clear = first.beats(next);
        without |= clear.is_none();
        match (clear, wins.iter_mut().find(|(path, _)| *path == first.path())) {
            (Some(false), _) => unclear += 1,
            (_, Some((_, loads))) => loads.push(load(&first.rows[0])),
            (_, None) => wins.push((first.path(), vec![load(&first.rows[0])])),
        }
    }
    wins.sort_by_key(|(_, loads)| std::cmp::Reverse(loads.len()));
    paths.sort_unstable();
    let all = contests.len();
    let mut text = String::new();
    if all > 1 {
        let won = wins.iter().enumerate().map(|(nth, (path, loads))| {
            let named = match all {
                0..=LOADS_MOST => format!(" ({})", loads.join("; ")),
                _ => String::new(),
            };
            match nth {
                0 => format!("{path} was the fastest at {} of {all} loads{named}", loads.len()),
                _ => format!("{path} at {}{named}", loads.len()),
            }
        });
        let mut parts: Vec<String> = won.collect();
        if wins.is_empty() {
            parts.push(format!("none was clearly the fastest at any of {all} loads"));
        }
        let few = if without { " (medians; intervals need three runs)" } else { "" };
        let tie = match unclear {
            0 => String::new(),
            _ if wins.is_empty() => String::new(),
            many => format!("; at {many} the 95 % intervals of the two fastest overlap"),
        };
        text = format!("Paths {}: {}{few}{tie}. ", paths.join(", "), parts.join(", "));
    }
    Some(text + &difference(&contests)?)
}

/// The load at which paths differ most.
fn difference(contests: &[Vec<&Point<'_>>]) -> Option<String> {
    let ratio = |contest: &&Vec<&Point<'_>>| {
        let (first, last) = (contest.first()?, contest.last()?);
        (last.median > 0.0).then(|| first.median / last.median)
    };
    let clear = |contest: &&Vec<&Point<'_>>| {
        let ends = contest.first().zip(contest.last());
        ends.is_some_and(|(first, last)| first.beats(last) != Some(false))
    };
    let most = contests.iter().filter(clear).max_by(|a, b| {
        let of = |contest| ratio(contest).unwrap_or(0.0);
        of(a).total_cmp(&of(b))
    });
    let Some(most) = most else {
        return Some("At no load do the 95 % intervals of two paths lie apart.".to_owned());
    };
    let (first, last) = (most.first()?, most.last()?);
    let factor = ratio(&most)?;
    let depths = [first, last].map(|point| point.rows[0].plan.depth);
    let unequal = if depths[0] == depths[1] { "" } else { ", at unequal depth" };
    let words = times(factor) + unequal;
    let head = if contests.len() > 1 { "The largest difference is at " } else { "At " };
    let load = load(&first.rows[0]);
    Some(format!("{head}{load}: {}, {} ({words}).", first.rate_at_depth(), last.rate_at_depth()))
}

/// `3.7 times`, `12 % more`.
fn times(factor: f64) -> String {
    match factor {
        _ if factor >= 9.95 => format!("{factor:.0} times"),
        _ if factor >= 1.95 => format!("{factor:.1} times"),
        _ => format!("{:.0} % more", (factor - 1.0) * 100.0),
    }
}

/// The load without its depth, which differs between paths where it was automatic.
fn load(row: &Row<'_>) -> String {
    let threads = if row.plan.threads == 1 { "thread" } else { "threads" };
    let (rw, block) = (load_word(row.plan), sizes_short(row.plan));
    format!("{rw} {block}, {} {threads}", row.plan.threads)
}

fn range(points: &[Point<'_>]) -> String {
    let plans = || points.iter().map(|point| point.rows[0].plan);
    if unique(plans().map(own_question)).len() > 1 {
        let names = unique(plans().map(|plan| own_question(plan).unwrap_or(&plan.name)));
        let names = names.join(", ");
        return format!("Rates of loads with different questions are not compared: {names}.");
    }
    // The rate of a limited load is the request's, not the storage's.
    let is_free = |point: &&Point<'_>| paced(point.rows[0].plan).is_none();
    let free: Vec<&Point<'_>> = points.iter().filter(is_free).collect();
    if free.is_empty() {
        return at_their_rates(points);
    }
    let limited = (points.len() - free.len()) as u64;
    let (all, left_out) = match free.len() {
        1 => (points.iter().collect::<Vec<_>>(), String::new()),
        _ if limited == 0 => (free, String::new()),
        _ => (free, format!(" {} at a requested rate left out.", many(limited, "load"))),
    };
    let by = |a: &&&Point<'_>, b: &&&Point<'_>| a.median.total_cmp(&b.median);
    let (Some(low), Some(high)) = (all.iter().min_by(by), all.iter().max_by(by)) else {
        return String::new();
    };
    let rows: Vec<Row<'_>> = points.iter().map(|point| point.rows[0]).collect();
    let shared = shared_settings(&rows);
    let words = |point: &Point<'_>| {
        let row = &point.rows[0];
        let load = with_settings(row.whole_load_in_words(), row, &shared);
        format!("{}, {load}", point.path())
    };
    let alike = words(low) == words(high);
    let of = |point: &Point<'_>| {
        let job = if alike { format!("{}: ", point.rows[0].plan.name) } else { String::new() };
        let why = point.rows.iter().find_map(not_of_storage);
        let why = why.map_or_else(String::new, |why| format!("; {why}"));
        format!("{} ({job}{}{why})", point.rate(), words(point))
    };
    let kind = |point: &Point<'_>| {
        let plan = point.rows[0].plan;
        (load_word(plan), sizes_short(plan), paced(plan))
    };
    let apart = match high.beats(low) {
        // Loads of all kinds lie apart for many reasons, and so do unlike ones.
        _ if all.len() > 2 || kind(low) != kind(high) || low.median <= 0.0 => String::new(),
        Some(false) => ": their 95 % intervals overlap, so none is clearly faster".to_owned(),
        Some(true) => format!(": {}", times(high.median / low.median)),
        None => format!(": {} (an interval needs three runs)", times(high.median / low.median)),
    };
    format!("{} loads, from {} to {}{apart}.{left_out}", all.len(), of(low), of(high))
}

/// Loads that all had a requested rate: whether each kept it, and its latency there. A ratio of two
/// rates would be one of requests.
fn at_their_rates(points: &[Point<'_>]) -> String {
    let fell_behind = |point: &&Point<'_>| point.rows.iter().any(Row::is_behind);
    let behind = points.iter().filter(fell_behind).count();
    let all = points.len();
    let kept = match all - behind {
        kept if kept == all => format!("All {all} loads kept their requested rates"),
        0 => format!("None of {all} loads kept its requested rate"),
        kept => format!("{kept} of {all} loads kept their requested rates"),
    };
    let each = points.iter().map(|point| {
        let row = &point.rows[0];
        let tail = median_of(&point.rows, &Metric::percentile(Percentile::TAIL));
        let tail = tail.map(|ns| format!(", {} {}", Percentile::TAIL.label(), human_ns(ns)));
        let (path, tail) = (point.path(), tail.unwrap_or_default());
        let behind = if fell_behind(&point) { ", not kept" } else { "" };
        let load = row.whole_load_in_words();
        format!("{}{behind}{tail} ({path}, {load})", point.rate())
    });
    let each: Vec<String> = if all <= LOADS_MOST { each.collect() } else { Vec::new() };
    let colon = if each.is_empty() { "" } else { ": " };
    format!("{kept}{colon}{}.", each.join("; "))
}

/// Why a rate says nothing of the storage.
fn doubt(row: &Row<'_>) -> Option<String> {
    let short = || {
        let few = standing::too_short(row.record, row.plan)?;
        Some(format!("Too short to say what the storage delivers ({few})"))
    };
    row.unmeasured().map(|why| format!("Storage not measured: {why}")).or_else(short)
}

/// The same behind one of several rates.
fn not_of_storage(row: &Row<'_>) -> Option<String> {
    let short = || Some(format!("too short: {}", standing::too_short(row.record, row.plan)?));
    row.unmeasured().map(|why| format!("not of storage: {why}")).or_else(short)
}

fn others(row: &Row<'_>) -> Option<others::Others> {
    others::of(row.record, row.plan, row.result)
}

/// That others had a part in jobs, and how much at worst.
fn disturbed(rows: &[Row<'_>], disturbed: usize, of: &dyn Fn(usize) -> String) -> Option<String> {
    let worst = others::worst(&rows.iter().filter_map(others).collect::<Vec<_>>())?.words();
    let worst = if disturbed == 1 { worst } else { format!("at worst, {worst}") };
    Some(format!("the rate is not that of the storage alone in {} ({worst})", of(disturbed)))
}

/// Warnings that must not be overlooked; or that all went as requested, where that is known.
pub(super) fn caution(rows: &[Row<'_>]) -> Option<String> {
    let jobs = |test: &dyn Fn(&Row<'_>) -> bool| {
        let mut found: Vec<(usize, usize)> = Vec::new();
        found.extend(rows.iter().filter(|row| test(row)).map(|row| (row.nth, row.job)));
        // Both directions of a job stand side by side.
        found.dedup();
        found.len()
    };
    let all = jobs(&|_| true);
    let of = |number: usize| match (number, all) {
        (1, 1) => "the job".to_owned(),
        (number, all) if number == all => format!("all {all} jobs"),
        (number, all) => format!("{number} of {all} jobs"),
    };
    let mut parts: Vec<String> = Vec::new();
    let mut say = |number: usize, what: &str| {
        if number > 0 {
            parts.push(format!("{what} {}", of(number)));
        }
    };
    say(jobs(&|row| row.result.ended != EndedHow::Complete), "not complete:");
    say(
        jobs(&|row| row.result.verify.as_ref().is_some_and(|outcome| outcome.bad_blocks > 0)),
        "wrong data in",
    );
    say(
        jobs(&|row| row.result.verify.as_ref().is_some_and(|outcome| outcome.written_as.is_some())),
        "not verified, since the data were written with another bs, in",
    );
    say(jobs(&|row| row.figures().failed > 0), "failed I/Os in");
    say(jobs(&|row| row.plan.inject.is_some()), "gpuio injected faults in");
    say(
        jobs(&|row| standing::is_too_short(row.record, row.plan)),
        "too short for its rate or percentiles:",
    );
    say(
        jobs(&|row| row.result.others_cpu_unknown.is_some()),
        "unknown whether others used the CPUs in",
    );
    let content = |row: &Row<'_>| standing::content(row.plan, row.result);
    for words in unique(rows.iter().filter_map(content)) {
        let such = |row: &Row<'_>| content(row).as_deref() == Some(&words);
        say(jobs(&such), &format!("{words} in"));
    }
    for (is, what) in [
        (Some(false), "the bytes did not take the requested path in"),
        (None, "the path of the bytes could not be proved for"),
    ] {
        let such = |row: &Row<'_>| {
            row.result.proof.as_ref().is_some_and(|one| one.is_as_requested() == is)
        };
        let all: Vec<&Row<'_>> = rows.iter().filter(|row| such(row)).collect();
        let verdicts = all.iter().filter_map(|row| {
            let (path, proof) = (&row.plan.path.choice.actual, row.result.proof.as_ref()?);
            Some(format!("{path}: {}", proof.verdict.words))
        });
        let verdicts = unique(verdicts).join(", ");
        if !all.is_empty() {
            parts.push(format!("{what} {} ({verdicts})", of(jobs(&such))));
        }
    }
    // The first sentence says so of one load.
    let why = unique(rows.iter().filter_map(Row::unmeasured)).join("; ");
    if all > 1 && !why.is_empty() {
        let of = of(jobs(&|row| row.unmeasured().is_some()));
        parts.push(format!("the rate is not that of the storage in {of} ({why})"));
    }
    parts.extend(disturbed(rows, jobs(&|row| others(row).is_some()), &of));
    if parts.is_empty() {
        // Nothing is said where there are no bytes.
        let proven = !rows.is_empty() && rows.iter().all(|row| row.result.proof.is_some());
        return proven.then(|| "All bytes took the requested path.".to_owned());
    }
    Some(format!("Note: {}.", parts.join("; ")))
}
