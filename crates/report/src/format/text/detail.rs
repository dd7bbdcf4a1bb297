//! Lines below the table: legs, workers, times that are not measured.

use gpuio_base::stat::{Percentile, Summary};
use gpuio_record::{Record, SetupTimes};

use super::SOFTWARE_GPU;
use super::table::{Words, path_cell};
use crate::number::{NONE, bytes, maybe_time, time};
use crate::workload::{jobs, rw_of, sides};
use crate::wrap::paragraph;
use gpuio_table::{Grid, figures, words};

/// Prefix of a line of results after its job; a wrapped line must repeat it.
pub(super) fn mark(record: &Record) -> String {
    if record.plan.software_gpu { format!("[{SOFTWARE_GPU}]  ") } else { String::new() }
}

/// Width limit of a job's name in lines that begin with it.
pub(super) fn name_width(record: &Record) -> usize {
    jobs(record).map(|(plan, _)| plan.name.chars().count()).max().unwrap_or(0)
}

/// A row per job and direction whose path has a GPU leg, or whose rate limit can delay I/Os.
pub(super) fn legs(record: &Record, width: u16) -> String {
    let (full, short) = (legs_grid(record, Words::Full), legs_grid(record, Words::Short));
    if full.rows.is_empty() {
        return String::new();
    }
    let table = full.whole(width).unwrap_or_else(|| short.at_any_width(width));
    let labels = leg_percentiles(record).iter().map(|at| at.label()).collect::<Vec<_>>();
    format!("legs of an I/O, {}:\n{table}", labels.join(" / "))
}

fn leg_percentiles(record: &Record) -> Vec<Percentile> {
    Percentile::shown(&record.percentiles(), &Percentile::SHORT)
}

/// Columns of legs that only some paths have.
const QUEUE: usize = 3;
const GPU: usize = 5;

fn legs_grid(record: &Record, form: Words) -> Grid {
    let mark = record.plan.software_gpu.then_some(form);
    let percentiles = leg_percentiles(record);
    let mut rows = Vec::new();
    for side in sides(record) {
        let Some(latency) = &side.figures().latency else { continue };
        if latency.gpu.is_none() && latency.queue.is_none() {
            continue;
        }
        let plan = side.plan;
        let mut row = vec![
            plan.name.clone(),
            path_cell(&plan.path.choice.actual, mark),
            rw_of(plan, side.direction),
        ];
        let legs = [&latency.queue, &latency.file, &latency.gpu];
        row.extend(legs.map(|leg| cell(leg.as_ref(), &percentiles)));
        rows.push(row);
    }
    let mut columns = vec![
        words("job"),
        words("path"),
        words("rw"),
        figures("queue"),
        figures("file"),
        figures("GPU"),
    ];
    // A leg that no job has needs no column.
    for at_column in [GPU, QUEUE] {
        if rows.iter().all(|row| row[at_column] == NONE) {
            columns.remove(at_column);
            for row in &mut rows {
                row.remove(at_column);
            }
        }
    }
    Grid { columns, rows }
}

fn cell(summary: Option<&Summary>, percentiles: &[Percentile]) -> String {
    let Some(summary) = summary else { return NONE.to_owned() };
    let each = percentiles.iter().map(|at| maybe_time(summary.percentile(*at)));
    each.collect::<Vec<_>>().join(" / ")
}

/// `first` and `rest` on one line with their columns, or wrapped when that is too long.
pub(super) fn line(first: &str, rest: &str, width: u16) -> String {
    let whole = format!("{first}{rest}");
    let whole = whole.trim_end();
    if whole.chars().count() <= usize::from(width) {
        return format!("{whole}\n");
    }
    paragraph(first, rest, width)
}

/// A job is listed if its first worker finished before this share of the last one's time.
pub(super) const TOGETHER_PERCENT: u64 = 99;

/// When workers finished: a line per job whose workers finished far apart, one for the others.
pub(super) fn workers(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let mut apart = String::new();
    let mut together: Vec<u64> = Vec::new();
    for (plan, job) in jobs(record) {
        if job.first_done_ns >= job.last_done_ns / 100 * TOGETHER_PERCENT {
            together.push(job.last_done_ns);
            continue;
        }
        let rest = format!(
            "first {} ({} moved by all), last {}",
            time(job.first_done_ns),
            bytes(job.first_done_bytes),
            time(job.last_done_ns),
        );
        let first = format!("  {:name$}  {}", plan.name, mark(record));
        apart.push_str(&line(&first, &rest, width));
    }
    let (Some(least), Some(most)) = (together.iter().min(), together.iter().max()) else {
        return headed(&apart);
    };
    let (least, most) = (time(*least), time(*most));
    let when =
        if least == most { format!("after {least}") } else { format!("after {least} to {most}") };
    let when = format!("{}{when}, first and last of each job within 1 %", mark(record));
    if apart.is_empty() {
        return paragraph("workers done: ", &when, width);
    }
    headed(&(apart + &paragraph("  ", &format!("the others {when}"), width)))
}

fn headed(lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("workers done:\n{lines}") }
}

/// Time to create files, and bytes written for it.
fn data_set(setup: SetupTimes) -> String {
    let laid_out = match setup.laid_out_bytes {
        0 => String::new(),
        written => format!(" ({} written)", bytes(written)),
    };
    format!("data set {}{laid_out}", time(setup.data_set_ns))
}

/// Times that are in no figure.
pub(super) fn outside_the_clock(record: &Record, width: u16) -> String {
    let setup = record.setup;
    let mut words = vec![data_set(setup), format!("open and pin {}", time(setup.open_ns))];
    if record.jobs.iter().any(|job| job.verify.is_some()) {
        words.push(format!("verification {}", time(setup.verify_ns)));
    }
    if !record.plan.ceilings.is_empty() {
        words.push(format!("ceilings {}", time(setup.ceilings_ns)));
    }
    if setup.alone_ns > 0 {
        words.push(format!("load and computation alone {}", time(setup.alone_ns)));
    }
    words.push(format!("close {}", time(setup.close_ns)));
    paragraph("outside the measured time: ", &words.join(", "), width)
}
