//! The table of results.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};
use gpuio_record::{CpuCost, DirectionResult, EndedHow, JobPlan, JobResult, Record, RunTotals};

use super::SOFTWARE_GPU;
use crate::number::{NONE, iops, maybe_time, throughput};
use crate::workload::{Direction, blocks_short, directions, engine_got, jobs, rw_of, verified};

/// A job's name may be cut into lines of this many characters before the table is split in two.
const NARROWEST_JOB: u16 = 10;

/// Columns, in order. The first four (and the block size) are words and stand left.
const COLUMNS: [&str; 16] = [
    "job",
    "path",
    "engine",
    "bs",
    "rw",
    "T×D",
    "throughput",
    "IOPS",
    "p50",
    "p99",
    "p99.9",
    "max",
    "CPUs",
    "µs/MiB",
    "failed",
    "verified",
];
const LEFT: [usize; 5] = [0, 1, 2, 4, 15];
const FAILED: usize = 14;
/// Columns of the second table, where one table does not fit.
const LATENCY: [usize; 7] = [0, 1, 4, 8, 9, 10, 11];
/// Columns of the first table then.
const THROUGHPUT: [usize; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15];

type Cells = [String; COLUMNS.len()];

pub(super) fn render(record: &Record, width: u16) -> String {
    let rows = rows(record);
    if rows.is_empty() {
        return "no job ran\n".to_owned();
    }
    let any_failed = rows.iter().any(|row| row[FAILED] != "0");
    let shown = |column: &usize| any_failed || *column != FAILED;
    let all: Vec<usize> = (0..COLUMNS.len()).filter(shown).collect();
    if let Some(text) = fitted(&rows, &all, width, NARROWEST_JOB) {
        return text;
    }
    let first: Vec<usize> = THROUGHPUT.into_iter().filter(shown).collect();
    let halves = [&first[..], &LATENCY[..]];
    let tables = halves.map(|columns| {
        fitted(&rows, columns, width, NARROWEST_JOB)
            .unwrap_or_else(|| draw(&rows, columns, 1, None))
    });
    tables.join("\n")
}

/// The table within `width`: with wide gaps if it can be, then narrow ones, then with the jobs'
/// names in several lines; `None` when they would need fewer than `narrowest` columns.
fn fitted(rows: &[Cells], columns: &[usize], width: u16, narrowest: u16) -> Option<String> {
    let natural = natural_widths(rows, columns);
    let gaps = columns.len().saturating_sub(1);
    let total = |gap: usize| natural.iter().sum::<usize>() + gap * gaps;
    let width = usize::from(width);
    if total(2) <= width {
        return Some(draw(rows, columns, 2, None));
    }
    if total(1) <= width {
        return Some(draw(rows, columns, 1, None));
    }
    let others = total(1) - natural.first().copied().unwrap_or(0);
    let job = u16::try_from(width.checked_sub(others)?).ok()?;
    (job >= narrowest).then(|| draw(rows, columns, 1, Some(job)))
}

fn natural_widths(rows: &[Cells], columns: &[usize]) -> Vec<usize> {
    let widest = |column: &usize| {
        let cells = rows.iter().map(|row| row[*column].chars().count());
        cells
            .chain([COLUMNS[*column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    columns.iter().map(widest).collect()
}

fn draw(rows: &[Cells], columns: &[usize], gap: u16, job_width: Option<u16>) -> String {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| COLUMNS[*column]));
    for row in rows {
        table.add_row(columns.iter().map(|column| row[*column].as_str()));
    }
    let last = columns.len().saturating_sub(1);
    for (place, column) in columns.iter().enumerate() {
        if let Some(drawn) = table.column_mut(place) {
            drawn.set_padding((0, if place == last { 0 } else { gap }));
            if !LEFT.contains(column) {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            if let (0, Some(job)) = (place, job_width) {
                // The constraint counts the padding.
                let width = Width::Fixed(job + gap);
                drawn.set_constraint(ColumnConstraint::Absolute(width));
            }
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

fn rows(record: &Record) -> Vec<Cells> {
    let software = record.plan.software_gpu;
    let mut rows = Vec::new();
    let mut in_group = 0;
    let mut jobs = jobs(record).peekable();
    while let Some((plan, job)) = jobs.next() {
        in_group += 1;
        for (nth, direction) in directions(plan).iter().enumerate() {
            rows.push(job_row(plan, job, *direction, nth == 0, software));
        }
        if jobs
            .peek()
            .is_some_and(|(next, _)| next.group == plan.group)
        {
            continue;
        }
        if in_group > 1
            && let Some(totals) = record.totals.iter().find(|total| total.group == plan.group)
        {
            rows.extend(total_rows(record, totals, software));
        }
        in_group = 0;
    }
    rows
}

fn path_cell(path: &str, software: bool) -> String {
    match (path, software) {
        (path, false) => path.to_owned(),
        ("", true) => SOFTWARE_GPU.to_owned(),
        (path, true) => format!("{path}, {SOFTWARE_GPU}"),
    }
}

/// CPU cost and verification are the job's as a whole: they stand on its first row.
fn job_row(
    plan: &JobPlan,
    job: &JobResult,
    direction: Direction,
    first: bool,
    software: bool,
) -> Cells {
    let result = direction.of(job);
    let partial = if job.ended == EndedHow::Complete {
        ""
    } else {
        " (partial)"
    };
    let [cpus, cost] = if first {
        cpu_cells(&job.cpu)
    } else {
        [String::new(), String::new()]
    };
    let [p50, p99, p99_9, max] = latency_cells(result);
    [
        format!("{}{partial}", plan.name),
        path_cell(&plan.path.choice.got, software),
        engine_got(plan, job),
        blocks_short(&plan.blocks),
        rw_of(plan, direction).to_owned(),
        format!("{}×{}", plan.threads, plan.depth),
        throughput(result.bytes_per_s),
        iops(result.iops),
        p50,
        p99,
        p99_9,
        max,
        cpus,
        cost,
        result.failed.to_string(),
        if first {
            verified(job.verify.as_ref())
        } else {
            String::new()
        },
    ]
}

fn cpu_cells(cpu: &CpuCost) -> [String; 2] {
    let cost = cpu
        .us_per_mib
        .map_or_else(|| NONE.to_owned(), |us| format!("{us:.1}"));
    [format!("{:.2}", cpu.cores_busy), cost]
}

fn latency_cells(result: &DirectionResult) -> [String; 4] {
    let total = result.latency.as_ref().map(|latency| &latency.total);
    [
        maybe_time(total.map(|summary| summary.p50_ns)),
        maybe_time(total.map(|summary| summary.p99_ns)),
        maybe_time(total.map(|summary| summary.p99_9_ns)),
        maybe_time(total.map(|summary| summary.max_ns)),
    ]
}

/// A row per direction that some job of the group was to do.
fn total_rows(record: &Record, totals: &RunTotals, software: bool) -> Vec<Cells> {
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
        let [cpus, cost] = if first {
            cpu_cells(&totals.cpu)
        } else {
            [String::new(), String::new()]
        };
        let [p50, p99, p99_9, max] = latency_cells(result);
        rows.push([
            format!("total, group {}", totals.group),
            path_cell("", software),
            String::new(),
            String::new(),
            direction.name().to_owned(),
            threads.to_string(),
            throughput(result.bytes_per_s),
            iops(result.iops),
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
