//! `gpuio bench --ab A.ini B.ini`: two job files in turns, in one run of the program.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_compare::{Options, Side, compare, of_record};
use gpuio_load::run::Permit;
use gpuio_record::{EndedHow, Record};
use gpuio_report::format::json;
use gpuio_spec::Spec;

use crate::args::Bench;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::outcome;
use crate::output::{self, Output};
use crate::session::Session;
use crate::ui::Progress;
use crate::verb::{bench, compare as page};

/// Rounds that nobody asked for: with five of each, a t interval is 2.8 standard errors wide to
/// either side, and the rank test can get below 0.05.
const ROUNDS: u32 = 5;

/// One of the two.
struct Job {
    /// `a` or `b`: the first part of its records' names.
    letter: char,
    path: PathBuf,
    spec: Spec,
    records: Vec<(String, Record)>,
}

pub(crate) fn run(bench: &Bench, permit: &Permit) -> Result<ExitCode, Failure> {
    let format = page::find(bench.out.format.as_deref().unwrap_or("text"))?;
    let mut jobs = ['a', 'b']
        .into_iter()
        .zip(&bench.ab.ab)
        .map(|(letter, path)| job(letter, path, bench))
        .collect::<Result<Vec<Job>, Failure>>()?;
    // Both are planned and judged before the first byte moves.
    let mut odd_seed = true;
    for job in jobs.iter().rev() {
        let mut session =
            Session::prepare(&job.spec, permit.clone(), &bench.work.cufile, bench.out.dry_run)?;
        let plan = session.dry_run()?;
        odd_seed = session.plan.jobs.first().is_none_or(|job| job.seed % 2 == 1);
        if bench.out.dry_run {
            output::put(&format!("# {}\n{plan}", job.path.display()))?;
        }
    }
    if bench.out.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let folder = bench.out.output.as_deref().map(make_folder).transpose()?;
    let rounds = bench.ab.rounds.unwrap_or(ROUNDS);
    let progress = Progress::new(bench.out.quiet);
    for round in 0..rounds {
        for nth in turn(odd_seed, round) {
            if !bench.out.quiet {
                let path = jobs[nth].path.display();
                progress.say(&format!("round {} of {rounds}: {path}", round + 1));
            }
            match one(&mut jobs[nth], round, folder, bench, permit, &progress) {
                Ok(true) => {}
                Ok(false) => return finish(&jobs, format, false),
                // What both have finished until then still tells something.
                Err(failure) if round > 0 => {
                    eprintln!("error: {}: {failure}", jobs[nth].path.display());
                    return finish(&jobs, format, false);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    progress.clear();
    finish(&jobs, format, true)
}

/// Which of the two runs first and second in a round: A B, then B A, and so on, so that neither
/// gains by what drifts; an even seed begins with B.
fn turn(odd_seed: bool, round: u32) -> [usize; 2] {
    if odd_seed == round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

fn job(letter: char, path: &Path, bench: &Bench) -> Result<Job, Failure> {
    let mut spec = bench::read_jobs(path)?;
    for job in &mut spec.jobs {
        bench::override_with(job, bench)?;
    }
    Ok(Job { letter, path: path.to_owned(), spec, records: Vec::new() })
}

/// The folder for the records; one that is there already may hold those of another run.
fn make_folder(path: &Path) -> Result<&Path, Failure> {
    std::fs::create_dir(path).map_err(|error| {
        let name = path.display();
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; choose another name, or remove it first",
            _ => "",
        };
        Failure::Usage(format!(
            "-o {name}: the folder for the records can't be made: {error}{hint}"
        ))
    })?;
    Ok(path)
}

/// Runs one job file once and keeps its record. Says whether to go on.
fn one(
    job: &mut Job,
    round: u32,
    folder: Option<&Path>,
    bench: &Bench,
    permit: &Permit,
    progress: &Progress,
) -> Result<bool, Failure> {
    let name = format!("{}-{:02}.json", job.letter, round + 1);
    let path = folder.map(|folder| folder.join(&name));
    let output = path.as_deref().map(|path| Output::begin("-o", path)).transpose()?;
    let journal = Journal::new(path.as_deref());
    let mut session =
        Session::prepare(&job.spec, permit.clone(), &bench.work.cufile, bench.out.dry_run)?;
    session.counts = !bench.out.no_stats_page;
    session.watched = !bench.out.no_watch;
    let record = session.run(progress, &journal)?;
    let path = match output {
        Some(output) => {
            let saved = output.save("the record", json::render(&record).as_bytes());
            Some(saved.map_err(|failure| failure.with_journal(&journal))?)
        }
        None => None,
    };
    journal.remove();
    let go_on = record.ended == EndedHow::Complete;
    if let Some(error) = &record.error {
        eprintln!("error: {}: {error}", job.path.display());
    }
    job.records.push((path.map_or(name, |path| path.display().to_string()), record));
    Ok(go_on)
}

/// Prints the comparison of the rounds that both finished; `all` says whether those are all.
fn finish(jobs: &[Job], format: page::Format, all: bool) -> Result<ExitCode, Failure> {
    let whole = |job: &Job| {
        job.records.iter().filter(|(_, record)| record.ended == EndedHow::Complete).count()
    };
    let rounds = jobs.iter().map(whole).min().unwrap_or(0);
    let fine = jobs
        .iter()
        .flat_map(|job| &job.records)
        .all(|(_, record)| outcome::exit_code(record) == ExitCode::SUCCESS);
    if rounds == 0 {
        return Err(Failure::Ran("no round was finished: there is nothing to compare".to_owned()));
    }
    let side = |job: &Job| {
        let records = job.records.iter().take(rounds);
        let runs = records.flat_map(|(name, record)| of_record::runs(record, name, &[])).collect();
        Side { name: job.path.display().to_string(), runs, notes: Vec::new() }
    };
    let sides: Vec<Side> = jobs.iter().map(side).collect();
    // What differs was asked for: it is shown, not refused.
    let options = Options { despite: vec!["all".to_owned()], in_turns: true, ..Options::default() };
    output::put(&format(&compare(&sides, &options)))?;
    Ok(if fine && all { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_change_and_the_seed_says_who_begins() {
        assert_eq!([0, 1, 2].map(|round| turn(true, round)), [[0, 1], [1, 0], [0, 1]]);
        assert_eq!(turn(false, 0), [1, 0]);
    }
}
