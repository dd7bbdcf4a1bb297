//! Files of the user's own that a workload reads: those of a directory by the end of their names.
//!
//! A directory often holds the same weights twice. Where an index names the files of the model,
//! they are read, and no others; a note says which are left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use gpuio_base::document::unique;
use gpuio_job::spec::Spec;

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
                 reads none of yours; leave out filename. gpuio bench --filename FILE --rw \
                 randread measures reads of yours"
            )));
        }
        let [pattern] = names else { continue };
        let Some(end) = pattern.strip_prefix('*') else { continue };
        let Some(directory) = directory else {
            return Err(Failure::Usage(format!(
                "{} reads files of yours; name their directory, which has files *{end}: gpuio \
                 workload {} DIRECTORY",
                workload.name, workload.name
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
             out",
            workload.name
        ))),
        _ => Ok(()),
    }
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
    let is_one = |path: &Path| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes());
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
    let (mut all, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    let index_end = format!("{end}.index.json");
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // Links are followed: caches of models are made of them.
        let found = std::fs::metadata(&path);
        if is_one(&path) && found.as_ref().map_or(true, std::fs::Metadata::is_file) {
            all.insert(path);
        } else if path.as_os_str().as_encoded_bytes().ends_with(index_end.as_bytes()) {
            indexes.insert(path);
        }
    }
    // A model's own layout of the same weights is beside that of a library, as a rule.
    let is_own = |path: &PathBuf| name(path).starts_with("consolidated");
    let index = indexes.iter().min_by_key(|path| (is_own(path), (*path).clone()));
    let wanted = match index {
        Some(index) => of_index(index, &all)?,
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
    Ok((names, note(directory, &left, index.map(|index| name(index)))))
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
