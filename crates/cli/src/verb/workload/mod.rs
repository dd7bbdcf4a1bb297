//! `gpuio workload`.

mod found;
mod largest;
mod several;

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use gpuio_base::document::{Document, Item, Layout, List, unique};
use gpuio_base::nearest::use_instead;
use gpuio_base::units::{human_bytes, human_rate};
use gpuio_host::Root;
use gpuio_job::plan::{Gpus, STAGE};
use gpuio_job::spec::{GpuWhich, Origin, Spec};
use gpuio_job::workload::preset::{self, PRESETS, Preset};
use gpuio_job::workload::short::{self, Means, Shortened, shorten as shorten_to};
use gpuio_load::run::Permit;
use gpuio_record::{FeedCompute, JobPlan};
use gpuio_report::format::plan::Files;

use crate::args::{Given, Workload};
use crate::driver;
use crate::failure::Failure;
use crate::figures;
use crate::jobs;
use crate::output;
use crate::quick;
use crate::session::Session;
use crate::terminal;
use crate::unused;
use crate::verb::bench;

pub(crate) use found::named as model_files;

/// A try writes its data in about so long.
const TRY_WRITES_SECONDS: f64 = 4.0;
/// Bytes of its data at most. Loads of blocks end with them, and in less than half a second not
/// enough is seen of what others do.
const TRY_WRITES: u64 = 1 << 30;
const TRY_WRITES_BLOCKS: u64 = 4 << 30;
/// Bytes of the user's files that a try reads: four times, in two phases that are verified.
const TRY_READS: u64 = 1 << 30;

/// Utilisation that a search keeps where the workload names none, per cent.
const LEAST_PERCENT: &str = "90";
/// A try of a search has data for so many times the GPUs.
const SEARCH_ROOM: u32 = 8;

/// `NAME --model MODEL` is the preset `NAME-MODEL`.
pub(crate) fn run(mut workload: Workload) -> Result<ExitCode, Failure> {
    if !["list", "show"].contains(&workload.name.as_str())
        && let Some(model) = workload.work.own.model.take()
    {
        let name = format!("{}-{model}", workload.name);
        preset::find(&name).ok_or_else(|| no_model(&workload.name, &model))?;
        workload.name = name;
    }
    of(&workload).map_err(|failure| failure.in_flags(&[("--size", "--scale")]))
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
    bench::measure(session(workload, &scaled(workload)?)?, &workload.out)
}

/// Whether the largest number of accelerators is searched.
fn searches(workload: &Workload) -> bool {
    workload.work.written("accelerators") == Some("auto")
}

/// The workload as it runs, with notes on what it leaves out; a search makes several sessions.
fn scaled(workload: &Workload) -> Result<Spec, Failure> {
    let mut spec = spec(workload)?;
    if let Some(note) = found::unread(&spec).filter(|_| !workload.out.quiet) {
        message!("note: {note}");
    }
    if workload.work.own.short {
        let runs = match searches(workload) {
            true => format!(
                "; the same data for all tries, enough for {SEARCH_ROOM} times the accelerators"
            ),
            false => String::new(),
        };
        shorten(&mut spec, workload, &runs)?;
    }
    Ok(spec)
}

/// The keys that `--try` sets for all runs of a sweep, with their values. The sweep's own keys have
/// the largest of theirs meanwhile: a run with less in flight has data for more.
fn tried(workload: &Workload) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut spec = jobs_of(workload)?;
    // Several jobs are no sweep, which says so.
    if spec.jobs.len() > 1 {
        return Ok(Vec::new());
    }
    for job in &mut spec.jobs {
        for given in workload.work.keys() {
            let Given { key, value, flag, .. } = given;
            if several::varies(given) {
                let (key, value) = several::largest(&format!("{key}={value}"), flag)?;
                jobs::set(job, &key, &value, flag)?;
            } else {
                jobs::set(job, key, value, flag)?;
            }
        }
        for axis in &workload.work.own.vary {
            let (key, value) = several::largest(axis, "--vary")?;
            jobs::set(job, &key, &value, "--vary")?;
        }
    }
    shorten(&mut spec, workload, "; the same data for all runs of the sweep")?;
    let set = spec.jobs.iter().flat_map(|job| job.requested.values());
    let own = set.filter(|set| set.origin == Origin::Flag(short::FLAG));
    Ok(unique(own.map(|set| (set.key, set.value.clone()))))
}

fn prepare(workload: &Workload, spec: &Spec, only_shown: bool) -> Result<Session, Failure> {
    let permit =
        Permit { overwrite: false, devices: Vec::new(), make_missing: true, make_named: false };
    Session::prepare(spec, permit, &workload.work.own.cufile, only_shown)
}

/// The workload on this machine.
fn session(workload: &Workload, spec: &Spec) -> Result<Session, Failure> {
    let figures = figures::read(&workload.figures)?;
    let mut session = prepare(workload, spec, workload.out.dry_run)?;
    session.figures = figures;
    session.counts = !workload.out.no_stats_page;
    session.watched = !workload.out.no_watch;
    Ok(session)
}

/// Scales the workload so that it ends soon, and says how, and for which runs. A dry run does not
/// probe the storage.
fn shorten(spec: &mut Spec, workload: &Workload, runs: &str) -> Result<(), Failure> {
    let (out, host) = (&workload.out, gpuio_host::collect(&Root::live()));
    let found = driver::load(spec)?.gpus;
    let listed = spec.jobs.iter().find_map(|job| match &job.gpu.as_ref()?.which {
        GpuWhich::List(list) => Some(list.len()),
        _ => None,
    });
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let gpus = match &found {
        Gpus::Present(all) => all.len(),
        Gpus::Absent { .. } => 1,
    };
    let means = |bytes| Means {
        bytes,
        cpus: number(host.cpu.allowed.as_ref().map_or(1, Vec::len)),
        gpus: number(listed.unwrap_or(gpus)),
        room: if searches(workload) { SEARCH_ROOM } else { 1 },
    };
    let directory = spec.jobs.iter().find_map(|job| job.directory.clone());
    let directory = directory.as_deref().unwrap_or(".");
    let most = match spec.jobs.iter().any(|job| job.is_feed()) {
        true => TRY_WRITES,
        false => TRY_WRITES_BLOCKS,
    };
    let room =
        |is_probed| quick::room(&host, directory, (1, 1), (most, TRY_WRITES_SECONDS, is_probed));
    if matches!(found, Gpus::Absent { .. }) && !out.dry_run {
        // It may be refused for that, and is so before the probe writes.
        let mut unprobed = spec.clone();
        shorten_to(&mut unprobed, means(room(false)?.bytes));
        prepare(workload, &unprobed, true)?;
    }
    // Where all files are the user's, nothing is made, and nothing depends on the probe.
    let makes = spec.jobs.iter().any(|job| job.ranges.is_none());
    let room = room(makes && !out.dry_run)?;
    let Shortened { data_bytes, mut words } = shorten_to(spec, means(room.bytes));
    if let Some(bytes) = data_bytes.filter(|_| !out.quiet) {
        // Blocks and samples are whole: the plan has the bytes that are used.
        let (plan, mut files) = (prepare(workload, spec, true)?.plan, Files::default());
        // Staged pages are copies of what is then in the files.
        let staged = |job: &&JobPlan| job.directories().any(|one| one.starts_with(STAGE));
        let of_files = plan.jobs.iter().filter(|job| !staged(job));
        of_files.for_each(|job| files.add(job, Cow::Borrowed));
        let [whole, part] = [bytes, files.bytes()].map(|bytes| human_bytes(bytes as f64));
        words.insert(0, format!("data {whole} -> {part}"));
    }
    words.extend(found::first_files(spec, TRY_READS));
    let words = match words.as_slice() {
        [] => "nothing is scaled".to_owned(),
        words => {
            let rate = room.by_rate.map_or_else(String::new, |rate| {
                format!("; the storage took {} in a probe", human_rate(rate))
            });
            format!("{}{rate}{runs}; rates of the whole may differ", words.join(", "))
        }
    };
    let probe = room.unprobed.filter(|_| makes).map_or_else(String::new, |rate| {
        format!(
            "; a run first probes the storage, and where it takes less than {} makes less data, \
             for fewer readers",
            human_rate(rate)
        )
    });
    if !out.quiet {
        message!("note: --try: {words}{probe}");
    }
    Ok(())
}

fn more_than_one(workload: &Workload) -> Failure {
    let more = workload.shown.as_deref().unwrap_or_default();
    Failure::Usage(format!("'{more}': one workload runs at a time; leave it out"))
}

fn list() -> String {
    let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let items = PRESETS.iter().map(|preset| Item::new(preset.name, preset.summary()));
    let mut page = Document::default();
    page.begin("", "").list(List::new(Layout::columns(width, 2), items));
    page.begin("", "")
        .paragraph("gpuio workload show NAME prints one as a job file, with its source.");
    page.terminal(terminal::width_or_whole())
}

fn no_model(name: &str, model: &str) -> Failure {
    let instead = match name == preset::OF_MODELS {
        true => use_instead(model, &preset::models()),
        false => format!("it is of {}; leave it out", preset::OF_MODELS),
    };
    Failure::Usage(format!("--model {model}: '{name}' has no such model; {instead}"))
}

fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    format!("presets: {}", names.join(", "))
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    preset::find(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    if name == preset::OF_MODELS {
        return Failure::Usage(format!(
            "'{name}' has a preset for each model; add --model {}, or name {name}-MODEL",
            preset::models().join("|")
        ));
    }
    let near = gpuio_job::spec::nearest(name, PRESETS.iter().map(|preset| preset.name));
    let begins = |with: &str| {
        let names = PRESETS.iter().map(|preset| preset.name);
        names.filter(|one| one.starts_with(with)).collect::<Vec<&str>>()
    };
    // `unet3d-b100` has a workload, and accelerators that it lacks.
    let of_workload = name.rfind('-').map_or("", |end| &name[..=end]);
    let begin = match begins(name) {
        none if none.is_empty() && !of_workload.is_empty() => begins(of_workload),
        some => some,
    };
    let all = "gpuio workload list has all";
    let instead = match (begin.as_slice(), near) {
        ([], Some(near)) => format!("nearest: {near}; {all}"),
        ([], None) => names(),
        (some, _) => format!("did you mean {}? {all}", some.join(", ")),
    };
    Failure::Usage(format!(
        "there is no workload '{name}', and no job file of that name; {instead}"
    ))
}

/// The preset of that name; nothing where a file has it.
fn known(name: &str) -> Result<Option<&'static Preset>, Failure> {
    let path = Path::new(name);
    match preset::find(name) {
        None if path.is_dir() => Err(found::is_directory(name)),
        None if !path.exists() => Err(unknown(name)),
        preset => Ok(preset),
    }
}

/// The jobs of a preset or a file.
fn jobs_of(workload: &Workload) -> Result<Spec, Failure> {
    match known(&workload.name)? {
        Some(preset) => jobs::of_preset(preset),
        None => jobs::read_jobs(Path::new(&workload.name)),
    }
}

/// The workload with what the flags change, but a number of accelerators that is searched.
fn spec(workload: &Workload) -> Result<Spec, Failure> {
    let mut spec = jobs_of(workload)?;
    found::files(&mut spec, workload)?;
    for given in workload.work.keys().iter().filter(|given| several::varies(given)) {
        several::phases(&mut spec, given)?;
    }
    for job in &mut spec.jobs {
        let once = workload.work.keys().iter().filter(|given| !several::varies(given));
        for Given { key, value, flag, .. } in once {
            if *flag != "--accelerators" || !searches(workload) {
                jobs::set(job, key, value, flag)?;
            }
        }
        let computes = job.is_feed() && job.feed.compute != Some(FeedCompute::None);
        if searches(workload) && computes && job.feed.utilisation.is_none() {
            jobs::set(job, "utilisation", LEAST_PERCENT, "--accelerators")?;
        }
        let is_try = searches(workload) && !workload.out.dry_run;
        if is_try && job.pre_read.is_none() && job.invalidate.is_none() {
            // Pages that one try leaves in the page cache would be the next one's storage.
            jobs::set(job, "cache_alike", "1", "--accelerators")?;
        }
    }
    Ok(spec)
}
