//! `gpuio bench`.

use std::path::PathBuf;
use std::process::ExitCode;

use gpuio_base::document::unique;
use gpuio_job::plan::fit_quick;
use gpuio_job::spec::{Ceilings, JobSpec, Spec};
use gpuio_load::run::Permit;
use gpuio_record::{JobPlan, Plan, Record};

use crate::args::{Bench, Out};
use crate::child;
use crate::cufile;
use crate::failure::Failure;
use crate::figures;
use crate::fio_logs::Logs;
use crate::jobs;
use crate::journal::{self, Journal};
use crate::live_metrics::Served;
use crate::outcome;
use crate::output::{self, Sink};
use crate::quick;
use crate::ranks::{self, Children, Joined, Place, Role};
use crate::session::Session;
use crate::terminal;
use crate::ui::Progress;
use crate::unused;
use crate::verb::ab;

pub(crate) fn run(bench: &Bench) -> Result<ExitCode, Failure> {
    child::die_with_parent()?;
    unused::bench(bench)?;
    // A run of one process's sweep is one process, whatever started the sweep.
    let of_one = (child::is_of_a_sweep() || child::is_of_ab()) && !ranks::is_child();
    if of_one {
        return alone(bench);
    }
    if !bench.is_ab() {
        cufile::reserve();
    }
    match ranks::join(bench.ranks.limits.timeout()?)? {
        Role::First(joined) if bench.is_ab() => joined.lead(|children| ab::run(bench, children)),
        Role::Member(joined) if bench.is_ab() => Ok(ranks::serve(joined)),
        Role::Alone if bench.is_ab() => {
            unused::ranks(&bench.ranks)?;
            ab::run(bench, &Children::alone()).map(ExitCode::from)
        }
        Role::First(joined) | Role::Member(joined) => on_ranks(bench, joined),
        Role::Alone => alone(bench),
        Role::Ended(code) => Ok(code),
    }
}

/// The plan of this process.
fn prepare(bench: &Bench, place: &Place, joined: Option<&Joined>) -> Result<Session, Failure> {
    let by_flags = !bench.is_quick() && bench.job_file.is_none();
    let mut spec = if bench.is_quick() {
        quick::spec(bench, joined)?
    } else if let Some(path) = &bench.job_file {
        jobs::only(jobs::read_jobs_at(path, place)?, &bench.section)?
    } else {
        Spec { name: None, jobs: jobs::of_flags(bench.work.keys(), place)? }
    };
    let permit = Permit {
        overwrite: bench.work.own.overwrite,
        devices: bench.work.own.destroy_data_on.clone(),
        make_missing: true,
        make_named: spec.jobs.iter().any(JobSpec::is_fio),
    };
    let written = spec.jobs.clone();
    let over = if by_flags { &[] } else { bench.work.keys() };
    for job in &mut spec.jobs {
        jobs::override_at(job, over, place)?;
        job.one_of_many = child::is_of_a_sweep();
        job.rank = place.among.clone();
        if joined.is_some() {
            // Paths of `all` have them unless that is said.
            job.ceilings.get_or_insert(Ceilings::Off);
        }
        if child::is_of_ab() {
            // The seed also decides which side starts.
            job.requested.remove("seed");
        }
    }
    if joined.is_none() && !child::is_of_a_sweep() && !child::is_of_ab() {
        for note in jobs::replaced(&written, &spec.jobs) {
            message!("note: {note}");
        }
    }
    let figures = figures::read(&bench.figures)?;
    let mut session = Session::prepare(&spec, permit, &bench.work.own.cufile, bench.out.dry_run)?;
    if bench.is_quick() {
        fit_quick(&mut session.plan, bench.work.written("runtime").is_some());
    }
    session.figures = figures;
    session.counts = !bench.out.no_stats_page;
    session.watched = !bench.out.no_watch;
    Ok(session)
}

fn alone(bench: &Bench) -> Result<ExitCode, Failure> {
    unused::ranks(&bench.ranks)?;
    let mut session = prepare(bench, &Place::alone(), None)?;
    if bench.out.dry_run {
        session.print_plan()?;
        return Ok(ExitCode::SUCCESS);
    }
    let sink = sink(bench)?;
    if bench.is_quick() && !bench.out.quiet {
        message!("note: {}", quick::time(&session.plan));
    }
    carry_out(session, &bench.out, |record| finish(bench, sink, record))
}

/// Runs what was prepared, or prints its plan.
pub(crate) fn measure(mut session: Session, out: &Out) -> Result<ExitCode, Failure> {
    if out.dry_run {
        session.print_plan()?;
        return Ok(ExitCode::SUCCESS);
    }
    let sink = Sink::open(out, false)?;
    carry_out(session, out, |record| deliver((out, false), sink, record).map(drop))
}

fn carry_out(
    session: Session,
    out: &Out,
    finish: impl FnOnce(&Record) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let logs = Logs::open(&session.plan)?;
    let progress = Progress::new(out.quiet, out.eta.as_deref());
    if !out.quiet {
        report_unused(&session.plan);
    }
    report_crashed_runs(out, &progress);
    progress.begin(&session.plan);
    let journal = match child::is_of_a_sweep() {
        true => Journal::none(),
        false => Journal::new(out.output.as_deref()),
    };
    let served = out.serve.as_deref().map(Served::begin).transpose()?;
    let record = session.run(&progress, &journal, &logs)?;
    drop(served);
    progress.clear();
    let written = finish(&record).and_then(|()| logs.write(&record.plan, out.quiet));
    written.map_err(|failure| failure.with_journal(journal.kept()))?;
    journal.remove();
    Ok(ExitCode::from(outcome::report(&record, &[])))
}

/// Where results of crashed runs are; a quiet run leaves the line to the next.
fn report_crashed_runs(out: &Out, progress: &Progress) {
    if !out.quiet
        && let Some(line) = journal::report_crashed_runs(out.output.as_deref())
    {
        progress.print_line(&line);
    }
}

/// Prints and saves the record, and what follows from it.
fn finish(bench: &Bench, sink: Sink, record: &Record) -> Result<(), Failure> {
    let saved = deliver((&bench.out, bench.is_quick()), sink, record)?;
    let local = record.storage.iter().all(|storage| storage.device.is_some());
    if let Some(note) = figures::unused_server(&bench.figures, !local) {
        message!("note: {note}");
    }
    match bench.is_quick() && bench.out.format.is_none() && !bench.out.quiet {
        true => {
            output::put(&format!("\n{}", quick::next(record, saved.as_deref(), terminal::width())))
        }
        false => Ok(()),
    }
}

/// Prints and saves the record; the file. The text of a quick run says itself which files stay.
fn deliver(
    (out, is_quick): (&Out, bool),
    sink: Sink,
    record: &Record,
) -> Result<Option<PathBuf>, Failure> {
    let is_text = sink.is_text();
    let saved = sink.write(record, terminal::width())?;
    if out.quiet {
        return Ok(saved);
    }
    if !is_text {
        report_left_out(&record.plan);
    } else if let Some(line) = quick::data_files(record).filter(|_| !is_quick) {
        output::put(&format!("\n{line}"))?;
    }
    Ok(saved)
}

/// Where the record goes.
fn sink(bench: &Bench) -> Result<Sink, Failure> {
    let quick = bench.is_quick();
    let own_file = quick && bench.out.output.is_none() && bench.out.format.is_none();
    if own_file { Sink::open_quick(&bench.out) } else { Sink::open(&bench.out, quick) }
}

/// Refuses features that ranks would each use by themselves and whose results can't be added.
fn refuse_on_ranks(plan: &Plan) -> Result<(), Failure> {
    let ceilings = plan.jobs.iter().any(|job| job.ceilings_ns.is_some());
    if plan.jobs.iter().any(|job| job.logs.is_some()) {
        let what = "write_bw_log and its like are for one process; the record of several ranks has \
                    the series of all (--format json)";
        return Err(Failure::Usage(what.to_owned()));
    }
    match ceilings {
        true => Err(Failure::Usage(
            "--ceilings does not run on several ranks: ranks that share a drive, a server, a link \
             or a host's memory would each find all of it, and the sum would be too high; find \
             them with one process per host, without the launcher"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

fn on_ranks(bench: &Bench, joined: Joined) -> Result<ExitCode, Failure> {
    let first = joined.is_first();
    let ready = || -> Result<(Session, String, Option<Sink>), Failure> {
        let share = bench.ranks.limits.share()?;
        let mut session = prepare(bench, joined.place(), Some(&joined))?;
        refuse_on_ranks(&session.plan)?;
        let checked = if bench.out.dry_run { session.dry_run()? } else { String::new() };
        let sink = (first && !bench.out.dry_run).then(|| sink(bench)).transpose()?;
        let table = joined.agree(&session.plan, session.cpus(), share)?;
        Ok((session, format!("{table}\n{checked}"), sink))
    };
    let (session, shown, sink) = match ready() {
        Ok(ready) => ready,
        Err(failure) => return Ok(joined.give_up(&failure)),
    };
    if bench.out.dry_run {
        output::put(&shown)?;
        joined.leave(0);
        return Ok(ExitCode::SUCCESS);
    }
    let write = sink.map(|sink| {
        let sink = sink.with_ranks(bench.ranks.per_rank);
        let write = |record: &Record| finish(bench, sink, record);
        Box::new(write) as ranks::Write<'_>
    });
    let output = bench.out.output.as_deref();
    let progress = Progress::new(bench.out.quiet || !first, bench.out.eta.as_deref());
    if !bench.out.quiet {
        report_unused(&session.plan);
    }
    if first {
        report_crashed_runs(&bench.out, &progress);
        progress.begin(&session.plan);
    }
    let journal = match child::is_of_a_sweep() {
        true => Journal::none(),
        false => joined.journal(output),
    };
    let served = bench.out.serve.as_deref().filter(|_| first).map(Served::begin).transpose();
    let served = match served {
        Ok(served) => served,
        Err(failure) => return Ok(joined.give_up(&failure)),
    };
    let ran = session.run_on_ranks(&progress, &journal, &joined);
    drop(served);
    progress.clear();
    joined.finish(ran, journal, write)
}

/// Reports keys of a job file that have no effect, and directories that are made, each once, and of
/// which jobs unless of all.
pub(crate) fn report_unused(plan: &Plan) {
    let unused = |job: &&JobPlan, note: &str| job.notes.iter().any(|one| one == note);
    let notes = plan.jobs.iter().flat_map(|job| &job.notes);
    for note in unique(notes.filter(|note| unused::is_said(note))) {
        let of: Vec<&JobPlan> = plan.jobs.iter().filter(|job| unused(job, note)).collect();
        let names = unique(of.iter().map(|job| job.name.as_str())).join("', '");
        match of.len() == plan.jobs.len() {
            true => message!("note: {note}"),
            false => message!("note: job '{names}': {note}"),
        }
    }
}

/// Reports the paths of `all` that did not run, one line per reason.
fn report_left_out(plan: &Plan) {
    for group in plan.left_out.chunk_by(|a, b| a.why == b.why) {
        let names: Vec<&str> = group.iter().map(|out| out.path.as_str()).collect();
        let why = group.first().map_or("", |out| out.why.as_str());
        message!("note: not run: {}: {why}", names.join(", "));
    }
}
