//! The table of results, and its legend.

use gpuio_record::{
    CpuCost, EndedHow, JobPlan, JobResult, Latency, LeftOut, NeverStarted, Record, RunTotals,
    TimeSpan,
};

use super::detail::TOGETHER_PERCENT;
use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU, proof};
use crate::ceilings;
use crate::number::{NONE, iops, maybe_time, throughput, time};
use crate::verification;
use crate::workload::{
    Direction, blocks_short, directions, is_mix, jobs, load_word, rw_of, rw_short,
};
use crate::wrap::paragraph;
use gpuio_table::{Column, Grid, figures, words};

const COUNT: usize = 18;
/// Columns, in order.
static COLUMNS: [Column; COUNT] = [
    words("job"),
    words("path"),
    words("path taken"),
    words("engine"),
    figures("bs"),
    words("rw"),
    figures("T×D"),
    figures("throughput"),
    figures("IOPS"),
    words("% of"),
    figures("p50"),
    figures("p99"),
    figures("p99.9"),
    figures("max"),
    figures("CPUs"),
    figures("µs/MiB"),
    figures("failed"),
    words("verified"),
];
const TAKEN: usize = 2;
const RW: usize = 5;
const THREADS: usize = 6;
const OF: usize = 9;
const FAILED: usize = 16;
const VERIFIED: usize = 17;
/// Columns of the second table, if one table does not fit.
const LATENCY: [usize; 9] = [0, 1, 5, 10, 11, 12, 13, 14, 15];
/// Columns of the first table then.
const THROUGHPUT: [usize; 12] = [0, 1, TAKEN, 3, 4, 5, 6, 7, 8, OF, FAILED, VERIFIED];

/// Columns whose figures can do without the blank before their unit.
const TIGHT: [usize; 5] = [8, 10, 11, 12, 13];

type Cells = [String; COUNT];

/// Whether words are written in full or abbreviated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Full,
    Short,
}

/// One table, or two if one does not fit.
pub(super) fn render(record: &Record, width: u16) -> String {
    if jobs(record).next().is_none() {
        return "no job ran\n".to_owned();
    }
    let any_failed = jobs(record).any(|(_, job)| job.read.failed + job.write.failed > 0);
    // Old records have no verdicts.
    let any_proof = jobs(record).any(|(_, job)| job.proof.is_some());
    let any_ceiling = jobs(record)
        .any(|(_, job)| job.read.of_ceiling.is_some() || job.write.of_ceiling.is_some());
    let shown = |column: &usize| match *column {
        FAILED => any_failed,
        OF => any_ceiling,
        TAKEN => any_proof,
        _ => true,
    };
    let all: Vec<usize> = (0..COUNT).filter(shown).collect();
    let first: Vec<usize> = THROUGHPUT.into_iter().filter(shown).collect();
    let ran = [Words::Full, Words::Short].map(|words| (words, rows(record, words)));
    // A path that can do one job of several and not another is no path that is absent.
    let runs =
        |out: &&LeftOut| !record.plan.jobs.iter().any(|job| job.path.choice.actual == out.path);
    let absent = record.plan.left_out.iter().filter(runs);
    let mut with_absent = ran.clone();
    for (_, rows) in &mut with_absent {
        rows.extend(absent.clone().map(|out| absent_row(&out.path)));
    }
    if let Some(text) = fitted(&with_absent, &all, width) {
        return text;
    }
    let table = |rows: &[(Words, Vec<Cells>); 2], columns: &[usize]| {
        fitted(rows, columns, width).unwrap_or_else(|| {
            let [_, (words, rows)] = rows;
            grid(*words, rows, columns).at_any_width(width)
        })
    };
    let upper = table(&with_absent, &first);
    // The total of a mix has no latency.
    let with_latency = ran.map(|(words, rows)| {
        (words, rows.into_iter().filter(|row| !row[LATENCY[3]].is_empty()).collect())
    });
    let lower = table(&with_latency, &LATENCY);
    format!("{upper}\n{lower}")
}

/// The first form that fits: words in full, abbreviated, units without the blank before them, and
/// that with split job names.
fn fitted(forms: &[(Words, Vec<Cells>)], columns: &[usize], width: u16) -> Option<String> {
    let grids = || forms.iter().map(|(words, rows)| grid(*words, rows, columns));
    let tight = || grids().next_back().map(|grid| tight(grid, columns));
    let whole = grids().chain(tight()).find_map(|grid| grid.whole(width));
    whole.or_else(|| tight()?.cut(width))
}

fn tight(mut grid: Grid, columns: &[usize]) -> Grid {
    for row in &mut grid.rows {
        for (cell, _) in row.iter_mut().zip(columns).filter(|(_, column)| TIGHT.contains(column)) {
            *cell = cell.replace(' ', "");
        }
    }
    grid
}

fn grid(form: Words, rows: &[Cells], columns: &[usize]) -> Grid {
    let heading = |column: &usize| match (*column, form) {
        // Headings much wider than most of their cells.
        (VERIFIED, Words::Short) => words("verif."),
        (TAKEN, Words::Short) => words("taken"),
        (column, _) => COLUMNS[column].clone(),
    };
    let cells = |row: &Cells| columns.iter().map(|column| row[*column].clone()).collect();
    Grid { columns: columns.iter().map(heading).collect(), rows: rows.iter().map(cells).collect() }
}

/// The legend: full engine names, marks, and why paths did not run.
pub(super) fn legend(record: &Record, width: u16) -> String {
    let wide = width.min(PARAGRAPH_WIDTH);
    let mut out = engines(record, wide);
    out.push_str(&totals(record, wide));
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for absent in &record.plan.left_out {
        match reasons.iter_mut().find(|(why, _)| *why == absent.why) {
            Some((_, paths)) => paths.push(&absent.path),
            None => reasons.push((&absent.why, vec![&absent.path])),
        }
    }
    for (why, paths) in reasons {
        let text = format!("{}: {why}", paths.join(", "));
        out.push_str(&paragraph("not here: ", &text, wide));
    }
    out
}

/// The time span of the rates of totals, if it is not the time of all jobs.
fn totals(record: &Record, width: u16) -> String {
    let mut out = String::new();
    for total in &record.totals {
        if jobs(record).filter(|(plan, _)| plan.group == total.group).count() < 2 {
            continue;
        }
        let group = total.group;
        if let Some(why) = &total.why_no_rate {
            let text = format!("group {group} has no rate: {why}");
            out.push_str(&paragraph("totals:  ", &text, width));
        }
        let part = |span: &TimeSpan| span.length_ns() < total.last_done_ns / 100 * TOGETHER_PERCENT;
        if let Some(span) = total.common.filter(part) {
            let (part, all) = (time(span.length_ns()), time(total.last_done_ns));
            let text = format!(
                "rates of group {group} are over the {part} in which all its jobs ran, of {all}"
            );
            out.push_str(&paragraph("totals:  ", &text, width));
        }
    }
    out
}

/// Each engine with its set-up, if the table only shows its name; with jobs if one name had several
/// set-ups.
fn engines(record: &Record, width: u16) -> String {
    let mut setups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (plan, job) in jobs(record) {
        for engine in &job.engine {
            match setups.iter_mut().find(|(actual, _)| *actual == engine.actual) {
                Some((_, names)) if names.contains(&plan.name.as_str()) => {}
                Some((_, names)) => names.push(&plan.name),
                None => setups.push((&engine.actual, vec![&plan.name])),
            }
        }
    }
    let mut out = String::new();
    if setups.iter().any(|(actual, _)| short_name(actual) != *actual) {
        let several = |actual: &str| {
            let alike = setups.iter().filter(|(other, _)| short_name(other) == short_name(actual));
            alike.count() > 1
        };
        let words: Vec<String> = setups
            .iter()
            .map(|(actual, names)| match several(actual) {
                true => format!("{actual}: {}", names.join(", ")),
                false => (*actual).to_owned(),
            })
            .collect();
        out.push_str(&paragraph("engines: ", &words.join("; "), width));
    }
    if jobs(record).any(|(_, job)| stepped_down(job)) {
        let text = "not everything that was requested of the engine was available; the warnings \
            have the details";
        out.push_str(&paragraph("*        ", text, width));
    }
    out
}

/// `io_uring` of `io_uring (fixed buffers, fixed files)`.
fn short_name(actual: &str) -> &str {
    actual.split_once(" (").map_or(actual, |(name, _)| name)
}

fn stepped_down(job: &JobResult) -> bool {
    job.engine.iter().any(|engine| !engine.steps_down.is_empty())
}

/// Names of the engines that ran, with a mark if one provided less than requested.
fn engine_cell(plan: &JobPlan, job: &JobResult) -> String {
    let mut names: Vec<&str> = Vec::new();
    for engine in &job.engine {
        let name = short_name(&engine.actual);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push(short_name(&plan.engine.actual));
    }
    let mark = if stepped_down(job) { "*" } else { "" };
    format!("{}{mark}", names.join("+"))
}

/// A path that can't run on this machine.
fn absent_row(path: &str) -> Cells {
    let mut cells = Cells::default();
    cells[0] = NONE.to_owned();
    cells[1] = path.to_owned();
    cells[3] = "not here".to_owned();
    cells
}

fn rows(record: &Record, words: Words) -> Vec<Cells> {
    let mark = record.plan.software_gpu.then_some(words);
    let mut rows = Vec::new();
    let mut in_group = 0;
    let mut jobs = jobs(record).peekable();
    while let Some((plan, job)) = jobs.next() {
        in_group += 1;
        for (nth, direction) in directions(plan).iter().enumerate() {
            let mut row = job_row(plan, job, *direction, nth == 0, (words, mark));
            if let Some(all) = &record.ranks {
                // Ranks × threads of each × depth.
                row[THREADS] = format!("{}×{}", all.ranks, row[THREADS]);
            }
            rows.push(row);
        }
        rows.extend(mix_row(plan, job, (words, mark)));
        if jobs.peek().is_some_and(|(next, _)| next.group == plan.group) {
            continue;
        }
        if in_group > 1
            && let Some(totals) = record.totals.iter().find(|total| total.group == plan.group)
        {
            rows.extend(total_rows(record, totals, mark));
        }
        in_group = 0;
    }
    rows
}

/// The path, marked if no hardware was used.
pub(super) fn path_cell(path: &str, software: Option<Words>) -> String {
    match (path, software) {
        (path, None) => path.to_owned(),
        ("", Some(Words::Full)) => SOFTWARE_GPU.to_owned(),
        (path, Some(Words::Full)) => format!("{path}, {SOFTWARE_GPU}"),
        ("", Some(Words::Short)) => "soft GPU".to_owned(),
        (path, Some(Words::Short)) => format!("soft:{path}"),
    }
}

/// CPU cost and verification are for the whole job: they are in its first row.
fn job_row(
    plan: &JobPlan,
    job: &JobResult,
    direction: Direction,
    first: bool,
    (words, software): (Words, Option<Words>),
) -> Cells {
    let result = direction.of(job);
    let partial = if job.ended == EndedHow::Complete { "" } else { " (partial)" };
    let [cpus, cost] = if first { cpu_cells(&job.cpu) } else { [String::new(), String::new()] };
    let [p50, p99, p99_9, max] = latency_cells(result.latency.as_ref(), missing(plan, job));
    [
        format!("{}{partial}", plan.name),
        path_cell(&plan.path.choice.actual, software),
        proof::cell(job.proof.as_ref(), words),
        engine_cell(plan, job),
        blocks_short(&plan.blocks),
        match words {
            Words::Full => rw_of(plan, direction),
            Words::Short => rw_short(plan, Some(direction)),
        },
        format!("{}×{}", plan.threads, plan.depth),
        throughput(result.bytes_per_s),
        iops(result.iops),
        ceilings::cell(result.of_ceiling.as_ref()),
        p50,
        p99,
        p99_9,
        max,
        cpus,
        cost,
        result.failed.to_string(),
        if first { verification::word(job.verify.as_ref()) } else { String::new() },
    ]
}

/// Three digits, or all before the point: otherwise a rare large figure would widen the column.
fn cost(us_per_mib: f64) -> String {
    if us_per_mib < 100.0 { format!("{us_per_mib:.1}") } else { format!("{us_per_mib:.0}") }
}

fn cpu_cells(cpu: &CpuCost) -> [String; 2] {
    let sign = cpu.scope.sign();
    let cost = cpu.us_per_mib.map_or_else(|| NONE.to_owned(), |us| format!("{sign}{}", cost(us)));
    [format!("{sign}{:.2}", cpu.cores_busy), cost]
}

/// I/Os of a job that were due and never started, where there are so many that they count.
fn missing(plan: &JobPlan, job: &JobResult) -> NeverStarted {
    job.never_started.filter(|never| never.matters(plan.threads)).unwrap_or_default()
}

/// If I/Os were due and never started, the others give a lower bound of the percentiles that the
/// missing ones can raise. In a mix any of them may be of this direction.
fn latency_cells(latency: Option<&Latency>, missing: NeverStarted) -> [String; 4] {
    let Some(total) = latency.map(|latency| &latency.total) else {
        return [(); 4].map(|()| maybe_time(None));
    };
    let cell = |quantile: f64, ns: Option<u64>| match ns {
        Some(ns) if total.could_be_higher(quantile, missing.ios) => format!("≥{}", time(ns)),
        ns => maybe_time(ns),
    };
    [
        cell(0.5, Some(total.p50_ns)),
        cell(0.99, total.p99_ns),
        cell(0.999, total.p99_9_ns),
        cell(1.0, Some(total.max_ns.max(missing.longest_wait_ns))),
    ]
}

/// Both directions of a mix together: the job's own figures.
fn mix_row(
    plan: &JobPlan,
    job: &JobResult,
    (words, software): (Words, Option<Words>),
) -> Option<Cells> {
    if !is_mix(plan) {
        return None;
    }
    let mut cells = Cells::default();
    cells[0].clone_from(&plan.name);
    cells[1] = path_cell(&plan.path.choice.actual, software);
    cells[RW] = match words {
        Words::Full => format!("{} total", load_word(plan)),
        Words::Short => rw_short(plan, None),
    };
    cells[7] = throughput(job.read.bytes_per_s + job.write.bytes_per_s);
    cells[8] = iops(job.read.iops + job.write.iops);
    cells[FAILED] = (job.read.failed + job.write.failed).to_string();
    Some(cells)
}

/// A row per direction that a job of the group was to do.
fn total_rows(record: &Record, totals: &RunTotals, software: Option<Words>) -> Vec<Cells> {
    let group = || jobs(record).filter(|(plan, _)| plan.group == totals.group);
    let threads: u64 = group().map(|(plan, _)| u64::from(plan.threads)).sum();
    let mut rows = Vec::new();
    for direction in [Direction::Read, Direction::Write] {
        if !group().any(|(plan, _)| directions(plan).contains(&direction)) {
            continue;
        }
        let result = match direction {
            Direction::Read => &totals.read,
            Direction::Write => &totals.write,
        };
        let first = rows.is_empty();
        let [cpus, cost] =
            if first { cpu_cells(&totals.cpu) } else { [String::new(), String::new()] };
        let never = group().map(|(plan, job)| missing(plan, job));
        let never = never.fold(NeverStarted::default(), |all, one| NeverStarted {
            ios: all.ios.saturating_add(one.ios),
            longest_wait_ns: all.longest_wait_ns.max(one.longest_wait_ns),
        });
        let [p50, p99, p99_9, max] = latency_cells(result.latency.as_ref(), never);
        let rate = |rate: Option<f64>, print: fn(f64) -> String| {
            rate.map_or_else(|| NONE.to_owned(), print)
        };
        rows.push([
            format!("total, group {}", totals.group),
            path_cell("", software),
            String::new(),
            String::new(),
            String::new(),
            direction.name().to_owned(),
            threads.to_string(),
            rate(result.bytes_per_s, throughput),
            rate(result.iops, iops),
            String::new(),
            p50,
            p99,
            p99_9,
            max,
            cpus,
            cost,
            result.failed.to_string(),
            String::new(),
        ]);
    }
    rows
}
