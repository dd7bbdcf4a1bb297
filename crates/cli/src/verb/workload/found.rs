//! Files of the user's own that a workload reads: those of a directory by the end of their names.

use std::path::Path;

use gpuio_spec::Spec;

use crate::args::Workload;
use crate::failure::Failure;

/// Puts the files of the directory that was given in the place of `*END`, which is what
/// `filename` of a workload says.
pub(super) fn files(spec: &mut Spec, workload: &Workload) -> Result<(), Failure> {
    let directory = workload.shown.as_deref();
    let mut used = false;
    for job in &mut spec.jobs {
        let Some([pattern]) = job.filenames.as_deref() else { continue };
        let Some(end) = pattern.strip_prefix('*') else { continue };
        let Some(directory) = directory else {
            return Err(Failure::Usage(format!(
                "{} reads files of yours; name their directory, which has files *{end}: gpuio \
                 workload {} DIRECTORY",
                workload.name, workload.name
            )));
        };
        used = true;
        job.filenames = Some(named(Path::new(directory), end)?);
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

/// The files of a directory whose names end so, in the order of their names.
fn named(directory: &Path, end: &str) -> Result<Vec<String>, Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(|error| wrong(error.to_string()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| wrong(error.to_string()))?.path();
        // Links are followed: caches of models are made of them.
        let is_file = std::fs::metadata(&path).is_ok_and(|found| found.is_file());
        let Some(name) = path.to_str() else {
            let is_one = path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes());
            if is_one && is_file {
                return Err(wrong(format!("{} is no UTF-8; rename it", path.display())));
            }
            continue;
        };
        if is_file && name.ends_with(end) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    match names.is_empty() {
        true => Err(wrong(format!("it has no files *{end}; name a directory that has"))),
        false => Ok(names),
    }
}
