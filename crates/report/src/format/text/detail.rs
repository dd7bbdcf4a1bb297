//! Lines below the table: legs, workers, times that are not measured.

use std::collections::BTreeSet;

use gpuio_base::document::{Columns, Item, Layout, Section};
use gpuio_base::stat::{Percentile, Summary};
use gpuio_base::units::place;
use gpuio_record::{JobPlan, JobResult, Latency, Record, Side};

use super::table::path_cell;
use super::{SOFTWARE_GPU, of_jobs};
use crate::number::{bytes, many, maybe_time, time};
use crate::workload::{below_depth, held_back, jobs, rw_of, sides};

/// A row per job and direction whose path has a GPU leg, or whose rate limit can delay I/Os.
pub(super) fn legs(record: &Record) -> Section {
    let percentiles = Percentile::shown(&record.percentiles(), &Percentile::SHORT);
    let labels = percentiles.iter().map(|at| at.label()).collect::<Vec<_>>();
    let mut section = Section::new("", format!("legs of an I/O, {}:", labels.join(" / ")));
    type Leg = fn(&Latency) -> Option<&Summary>;
    let leg = |of: Leg| {
        let percentiles = percentiles.clone();
        move |side: &Side<'_>| {
            let summary = of(side.figures().latency.as_ref()?)?;
            let each = percentiles.iter().map(|at| maybe_time(summary.percentile(*at)));
            Some(each.collect::<Vec<String>>().join(" / "))
        }
    };
    let has_legs = |side: &Side<'_>| {
        let latency = side.figures().latency.as_ref();
        latency.is_some_and(|latency| latency.gpu.is_some() || latency.queue.is_some())
    };
    let table = Columns::<Side<'_>>::new()
        .words("job", |side| side.plan.name.clone())
        .words("path", |side| {
            path_cell(&side.plan.path.choice.actual, side.plan.uses_software_gpu())
        })
        .words("rw", |side| rw_of(side.plan, side.direction))
        .figures("queue", leg(|legs| legs.queue.as_ref()))
        .if_any()
        .figures("file", leg(|legs| legs.file.as_ref()))
        .figures("GPU", leg(|legs| legs.gpu.as_ref()))
        .if_any()
        .table("legs", sides(record).filter(has_legs));
    section.table(table);
    let waits = |side: &Side<'_>| side.figures().latency.as_ref()?.queue.as_ref().map(drop);
    if sides(record).any(|side| waits(&side).is_some()) {
        section.paragraph(
            "Paced: latency counts from when an I/O was due, so it includes leg queue. fio's clat \
             counts from submission, as the other legs do.",
        );
    }
    section
}

/// Jobs that had far fewer I/Os in flight than their depth says.
pub(super) fn in_flight(record: &Record) -> Section {
    let line = |(plan, job): (&JobPlan, &JobResult)| {
        let mean = below_depth(plan, job)?;
        let mut words = format!("{mean} on average (IOPS x mean latency)");
        let reasons = held_back(plan);
        if !reasons.is_empty() {
            words.push_str(&format!(": {}", reasons.join("; ")));
        }
        words.push_str(&format!("; these are no figures of depth {}", plan.depth));
        Some((job.name.clone(), words))
    };
    let lines: Vec<(String, String)> = jobs(record).filter_map(line).collect();
    let lines = lines.iter().map(|(job, words)| (job.as_str(), words.clone()));
    of_jobs(record, "I/Os in flight:", lines)
}

/// A job is listed if its first worker finished before this share of the last one's time.
pub(super) const TOGETHER_PERCENT: u64 = 99;

/// When workers finished: a line per job whose workers finished far apart, one for the others.
pub(super) fn workers(record: &Record) -> Section {
    let mut apart = Vec::new();
    let (mut together, mut software) = (Vec::<u64>::new(), false);
    for (plan, job) in jobs(record) {
        if job.first_done_ns >= job.last_done_ns / 100 * TOGETHER_PERCENT {
            together.push(job.last_done_ns);
            software |= plan.uses_software_gpu();
            continue;
        }
        let first = match job.first_done_ns {
            0 => "some had nothing to do".to_owned(),
            ns => {
                format!(
                    "first {} ({} moved by all until then)",
                    time(ns),
                    bytes(job.first_done_bytes)
                )
            }
        };
        let words = format!("{first}, last {}", time(job.last_done_ns));
        apart.push((plan.name.as_str(), words));
    }
    let alone = apart.is_empty();
    let mut section = of_jobs(record, "workers done:", apart);
    let Some((least, most)) = together.iter().min().zip(together.iter().max()) else {
        return section;
    };
    let (least, most) = (time(*least), time(*most));
    let when =
        if least == most { format!("after {least}") } else { format!("after {least} to {most}") };
    let mark = if software { format!("[{SOFTWARE_GPU}] ") } else { String::new() };
    let when = format!("{mark}{when}, first and last of each job within 1 %");
    if alone {
        section.title = "".into();
        section.item(Layout::labels(0).wide(), Item::new("workers done", when));
    } else {
        let item = Item::new("", format!("the others {when}"));
        section.item(Layout { indent: 2, wide: true, ..Layout::default() }, item);
    }
    section
}

/// Time to create files, or to look at those that are there, and bytes written for it, with the
/// place where they stay.
fn data_set(record: &Record) -> String {
    let time = time(record.setup.data_set_ns);
    let text = written(record).map_or_else(String::new, |text| format!(" ({text})"));
    format!("data set ready in {time}{text}")
}

/// Bytes of files that were made, with the place where they stay: `512 MiB written, kept in d`.
fn written(record: &Record) -> Option<String> {
    let (setup, jobs) = (record.setup, &record.plan.jobs);
    let places: BTreeSet<_> = jobs.iter().filter_map(|job| job.directory.as_deref()).collect();
    let kept = match Vec::from_iter(places)[..] {
        [directory] if jobs.iter().all(|job| job.keep) => format!(", kept in {}", place(directory)),
        [_, _, ..] if jobs.iter().all(|job| job.keep) => ", kept".to_owned(),
        _ => String::new(),
    };
    let laid_out = setup.laid_out_bytes;
    (laid_out > 0).then(|| format!("{} written{kept}", bytes(laid_out)))
}

/// The files that stay, with the bytes in them, or else those that the jobs use: `2 files with 512
/// MiB stay in d`. Where several ranks ran, only those of the first are known.
pub(in crate::format) fn kept(record: &Record, found: Option<u64>) -> Option<String> {
    let files = record.plan.files_that_stay();
    let used = || files.iter().map(|file| file.length_bytes).sum();
    let size = found.unwrap_or_else(used);
    let of = |path: &str| place(path.rsplit_once('/').map_or("", |(directory, _)| directory));
    let places: BTreeSet<String> = files.iter().map(|file| of(&file.path)).collect();
    let place = match Vec::from_iter(places).as_slice() {
        [] => return None,
        [one] => format!("in {one}"),
        several => format!("in {} directories", several.len()),
    };
    let ranks = if record.ranks.is_some() { "of rank 0 " } else { "" };
    let many = many(files.len() as u64, "file");
    let stay = if files.len() == 1 { "stays" } else { "stay" };
    Some(format!("{many} {ranks}with {} {stay} {place}", bytes(size)))
}

/// Times that are in no figure.
pub(super) fn outside_the_clock(record: &Record) -> Section {
    let setup = record.setup;
    let mut words = vec![data_set(record), format!("open and pin {}", time(setup.open_ns))];
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
    let mut section = Section::default();
    let item = Item::new("outside the measured time", words.join(", "));
    section.item(Layout::labels(0).wide(), item);
    section
}
