//! The table of results, and its legend.

use std::collections::BTreeMap;

use gpuio_base::stat::Percentile;
use gpuio_record::{
    CpuCost, EndedHow, JobPlan, JobResult, Latency, LeftOut, NeverStarted, Record, RunTotals,
    TimeSpan, Towards,
};

use super::detail::TOGETHER_PERCENT;
use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU, proof};
use crate::ceilings;
use crate::number::{NONE, iops, maybe_time, throughput, time};
use crate::verification;
use crate::workload::{blocks_short, is_mix, jobs, load_word, rw_of, rw_short};
use crate::wrap::paragraph;
use gpuio_table::{Column, Grid, figures, words};

/// A cell of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Job,
    Path,
    Taken,
    Engine,
    Bs,
    Rw,
    Threads,
    Throughput,
    Iops,
    OfCeiling,
    Percentile(Percentile),
    Max,
    Cpus,
    Cost,
    Failed,
    Verified,
}

/// One line of the table; a cell that it does not have is empty.
type Line = BTreeMap<Cell, String>;

/// A column.
#[derive(Clone)]
struct Shown {
    cell: Cell,
    head: Column,
    /// Its head if words are abbreviated: that of a column whose cells are much narrower.
    short: Option<&'static str>,
    /// Whether its figures can do without the blank before their unit.
    tight: bool,
    /// The two tables in which it is, if one does not fit.
    tables: Tables,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tables {
    Both,
    Rates,
    Latencies,
}

const fn shown(cell: Cell, head: Column, tables: Tables) -> Shown {
    Shown { cell, head, short: None, tight: false, tables }
}

/// The columns that the record has something for, in order.
fn columns(record: &Record, percentiles: &[Percentile]) -> Vec<Shown> {
    use Tables::{Both, Latencies, Rates};
    let any = |has: fn(&JobResult) -> bool| jobs(record).any(|(_, job)| has(job));
    let mut all = vec![
        shown(Cell::Job, words("job"), Both),
        shown(Cell::Path, words("path"), Both),
        Shown { short: Some("taken"), ..shown(Cell::Taken, words("path taken"), Rates) },
        shown(Cell::Engine, words("engine"), Rates),
        shown(Cell::Bs, figures("bs"), Rates),
        shown(Cell::Rw, words("rw"), Both),
        shown(Cell::Threads, figures("T×D"), Rates),
        shown(Cell::Throughput, figures("throughput"), Rates),
        Shown { tight: true, ..shown(Cell::Iops, figures("IOPS"), Rates) },
        shown(Cell::OfCeiling, words("% of"), Rates),
    ];
    all.extend(percentiles.iter().map(|at| {
        let head = Column { name: at.label().into(), left: false };
        Shown { tight: true, ..shown(Cell::Percentile(*at), head, Latencies) }
    }));
    all.extend([
        Shown { tight: true, ..shown(Cell::Max, figures("max"), Latencies) },
        shown(Cell::Cpus, figures("CPUs"), Latencies),
        shown(Cell::Cost, figures("µs/MiB"), Latencies),
        shown(Cell::Failed, figures("failed"), Rates),
        Shown { short: Some("verif."), ..shown(Cell::Verified, words("verified"), Rates) },
    ]);
    all.retain(|column| match column.cell {
        // Old records have no verdicts.
        Cell::Taken => any(|job| job.proof.is_some()),
        Cell::OfCeiling => {
            any(|job| job.read.of_ceiling.is_some() || job.write.of_ceiling.is_some())
        }
        Cell::Failed => any(|job| job.read.failed + job.write.failed > 0),
        _ => true,
    });
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
    if let Some(text) = fitted(&with_absent, &all, width) {
        return text;
    }
    let table = |lines: &[(Words, Vec<Line>); 2], columns: &[Shown]| {
        fitted(lines, columns, width).unwrap_or_else(|| {
            let [_, (words, lines)] = lines;
            grid(*words, lines, columns).at_any_width(width)
        })
    };
    let part =
        |not: Tables| all.iter().filter(|column| column.tables != not).cloned().collect::<Vec<_>>();
    let upper = table(&with_absent, &part(Tables::Latencies));
    // The total of a mix has no latency.
    let with_latency = ran.map(|(words, lines)| {
        (words, lines.into_iter().filter(|line| line.contains_key(&Cell::Max)).collect())
    });
    let lower = table(&with_latency, &part(Tables::Rates));
    format!("{upper}\n{lower}")
}

/// The first form that fits: words in full, abbreviated, units without the blank before them, and
/// that with split job names.
fn fitted(forms: &[(Words, Vec<Line>)], columns: &[Shown], width: u16) -> Option<String> {
    let grids = || forms.iter().map(|(words, lines)| grid(*words, lines, columns));
    let tight = || grids().next_back().map(|grid| tight(grid, columns));
    let whole = grids().chain(tight()).find_map(|grid| grid.whole(width));
    whole.or_else(|| tight()?.cut(width))
}

fn tight(mut grid: Grid, columns: &[Shown]) -> Grid {
    for row in &mut grid.rows {
        for (cell, _) in row.iter_mut().zip(columns).filter(|(_, column)| column.tight) {
            *cell = cell.replace(' ', "");
        }
    }
    grid
}

fn grid(form: Words, lines: &[Line], columns: &[Shown]) -> Grid {
    let heading = |column: &Shown| match (column.short, form) {
        (Some(short), Words::Short) => words(short),
        _ => column.head.clone(),
    };
    let cell = |line: &Line, column: &Shown| line.get(&column.cell).cloned().unwrap_or_default();
    let cells = |line: &Line| columns.iter().map(|column| cell(line, column)).collect();
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
    let cells = [(Cell::Job, NONE), (Cell::Path, path), (Cell::Engine, "not here")];
    cells.map(|(cell, text)| (cell, text.to_owned())).into()
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
                line.entry(Cell::Threads)
                    .and_modify(|text| *text = format!("{}×{text}", all.ranks));
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
    let rw = match words {
        Words::Full => rw_of(plan, direction),
        Words::Short => rw_short(plan, Some(direction)),
    };
    let mut line = Line::from([
        (Cell::Job, format!("{}{partial}", plan.name)),
        (Cell::Path, path_cell(&plan.path.choice.actual, software)),
        (Cell::Taken, proof::cell(job.proof.as_ref(), words)),
        (Cell::Engine, engine_cell(plan, job)),
        (Cell::Bs, blocks_short(&plan.blocks)),
        (Cell::Rw, rw),
        (Cell::Threads, format!("{}×{}", plan.threads, plan.depth)),
        (Cell::Throughput, throughput(result.bytes_per_s)),
        (Cell::Iops, iops(result.iops)),
        (Cell::OfCeiling, ceilings::cell(result.of_ceiling.as_ref())),
        (Cell::Failed, result.failed.to_string()),
    ]);
    line.extend(latencies(result.latency.as_ref(), percentiles, missing(plan, job)));
    if first {
        line.extend(cpu_cells(&job.cpu));
        line.insert(Cell::Verified, verification::word(job.verify.as_ref()));
    }
    line
}

/// Three digits, or all before the point: otherwise a rare large figure would widen the column.
fn cost(us_per_mib: f64) -> String {
    if us_per_mib < 100.0 { format!("{us_per_mib:.1}") } else { format!("{us_per_mib:.0}") }
}

fn cpu_cells(cpu: &CpuCost) -> [(Cell, String); 2] {
    let sign = cpu.scope.sign();
    let cost = cpu.us_per_mib.map_or_else(|| NONE.to_owned(), |us| format!("{sign}{}", cost(us)));
    [(Cell::Cpus, format!("{sign}{:.2}", cpu.cores_busy)), (Cell::Cost, cost)]
}

/// I/Os of a job that were due and never started, where there are so many that they count.
fn missing(plan: &JobPlan, job: &JobResult) -> NeverStarted {
    job.never_started.filter(|never| never.matters(plan.threads)).unwrap_or_default()
}

/// If I/Os were due and never started, the others give a lower bound of the percentiles that the
/// missing ones can raise. In a mix any of them may be of this direction.
fn latencies(
    latency: Option<&Latency>,
    percentiles: &[Percentile],
    missing: NeverStarted,
) -> Vec<(Cell, String)> {
    let total = latency.map(|latency| &latency.total);
    let text = |quantile: f64, ns: Option<u64>| match (ns, total) {
        (Some(ns), Some(total)) if total.could_be_higher(quantile, missing.ios) => {
            format!("≥{}", time(ns))
        }
        (ns, _) => maybe_time(ns),
    };
    let percentile = |at: &Percentile| {
        (Cell::Percentile(*at), text(at.quantile(), total.and_then(|all| all.percentile(*at))))
    };
    let max = text(1.0, total.map(|total| total.max_ns.max(missing.longest_wait_ns)));
    percentiles.iter().map(percentile).chain([(Cell::Max, max)]).collect()
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
    let rw = match words {
        Words::Full => format!("{} total", load_word(plan)),
        Words::Short => rw_short(plan, None),
    };
    Some(Line::from([
        (Cell::Job, plan.name.clone()),
        (Cell::Path, path_cell(&plan.path.choice.actual, software)),
        (Cell::Rw, rw),
        (Cell::Throughput, throughput(job.read.bytes_per_s + job.write.bytes_per_s)),
        (Cell::Iops, iops(job.read.iops + job.write.iops)),
        (Cell::Failed, (job.read.failed + job.write.failed).to_string()),
    ]))
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
        let never = group().map(|(plan, job)| missing(plan, job));
        let never = never.fold(NeverStarted::default(), |all, one| NeverStarted {
            ios: all.ios.saturating_add(one.ios),
            longest_wait_ns: all.longest_wait_ns.max(one.longest_wait_ns),
        });
        let rate = |rate: Option<f64>, print: fn(f64) -> String| {
            rate.map_or_else(|| NONE.to_owned(), print)
        };
        let mut line = Line::from([
            (Cell::Job, format!("total, group {}", totals.group)),
            (Cell::Path, path_cell("", software)),
            (Cell::Rw, direction.name().to_owned()),
            (Cell::Threads, threads.to_string()),
            (Cell::Throughput, rate(result.bytes_per_s, throughput)),
            (Cell::Iops, rate(result.iops, iops)),
            (Cell::Failed, result.failed.to_string()),
        ]);
        line.extend(latencies(result.latency.as_ref(), percentiles, never));
        if lines.is_empty() {
            line.extend(cpu_cells(&totals.cpu));
        }
        lines.push(line);
    }
    lines
}
