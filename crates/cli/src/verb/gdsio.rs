//! `gpuio gdsio …`, and gpuio called as `gdsio`: accepts gdsio's flags and config files and prints
//! its result line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_load::run::Permit;
use gpuio_record::{IoFailure, JobPlan, JobResult, Record, VerifyMode};
use gpuio_report::format::gdsio::{self as line, Job};
use gpuio_spec::{Dialect, GdsioRequest, GdsioRun, JobSpec, Rw, Spec};

use super::bench::{read_jobs, report_unused, set};
use crate::args::{CufileFlags, Out};
use crate::failure::Failure;
use crate::journal::Journal;
use crate::outcome;
use crate::output::{self, Sink};
use crate::session::Session;
use crate::ui::Progress;

const HELP: &str = include_str!("gdsio_help.txt");

/// gpuio's own long options that take a value and set the key of the same name.
const KEYS: &[&str] = &["--gpu", "--engine", "--depth", "--streams", "--ramp", "--set", "--cpus"];
/// gpuio's own long options that take a value and concern output and permission.
const OTHERS: &[&str] =
    &["--format", "--output", "--destroy-data-on", "--cufile-lib", "--cufile-set"];
/// gpuio's own long options without a value.
const SWITCHES: &[&str] = &["--overwrite", "--dry-run", "--quiet"];

/// Options that may be repeated.
const MANY: &[&str] = &["--set", "--destroy-data-on", "--cufile-set"];

/// Returns the option of this name, which the parser gives without its dashes.
fn option(name: &str) -> Option<&'static str> {
    let all = KEYS.iter().chain(OTHERS).chain(SWITCHES);
    all.copied().find(|flag| flag.strip_prefix("--") == Some(name))
}

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    crate::ranks::refuse("gpuio gdsio")?;
    // An unknown option takes a value too, so that the error names the option and not its value.
    let takes_value = |name: &str| option(name).is_none_or(|flag| !SWITCHES.contains(&flag));
    let command = gpuio_spec::parse_gdsio(words, &takes_value)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let mut spec = match &command.run {
        GdsioRun::Help => return output::put(HELP).map(|()| ExitCode::SUCCESS),
        GdsioRun::Version => {
            let text = concat!("gdsio (gpuio ", env!("CARGO_PKG_VERSION"), ")");
            return output::put(text).map(|()| ExitCode::SUCCESS);
        }
        GdsioRun::Flags(spec) => spec.clone(),
        GdsioRun::Config(path) => read_jobs(Path::new(path))?,
    };
    for job in &mut spec.jobs {
        job.dialect = Some(Dialect::Gdsio);
        // gdsio opens with O_DIRECT whatever the file system, except for -x 4 and -O 1.
        let buffered =
            |path: &String| gpuio_io::path::find(path).is_some_and(|row| row.info.buffered_only);
        if job.direct.is_none() && !job.paths.iter().flatten().any(buffered) {
            job.direct = Some(true);
        }
    }
    let extras = extras(&command, &mut spec)?;
    only_with(&command, &extras)?;
    let verifies = read_back(&mut spec);
    let mut session =
        Session::prepare(&spec, extras.permit.clone(), &extras.cufile, extras.dry_run)?;
    if extras.dry_run {
        return output::put(&session.dry_run()?).map(|()| ExitCode::SUCCESS);
    }
    let sink = match extras.out.output {
        Some(_) => Some(Sink::open(&extras.out)?),
        None => None,
    };
    let progress = Progress::new(extras.out.quiet);
    if !extras.out.quiet {
        report_unused(&session.plan);
    }
    let journal = Journal::new(extras.out.output.as_deref());
    let record = session.run(&progress, &journal)?;
    progress.clear();
    let printed = print(&record, &command, &extras.out, verifies)
        .and_then(|()| sink.map_or(Ok(()), |sink| sink.write(&record, 120)));
    printed.map_err(|failure| failure.with_journal(&journal))?;
    journal.remove();
    Ok(outcome::exit_code(&record))
}

struct Extras {
    permit: Permit,
    cufile: CufileFlags,
    out: Out,
    dry_run: bool,
}

/// gpuio's own options on gdsio's command line.
fn extras(command: &GdsioRequest, spec: &mut Spec) -> Result<Extras, Failure> {
    let mut extras = Extras {
        permit: Permit { overwrite: false, devices: Vec::new(), make_missing: false },
        cufile: CufileFlags::default(),
        out: Out::default(),
        dry_run: false,
    };
    for (name, value) in &command.leftovers {
        let Some(flag) = option(name) else {
            let what = format!("--{name} is an option of neither gdsio nor gpuio; see gdsio -h");
            return Err(Failure::Usage(what));
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
                let value = needed()?;
                for job in &mut spec.jobs {
                    set(job, key.trim_start_matches('-'), &value, key)?;
                }
            }
        }
    }
    Ok(extras)
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
    out: &Out,
    verifies: bool,
) -> Result<(), Failure> {
    if let (Some(name), None) = (&out.format, &out.output) {
        return output::put(&(output::find(name)?.render)(record));
    }
    if command.per_job {
        output::put(&line::per_job(record).join("\n"))?;
    }
    let both: Vec<Job<'_>> = record.jobs.iter().filter_map(|job| pair(record, job)).collect();
    let (reads, others): (Vec<Job<'_>>, Vec<Job<'_>>) =
        both.into_iter().partition(|(plan, _)| verifies && plan.name.ends_with("-readback"));
    if !others.is_empty() {
        output::put(&line::line(&others))?;
    }
    if !reads.is_empty() {
        output::put("Verifying data")?;
        output::put(&line::line(&reads))?;
    }
    // gdsio's XferType is the requested path; the actual path is printed after it.
    for verdict in line::verdicts(record) {
        message!("{verdict}");
    }
    trouble(record);
    Ok(())
}

fn pair<'a>(record: &'a Record, result: &'a JobResult) -> Option<Job<'a>> {
    let plan: &JobPlan = record.plan.jobs.iter().find(|plan| plan.name == result.name)?;
    Some((plan, result))
}

/// Prints to standard error what the one line can't: failures, mismatches, the software GPU.
fn trouble(record: &Record) {
    for line in failures(record.jobs.iter().flat_map(|job| &job.failures)) {
        message!("error: {line}");
    }
    for job in &record.jobs {
        for bad in job.verify.iter().flat_map(|verify| &verify.mismatches) {
            message!(
                "error: {} offset {}: expected {} and found {} ({} words wrong, {} leg)",
                bad.path,
                bad.offset,
                bad.expected,
                bad.found,
                bad.bad_words,
                bad.leg
            );
        }
    }
    if let Some(error) = &record.error {
        message!("error: {error}");
    }
    if record.plan.software_gpu {
        message!("note: software GPU: these results do not describe hardware");
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
