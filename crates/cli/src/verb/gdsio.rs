//! `gpuio gdsio …`, and gpuio called as `gdsio`: accepts gdsio's flags and config files and prints
//! its result line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_base::units::many;
use gpuio_drivers::cufile::Base;
use gpuio_job::spec::{Dialect, GdsioRequest, GdsioRun, JobSpec, Rw, Spec};
use gpuio_load::run::Permit;
use gpuio_record::{IoFailure, JobPlan, JobResult, Record, VerifyMode};
use gpuio_report::format::gdsio::{self as line, Job};
use gpuio_report::format::text::Show;

use super::bench::report_unused;
use crate::args::{
    self, CufileFlags, GDSIO_SWITCHES as SWITCHES, Out, RankFlags, RankLimits,
    gdsio_option as option,
};
use crate::cufile;
use crate::failure::Failure;
use crate::fio_logs::Logs;
use crate::jobs::{local_gpu, read_jobs_at, set};
use crate::journal::Journal;
use crate::locale;
use crate::outcome::{self, Kind};
use crate::output::{self, Sink};
use crate::ranks::{self, Joined, Place, Role};
use crate::session::Session;
use crate::ui::Progress;
use crate::unused;

const HELP: &str = include_str!("gdsio_help.txt");

/// Options that may be repeated.
const MANY: &[&str] = &["--set", "--destroy-data-on", "--cufile-set"];

/// Flags of `gpuio bench` that gdsio spells in another way, longer ones first.
const SPELLED: [(&str, &str); 5] = [
    ("--directory", "-D"),
    ("--filename", "-f"),
    ("--threads", "-w"),
    ("--verify", "-V"),
    ("--size", "-s"),
];

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    match parse(words).map(|command| command.run) {
        Ok(GdsioRun::Help) => return output::put(HELP).map(|()| ExitCode::SUCCESS),
        Ok(GdsioRun::Version) => {
            let text = concat!("gdsio (gpuio ", env!("CARGO_PKG_VERSION"), ")");
            return output::put(text).map(|()| ExitCode::SUCCESS);
        }
        // An error is rank 0's to report, where there are several.
        Ok(_) | Err(_) => {}
    }
    cufile::reserve();
    match ranks::join(rank_limits(words).timeout()?)? {
        Role::First(joined) | Role::Member(joined) => on_ranks(words, joined),
        Role::Alone => alone(words),
        Role::Ended(code) => Ok(code),
    }
}

fn parse(words: &[String]) -> Result<GdsioRequest, Failure> {
    args::parse_gdsio(words).map_err(|error| Failure::Usage(error.to_string()))
}

/// The command line, ready to run.
struct Request {
    command: GdsioRequest,
    extras: Extras,
    session: Session,
    /// Whether a read follows the writes.
    verifies: bool,
}

fn prepare(words: &[String], place: &Place) -> Result<Request, Failure> {
    let filled: Vec<String> = words.iter().map(|word| place.fill(word)).collect();
    let command = parse(&filled)?;
    let mut spec = match &command.run {
        GdsioRun::Flags(spec) => spec.clone(),
        GdsioRun::Config(path) => read_jobs_at(Path::new(path), place)?,
        // They print and end.
        GdsioRun::Help | GdsioRun::Version => Spec { name: None, jobs: Vec::new() },
    };
    for job in &mut spec.jobs {
        job.dialect = Some(Dialect::Gdsio);
        job.rank = place.among.clone();
        // gdsio opens with O_DIRECT whatever the file system, except for -x 4 and -O 1.
        let buffered =
            |path: &String| gpuio_io::path::find(path).is_some_and(|row| row.info.buffered_only);
        if job.direct.is_none() && !job.paths.iter().flatten().any(buffered) {
            job.direct = Some(true);
        }
    }
    let extras = extras(&command, &mut spec, place)?;
    cufile::set(&mut spec, &extras.cufile)?;
    poll_in_streams(&mut spec, extras.out.quiet);
    only_with(&command, &extras)?;
    let verifies = read_back(&mut spec);
    let session = Session::prepare(&spec, extras.permit.clone(), &extras.cufile, extras.dry_run);
    let session = session.map_err(|failure| failure.in_flags(&SPELLED))?;
    Ok(Request { command, extras, session, verifies })
}

fn alone(words: &[String]) -> Result<ExitCode, Failure> {
    let Request { command, extras, mut session, verifies } = prepare(words, &Place::alone())?;
    unused::ranks(&extras.ranks)?;
    if extras.dry_run {
        return session.print_plan().map(|()| ExitCode::SUCCESS);
    }
    let sink = extras.sink()?;
    let logs = Logs::open(&session.plan)?;
    let progress = Progress::new(extras.out.quiet, extras.out.eta.as_deref());
    if !extras.out.quiet {
        report_unused(&session.plan);
    }
    let journal = Journal::new(extras.out.output.as_deref());
    let record =
        session.run(&progress, &journal, &logs).map_err(|failure| failure.in_flags(&SPELLED))?;
    progress.clear();
    let printed = print(&record, &command, &extras, verifies)
        .and_then(|()| sink.map_or(Ok(None), |sink| sink.write(&record, 120)))
        .and_then(|_| logs.write(&record.plan, extras.out.quiet));
    printed.map_err(|failure| failure.with_journal(journal.kept()))?;
    journal.remove();
    Ok(ExitCode::from(outcome::report(&record, &said(&record))))
}

/// The same as one of several ranks, each with its own files: one line over all of them.
fn on_ranks(words: &[String], joined: Joined) -> Result<ExitCode, Failure> {
    let first = joined.is_first();
    let ready = || -> Result<(Request, String, Option<Sink>), Failure> {
        let mut request = prepare(words, joined.place())?;
        let share = request.extras.ranks.limits.share()?;
        let dry_run = request.extras.dry_run;
        let session = &mut request.session;
        let checked = if dry_run { session.dry_run()? } else { String::new() };
        let table = joined.agree(&session.plan, session.cpus(), share)?;
        let sink = if first && !dry_run { request.extras.sink()? } else { None };
        Ok((request, format!("{table}\n{checked}"), sink))
    };
    let (request, shown, sink) = match ready() {
        Ok(ready) => ready,
        Err(failure) => return Ok(joined.give_up(&failure)),
    };
    let Request { command, extras, session, verifies } = request;
    if extras.dry_run {
        output::put(&shown)?;
        joined.leave(0);
        return Ok(ExitCode::SUCCESS);
    }
    let progress = Progress::new(extras.out.quiet || !first, extras.out.eta.as_deref());
    if !extras.out.quiet {
        report_unused(&session.plan);
    }
    let journal = joined.journal(extras.out.output.as_deref());
    let ran = session.run_on_ranks(&progress, &journal, &joined);
    progress.clear();
    let write = |record: &Record| {
        print(record, &command, &extras, verifies)?;
        sink.map_or(Ok(None), |sink| sink.write(record, 120)).map(drop)
    };
    joined.finish(ran, journal, first.then(|| Box::new(write) as ranks::Write<'_>))
}

struct Extras {
    permit: Permit,
    cufile: CufileFlags,
    out: Out,
    dry_run: bool,
    ranks: RankFlags,
}

impl Extras {
    /// Where the record goes besides gdsio's lines.
    fn sink(&self) -> Result<Option<Sink>, Failure> {
        let open =
            |_| Sink::open(&self.out, false).map(|sink| sink.with_ranks(self.ranks.per_rank));
        self.out.output.as_ref().map(open).transpose()
    }
}

/// The flags that are needed before the command line is read in whole: its errors are reported by
/// one rank.
fn rank_limits(words: &[String]) -> RankLimits {
    let after = words.iter().skip_while(|word| *word != "--rank-timeout").nth(1).cloned();
    let joined = words.iter().find_map(|word| word.strip_prefix("--rank-timeout="));
    RankLimits { rank_timeout: joined.map(str::to_owned).or(after), ..RankLimits::default() }
}

/// gpuio's own options on gdsio's command line.
fn extras(command: &GdsioRequest, spec: &mut Spec, place: &Place) -> Result<Extras, Failure> {
    let mut extras = Extras {
        permit: Permit::default(),
        cufile: CufileFlags::default(),
        out: Out::default(),
        dry_run: false,
        ranks: RankFlags::default(),
    };
    for (name, value) in &command.leftovers {
        let Some(flag) = option(name) else {
            let ours = format!("--{name}");
            let theirs = SPELLED.iter().find(|(flag, _)| *flag == ours).map(|(_, flag)| flag);
            return Err(Failure::Usage(match theirs {
                Some(theirs) => format!("{ours}: here the option is {theirs}, as in gdsio"),
                None => format!("{ours} is no option of gpuio gdsio; see gdsio -h"),
            }));
        };
        let again = command.leftovers.iter().filter(|(other, _)| other == name).count() > 1;
        if again && !MANY.contains(&flag) {
            let what =
                format!("{flag} is given twice, so one of them has no effect; leave one out");
            return Err(Failure::Usage(what));
        }
        if SWITCHES.contains(&flag) && value.is_some() {
            return Err(Failure::Usage(format!("{flag} takes no value")));
        }
        let needed =
            || value.clone().ok_or_else(|| Failure::Usage(format!("{flag} needs a value")));
        match flag {
            "--overwrite" => extras.permit.overwrite = true,
            "--dry-run" => extras.dry_run = true,
            "--per-rank" => extras.ranks.per_rank = true,
            "--share" => {
                extras.ranks.limits.share = needed()?.split(',').map(str::to_owned).collect()
            }
            "--rank-timeout" => extras.ranks.limits.rank_timeout = Some(needed()?),
            "--quiet" => extras.out.quiet = true,
            "--destroy-data-on" => extras.permit.devices.push(PathBuf::from(needed()?)),
            "--cufile-lib" => extras.cufile.cufile_lib = Some(PathBuf::from(needed()?)),
            "--cufile-set" => extras.cufile.cufile_set.push(needed()?),
            "--format" => {
                let name = needed()?;
                // Errors are reported now, not after the run.
                output::find(&name)?;
                extras.out.format = Some(name);
            }
            "--output" => {
                extras.out.output = Some(PathBuf::from(needed()?));
                // The line goes to standard output by gdsio's rules, not through the sink.
                extras.out.quiet = true;
            }
            "--set" => {
                let pair = needed()?;
                let (key, value) = pair.split_once('=').unwrap_or((&pair, ""));
                for job in &mut spec.jobs {
                    set(job, key, value, flag)?;
                }
            }
            key => {
                let value = local_gpu(key.trim_start_matches('-'), &needed()?);
                let value = place.fill(&value);
                for job in &mut spec.jobs {
                    set(job, key.trim_start_matches('-'), &value, key)?;
                }
            }
        }
    }
    Ok(extras)
}

/// Type 5 with poll mode waits for each I/O by polling, and enqueues none in a stream (gdsio's
/// help).
fn poll_in_streams(spec: &mut Spec, quiet: bool) {
    const POLLS: &str = "properties.use_poll_mode";
    // The session reports a file that can't be read.
    let file = || Base::of_this_process().ok()?.flat().remove(POLLS);
    for job in spec.jobs.iter_mut().filter(|job| job.xfer_type == Some(5)) {
        let own = job.cufile.get(POLLS).map(|setting| setting.json.clone());
        if own.or_else(file).as_deref() != Some("true") {
            continue;
        }
        job.paths = Some(vec!["gds".to_owned()]);
        if !quiet {
            message!(
                "note: {}: with poll mode -x 5 makes polled calls in place of streams (path gds)",
                job.name
            );
        }
    }
}

/// A write with verification is followed by a read, as in gdsio. Returns true if a read was added.
fn read_back(spec: &mut Spec) -> bool {
    let reads: Vec<JobSpec> = spec
        .jobs
        .iter()
        // A mixed load has read already.
        .filter(|job| job.verify == Some(VerifyMode::Pass) && job.mix_percent.is_none())
        .filter_map(|job| {
            let rw = match job.rw? {
                Rw::Write => Rw::Read,
                Rw::RandWrite => Rw::RandRead,
                _ => return None,
            };
            let name = format!("{}-readback", job.name);
            Some(JobSpec { rw: Some(rw), name, stonewall: None, ..job.clone() })
        })
        .collect();
    let added = !reads.is_empty();
    for (nth, mut read) in reads.into_iter().enumerate() {
        read.stonewall = (nth == 0).then_some(true);
        spec.jobs.push(read);
    }
    added
}

/// Refuses output options that have no effect together with others.
fn only_with(command: &GdsioRequest, extras: &Extras) -> Result<(), Failure> {
    let (out, dry) = (&extras.out, extras.dry_run);
    let whole = out.format.is_some() && out.output.is_none();
    let rows = [
        ("-J", command.per_job && dry, "--dry-run runs nothing"),
        ("--format", out.format.is_some() && dry, "--dry-run prints a job file"),
        ("--output", out.output.is_some() && dry, "--dry-run prints the plan and exits"),
        ("-J", command.per_job && whole, "--format prints the record instead of gdsio's lines"),
        (
            "--per-rank",
            extras.ranks.per_rank && out.format.is_none() && out.output.is_none(),
            "gdsio's line is of all ranks; add --format text or csv",
        ),
    ];
    match rows.iter().find(|(_, unused, _)| *unused) {
        None => Ok(()),
        Some((flag, _, why)) => {
            let what = format!("{flag}: it has no effect here: {why}; leave one out");
            Err(Failure::Usage(what))
        }
    }
}

fn print(
    record: &Record,
    command: &GdsioRequest,
    extras: &Extras,
    verifies: bool,
) -> Result<(), Failure> {
    if let (Some(name), None) = (&extras.out.format, &extras.out.output) {
        let show = Show { per_rank: extras.ranks.per_rank, ..Show::default() };
        let width = gpuio_report::format::TEXT_WIDTH;
        locale::printed_as(name);
        return output::put(&(output::find(name)?.render)(record, width, show));
    }
    if command.per_job {
        output::put(&line::per_job(record).join("\n"))?;
    }
    let both: Vec<Job<'_>> = record.jobs.iter().filter_map(|job| pair(record, job)).collect();
    let (reads, others): (Vec<Job<'_>>, Vec<Job<'_>>) =
        both.into_iter().partition(|(plan, _)| verifies && plan.name.ends_with("-readback"));
    if !others.is_empty() {
        output::put(&line::lines(line::ranks(record), &others).join("\n"))?;
    }
    if !reads.is_empty() {
        output::put("Verifying data")?;
        output::put(&line::lines(line::ranks(record), &reads).join("\n"))?;
    }
    // gdsio's XferType is the requested path; the actual path is printed after it. A file with the
    // line alone must not pass for a result without doubts.
    for line in line::comments(record) {
        output::put(&line)?;
    }
    trouble(record);
    Ok(())
}

fn pair<'a>(record: &'a Record, result: &'a JobResult) -> Option<Job<'a>> {
    let plan: &JobPlan = record.plan.jobs.iter().find(|plan| plan.name == result.name)?;
    Some((plan, result))
}

/// The kinds for which [`trouble`] has one line or several.
fn said(record: &Record) -> Vec<Kind> {
    let failed = record.jobs.iter().any(|job| job.all_failures().next().is_some());
    let wrong = |job: &JobResult| job.verify.as_ref().is_some_and(|it| !it.mismatches.is_empty());
    let rows = [(Kind::Failed, failed), (Kind::Unverified, record.jobs.iter().any(wrong))];
    rows.into_iter().filter_map(|(kind, said)| said.then_some(kind)).collect()
}

/// Prints to standard error what no line or comment can: failures and mismatches.
fn trouble(record: &Record) {
    for line in failures(record.jobs.iter().flat_map(JobResult::all_failures)) {
        message!("error: {line}");
    }
    for job in &record.jobs {
        for bad in job.verify.iter().flat_map(|verify| &verify.mismatches) {
            message!(
                "error: {} offset {}: expected {} and found {} ({}, {} leg)",
                bad.path,
                bad.offset,
                bad.expected,
                bad.found,
                many(bad.bad_words, "wrong word"),
                bad.leg
            );
        }
    }
}

/// One line per kind of failure: the first failure and how many there were. Threads with the same
/// failure on different files are one line.
fn failures<'a>(all: impl Iterator<Item = &'a IoFailure>) -> Vec<String> {
    let mut kinds: Vec<(&IoFailure, u64, BTreeSet<&str>)> = Vec::new();
    for one in all {
        let alike = |other: &IoFailure| (&other.op, &other.what) == (&one.op, &one.what);
        match kinds.iter_mut().find(|(first, ..)| alike(first)) {
            Some((_, times, files)) => {
                *times += one.times;
                files.insert(&one.path);
            }
            None => kinds.push((one, one.times, BTreeSet::from([one.path.as_str()]))),
        }
    }
    let line = |(first, times, files): (&IoFailure, u64, BTreeSet<&str>)| {
        let IoFailure { path, offset, op, length, what, .. } = first;
        let others = match files.len() {
            1 => String::new(),
            files => format!(" on {files} files"),
        };
        format!("{path} offset {offset}: {op} of {length} bytes: {what} ({times} times{others})")
    };
    kinds.into_iter().map(line).collect()
}
