//! `gpuio workload`.

mod found;
mod largest;
mod several;

use std::path::Path;
use std::process::ExitCode;

use gpuio_base::units::human_rate;
use gpuio_host::Root;
use gpuio_job::plan::Gpus;
use gpuio_job::spec::{GpuWhich, Spec};
use gpuio_job::workload::preset::{self, PRESETS, Preset};
use gpuio_job::workload::short::{Means, shorten as shorten_to};
use gpuio_load::run::Permit;

use crate::args::{Given, Out, Workload};
use crate::driver;
use crate::failure::Failure;
use crate::figures;
use crate::jobs;
use crate::output;
use crate::quick;
use crate::session::Session;
use crate::unused;
use crate::verb::bench;

pub(crate) use found::named as model_files;

/// A try writes its data in about so long.
const TRY_WRITES_SECONDS: f64 = 4.0;
/// Bytes of the user's files that a try reads: four times, in two phases that are verified.
const TRY_READS: u64 = 1 << 30;

/// `NAME --model MODEL` is the preset `NAME-MODEL`.
pub(crate) fn run(mut workload: Workload) -> Result<ExitCode, Failure> {
    if !["list", "show"].contains(&workload.name.as_str())
        && let Some(model) = workload.work.own.model.take()
    {
        workload.name = format!("{}-{model}", workload.name);
        find(&workload.name)?;
    }
    of(&workload)
}

fn of(workload: &Workload) -> Result<ExitCode, Failure> {
    let listed = workload.name == "list";
    if listed || workload.name == "show" {
        unused::workload(workload)?;
        let text = match (&workload.shown, listed) {
            (None, true) => list(),
            (Some(name), false) => find(name)?.text.to_owned(),
            (None, false) => {
                return Err(Failure::Usage(format!("show which preset? {}", names())));
            }
            (Some(_), true) => return Err(more_than_one(workload)),
        };
        output::put(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(sweep) = several::sweep(workload)? {
        return crate::verb::sweep::run(sweep);
    }
    unused::dry_run(&workload.out)?;
    if searches(workload) && !workload.out.dry_run {
        unused::search(workload)?;
        return largest::run(workload);
    }
    if searches(workload) && !workload.out.quiet {
        message!("note: --accelerators auto: a dry run tries none; this is the plan of one try");
    }
    bench::measure(session(workload, None)?, &workload.out)
}

/// Whether the largest number of accelerators is searched.
fn searches(workload: &Workload) -> bool {
    workload.work.written("accelerators") == Some("auto")
}

/// The workload on this machine, with so many accelerators where that is decided here.
fn session(workload: &Workload, accelerators: Option<u32>) -> Result<Session, Failure> {
    let permit =
        Permit { overwrite: false, devices: Vec::new(), make_missing: true, make_named: false };
    let mut spec = spec(workload, accelerators)?;
    // A search makes several sessions.
    let unread = || found::unread(&spec).filter(|_| accelerators.is_none() && !workload.out.quiet);
    if let Some(note) = unread() {
        message!("note: {note}");
    }
    if workload.work.own.short {
        shorten(&mut spec, &workload.out)?;
    }
    let figures = figures::read(&workload.figures)?;
    let mut session =
        Session::prepare(&spec, permit, &workload.work.own.cufile, workload.out.dry_run)?;
    session.figures = figures;
    session.counts = !workload.out.no_stats_page;
    session.watched = !workload.out.no_watch;
    Ok(session)
}

/// Scales the workload so that it ends soon, and says how. A dry run does not try the storage.
fn shorten(spec: &mut Spec, out: &Out) -> Result<(), Failure> {
    let host = gpuio_host::collect(&Root::live());
    let directory = spec.jobs.iter().find_map(|job| job.directory.clone());
    let seconds = (!out.dry_run).then_some(TRY_WRITES_SECONDS);
    let room = quick::room(&host, directory.as_deref().unwrap_or("."), (1, 1), seconds)?;
    let gpus = match driver::load(spec)?.gpus {
        Gpus::Present(all) => all.len(),
        Gpus::Absent { .. } => 1,
    };
    let listed = spec.jobs.iter().find_map(|job| match &job.gpu.as_ref()?.which {
        GpuWhich::List(list) => Some(list.len()),
        _ => None,
    });
    let cpus = host.cpu.allowed.as_ref().map_or(1, Vec::len);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let gpus = number(listed.unwrap_or(gpus));
    let mut words = shorten_to(spec, Means { bytes: room.bytes, cpus: number(cpus), gpus });
    words.extend(found::first_files(spec, TRY_READS));
    let words = match words.as_slice() {
        [] => "nothing is scaled".to_owned(),
        words => {
            let rate = room.by_rate.map_or_else(String::new, |rate| {
                format!("; the storage took {} in a probe", human_rate(rate))
            });
            format!("{}{rate}; rates of the whole may differ", words.join(", "))
        }
    };
    if !out.quiet {
        message!("note: --try: {words}");
    }
    Ok(())
}

fn more_than_one(workload: &Workload) -> Failure {
    let more = workload.shown.as_deref().unwrap_or_default();
    Failure::Usage(format!("'{more}': one workload runs at a time; leave it out"))
}

fn list() -> String {
    let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let line = |preset: &Preset| format!("{:width$}  {}\n", preset.name, preset.summary());
    let lines: String = PRESETS.iter().map(line).collect();
    format!("{lines}\ngpuio workload show NAME prints one as a job file, with its source.\n")
}

fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    format!("presets: {}", names.join(", "))
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    preset::find(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let near = gpuio_job::spec::nearest(name, PRESETS.iter().map(|preset| preset.name));
    let near = near.map(|near| format!("; nearest: {near}")).unwrap_or_default();
    let begin = PRESETS.iter().map(|preset| preset.name);
    let begin: Vec<&str> = begin.filter(|one| one.starts_with(&format!("{name}-"))).collect();
    let near = match begin.is_empty() {
        true => near,
        false => format!("; those that begin so: {}", begin.join(", ")),
    };
    Failure::Usage(format!(
        "there is no workload '{name}', and no job file of that name{near}; {}",
        names()
    ))
}

/// The jobs of a preset or a file.
fn jobs_of(workload: &Workload) -> Result<Spec, Failure> {
    match preset::find(&workload.name) {
        Some(preset) => jobs::of_preset(preset),
        None if Path::new(&workload.name).exists() => jobs::read_jobs(Path::new(&workload.name)),
        None => Err(unknown(&workload.name)),
    }
}

/// The workload with what the flags change.
fn spec(workload: &Workload, accelerators: Option<u32>) -> Result<Spec, Failure> {
    let mut spec = jobs_of(workload)?;
    found::files(&mut spec, workload)?;
    for given in workload.work.keys().iter().filter(|given| several::varies(given)) {
        several::phases(&mut spec, given)?;
    }
    for job in &mut spec.jobs {
        let once = workload.work.keys().iter().filter(|given| !several::varies(given));
        for Given { key, value, flag, .. } in once {
            match (*flag, accelerators) {
                ("--accelerators", Some(count)) => {
                    jobs::set(job, key, &count.to_string(), flag)?;
                }
                ("--accelerators", None) if searches(workload) => {}
                _ => jobs::set(job, key, value, flag)?,
            }
        }
        let is_try = searches(workload) && !workload.out.dry_run;
        if is_try && job.pre_read.is_none() && job.invalidate.is_none() {
            // Pages that one try leaves in the page cache would be the next one's storage.
            jobs::set(job, "cache_alike", "1", "--accelerators")?;
        }
    }
    Ok(spec)
}
