//! Page cache and storage traffic during the job.

use gpuio_base::document::{Cell, Columns, Item, Layout, List, Section, grouped, unique};
use gpuio_record::{DirectMode, JobPlan, JobResult, Record, StorageReading, Towards};

use crate::number::{bytes, float, iops};
use crate::standing;
use crate::workload::jobs;

/// A job's first row, or one for a further device.
struct Row<'r> {
    job: Option<(&'r JobPlan, &'r JobResult)>,
    reading: Option<&'r StorageReading>,
}

/// A row per job with known figures, and one more for each further device; below them whose bytes
/// are counted, and why figures are missing, each reason once. A direction that a job does not have
/// is not printed where jobs ran beside it: the bytes are theirs.
pub(super) fn section(record: &Record) -> Section {
    let readings = jobs(record).flat_map(|(_, job)| &job.cache.storage);
    let devices = unique(readings.map(|reading| reading.device.as_str()));
    // A single device is named in the headings, so it needs no column.
    let named = devices.len() > 1;
    let rows: Vec<Row<'_>> = jobs(record).flat_map(|(plan, job)| rows(plan, job)).collect();
    let device = devices.first().filter(|_| !named).unwrap_or(&"device");
    type Of = fn(&JobResult) -> Option<Cell>;
    let of_job =
        |of: Of| move |row: &Row<'_>| row.job.map_or_else(Cell::default, |(_, job)| of(job).into());
    let beside =
        |plan: &JobPlan| jobs(record).filter(|(other, _)| other.group == plan.group).count() > 1;
    let moved = |towards: Towards, of: fn(&JobResult) -> Option<u64>| {
        move |row: &Row<'_>| {
            let is_own = |plan: &JobPlan| plan.directions().contains(&towards) || !beside(plan);
            row.job.filter(|(plan, _)| is_own(plan)).and_then(|(_, job)| of(job)).map(Cell::bytes)
        }
    };
    let buffered = jobs(record).any(|(plan, job)| fills_cache(plan, job));
    let written = if buffered { "written" } else { "to storage" };
    let table = Columns::<Row<'_>>::new()
        .words("job", |row| {
            row.job.map_or_else(Cell::default, |(plan, _)| plan.name.clone().into())
        })
        .figures("cached", of_job(cached))
        .figures("from storage", moved(Towards::Read, |job| job.cache.process_read_bytes))
        .figures(written, move |row: &Row<'_>| {
            let uncounted = row.job.is_some_and(|(plan, job)| is_uncounted(plan, job));
            moved(Towards::Write, |job| job.cache.process_write_bytes)(row).filter(|_| !uncounted)
        })
        .when(named, |columns| {
            let device = |row: &Row<'_>| row.reading.map(|reading| reading.device.clone());
            columns.words("device", move |row| device(row).unwrap_or_default())
        })
        .figures(format!("{device} reads"), |row| {
            row.reading.and_then(|it| requests(it.reads, it.read_bytes))
        })
        .figures(format!("{device} writes"), |row| {
            row.reading.and_then(|it| requests(it.writes, it.write_bytes))
        })
        .table("page cache and storage", rows);
    // All bytes that were moved are held against this traffic.
    let ramp = jobs(record).any(|(plan, _)| plan.ramp_ns > 0);
    let ramp = if ramp { " and its ramp" } else { "" };
    let title = format!("page cache before and after, storage traffic during the run{ramp}:");
    let mut section = Section::new("", if table.is_empty() { "" } else { &title });
    let several = jobs(record).any(|(plan, _)| beside(plan));
    let counted = format!(
        "{}: bytes of this process{}{}; {}: requests of all processes, flushes too",
        if buffered { "from storage, written" } else { "from and to storage" },
        if several { ", of all jobs that ran together" } else { "" },
        if buffered { "; written to the page cache, they count when they are there" } else { "" },
        if named { "devices" } else { device }
    );
    let counted = (!table.is_empty()).then(|| Item::new("counted", counted));
    let contents = jobs(record).flat_map(|(plan, job)| {
        let found = standing::content(plan, job).or_else(|| standing::sampled(plan, job));
        let texts = found.into_iter().chain(standing::reused(plan, job));
        texts.map(|text| (text, plan.name.as_str()))
    });
    let contents = of_jobs(record, "content", contents);
    let below: Vec<Item> = counted.into_iter().chain(contents).chain(reasons(record)).collect();
    section.table(table).list(List::new(Layout::labels(0), below));
    section
}

/// Whether the kernel counts what the job writes when it is in the page cache.
fn fills_cache(plan: &JobPlan, job: &JobResult) -> bool {
    job.write.bytes > 0 && plan.direct == DirectMode::Buffered
}

/// Whether the kernel counted no byte of writes that it counts when the page cache has them: those
/// of file systems without such accounting, as tmpfs (Linux 6.18, `mm/shmem.c`).
fn is_uncounted(plan: &JobPlan, job: &JobResult) -> bool {
    fills_cache(plan, job) && job.cache.process_write_bytes == Some(0)
}

fn rows<'r>(plan: &'r JobPlan, job: &'r JobResult) -> Vec<Row<'r>> {
    let cache = &job.cache;
    let moved = cache.process_read_bytes.or(cache.process_write_bytes);
    if cached(job).is_none() && moved.is_none() && cache.storage.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![Row { job: Some((plan, job)), reading: cache.storage.first() }];
    let more = cache.storage.iter().skip(1);
    rows.extend(more.map(|reading| Row { job: None, reading: Some(reading) }));
    rows
}

fn cached(job: &JobResult) -> Option<Cell> {
    let (before, after) = job.cache.resident_before.zip(job.cache.resident_after)?;
    Some(format!("{} → {} %", share(before), share(after)).into())
}

/// Number of completed requests of the device, and their mean size; all bytes where a mean below a
/// sector says that most of the requests were flushes, which have none.
fn requests(number: u64, moved: u64) -> Option<String> {
    let mean = moved.checked_div(number)?;
    let count = iops(float(number));
    Some(match mean {
        0..512 if moved > 0 => format!("{count}, {} in all", bytes(moved)),
        _ => format!("{count} × {}", bytes(mean)),
    })
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

/// The reason for a missing number of bytes written.
const UNCOUNTED: &str = "written: the kernel counts no bytes written to the page cache of this \
                         file system";

fn reasons(record: &Record) -> Vec<Item> {
    let each = jobs(record).flat_map(|(plan, job)| {
        let unknown = job.cache.unknown.iter().chain(&job.others_cpu_unknown);
        let uncounted = is_uncounted(plan, job).then(|| UNCOUNTED.to_owned());
        unknown.cloned().chain(uncounted).map(|why| (why, plan.name.as_str()))
    });
    of_jobs(record, "unknown", each)
}

/// Each text once, with the names of its jobs where these are not all.
fn of_jobs<'r>(
    record: &'r Record,
    label: &str,
    each: impl Iterator<Item = (String, &'r str)>,
) -> Vec<Item> {
    let all = jobs(record).count();
    let item = |(text, names): (String, Vec<&str>)| match names.len() == all {
        true => Item::new(label, text),
        false => Item::new(label, format!("{}: {text}", names.join(", "))),
    };
    grouped(each).into_iter().map(item).collect()
}
