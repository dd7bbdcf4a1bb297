//! `gpuio bench`.

use std::path::Path;
use std::process::ExitCode;

use gpuio_host::{Root, input};
use gpuio_load::run::Permit;
use gpuio_plan::{QuickSize, TargetLookup, quick_spec};
use gpuio_record::{Plan, Record};
use gpuio_spec::{JobSpec, Origin, Spec};

use crate::args::Bench;
use crate::failure::Failure;
use crate::figures;
use crate::journal::{self, Journal};
use crate::outcome;
use crate::output::{self, Sink};
use crate::ranks::{self, Joined, Place};
use crate::session::Session;
use crate::ui::{Progress, terminal_width};
use crate::unused;
use crate::verb::{ab, sweep};

pub(crate) fn run(bench: &Bench) -> Result<ExitCode, Failure> {
    sweep::die_with_parent()?;
    unused::bench(bench)?;
    if !bench.ab.ab.is_empty() {
        ranks::refuse("--ab")?;
        return ab::run(bench);
    }
    // A run of a sweep is one process, whatever started the sweep.
    if sweep::is_of_a_sweep() {
        return alone(bench);
    }
    match ranks::join(bench.ranks.timeout()?)? {
        Ok(Some(joined)) => on_ranks(bench, joined),
        Ok(None) => alone(bench),
        Err(code) => Ok(code),
    }
}

/// The plan of this process.
fn prepare(bench: &Bench, place: &Place) -> Result<Session, Failure> {
    let permit = Permit {
        overwrite: bench.work.data.overwrite,
        devices: bench.work.data.destroy_data_on.clone(),
        make_missing: true,
    };
    let mut spec = if bench.is_quick() {
        quick_run(bench)
    } else if let Some(path) = &bench.job_file {
        read_jobs_at(path, place)?
    } else {
        Spec { name: None, jobs: vec![JobSpec::new("job")] }
    };
    for job in &mut spec.jobs {
        override_at(job, bench, place)?;
        job.one_of_many = sweep::is_of_a_sweep();
        job.rank = place.rank;
        if sweep::is_of_ab() {
            // The seed also decides which side starts.
            job.requested.remove("seed");
        }
    }
    let figures = figures::read(&bench.figures)?;
    let mut session = Session::prepare(&spec, permit, &bench.work.cufile, bench.out.dry_run)?;
    session.figures = figures;
    session.counts = !bench.out.no_stats_page;
    session.watched = !bench.out.no_watch;
    Ok(session)
}

fn alone(bench: &Bench) -> Result<ExitCode, Failure> {
    unused::ranks(&bench.ranks)?;
    let quick = bench.is_quick();
    let mut session = prepare(bench, &Place::alone())?;
    if bench.out.dry_run {
        output::put(&session.dry_run()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let own_file = quick && bench.out.output.is_none() && bench.out.format.is_none();
    let sink =
        if own_file { Sink::open_quick(bench.out.evidence)? } else { Sink::open(&bench.out)? };
    let progress = Progress::new(bench.out.quiet);
    if !bench.out.quiet {
        report_unused(&session.plan);
    }
    if let Some(line) = journal::report_crashed_runs(bench.out.output.as_deref()) {
        progress.print_line(&line);
    }
    let journal = match sweep::is_of_a_sweep() {
        true => Journal::none(),
        false => Journal::new(bench.out.output.as_deref()),
    };
    let record = session.run(&progress, &journal)?;
    progress.clear();
    sink.write(&record, terminal_width()).map_err(|failure| failure.with_journal(&journal))?;
    journal.remove();
    if !bench.out.quiet {
        report_left_out(&record.plan);
    }
    if let Some(error) = &record.error {
        message!("error: {error}");
    }
    if quick && record.driver_version.is_none() && !bench.out.quiet {
        output::put(
            "\nNo GPU was found, so only the host path ran. To try the GPU paths without a GPU: \
             gpuio bench --gpu software\n",
        )?;
    }
    Ok(outcome::exit_code(&record))
}

/// What several ranks can't do together, since each would do it at its own time.
fn refuse_on_ranks(bench: &Bench, plan: &Plan) -> Result<(), Failure> {
    let refuse = |what: &str| Err(Failure::Usage(format!("{what} does not run on several ranks")));
    if bench.is_quick() {
        return refuse("the quick run (no load was requested)");
    }
    for job in &plan.jobs {
        let all = job.path.choice.requested == "all";
        match (all, job.ceilings_ns, &job.beside, &job.steady) {
            (true, ..) => return refuse("--path all"),
            (_, Some(_), ..) => return refuse("--ceilings"),
            (.., Some(_), _) => return refuse("--beside"),
            (.., Some(_)) => return refuse("--steady"),
            _ => {}
        }
    }
    Ok(())
}

fn on_ranks(bench: &Bench, joined: Joined) -> Result<ExitCode, Failure> {
    let first = joined.is_first();
    let ready = || -> Result<(Session, String, Option<Sink>), Failure> {
        let share = bench.ranks.share()?;
        let mut session = prepare(bench, joined.place())?;
        refuse_on_ranks(bench, &session.plan)?;
        let checked = if bench.out.dry_run { session.dry_run()? } else { String::new() };
        let sink = (first && !bench.out.dry_run).then(|| Sink::open(&bench.out)).transpose()?;
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
        Box::new(|record: &Record| sink.write(record, terminal_width())) as ranks::Write<'_>
    });
    let output = bench.out.output.as_deref();
    let progress = Progress::new(bench.out.quiet || !first);
    if !bench.out.quiet {
        report_unused(&session.plan);
    }
    if let Some(line) = journal::report_crashed_runs(output).filter(|_| first) {
        progress.print_line(&line);
    }
    let journal = joined.journal(output);
    let ran = session.run_on_ranks(&progress, &journal, &joined);
    progress.clear();
    joined.finish(ran, journal, write)
}

/// Reports keys of a job file that have no effect, each once.
pub(crate) fn report_unused(plan: &Plan) {
    let notes = plan.jobs.iter().flat_map(|job| &job.notes);
    let mut reported: Vec<&String> = Vec::new();
    for note in notes.filter(|note| note.contains("has no effect here")) {
        if !reported.contains(&note) {
            message!("note: {note}");
            reported.push(note);
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

/// Sets every flag on a job, as the key of the same name in a job file would.
pub(crate) fn override_with(job: &mut JobSpec, bench: &Bench) -> Result<(), Failure> {
    override_at(job, bench, &Place::alone())
}

/// The same with `{rank}`, `{local_rank}` and `{host}` in values; `--gpu local` is the GPU of the
/// local rank.
fn override_at(job: &mut JobSpec, bench: &Bench, place: &Place) -> Result<(), Failure> {
    for (key, value, flag) in bench.work.keys() {
        set(job, key, &place.fill(&local_gpu(key, &value)), flag)?;
    }
    for pair in &bench.work.data.set {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        set(job, key.trim(), &place.fill(value.trim()), "--set")?;
    }
    Ok(())
}

/// The value of a flag; `local` as a GPU is that of the local rank.
pub(crate) fn local_gpu(key: &str, value: &str) -> String {
    match (key, value) {
        ("gpu", "local") => "{local_rank}".to_owned(),
        ("gpu", "software:local") => "software:{local_rank}".to_owned(),
        (_, value) => value.to_owned(),
    }
}

pub(crate) fn set(
    job: &mut JobSpec,
    key: &str,
    value: &str,
    flag: &'static str,
) -> Result<(), Failure> {
    gpuio_spec::apply(job, key, value, Origin::Flag(flag))
        .map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// Reads a job file; `${NAME}` comes from the environment.
pub(crate) fn read_jobs(path: &Path) -> Result<Spec, Failure> {
    read_jobs_at(path, &Place::alone())
}

/// The same with `{rank}`, `{local_rank}` and `{host}`.
pub(crate) fn read_jobs_at(path: &Path, place: &Place) -> Result<Spec, Failure> {
    let name = path.display().to_string();
    let text = input::read(path, input::MOST_WRITTEN)
        .map_err(|error| Failure::Usage(format!("{name}: the job file can't be read: {error}")))?;
    let env = |name: &str| std::env::var(name).ok();
    gpuio_spec::parse_job_file(&name, place.fill_bytes(text), &env).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Usage(lines.join("\n       "))
    })
}

/// The size of the quick run: about a minute without a GPU, a few minutes with all paths, on files
/// that suit this disk and memory.
fn quick_run(bench: &Bench) -> Spec {
    const MIB: u64 = 1 << 20;
    let host = gpuio_host::collect(&Root::live());
    let cpus = host.cpu.allowed.as_ref().map_or(1, Vec::len);
    let threads = u32::try_from(cpus.clamp(1, 4)).unwrap_or(1);
    let location = gpuio_load::live_targets::LiveTargets::default()
        .look(bench.work.data.directory.as_deref().unwrap_or("."));
    let free = location.free_bytes.unwrap_or(4 << 30);
    let memory = host.memory.usable_bytes.unwrap_or(4 << 30);
    let all = (free / 8).min(memory / 8).min(1 << 30).max(u64::from(threads) * 16 * MIB);
    let each = all / u64::from(threads);
    quick_spec(QuickSize { threads, size_bytes: each - each % MIB, runtime_ns: 2_000_000_000 })
}
