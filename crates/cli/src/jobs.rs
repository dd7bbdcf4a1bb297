//! Jobs out of job files, presets and flags.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use gpuio_base::document::{grouped, unique};
use gpuio_guard::objects::environment;
use gpuio_host::answers::answers;
use gpuio_host::{Root, input};
use gpuio_job::spec::{self, At, Dialect, JobSpec, MACHINE_WORDS, Origin, Rw, Sources, Spec};
use gpuio_job::workload::preset::Preset;

use crate::args::Given;
use crate::failure::Failure;
use crate::ranks::Place;

/// Sets every flag on a job, as the key of the same name in a job file would, with `{rank}`,
/// `{local_rank}` and `{host}` in values; `--gpu local` is the GPU of the local rank.
pub(crate) fn override_at<'a>(
    job: &mut JobSpec,
    keys: impl IntoIterator<Item = &'a Given>,
    place: &Place,
) -> Result<(), Failure> {
    keys.into_iter().try_for_each(|Given { key, value, flag, .. }| {
        set(job, key, &place.fill(&local_gpu(key, value)), flag)
    })
}

/// The jobs that flags alone describe. As in fio, each of several `--name` begins a job, and flags
/// before the first are for all.
pub(crate) fn of_flags(keys: &[Given], place: &Place) -> Result<Vec<JobSpec>, Failure> {
    let begins = |given: &Given| given.flag == NAME;
    let several = keys.iter().filter(|given| begins(given)).count() > 1;
    let first = keys.iter().position(begins).filter(|_| several);
    let (all, own) = keys.split_at(first.unwrap_or(0));
    let parts: Vec<&[Given]> = match several {
        true => own.chunk_by(|_, next| !begins(next)).collect(),
        false => vec![own],
    };
    let job = |part: &[Given]| {
        let mut job = JobSpec::new("job");
        override_at(&mut job, all.iter().chain(part), place)?;
        spec::speak_fio(&mut job);
        Ok(job)
    };
    parts.into_iter().map(job).collect()
}

/// The flag that begins a job.
const NAME: &str = "--name";

/// Refuses several jobs by flags where there may be one.
pub(crate) fn one_job(keys: &[Given]) -> Result<(), Failure> {
    match keys.iter().filter(|given| given.flag == NAME).count() {
        0 | 1 => Ok(()),
        jobs => Err(Failure::Usage(format!(
            "{NAME} begins a job, and here are {jobs}; a sweep needs one job, whose keys it varies"
        ))),
    }
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
    spec::apply(job, key, value, Origin::Flag(flag))
        .map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// The lines of job files that flags replaced, in a sentence for each flag.
pub(crate) fn replaced(before: &[JobSpec], after: &[JobSpec]) -> Vec<String> {
    let of = |(old, new): (&JobSpec, &JobSpec)| {
        let lines = new.requested.iter().filter_map(|(field, now)| {
            let was = old.requested.get(field)?;
            let Origin::Flag(flag) = now.origin else { return None };
            let counts = matches!(was.origin, Origin::File { .. }) && was.value != now.value;
            // One flag sets any key.
            let flag = match flag {
                "--set" => format!("{flag} {}={}", now.key, now.value),
                _ => format!("{flag} {}", now.value),
            };
            counts.then(|| (flag.trim_end().to_owned(), (was.to_string(), old.name.clone())))
        });
        lines.collect::<Vec<_>>()
    };
    let flags = grouped(before.iter().zip(after).flat_map(of)).into_iter();
    let sentences = flags.map(|(flag, lines)| {
        let lines = grouped(lines)
            .into_iter()
            .map(|(line, sections)| format!("{line} of [{}]", unique(sections).join("], [")));
        format!("{flag} replaces {}", lines.collect::<Vec<_>>().join("; "))
    });
    sentences.collect()
}

/// Reads a job file; `${NAME}` comes from the environment.
pub(crate) fn read_jobs(path: &Path) -> Result<Spec, Failure> {
    read_jobs_at(path, &Place::alone())
}

/// The same with `{rank}`, `{local_rank}` and `{host}`, and with the sections `[place …]` of this
/// process.
pub(crate) fn read_jobs_at(path: &Path, place: &Place) -> Result<Spec, Failure> {
    let name = path.display().to_string();
    answers(path)?;
    let text = input::read(path, input::MOST_WRITTEN).map_err(|error| {
        // As with other tools, where the storage itself stands in its place.
        let instead = match path.metadata() {
            Ok(is) if is.is_dir() => format!("; for a load on it, give --directory {name}"),
            Ok(is) if is.file_type().is_block_device() => {
                format!("; for a load on it, give --filename {name} --rw randread")
            }
            _ => String::new(),
        };
        Failure::Usage(format!("{name}: the job file can't be read: {error}{instead}"))
    })?;
    let env = |name: &str| match MACHINE_WORDS.contains(&name) {
        true => number_of_machine(name),
        false => environment::text(name),
    };
    let at = At { host: &place.host, local_rank: place.local_rank };
    let sources = Sources { env: &env, file: &|name| included(path, name, place) };
    spec::parse_job_file_with(&name, place.fill_bytes(text), sources, Some(at)).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Usage(lines.join("\n       "))
    })
}

/// The jobs of these names, as of fio's `--section`; all where there is none.
pub(crate) fn only(mut spec: Spec, sections: &[String]) -> Result<Spec, Failure> {
    let named = |job: &JobSpec| sections.contains(&job.name);
    let there: Vec<&str> = spec.jobs.iter().map(|job| job.name.as_str()).collect();
    if let Some(absent) = sections.iter().find(|name| !there.contains(&name.as_str())) {
        let known = unique(there.iter().map(|name| format!("'{name}'")));
        return Err(Failure::Usage(format!(
            "--section {absent}: the job file has no job of this name; it has {}",
            known.join(", ")
        )));
    }
    spec.jobs.retain(|job| sections.is_empty() || named(job));
    Ok(spec)
}

/// The text of a file that a job file includes: as in fio, one of the current directory, or else of
/// the job file's own.
fn included(of: &Path, name: &str, place: &Place) -> Result<Vec<u8>, String> {
    let beside = of.parent().map(|folder| folder.join(name));
    let here = Path::new(name);
    let path = beside.as_deref().filter(|_| !here.exists()).unwrap_or(here);
    let text = input::read(path, input::MOST_WRITTEN).map_err(|error| error.to_string())?;
    Ok(place.fill_bytes(text))
}

/// The value of fio's words for numbers of the machine.
fn number_of_machine(word: &str) -> Option<String> {
    let host = || gpuio_host::collect(&Root::live());
    Some(match word {
        "$ncpus" => host().cpu.online?.len().to_string(),
        "$pagesize" => rustix::param::page_size().to_string(),
        "$mb_memory" => (host().memory.total_bytes? >> 20).to_string(),
        _ => return None,
    })
}

/// In the note of a directory that was not there: a mistyped name has one too.
pub(crate) const IS_MADE: &str = "was not there: the run makes this directory";

/// Looks once at each directory that the jobs name, and notes those that the run will make.
pub(crate) fn answer(spec: &mut Spec) -> Result<(), Failure> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    for job in &spec.jobs {
        let directory = Path::new(job.directory.as_deref().unwrap_or("."));
        match &job.filenames {
            None => {
                places.extend([directory.to_owned()]);
                places.extend(job.more_directories.iter().map(PathBuf::from));
            }
            Some(names) => {
                let parent = |name| Some(directory.join::<&String>(name).parent()?.to_owned());
                places.extend(names.iter().filter_map(parent));
            }
        }
    }
    places.iter().try_for_each(|place| answers(place).map_err(Failure::from))?;
    let jobs = spec.jobs.iter();
    let mut named = jobs.flat_map(|job| job.directory.iter().chain(&job.more_directories));
    named.try_for_each(|name| is_there(Path::new(name)))?;
    for job in &mut spec.jobs {
        job.notes.extend(directories_made(job));
    }
    Ok(())
}

/// A note for each directory of a job that is not there yet. As in gdsio, no read makes one there.
pub(crate) fn directories_made(job: &JobSpec) -> Vec<String> {
    let reads = matches!(job.rw, Some(Rw::Read | Rw::RandRead));
    if reads && job.dialect == Some(Dialect::Gdsio) {
        return Vec::new();
    }
    let named = job.directory.iter().chain(&job.more_directories);
    let absent = named.filter(|name| job.filenames.is_none() && is_absent(Path::new(name)));
    let note = |name| format!("{name} {IS_MADE}, and removes it at the end if it is empty then");
    absent.map(note).collect()
}

fn is_absent(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Refuses a directory in a place that is not there, whose name is mistyped: it would become one of
/// another file system. The run makes the last part of the name alone.
fn is_there(directory: &Path) -> Result<(), Failure> {
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
    if !is_absent(directory) || !above.is_some_and(is_absent) {
        return Ok(());
    }
    let name = directory.display();
    Err(Failure::Usage(format!(
        "{name}: neither this directory nor the one above it exists. Correct the name, or create \
         it: mkdir -p {name}"
    )))
}

pub(crate) fn of_preset(preset: &Preset) -> Result<Spec, Failure> {
    let name = format!("preset {}", preset.name);
    let mut spec = spec::parse_job_file(&name, preset.text, &|_| None).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Usage(lines.join("\n       "))
    })?;
    for requested in spec.jobs.iter_mut().flat_map(|job| job.requested.values_mut()) {
        requested.origin = Origin::Preset(preset.name);
    }
    Ok(spec)
}
