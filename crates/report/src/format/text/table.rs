//! The table of results, and its legend.

use gpuio_record::{
    CpuCost, EndedHow, JobPlan, JobResult, Latency, LeftOut, NeverStarted, Record, RunTotals,
    TimeSpan, Towards,
};
use gpuio_stat::Percentile;

use super::detail::TOGETHER_PERCENT;
use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU, proof};
use crate::ceilings;
use crate::number::{NONE, iops, maybe_time, throughput, time};
use crate::verification;
use crate::workload::{blocks_short, is_mix, jobs, load_word, rw_of, rw_short};
use crate::wrap::paragraph;
use gpuio_table::{Column, Grid, figures, words};

/// One line of the table: what its columns show. A cell without a figure is empty.
#[derive(Clone, Default)]
struct Line {
    job: String,
    path: String,
    taken: String,
    engine: String,
    bs: String,
    rw: String,
    threads: String,
    throughput: String,
    iops: String,
    of_ceiling: String,
    percentiles: Vec<String>,
    max: String,
    cpus: String,
    cost: String,
    failed: String,
    verified: String,
}

/// A column.
struct Shown {
    head: Column,
    /// Its head if words are abbreviated.
    short: Option<&'static str>,
    /// Whether its figures can do without the blank before their unit.
    tight: bool,
    /// Whether it is in the first and in the second table, if one does not fit.
    tables: (bool, bool),
    cell: Cell,
}

/// Its part of a line.
enum Cell {
    Field(fn(&Line) -> &str),
    Percentile(usize),
}

impl Cell {
    fn of<'a>(&self, line: &'a Line) -> &'a str {
        match self {
            Cell::Field(field) => field(line),
            Cell::Percentile(nth) => line.percentiles.get(*nth).map_or("", String::as_str),
        }
    }
}

const BOTH: (bool, bool) = (true, true);
const RATES: (bool, bool) = (true, false);
const LATENCIES: (bool, bool) = (false, true);

impl Shown {
    fn new(head: Column, tables: (bool, bool), cell: fn(&Line) -> &str) -> Shown {
        Shown { head, short: None, tight: false, tables, cell: Cell::Field(cell) }
    }

    /// One whose head is much wider than most of its cells.
    fn short(self, head: &'static str) -> Shown {
        Shown { short: Some(head), ..self }
    }

    fn tight(self) -> Shown {
        Shown { tight: true, ..self }
    }

    fn percentile(nth: usize, at: Percentile) -> Shown {
        let head = Column { name: at.label().into(), left: false };
        let tables = LATENCIES;
        Shown { head, short: None, tight: true, tables, cell: Cell::Percentile(nth) }
    }
}

/// The columns that the record has something for, in order.
fn columns(record: &Record, percentiles: &[Percentile]) -> Vec<Shown> {
    let any = |has: fn(&JobResult) -> bool| jobs(record).any(|(_, job)| has(job));
    // Old records have no verdicts.
    let taken = any(|job| job.proof.is_some());
    let failed = any(|job| job.read.failed + job.write.failed > 0);
    let ceilings = any(|job| job.read.of_ceiling.is_some() || job.write.of_ceiling.is_some());
    let mut all = vec![
        Shown::new(words("job"), BOTH, |line| &line.job),
        Shown::new(words("path"), BOTH, |line| &line.path),
    ];
    let verdict = || Shown::new(words("path taken"), RATES, |line| &line.taken).short("taken");
    all.extend(taken.then(verdict));
    all.extend([
        Shown::new(words("engine"), RATES, |line| &line.engine),
        Shown::new(figures("bs"), RATES, |line| &line.bs),
        Shown::new(words("rw"), BOTH, |line| &line.rw),
        Shown::new(figures("T×D"), RATES, |line| &line.threads),
        Shown::new(figures("throughput"), RATES, |line| &line.throughput),
        Shown::new(figures("IOPS"), RATES, |line| &line.iops).tight(),
    ]);
    all.extend(ceilings.then(|| Shown::new(words("% of"), RATES, |line| &line.of_ceiling)));
    let each = percentiles.iter().enumerate();
    all.extend(each.map(|(nth, at)| Shown::percentile(nth, *at)));
    all.extend([
        Shown::new(figures("max"), LATENCIES, |line| &line.max).tight(),
        Shown::new(figures("CPUs"), LATENCIES, |line| &line.cpus),
        Shown::new(figures("µs/MiB"), LATENCIES, |line| &line.cost),
    ]);
    all.extend(failed.then(|| Shown::new(figures("failed"), RATES, |line| &line.failed)));
    all.push(Shown::new(words("verified"), RATES, |line| &line.verified).short("verif."));
    all
}

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
    let percentiles = Percentile::shown(&record.percentiles(), &Percentile::TABLE);
    let all = columns(record, &percentiles);
    let ran = [Words::Full, Words::Short].map(|words| (words, lines(record, &percentiles, words)));
    // A path that can do one job of several and not another is no path that is absent.
    let runs =
        |out: &&LeftOut| !record.plan.jobs.iter().any(|job| job.path.choice.actual == out.path);
    let absent = record.plan.left_out.iter().filter(runs);
    let mut with_absent = ran.clone();
    for (_, lines) in &mut with_absent {
        lines.extend(absent.clone().map(|out| absent_line(&out.path)));
    }
    let every: Vec<&Shown> = all.iter().collect();
    if let Some(text) = fitted(&with_absent, &every, width) {
        return text;
    }
    let table = |lines: &[(Words, Vec<Line>); 2], columns: &[&Shown]| {
        fitted(lines, columns, width).unwrap_or_else(|| {
            let [_, (words, lines)] = lines;
            grid(*words, lines, columns).at_any_width(width)
        })
    };
    let rates: Vec<&Shown> = all.iter().filter(|column| column.tables.0).collect();
    let upper = table(&with_absent, &rates);
    // The total of a mix has no latency.
    let with_latency = ran.map(|(words, lines)| {
        (words, lines.into_iter().filter(|line| !line.max.is_empty()).collect())
    });
    let latencies: Vec<&Shown> = all.iter().filter(|column| column.tables.1).collect();
    let lower = table(&with_latency, &latencies);
    format!("{upper}\n{lower}")
}

/// The first form that fits: words in full, abbreviated, units without the blank before them, and
/// that with split job names.
fn fitted(forms: &[(Words, Vec<Line>)], columns: &[&Shown], width: u16) -> Option<String> {
    let grids = || forms.iter().map(|(words, lines)| grid(*words, lines, columns));
    let tight = || grids().next_back().map(|grid| tight(grid, columns));
    let whole = grids().chain(tight()).find_map(|grid| grid.whole(width));
    whole.or_else(|| tight()?.cut(width))
}

fn tight(mut grid: Grid, columns: &[&Shown]) -> Grid {
    for row in &mut grid.rows {
        for (cell, _) in row.iter_mut().zip(columns).filter(|(_, column)| column.tight) {
            *cell = cell.replace(' ', "");
        }
    }
    grid
}

fn grid(form: Words, lines: &[Line], columns: &[&Shown]) -> Grid {
    let heading = |column: &&Shown| match (column.short, form) {
        (Some(short), Words::Short) => words(short),
        _ => column.head.clone(),
    };
    let cells =
        |line: &Line| columns.iter().map(|column| column.cell.of(line).to_owned()).collect();
    let rows = lines.iter().map(cells).collect();
    Grid { columns: columns.iter().map(heading).collect(), rows }
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
fn absent_line(path: &str) -> Line {
    let (job, engine) = (NONE.to_owned(), "not here".to_owned());
    Line { job, path: path.to_owned(), engine, ..Line::default() }
}

fn lines(record: &Record, percentiles: &[Percentile], words: Words) -> Vec<Line> {
    let mark = record.plan.software_gpu.then_some(words);
    let mut lines = Vec::new();
    let mut in_group = 0;
    let mut jobs = jobs(record).peekable();
    while let Some((plan, job)) = jobs.next() {
        in_group += 1;
        for (nth, direction) in plan.directions().iter().enumerate() {
            let mut line = job_line((plan, job, *direction), percentiles, nth == 0, (words, mark));
            if let Some(all) = &record.ranks {
                // Ranks × threads of each × depth.
                line.threads = format!("{}×{}", all.ranks, line.threads);
            }
            lines.push(line);
        }
        lines.extend(mix_line(plan, job, (words, mark)));
        if jobs.peek().is_some_and(|(next, _)| next.group == plan.group) {
            continue;
        }
        if in_group > 1
            && let Some(totals) = record.totals.iter().find(|total| total.group == plan.group)
        {
            lines.extend(total_lines(record, totals, percentiles, mark));
        }
        in_group = 0;
    }
    lines
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
fn job_line(
    (plan, job, direction): (&JobPlan, &JobResult, Towards),
    percentiles: &[Percentile],
    first: bool,
    (words, software): (Words, Option<Words>),
) -> Line {
    let result = direction.of(job);
    let partial = if job.ended == EndedHow::Complete { "" } else { " (partial)" };
    let [cpus, cost] = if first { cpu_cells(&job.cpu) } else { [String::new(), String::new()] };
    let line = Line {
        job: format!("{}{partial}", plan.name),
        path: path_cell(&plan.path.choice.actual, software),
        taken: proof::cell(job.proof.as_ref(), words),
        engine: engine_cell(plan, job),
        bs: blocks_short(&plan.blocks),
        rw: match words {
            Words::Full => rw_of(plan, direction),
            Words::Short => rw_short(plan, Some(direction)),
        },
        threads: format!("{}×{}", plan.threads, plan.depth),
        throughput: throughput(result.bytes_per_s),
        iops: iops(result.iops),
        of_ceiling: ceilings::cell(result.of_ceiling.as_ref()),
        cpus,
        cost,
        failed: result.failed.to_string(),
        verified: if first { verification::word(job.verify.as_ref()) } else { String::new() },
        ..Line::default()
    };
    with_latency(line, result.latency.as_ref(), percentiles, missing(plan, job))
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
fn with_latency(
    line: Line,
    latency: Option<&Latency>,
    percentiles: &[Percentile],
    missing: NeverStarted,
) -> Line {
    let total = latency.map(|latency| &latency.total);
    let cell = |quantile: f64, ns: Option<u64>| match (ns, total) {
        (Some(ns), Some(total)) if total.could_be_higher(quantile, missing.ios) => {
            format!("≥{}", time(ns))
        }
        (ns, _) => maybe_time(ns),
    };
    let percentile =
        |at: &Percentile| cell(at.quantile(), total.and_then(|all| all.percentile(*at)));
    Line {
        percentiles: percentiles.iter().map(percentile).collect(),
        max: cell(1.0, total.map(|total| total.max_ns.max(missing.longest_wait_ns))),
        ..line
    }
}

/// Both directions of a mix together: the job's own figures.
fn mix_line(
    plan: &JobPlan,
    job: &JobResult,
    (words, software): (Words, Option<Words>),
) -> Option<Line> {
    if !is_mix(plan) {
        return None;
    }
    Some(Line {
        job: plan.name.clone(),
        path: path_cell(&plan.path.choice.actual, software),
        rw: match words {
            Words::Full => format!("{} total", load_word(plan)),
            Words::Short => rw_short(plan, None),
        },
        throughput: throughput(job.read.bytes_per_s + job.write.bytes_per_s),
        iops: iops(job.read.iops + job.write.iops),
        failed: (job.read.failed + job.write.failed).to_string(),
        ..Line::default()
    })
}

/// A row per direction that a job of the group was to do.
fn total_lines(
    record: &Record,
    totals: &RunTotals,
    percentiles: &[Percentile],
    software: Option<Words>,
) -> Vec<Line> {
    let group = || jobs(record).filter(|(plan, _)| plan.group == totals.group);
    let threads: u64 = group().map(|(plan, _)| u64::from(plan.threads)).sum();
    let mut lines: Vec<Line> = Vec::new();
    for (direction, result) in [(Towards::Read, &totals.read), (Towards::Write, &totals.write)] {
        if !group().any(|(plan, _)| plan.directions().contains(&direction)) {
            continue;
        }
        let first = lines.is_empty();
        let [cpus, cost] =
            if first { cpu_cells(&totals.cpu) } else { [String::new(), String::new()] };
        let never = group().map(|(plan, job)| missing(plan, job));
        let never = never.fold(NeverStarted::default(), |all, one| NeverStarted {
            ios: all.ios.saturating_add(one.ios),
            longest_wait_ns: all.longest_wait_ns.max(one.longest_wait_ns),
        });
        let rate = |rate: Option<f64>, print: fn(f64) -> String| {
            rate.map_or_else(|| NONE.to_owned(), print)
        };
        let line = Line {
            job: format!("total, group {}", totals.group),
            path: path_cell("", software),
            rw: direction.name().to_owned(),
            threads: threads.to_string(),
            throughput: rate(result.bytes_per_s, throughput),
            iops: rate(result.iops, iops),
            cpus,
            cost,
            failed: result.failed.to_string(),
            ..Line::default()
        };
        lines.push(with_latency(line, result.latency.as_ref(), percentiles, never));
    }
    lines
}
