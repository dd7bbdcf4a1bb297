//! `gpuio sweep`: many runs over the values of some keys. It can be stopped and resumed.
//!
//! Each run is `gpuio bench` in a process of its own, for three reasons: NVIDIA's library can end
//! the process that loads it; contexts, allocators and its configuration would carry over from
//! point to point; and the command in a record can be run by hand. It costs the start of a process
//! (docs/sweep.md).

mod child;
mod cost;
mod directory;
mod effects;
mod fall_back;
mod request;
mod resolved;
mod routes;
mod runs;
mod table;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_base::units::many;
use gpuio_job::sweep::{Progress, Step, next, step};

use crate::args::Sweep;
use crate::child::LOOK;
use crate::failure::Failure;
use crate::fio_logs::NOT_IN_SWEEPS;
use crate::formats;
use crate::interrupt;
use crate::jobs;
use crate::output;
use crate::ranks::{self, Children, Role};
use crate::terminal;
use crate::unused;
use child::Ended;
use directory::SweepDirectory;
use resolved::ResolvedSweep;

pub(crate) fn run(sweep: Sweep) -> Result<ExitCode, Failure> {
    match ranks::join(sweep.ranks.timeout()?)? {
        Role::First(joined) => joined.lead(|children| on(children, sweep)),
        Role::Member(joined) => Ok(ranks::serve(joined)),
        Role::Alone => {
            unused::rank_limits(&sweep.ranks)?;
            on(&Children::alone(), sweep).map(ExitCode::from)
        }
        Role::Ended(code) => Ok(code),
    }
}

/// The sweep, as one process or on rank 0 of several; its exit code.
fn on(children: &Children<'_>, sweep: Sweep) -> Result<u8, Failure> {
    let quiet = sweep.vary.quiet;
    let dry_run = sweep.vary.dry_run;
    let keep = sweep.work.is_on("keep");
    let format = formats::document(sweep.vary.format.as_deref())?;
    let resolved = request::resolve(sweep, children.ranks())?;
    if dry_run {
        output::put(&(format.render)(
            &table::dry_run(&resolved),
            "sweep",
            terminal::width_or_whole(),
        ))?;
        return Ok(0);
    }
    let stop = interrupt::flag();
    let mut directory = SweepDirectory::open(&resolved)?;
    if !quiet {
        message!("{}", table::estimate(&resolved));
        let made = jobs::directories_made(&resolved.job).into_iter();
        made.filter(|_| !resolved.own_data).for_each(|note| message!("note: {note}"));
        let logs = [&resolved.job.bw_log, &resolved.job.lat_log, &resolved.job.iops_log];
        if logs.into_iter().any(Option::is_some) {
            message!("note: {NOT_IN_SWEEPS}");
        }
    }
    let ended = drive(&resolved, &mut directory, children, &stop, quiet)?;
    let (answer, is_missed) = table::answer(&resolved, &directory, ended).unzip();
    directory.conclude(answer)?;
    directory.clear();
    let whole = ended == Why::Done;
    if whole && !keep {
        directory.remove_data();
        if resolved.own_data {
            children.remove_data_of(&resolved.directory);
        }
    }
    let page = table::results(&resolved, &directory, ended);
    output::put(&(format.render)(&page, "sweep", terminal::width_or_whole()))?;
    let files = directory.data_files().filter(|_| format.name == "text" && !quiet);
    files.map_or(Ok(()), |line| output::put(&format!("\n{line}")))?;
    if directory.is_unavailable() {
        return Ok(3);
    }
    let failed = directory.any_failed() || ended == Why::Interrupted || directory.is_empty();
    Ok(u8::from(failed || is_missed == Some(true)))
}

/// Why no more runs are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Done,
    Budget,
    Interrupted,
}

fn drive(
    resolved: &ResolvedSweep,
    directory: &mut SweepDirectory,
    children: &Children<'_>,
    stop: &AtomicBool,
    quiet: bool,
) -> Result<Why, Failure> {
    let began = Instant::now();
    let mut made = 0_u32;
    while let Some(at) = choose(resolved, directory)? {
        if resolved.budget.is_some_and(|budget| began.elapsed() >= budget) {
            directory.budget_is_spent(resolved)?;
            return Ok(Why::Budget);
        }
        if made > 0 {
            wait(resolved.cool_down, stop);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Why::Interrupted);
        }
        let point = &directory.sweep.points[at].at;
        let point = child::Point {
            words: resolved.arguments_of(point),
            ranks: resolved.ranks_of(point),
            folder: resolved.own_data.then_some(resolved.directory.as_path()),
            run_of: directory.run_of(at, resolved),
        };
        let draft = directory.draft()?;
        let outcome = match child::run(children, point, &draft, stop)? {
            Ended::Stopped => return Ok(Why::Interrupted),
            Ended::Finished(record, error) => {
                directory.keep(at, draft, &record, error, resolved)?;
                let run = directory.runs[at].last();
                run.map_or_else(String::new, |run| table::of_run(resolved, run))
            }
            Ended::Without(why) => {
                // All of it is below the table.
                let short = why.split(';').next().unwrap_or_default().to_owned();
                directory.end(at, why)?;
                short
            }
        };
        made += 1;
        if !quiet {
            let left = left(resolved, directory, began.elapsed() / made);
            let point = table::named(&resolved.job, &resolved.axes, &directory.sweep.points[at].at);
            message!("{point}: {outcome}{left}");
        }
    }
    Ok(Why::Done)
}

/// The point to run next. A search creates it when it gets there.
fn choose(
    resolved: &ResolvedSweep,
    directory: &mut SweepDirectory,
) -> Result<Option<usize>, Failure> {
    let Some(search) = &resolved.search else {
        let points = directory.sweep.points.iter();
        let stand = |point: &gpuio_record::SweepPoint| Progress {
            runs: u32::try_from(point.records.len()).unwrap_or(u32::MAX),
            ended: point.ended.is_some(),
        };
        return Ok(next(&points.map(stand).collect::<Vec<_>>(), resolved.order_seed));
    };
    let mut tried = Vec::new();
    for (at, point) in directory.sweep.points.iter().enumerate() {
        if point.ended.is_none() {
            return Ok(Some(at));
        }
        let load = point.at.first().and_then(|value| value.parse().ok()).unwrap_or(0);
        tried.push(search.tried(load, &directory.runs[at], point.ended.as_deref()));
    }
    match step(&tried, search.from, search.to, search.runs) {
        Step::Done { .. } => Ok(None),
        Step::Try(load) => match tried.iter().position(|run| run.load == load) {
            Some(again) => Ok(Some(again)),
            None => directory.insert(load).map(Some),
        },
    }
}

fn wait(time: Duration, stop: &AtomicBool) {
    let began = Instant::now();
    while began.elapsed() < time && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK.min(time.saturating_sub(began.elapsed())));
    }
}

/// Estimates the remaining time from the runs so far.
fn left(resolved: &ResolvedSweep, directory: &SweepDirectory, each: Duration) -> String {
    if resolved.search.is_some() {
        return String::new();
    }
    let owed: u32 = directory
        .sweep
        .points
        .iter()
        .filter(|point| point.ended.is_none())
        .map(|point| {
            let runs = u32::try_from(point.records.len()).unwrap_or(u32::MAX);
            resolved.rule.min.saturating_sub(runs).max(1)
        })
        .sum();
    if owed == 0 {
        return String::new();
    }
    let ended = directory.sweep.points.iter().filter(|point| point.ended.is_some()).count();
    let all = directory.sweep.points.len();
    let time = table::long(each * owed);
    let all = many(all as u64, "point");
    let owed = many(owed.into(), "more run");
    format!("   [{ended} of {all} complete; at least {owed}, about {time}]")
}
