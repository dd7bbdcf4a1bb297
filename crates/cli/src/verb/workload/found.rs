//! Files of the user's own that a workload reads: those of a directory by the end of their names,
//! or all.
//!
//! A directory often holds the same weights twice. Where an index names the files of the model,
//! they are read, and no others; a note says which are left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use gpuio_base::document::unique;
use gpuio_base::units::{many, shell_word};
use gpuio_job::spec::{JobSpec, Spec};
use gpuio_job::workload::preset::{PRESETS, Preset};

use crate::args::Workload;
use crate::failure::Failure;

/// Puts the files of the directory that was given in the place of `*END`, which is what
/// `filename` of a workload says.
pub(super) fn files(spec: &mut Spec, workload: &Workload) -> Result<(), Failure> {
    let directory = workload.shown.as_deref();
    let mut used = false;
    for job in &mut spec.jobs {
        let Some(names) = job.filenames.as_deref() else { continue };
        if job.is_feed() {
            let names = names.join(":");
            return Err(Failure::Usage(format!(
                "'{names}': a training feed makes its files itself, by files and sample_size, and \
                 reads none of yours; leave out filename. {} reads yours",
                own_files(directory.unwrap_or("DIRECTORY"))
            )));
        }
        let [pattern] = names else { continue };
        let Some(end) = pattern.strip_prefix('*') else { continue };
        let Some(directory) = directory else {
            let given = workload.work.written("directory").unwrap_or("DIRECTORY");
            return Err(Failure::Usage(format!(
                "{} reads files of yours; name their directory, which has files *{end}: gpuio \
                 workload {} {}",
                workload.name,
                workload.name,
                shell_word(given)
            )));
        };
        used = true;
        let (names, note) = named(Path::new(directory), end)?;
        job.filenames = Some(names);
        job.notes.extend(note);
    }
    match directory {
        Some(directory) if !used => Err(Failure::Usage(format!(
            "'{directory}': one workload runs at a time, and {} reads no files of yours; leave it \
             out, or read that directory's files: {}",
            workload.name,
            own_files(directory)
        ))),
        _ => Ok(()),
    }
}

/// A directory stands where the name of a workload does: with the command that reads its files.
pub(super) fn is_directory(directory: &str) -> Failure {
    let reads = |preset: &&Preset| {
        preset.end_of_files().is_some_and(|end| named(Path::new(directory), end).is_ok())
    };
    let name = PRESETS.iter().find(reads).map_or("own-files", |preset| preset.name);
    let word = shell_word(directory);
    Failure::Usage(format!(
        "'{directory}' is a directory, and a preset or a job file comes first; to read its files: \
         gpuio workload {name} {word}; to make files there, name a workload and --directory {word}"
    ))
}

/// The command that reads all files of a directory.
fn own_files(directory: &str) -> String {
    format!("gpuio workload own-files {}", shell_word(directory))
}

/// A note where the directory of a training feed has files of the user's, which it does not read.
pub(super) fn unread(spec: &Spec) -> Option<String> {
    let feed = |job: &&JobSpec| job.is_feed() && job.directory.is_some();
    let directory = spec.jobs.iter().find(feed)?.directory.as_deref()?;
    let made: Vec<String> = spec.jobs.iter().filter_map(|job| job.file_prefix.clone()).collect();
    let own = |path: PathBuf| {
        let name = name(&path);
        let is_made = made.iter().any(|prefix| name.starts_with(&format!("{prefix}.")));
        (path.is_file() && !is_made && !name.starts_with('.')).then_some(name)
    };
    let entries = std::fs::read_dir(directory).ok()?;
    let mut others: Vec<String> = entries.flatten().filter_map(|one| own(one.path())).collect();
    others.sort();
    let first = others.first()?;
    Some(format!(
        "{directory} has {}, such as {first}, which a training feed does not read: it makes its \
         own there, and changes no others. To read yours: {}",
        many(others.len() as u64, "other file"),
        own_files(directory)
    ))
}

/// Leaves out files of the user's behind the first so many bytes, and says how many.
pub(super) fn first_files(spec: &mut Spec, most_bytes: u64) -> Vec<String> {
    let mut words = Vec::new();
    for job in spec.jobs.iter_mut().filter(|job| job.ranges.is_some()) {
        let Some(names) = &mut job.filenames else { continue };
        let all = names.len();
        let mut bytes = 0;
        names.retain(|name| {
            let fits = bytes < most_bytes;
            bytes += std::fs::metadata(name).map_or(0, |file| file.len());
            fits
        });
        if names.len() < all {
            words.push(format!("files {all} -> {}", names.len()));
        }
    }
    unique(words)
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {what}", path.display()))
}

/// The files of a directory whose names end so, in the order of their names, and which of them are
/// left out. A file is itself.
pub(crate) fn named(directory: &Path, end: &str) -> Result<(Vec<String>, Option<String>), Failure> {
    let every = end.is_empty();
    let is_one = |path: &Path| {
        let hidden = every && name(path).starts_with('.');
        !hidden && path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes())
    };
    if directory.is_file() {
        return match is_one(directory) {
            true => Ok((vec![text(directory)?], None)),
            false => {
                let what = format!("it is no file *{end}; name one, or the directory of the model");
                Err(wrong(directory, what))
            }
        };
    }
    let failed = |error: std::io::Error| wrong(directory, error);
    let (mut all, mut indexes, mut below) = (BTreeSet::new(), BTreeSet::new(), 0);
    let index_end = format!("{end}.index.json");
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // Links are followed: caches of models are made of them.
        let found = std::fs::metadata(&path);
        if is_one(&path) && found.as_ref().map_or(true, std::fs::Metadata::is_file) {
            all.insert(path);
        } else if every {
            below += u64::from(found.is_ok_and(|found| found.is_dir()));
        } else if path.as_os_str().as_encoded_bytes().ends_with(index_end.as_bytes()) {
            indexes.insert(path);
        }
    }
    // A model's own layout of the same weights is beside that of a library, as a rule.
    let is_own = |path: &PathBuf| name(path).starts_with("consolidated");
    let index = indexes.iter().min_by_key(|path| (is_own(path), (*path).clone()));
    let wanted = match index {
        Some(index) => of_index(index, &all)?,
        None if every => all.clone(),
        None => all.iter().filter(|path| !is_copy(path, &all, end)).cloned().collect(),
    };
    if wanted.is_empty() {
        let what = format!("it has no files *{end}; name a directory that has");
        return Err(wrong(directory, what));
    }
    for path in &wanted {
        let there = std::fs::metadata(path);
        let link = std::fs::read_link(path).ok().filter(|_| there.is_err());
        if let Some(target) = link {
            let what = format!(
                "it is a link to {}, which is not there; download the model again, or remove the \
                 link",
                target.display()
            );
            return Err(wrong(path, what));
        }
        there.map_err(|error| wrong(path, error))?;
    }
    let left: Vec<String> = all.difference(&wanted).map(|path| name(path)).collect();
    let names = wanted.iter().map(|path| text(path)).collect::<Result<_, _>>()?;
    let not_below = (below > 0).then(|| {
        let (of, what) = (directory.display(), many(below, "directory|directories"));
        format!("of {of} the files in {what} below it are not read; name such a directory instead")
    });
    Ok((names, not_below.or(note(directory, &left, index.map(|index| name(index))))))
}

/// The files that an index names.
fn of_index(index: &Path, all: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>, Failure> {
    let text = std::fs::read(index).map_err(|error| wrong(index, error))?;
    let read: Value = serde_json::from_slice(&text).map_err(|error| wrong(index, error))?;
    let names = read.get("weight_map").and_then(Value::as_object).map(|map| map.values());
    let names: Option<BTreeSet<&str>> = names.and_then(|names| names.map(Value::as_str).collect());
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        let what = "it names no files (weight_map); download the model again, or remove the index";
        return Err(wrong(index, what));
    };
    let (there, missing): (Vec<_>, Vec<_>) =
        names.iter().map(|name| index.with_file_name(name)).partition(|path| all.contains(path));
    if let Some(first) = missing.first() {
        let what = format!(
            "of the {} files that it names {} are not there, such as {}; download the model again, \
             or remove the index",
            names.len(),
            missing.len(),
            name(first)
        );
        return Err(wrong(index, what));
    }
    Ok(there.into_iter().collect())
}

/// Whether a file holds what others of the directory hold, by its name: `consolidated` beside a
/// library's files, and `model.fp16` beside `model`.
fn is_copy(path: &Path, all: &BTreeSet<PathBuf>, end: &str) -> bool {
    let own = name(path);
    let is_own = |name: &str| name.starts_with("consolidated");
    let plain = own.strip_suffix(end).and_then(|stem| stem.rsplit_once('.')).map(|(stem, _)| stem);
    let plain = plain.map(|stem| path.with_file_name(format!("{stem}{end}")));
    (is_own(&own) && all.iter().any(|other| !is_own(&name(other))))
        || plain.is_some_and(|plain| all.contains(&plain))
}

fn note(directory: &Path, left: &[String], index: Option<String>) -> Option<String> {
    let first = left.first()?;
    let why = match index {
        Some(index) => format!("{index} does not name them"),
        None => "by their names they hold the same weights as the others".to_owned(),
    };
    Some(format!(
        "of {} these files are not read, since {why}: {}; to read one, name it instead of the \
         directory: {}",
        directory.display(),
        left.join(", "),
        directory.join(first).display()
    ))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| wrong(path, "its name is no UTF-8; rename it"))
}
