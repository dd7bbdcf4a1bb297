//! The table of results, and its legend.

use std::collections::BTreeMap;

use gpuio_base::document::{Cell, Columns, Item, Layout, List, Part, Section, grouped, unique};
use gpuio_base::stat::Percentile;
use gpuio_record::{
    CpuCost, EndedHow, JobPlan, JobResult, Latency, LeftOut, NeverStarted, Record, RunTotals,
    TimeSpan, Towards,
};

use super::detail::TOGETHER_PERCENT;
use super::{SOFT, SOFTWARE_GPU, proof};
use crate::ceilings;
use crate::number::{throughput, time};
use crate::standing;
use crate::verification;
use crate::workload::{is_mix, jobs, load_word, rw_of, rw_short, sizes_of};

/// The content of a cell of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Job,
    Path,
    Taken,
    Engine,
    Bs,
    Rw,
    Threads,
    Throughput,
    Iops,
    Ceiling,
    Percentile(Percentile),
    Max,
    Cpus,
    Cost,
    Failed,
    Verified,
}

/// One line of the table; a cell that it does not have is empty.
type Line = BTreeMap<Of, Cell>;

/// One table, or two if one does not fit, with the columns that the record has something for.
pub(super) fn section(record: &Record) -> Section {
    let mut section = Section::default();
    if jobs(record).next().is_none() {
        section.paragraph("no job ran");
        return section;
    }
    let any = |has: fn(&JobResult) -> bool| jobs(record).any(|(_, job)| has(job));
    let of = |of: Of| move |line: &Line| line.get(&of).cloned().unwrap_or_default();
    let percentiles = Percentile::shown(&record.percentiles(), &Percentile::TABLE);
    let columns = Columns::<Line>::new()
        .words("job", of(Of::Job))
        .spare(are_named_by_path(record))
        .words("path", of(Of::Path))
        // Old records have no verdicts.
        .when(any(|job| job.proof.is_some()), |columns| {
            columns.words("path taken", of(Of::Taken)).short("taken").part(Part::First)
        })
        .words("engine", of(Of::Engine))
        .part(Part::First)
        .figures("bs", of(Of::Bs))
        .part(Part::First)
        .words("rw", of(Of::Rw))
        .figures("T×D", of(Of::Threads))
        .part(Part::First)
        .figures("throughput", of(Of::Throughput))
        .part(Part::First)
        .figures("IOPS", of(Of::Iops))
        .tight()
        .part(Part::First)
        .when(
            any(|job| job.read.of_ceiling.is_some() || job.write.of_ceiling.is_some()),
            |columns| columns.words("% of", of(Of::Ceiling)).part(Part::First),
        );
    let columns = percentiles.iter().fold(columns, |columns, at| {
        columns.figures(at.label(), of(Of::Percentile(*at))).tight().part(Part::Second)
    });
    let columns = columns
        .figures("max", of(Of::Max))
        .tight()
        .part(Part::Second)
        .figures("CPUs", of(Of::Cpus))
        .part(Part::Second)
        .figures("µs/MiB", of(Of::Cost))
        .part(Part::Second)
        .when(any(|job| job.read.failed + job.write.failed > 0), |columns| {
            columns.figures("failed", of(Of::Failed)).part(Part::First)
        })
        .words("verified", of(Of::Verified))
        .short("verif.")
        .part(Part::First);
    // A path that can do one job of several and not another is no path that is absent.
    let runs =
        |out: &&LeftOut| !record.plan.jobs.iter().any(|job| job.path.choice.actual == out.path);
    let absent = record.plan.left_out.iter().filter(runs).map(|out| absent_line(&out.path));
    let lines = lines(record, &percentiles).into_iter().chain(absent);
    section.table(columns.table("results", lines));
    section
}

/// Whether each row's path tells which job it is of, since the jobs are one on several paths.
fn are_named_by_path(record: &Record) -> bool {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    jobs(record).all(|(plan, job)| {
        let path = plan.path.choice.actual.as_str();
        let name = plan.name.strip_suffix(path).and_then(|name| name.strip_suffix('-'));
        let is_new = !seen.iter().any(|(_, other)| *other == path);
        let is_of_one = name.is_some_and(|name| seen.iter().all(|(other, _)| *other == name));
        seen.extend(name.map(|name| (name, path)));
        is_new && is_of_one && job.ended == EndedHow::Complete
    })
}

/// The legend: full engine names, marks, and why paths did not run.
pub(super) fn legend(record: &Record) -> Section {
    let mut section = Section::default();
    let left_out = record.plan.left_out.iter().map(|out| (out.why.as_str(), out.path.as_str()));
    let absent = grouped(left_out).into_iter();
    let absent =
        absent.map(|(why, paths)| Item::new("not here", format!("{}: {why}", paths.join(", "))));
    let labels = Layout::labels(8);
    section.list(List::new(labels, engines(record)));
    if jobs(record).any(|(_, job)| stepped_down(job)) {
        let text = "not everything that was requested of the engine was available; the warnings \
            have the details";
        section.item(Layout { colon: false, ..labels }, Item::new("*", text));
    }
    for (mark, meaning) in standing::legend(&standing::marks_of_record(record)) {
        section.item(Layout { colon: false, ..labels }, Item::new(mark, meaning));
    }
    if let Some(text) = too_few(record) {
        section.item(Layout { colon: false, ..labels }, Item::new("-", text));
    }
    if jobs(record).any(|(_, job)| job.cpu.scope.is_at_least() && job.cpu.cores_busy > 0.0) {
        let text = "at least: other threads of the process, or of the kernel, may have worked for \
                    the job too";
        section.item(Layout { colon: false, ..labels }, Item::new("≥", text));
    }
    if jobs(record).any(|(plan, _)| plan.feed.as_ref().is_some_and(|feed| !feed.is_cache())) {
        let text = "throughput and IOPS until its threads' last I/O; samples/s and utilisation \
            until its last step";
        section.item(labels, Item::new("feed", text));
    }
    section.list(List::new(labels, totals(record).into_iter().chain(absent)));
    section
}

/// The percentiles that some job has too few I/Os for, and how many each takes.
fn too_few(record: &Record) -> Option<String> {
    let lacks = |at: &Percentile| {
        let of_job = |(plan, job): (&JobPlan, &JobResult)| {
            let directions = plan.directions();
            let mut latencies = directions.iter().filter_map(|one| one.of(job).latency.as_ref());
            latencies.any(|latency| latency.total.percentile(*at).is_none())
        };
        jobs(record).any(of_job)
    };
    let shown = Percentile::shown(&record.percentiles(), &Percentile::TABLE);
    Percentile::too_few(shown.into_iter().filter(lacks))
}

/// The time that the rates of a total are over, where it is but a part of the group's.
fn part_of_time(total: &RunTotals) -> Option<TimeSpan> {
    let part = |span: &TimeSpan| span.length_ns() < total.last_done_ns / 100 * TOGETHER_PERCENT;
    total.common.filter(part)
}

/// The directions that several jobs of a group have. A total of one job would say the same again,
/// or another rate of the same bytes: that over the time in which all jobs ran.
fn summed(record: &Record, group: u32) -> impl Iterator<Item = Towards> {
    let several = move |direction: &Towards| {
        let of_group = jobs(record).filter(|(plan, _)| plan.group == group);
        of_group.filter(|(plan, _)| plan.directions().contains(direction)).count() > 1
    };
    [Towards::Read, Towards::Write].into_iter().filter(several)
}

/// The time span of the rates of totals, if it is not the time of all jobs.
fn totals(record: &Record) -> Vec<Item> {
    let mut lines = Vec::new();
    for total in &record.totals {
        if jobs(record).filter(|(plan, _)| plan.group == total.group).count() < 2 {
            continue;
        }
        let group = total.group;
        let cpu = &total.cpu;
        let busy = format!("{}{:.2} CPUs were busy", cpu.scope.sign(), cpu.cores_busy);
        let all = time(total.last_done_ns);
        if summed(record, group).next().is_none() {
            lines.push(format!("{busy} over the {all} of group {group}"));
        } else if let Some(why) = &total.why_no_rate {
            lines.push(format!("group {group} has no rate: {why}; {busy} over its {all}"));
        } else if let Some(span) = part_of_time(total) {
            let part = time(span.length_ns());
            lines.push(format!(
                "rates of group {group} are over the {part} in which all its jobs ran, of {all}; \
                 {busy} over the {all}"
            ));
        }
    }
    lines.into_iter().map(|line| Item::new("totals", line)).collect()
}

/// Each engine with its set-up, if the table only shows its name; with jobs if one name had several
/// set-ups.
fn engines(record: &Record) -> Option<Item> {
    let of_job = |(plan, job)| {
        let (plan, job): (&JobPlan, &JobResult) = (plan, job);
        job.engine.iter().map(|engine| (engine.actual.as_str(), plan.name.as_str()))
    };
    let setups = grouped(jobs(record).flat_map(of_job));
    setups.iter().find(|(actual, _)| first_words(short_name(actual)) != *actual)?;
    let several = |actual: &str| {
        let alike = setups.iter().filter(|(other, _)| short_name(other) == short_name(actual));
        alike.count() > 1
    };
    let words = setups.iter().map(|(actual, names)| match several(actual) {
        true => format!("{actual}: {}", unique(names.iter().copied()).join(", ")),
        false => (*actual).to_owned(),
    });
    Some(Item::new("engines", words.collect::<Vec<String>>().join("; ")))
}

/// `io_uring` of `io_uring (fixed buffers, fixed files)`.
fn short_name(actual: &str) -> &str {
    actual.split_once(" (").map_or(actual, |(name, _)| name)
}

fn stepped_down(job: &JobResult) -> bool {
    job.engine.iter().any(|engine| !engine.steps_down.is_empty())
}

/// Names of the engines that ran, with a mark if one provided less than requested. The legend has
/// the rest of a name whose first words stand in a narrow table.
fn engine_cell(plan: &JobPlan, job: &JobResult) -> Cell {
    let mut names = unique(job.engine.iter().map(|engine| short_name(&engine.actual)));
    if names.is_empty() {
        names.push(short_name(&plan.engine.actual));
    }
    let mark = if stepped_down(job) { "*" } else { "" };
    let first = unique(names.iter().copied().map(first_words));
    let [names, first] = [names, first].map(|all| format!("{}{mark}", all.join("+")));
    Cell::from(names).short(first)
}

/// `cuFile 1.15` of `cuFile 1.15, gpuio's stand-in`.
fn first_words(name: &str) -> &str {
    let name = name.strip_prefix("gpuio's ").unwrap_or(name);
    name.split_once(", ").map_or(name, |(first, _)| first)
}

/// A path that can't run on this machine.
fn absent_line(path: &str) -> Line {
    let cells = [(Of::Job, "-"), (Of::Path, path), (Of::Engine, "not here")];
    cells.map(|(cell, text)| (cell, text.into())).into()
}

fn lines(record: &Record, percentiles: &[Percentile]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut in_group = 0;
    let mut jobs = jobs(record).peekable();
    while let Some((plan, job)) = jobs.next() {
        in_group += 1;
        let marks = standing::marks(record, plan, job);
        for (nth, direction) in plan.directions().iter().enumerate() {
            let mut line = job_line((plan, job, *direction), percentiles, &marks, nth == 0);
            if let Some(all) = &record.ranks {
                // Ranks × threads of each × depth.
                let text = format!("{}×{}×{}", all.ranks, plan.threads, plan.depth);
                line.insert(Of::Threads, text.into());
            }
            lines.push(line);
        }
        lines.extend(mix_line(plan, job, &marks));
        if jobs.peek().is_some_and(|(next, _)| next.group == plan.group) {
            continue;
        }
        if in_group > 1
            && let Some(totals) = record.totals.iter().find(|total| total.group == plan.group)
        {
            lines.extend(total_lines(record, totals, percentiles));
        }
        in_group = 0;
    }
    lines
}

/// A rate, and its marks behind it.
fn marked_rate(bytes_per_s: f64, marks: &str) -> Cell {
    Cell::shown(throughput(bytes_per_s) + marks, bytes_per_s)
}

/// The path, marked if its GPU is no hardware.
pub(super) fn path_cell(path: &str, software: bool) -> Cell {
    match (path, software) {
        (path, false) => path.into(),
        ("", true) => Cell::from(SOFTWARE_GPU).short("soft GPU"),
        (path, true) => {
            Cell::from(format!("{path}, {SOFTWARE_GPU}")).short(format!("{SOFT}{path}"))
        }
    }
}

/// CPU cost and verification are for the whole job: they are in its first row.
fn job_line(
    (plan, job, direction): (&JobPlan, &JobResult, Towards),
    percentiles: &[Percentile],
    marks: &str,
    first: bool,
) -> Line {
    let result = direction.of(job);
    let partial = if job.ended == EndedHow::Complete { "" } else { " (partial)" };
    let rw = Cell::from(rw_of(plan, direction)).short(rw_short(plan, Some(direction)));
    let mut line = Line::from([
        (Of::Job, format!("{}{partial}", plan.name).into()),
        (Of::Path, path_cell(&plan.path.choice.actual, plan.uses_software_gpu())),
        (Of::Taken, proof::cell(job.proof.as_ref())),
        (Of::Engine, engine_cell(plan, job)),
        (Of::Bs, sizes_of(plan, direction).into()),
        (Of::Rw, rw),
        (Of::Threads, format!("{}×{}", plan.threads, plan.depth).into()),
        (Of::Throughput, marked_rate(result.bytes_per_s, marks)),
        (Of::Iops, Cell::count(result.iops)),
        (Of::Ceiling, ceilings::cell(result.of_ceiling.as_ref()).into()),
        (Of::Failed, result.failed.into()),
    ]);
    line.extend(latencies(result.latency.as_ref(), percentiles, missing(plan, job)));
    if first {
        line.extend(cpu_cells(&job.cpu));
        line.insert(Of::Verified, verification::word(job.verify.as_ref()).into());
    }
    line
}

/// Three digits, or all before the point: otherwise a rare large figure would widen the column.
fn cost(us_per_mib: f64) -> String {
    if us_per_mib < 100.0 { format!("{us_per_mib:.1}") } else { format!("{us_per_mib:.0}") }
}

fn cpu_cells(cpu: &CpuCost) -> [(Of, Cell); 2] {
    let sign = cpu.scope.sign();
    let cost = cpu.us_per_mib.map(|us| Cell::shown(format!("{sign}{}", cost(us)), us));
    let busy = Cell::shown(format!("{sign}{:.2}", cpu.cores_busy), cpu.cores_busy);
    [(Of::Cpus, busy), (Of::Cost, cost.into())]
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
) -> Vec<(Of, Cell)> {
    let total = latency.map(|latency| &latency.total);
    let text = |quantile: f64, ns: Option<u64>| match (ns, total) {
        (Some(ns), Some(total)) if total.could_be_higher(quantile, missing.ios) => {
            Cell::shown(format!("≥{}", time(ns)), ns)
        }
        (ns, _) => ns.map(Cell::time).into(),
    };
    let percentile = |at: &Percentile| {
        (Of::Percentile(*at), text(at.quantile(), total.and_then(|all| all.percentile(*at))))
    };
    let max = text(1.0, total.map(|total| total.max_ns.max(missing.longest_wait_ns)));
    percentiles.iter().map(percentile).chain([(Of::Max, max)]).collect()
}

/// Both directions of a mix together: the job's own figures.
fn mix_line(plan: &JobPlan, job: &JobResult, marks: &str) -> Option<Line> {
    if !is_mix(plan) {
        return None;
    }
    let rw = Cell::from(format!("{} total", load_word(plan))).short(rw_short(plan, None));
    Some(Line::from([
        (Of::Job, plan.name.as_str().into()),
        (Of::Path, path_cell(&plan.path.choice.actual, plan.uses_software_gpu())),
        (Of::Rw, rw),
        (Of::Throughput, marked_rate(job.read.bytes_per_s + job.write.bytes_per_s, marks)),
        (Of::Iops, Cell::count(job.read.iops + job.write.iops)),
        (Of::Failed, (job.read.failed + job.write.failed).into()),
    ]))
}

/// A row per direction that several jobs of the group were to do.
fn total_lines(record: &Record, totals: &RunTotals, percentiles: &[Percentile]) -> Vec<Line> {
    let group = || jobs(record).filter(|(plan, _)| plan.group == totals.group);
    let mut lines: Vec<Line> = Vec::new();
    for direction in summed(record, totals.group) {
        let own = || group().filter(|(plan, _)| plan.directions().contains(&direction));
        let threads: u64 = own().map(|(plan, _)| u64::from(plan.threads)).sum();
        let marks = standing::together(own().map(|(plan, job)| standing::marks(record, plan, job)));
        let result = match direction {
            Towards::Read => &totals.read,
            Towards::Write => &totals.write,
        };
        let never = own().map(|(plan, job)| missing(plan, job));
        let never = never.fold(NeverStarted::default(), |all, one| NeverStarted {
            ios: all.ios.saturating_add(one.ios),
            longest_wait_ns: all.longest_wait_ns.max(one.longest_wait_ns),
        });
        let mut line = Line::from([
            (
                Of::Job,
                Cell::from(format!("total, group {}", totals.group))
                    .short(format!("group {}", totals.group)),
            ),
            (Of::Path, path_cell("", group().any(|(plan, _)| plan.uses_software_gpu()))),
            (Of::Rw, direction.name().into()),
            (Of::Threads, threads.into()),
            (Of::Throughput, result.bytes_per_s.map(|rate| marked_rate(rate, &marks)).into()),
            (Of::Iops, result.iops.map(Cell::count).into()),
            (Of::Failed, result.failed.into()),
        ]);
        line.extend(latencies(result.latency.as_ref(), percentiles, never));
        // The CPU time is known over all of the group's time, and stands beside rates of the same.
        if lines.is_empty() && totals.why_no_rate.is_none() && part_of_time(totals).is_none() {
            line.extend(cpu_cells(&totals.cpu));
        }
        lines.push(line);
    }
    lines
}
