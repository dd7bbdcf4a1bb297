//! The lines below the table: legs, workers, page cache, times outside the clock.

use gpuio_record::{Latency, Record, StorageReading};
use gpuio_stat::Summary;

use super::{PARAGRAPH_WIDTH, SOFTWARE_GPU};
use crate::number::{NONE, bytes, percent, time};
use crate::workload::{directions, jobs, rw_of};
use crate::wrap::paragraph;

/// What a line of results begins with, after its job: a wrapped line must keep it.
fn mark(record: &Record) -> String {
    if record.plan.software_gpu {
        format!("[{SOFTWARE_GPU}]  ")
    } else {
        String::new()
    }
}

/// Widest name of a job, for lines that begin with it.
fn name_width(record: &Record) -> usize {
    jobs(record)
        .map(|(plan, _)| plan.name.chars().count())
        .max()
        .unwrap_or(0)
}

/// One line per job and direction whose path has a GPU leg, or whose rate can make I/Os queue.
pub(super) fn legs(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        for direction in directions(plan) {
            let Some(latency) = &direction.of(job).latency else {
                continue;
            };
            if latency.gpu.is_none() && latency.queue.is_none() {
                continue;
            }
            let rw = rw_of(plan, *direction);
            let first = format!("  {:name$}  {rw:9}  {}", plan.name, mark(record));
            out.push_str(&line(&first, &leg_figures(latency), width));
        }
    }
    if out.is_empty() {
        return out;
    }
    format!("legs of an I/O, p50 / p99:\n{out}")
}

/// `first` and `rest` on one line with their columns, or wrapped when that is too long.
fn line(first: &str, rest: &str, width: u16) -> String {
    let whole = format!("{first}{rest}");
    let whole = whole.trim_end();
    if whole.chars().count() <= usize::from(width) {
        return format!("{whole}\n");
    }
    paragraph(first, rest, width)
}

fn leg_figures(latency: &Latency) -> String {
    let pair = |summary: &Option<Summary>| match summary {
        Some(summary) => format!("{} / {}", time(summary.p50_ns), time(summary.p99_ns)),
        None => NONE.to_owned(),
    };
    format!(
        "queue {:15}  file {:15}  GPU {:15}",
        pair(&latency.queue),
        pair(&latency.file),
        pair(&latency.gpu),
    )
}

/// When workers were done: one line per job.
pub(super) fn workers(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        let rest = format!(
            "first {} ({} moved by all), last {}",
            time(job.first_done_ns),
            bytes(job.first_done_bytes),
            time(job.last_done_ns),
        );
        let first = format!("  {:name$}  {}", plan.name, mark(record));
        out.push_str(&line(&first, &rest, width));
    }
    if out.is_empty() {
        out
    } else {
        format!("workers done:\n{out}")
    }
}

/// What page cache and storage did meanwhile: one line per job where something is known.
pub(super) fn cache(record: &Record, width: u16) -> String {
    let name = name_width(record);
    let mut out = String::new();
    for (plan, job) in jobs(record) {
        let cache = &job.cache;
        let mut words = Vec::new();
        if let (Some(before), Some(after)) = (cache.resident_before, cache.resident_after) {
            words.push(format!("{} of the files cached before", percent(before)));
            words.push(format!("{} after", percent(after)));
        }
        words.extend(
            cache
                .process_read_bytes
                .map(|read| format!("{} from storage", bytes(read))),
        );
        words.extend(
            cache
                .process_write_bytes
                .map(|sent| format!("{} to storage", bytes(sent))),
        );
        words.extend(cache.storage.iter().map(device));
        words.extend(cache.unknown.iter().map(|why| format!("not known: {why}")));
        if !words.is_empty() {
            let first = format!("  {:name$}  ", plan.name);
            out.push_str(&paragraph(
                &first,
                &words.join(", "),
                width.min(PARAGRAPH_WIDTH),
            ));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("page cache and storage meanwhile:\n{out}")
    }
}

fn device(reading: &StorageReading) -> String {
    let mut words = Vec::new();
    if reading.reads > 0 {
        words.push(format!(
            "{} reads of {}",
            reading.reads,
            bytes(reading.read_bytes)
        ));
    }
    if reading.writes > 0 {
        words.push(format!(
            "{} writes of {}",
            reading.writes,
            bytes(reading.write_bytes)
        ));
    }
    if words.is_empty() {
        words.push("nothing".to_owned());
    }
    format!("{} saw {}", reading.device, words.join(" and "))
}

/// Times that no figure contains.
pub(super) fn outside_the_clock(record: &Record) -> String {
    let setup = record.setup;
    let mut words = vec![
        format!("data set {}", time(setup.data_set_ns)),
        format!("open and pin {}", time(setup.open_ns)),
    ];
    if record.jobs.iter().any(|job| job.verify.is_some()) {
        words.push(format!("verification {}", time(setup.verify_ns)));
    }
    words.push(format!("close {}", time(setup.close_ns)));
    format!("outside the clock: {}\n", words.join(", "))
}
