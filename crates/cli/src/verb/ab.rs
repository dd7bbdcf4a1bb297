//! `gpuio bench --ab A.ini B.ini`: runs two job files alternately and compares them.
//!
//! Each run is `gpuio bench` in a process of its own, as in a sweep: cuFile reads its configuration
//! once per process, so two configurations can't be compared within one; and contexts and
//! allocators would carry over from one side to the other.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;

use gpuio_base::document::Format;
use gpuio_job::spec::Spec;
use gpuio_record::{EndedHow, Record, RunOf};
use gpuio_report::compare::{Options, Side, Threshold, compare, of_record, render};
use gpuio_report::format::json;

use crate::args::Bench;
use crate::child::{ChildOf, memory, text};
use crate::cufile;
use crate::failure::Failure;
use crate::figures;
use crate::formats;
use crate::interrupt;
use crate::jobs;
use crate::outcome;
use crate::output;
use crate::ranks::{Children, Place, Wanted};
use crate::records;
use crate::terminal;
use crate::unused;
use crate::verb::compare::{code, threshold};

/// Rounds by default: with five of each, a t interval is 2.8 standard errors wide to either side,
/// and the rank test can get below 0.05.
const ROUNDS: u32 = 5;

/// One of the two job files.
struct Job {
    /// `a` or `b`: the first part of its records' names.
    letter: char,
    path: PathBuf,
    spec: Spec,
    records: Vec<(String, Record)>,
}

/// The exit code.
pub(crate) fn run(bench: &Bench, children: &Children<'_>) -> Result<u8, Failure> {
    unused::ab(bench)?;
    if bench.out.evidence || bench.out.details {
        let what = "--evidence, --details: --ab prints a comparison; -o DIR keeps the records, and \
            gpuio show --evidence prints one";
        return Err(Failure::Usage(what.to_owned()));
    }
    // A wrong text is reported now, not in the first round.
    figures::read(&bench.figures)?;
    let format = formats::document(bench.out.format.as_deref())?;
    let threshold = threshold(&bench.ab.limit)?;
    let mut jobs = ['a', 'b']
        .into_iter()
        .zip(&bench.ab.ab)
        .map(|(letter, path)| job(letter, path, bench))
        .collect::<Result<Vec<Job>, Failure>>()?;
    let stop = interrupt::flag();
    if let Some(code) = plan(&jobs, bench, children, &stop)? {
        return Ok(code);
    }
    if bench.out.dry_run {
        return Ok(0);
    }
    let directory = bench.out.output.as_deref().map(make_directory).transpose()?;
    let rounds = bench.ab.rounds.unwrap_or(ROUNDS);
    let of = format!("{} of {}", RunOf::AB, jiff::Timestamp::now());
    let seed = jobs.first().and_then(|job| job.spec.jobs.first()?.seed);
    let odd_seed = seed.unwrap_or(1) % 2 == 1;
    for round in 0..rounds {
        for nth in turn(odd_seed, round) {
            if !bench.out.quiet {
                message!("round {} of {rounds}: {}", round + 1, jobs[nth].path.display());
            }
            let run_of = RunOf {
                of: of.clone(),
                point: jobs[nth].letter.to_string(),
                run: round + 1,
                runs: Some(rounds),
            };
            match one(&mut jobs[nth], run_of, directory, (bench, children), &stop)? {
                Round::Whole => {}
                Round::Without(code) if round == 0 => return Ok(code),
                // Rounds that both sides finished are still useful.
                Round::Stopped | Round::Without(_) => {
                    return finish(&jobs, format, threshold, false);
                }
            }
        }
    }
    finish(&jobs, format, threshold, true)
}

/// Which of the two runs first and second in a round: A B, then B A, and so on, so that drift
/// favours neither; an even seed starts with B.
fn turn(odd_seed: bool, round: u32) -> [usize; 2] {
    if odd_seed == round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

fn job(letter: char, path: &Path, bench: &Bench) -> Result<Job, Failure> {
    let mut spec = jobs::read_jobs(path)?;
    for job in &mut spec.jobs {
        jobs::override_at(job, bench.work.keys(), &Place::alone())?;
    }
    cufile::set(&mut spec, &bench.work.own.cufile)?;
    Ok(Job { letter, path: path.to_owned(), spec, records: Vec::new() })
}

/// Creates the directory for the records; an existing one may hold those of another run.
fn make_directory(path: &Path) -> Result<&Path, Failure> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let made = above.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::create_dir(path)).map_err(|error| {
        let name = path.display();
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; choose another name, or remove it first",
            _ => "",
        };
        Failure::Usage(format!(
            "-o {name}: the directory for the records can't be created: {error}{hint}"
        ))
    })?;
    Ok(path)
}

/// Plans both, and lets the guard check every target before the first byte moves. Prints the plans
/// if requested. Returns the exit code of the first that can't be run, which has reported why.
fn plan(
    jobs: &[Job],
    bench: &Bench,
    children: &Children<'_>,
    stop: &AtomicBool,
) -> Result<Option<u8>, Failure> {
    for job in jobs.iter().rev() {
        let mut words = bench.arguments_of_plan(&job.path);
        words.push("--dry-run".into());
        let (stdout, stderr) = (memory()?, memory()?);
        let stderr_of_run = Some(copy(&stderr)?);
        let status = children.run(wanted(words, copy(&stdout)?, stderr_of_run), stop)?;
        let messages = text(stderr);
        let code = status.map_or(1, ended);
        if code != 0 {
            output::print_message(messages.trim_end());
            return Ok(Some(code));
        }
        if bench.out.dry_run {
            output::print_message(messages.trim_end());
            output::put(&format!("# {}\n{}", job.path.display(), text(stdout)))?;
        }
    }
    Ok(None)
}

fn wanted(words: Vec<OsString>, stdout: File, stderr: Option<File>) -> Wanted<'static> {
    Wanted { of: ChildOf::Ab, words, ranks: None, folder: None, run_of: None, stdout, stderr }
}

fn copy(file: &File) -> Result<File, Failure> {
    file.try_clone().map_err(|error| Failure::Ran(format!("what a run prints: {error}")))
}

/// The exit code of a run; 1 if a signal ended it.
fn ended(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The result of one run.
enum Round {
    /// It has a record, and the next run may follow.
    Whole,
    Stopped,
    /// It has no record, has reported why, and ended with this code.
    Without(u8),
}

/// Runs one job file once, in a process of its own, and keeps its record.
fn one(
    job: &mut Job,
    run_of: RunOf,
    directory: Option<&Path>,
    (bench, children): (&Bench, &Children<'_>),
    stop: &AtomicBool,
) -> Result<Round, Failure> {
    let name = format!("{}-{:02}.json", job.letter, run_of.run);
    let path = directory.map(|directory| directory.join(&name));
    let mut words = bench.arguments_for(&job.path);
    words.extend(["--format", "json"].map(OsString::from));
    if let Some(path) = &path {
        words.extend([OsString::from("-o"), path.into()]);
    }
    let out = memory()?;
    let wanted = Wanted { run_of: Some(run_of), ..wanted(words, copy(&out)?, None) };
    let status = children.run(wanted, stop)?;
    let Some(status) = status else { return Ok(Round::Stopped) };
    let record = match &path {
        Some(path) => records::record(path).ok(),
        None => json::parse(&text(out)).ok(),
    };
    let Some(record) = record else { return Ok(Round::Without(ended(status))) };
    let whole = record.ended == EndedHow::Complete;
    let source = match &path {
        Some(path) => path.display().to_string(),
        None => format!("{name} (not saved; -o DIR saves it)"),
    };
    job.records.push((source, record));
    Ok(if whole { Round::Whole } else { Round::Stopped })
}

/// Prints the comparison of the rounds that both finished; `all` says whether those are all rounds.
fn finish(
    jobs: &[Job],
    format: &Format,
    threshold: Option<Threshold>,
    all: bool,
) -> Result<u8, Failure> {
    let whole = |job: &Job| {
        job.records.iter().filter(|(_, record)| record.ended == EndedHow::Complete).count()
    };
    let rounds = jobs.iter().map(whole).min().unwrap_or(0);
    let fine =
        jobs.iter().flat_map(|job| &job.records).all(|(_, record)| outcome::code(record) == 0);
    if rounds == 0 {
        return Err(Failure::Ran(
            "no round was completed, so there is nothing to compare".to_owned(),
        ));
    }
    let side = |job: &Job| {
        let records = job.records.iter().take(rounds);
        let runs = records.flat_map(|(name, record)| of_record::runs(record, name, &[])).collect();
        Side { name: job.path.display().to_string(), runs, ..Side::default() }
    };
    let sides: Vec<Side> = jobs.iter().map(side).collect();
    // Differences are intended here: they are shown, not refused.
    let despite = vec!["all".to_owned()];
    let options = Options { despite, threshold, in_turns: true, ..Options::default() };
    let comparison = compare(&sides, &options);
    output::put(&render(&comparison, format, terminal::width()))?;
    Ok(if fine && all { code(&comparison) } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_alternates_and_the_seed_decides_who_starts() {
        assert_eq!([0, 1, 2].map(|round| turn(true, round)), [[0, 1], [1, 0], [0, 1]]);
        assert_eq!(turn(false, 0), [1, 0]);
    }
}
