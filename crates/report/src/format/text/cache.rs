//! Page cache and storage traffic during the job.

use gpuio_record::{JobPlan, JobResult, Record, StorageReading};

use super::PARAGRAPH_WIDTH;
use crate::number::{NONE, bytes, float, iops};
use crate::workload::jobs;
use crate::wrap::paragraph;
use gpuio_table::{Column, Grid, figures, words};

/// A row per job with known figures, and one more for each further device; below them why figures
/// are missing, each reason once.
pub(super) fn render(record: &Record, width: u16) -> String {
    let mut devices: Vec<&str> = Vec::new();
    for reading in jobs(record).flat_map(|(_, job)| &job.cache.storage) {
        if !devices.contains(&reading.device.as_str()) {
            devices.push(&reading.device);
        }
    }
    // A single device is named in the headings, so it needs no column.
    let named = devices.len() > 1;
    let mut rows = Vec::new();
    for (plan, job) in jobs(record) {
        rows.extend(job_rows(plan, job, named));
    }
    let reasons = reasons(record, width);
    if rows.is_empty() {
        return reasons;
    }
    let device = devices.first().filter(|_| !named).unwrap_or(&"device");
    let of_device = |what: &str| Column { name: format!("{device} {what}").into(), left: false };
    let mut columns = vec![
        words("job"),
        figures("cached"),
        figures("from storage"),
        figures("to storage"),
        of_device("reads"),
        of_device("writes"),
    ];
    if named {
        columns.insert(4, words("device"));
    }
    let table = Grid { columns, rows }.at_any_width(width);
    format!("page cache before and after, storage traffic during the run:\n{table}{reasons}")
}

fn job_rows(plan: &JobPlan, job: &JobResult, named: bool) -> Vec<Vec<String>> {
    let cache = &job.cache;
    let cached = match (cache.resident_before, cache.resident_after) {
        (Some(before), Some(after)) => format!("{} → {} %", share(before), share(after)),
        _ => NONE.to_owned(),
    };
    let moved = |figure: Option<u64>| figure.map_or_else(|| NONE.to_owned(), bytes);
    let (read, written) = (moved(cache.process_read_bytes), moved(cache.process_write_bytes));
    if [&cached, &read, &written].iter().all(|cell| *cell == NONE) && cache.storage.is_empty() {
        return Vec::new();
    }
    let mut first = [plan.name.clone(), cached, read, written];
    let mut rows = Vec::new();
    let absent = StorageReading::default();
    let readings = match cache.storage.as_slice() {
        [] => std::slice::from_ref(&absent),
        readings => readings,
    };
    for reading in readings {
        let mut row = std::mem::take(&mut first).to_vec();
        if named {
            row.push(reading.device.clone());
        }
        row.push(requests(reading.reads, reading.read_bytes));
        row.push(requests(reading.writes, reading.write_bytes));
        rows.push(row);
    }
    rows
}

/// Number of completed requests of the device, and their mean size.
fn requests(number: u64, moved: u64) -> String {
    match moved.checked_div(number) {
        Some(mean) => format!("{} × {}", iops(float(number)), bytes(mean)),
        None => NONE.to_owned(),
    }
}

/// A whole per cent, but never 0 or 100 for other values.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.5 {
        "<1".to_owned()
    } else if (99.5..100.0).contains(&percent) {
        ">99".to_owned()
    } else {
        format!("{percent:.0}")
    }
}

fn reasons(record: &Record, width: u16) -> String {
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for (plan, job) in jobs(record) {
        for why in &job.cache.unknown {
            match seen.iter_mut().find(|(other, _)| other == why) {
                Some((_, names)) => names.push(&plan.name),
                None => seen.push((why, vec![&plan.name])),
            }
        }
    }
    let all = jobs(record).count();
    let mut out = String::new();
    for (why, names) in seen {
        let text = if names.len() == all {
            why.to_owned()
        } else {
            format!("{}: {why}", names.join(", "))
        };
        out.push_str(&paragraph("unknown: ", &text, width.min(PARAGRAPH_WIDTH)));
    }
    out
}
