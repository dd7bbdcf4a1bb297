//! Reads results: a record, a sweep, a directory of records, or another tool's output.

use std::path::{Path, PathBuf};

use gpuio_host::input;
use gpuio_record::SWEEP_FILE;
use gpuio_report::compare::{Run, Side, of_reading, of_record};
use gpuio_report::format::json;
use gpuio_report::set::gaps;

use crate::failure::Failure;
use crate::records::{self, Listed};

/// File extensions of results; other files in a directory are ignored.
const ENDINGS: [&str; 4] = ["json", "csv", "txt", "log"];

/// Every run in a file or directory.
pub(crate) fn side(path: &Path) -> Result<Side, Failure> {
    let name = path.display().to_string();
    let mut side = Side { name, ..Side::default() };
    let is_sweep = |directory: &Path| directory.join(SWEEP_FILE).is_file();
    if path.is_dir() && is_sweep(path) {
        swept(&mut side, path)?;
    } else if path.is_dir() {
        directory(&mut side, path)?;
    } else if path.file_name() == Some(SWEEP_FILE.as_ref()) {
        swept(&mut side, path.parent().unwrap_or(Path::new("")))?;
    } else {
        file(&mut side, path, &[], None)?;
    }
    side.lacks.extend(gaps(side.made.iter()));
    Ok(side)
}

/// The records that a sweep lists, each at its point.
fn swept(side: &mut Side, directory: &Path) -> Result<(), Failure> {
    let swept = records::swept(directory)?;
    for Listed { path, at, digest, .. } in &swept.records {
        if let Err(failure) = file(side, path, at, digest.as_deref()) {
            side.lacks.push(failure.to_string());
        }
    }
    // The list knows better than the plan how many runs were made.
    for run in side.made.iter_mut().filter(|run| run.is_of_sweep(&swept.sweep.started_at)) {
        run.runs = None;
    }
    side.notes.extend(swept.missing);
    side.lacks.extend(swept.lacks);
    if side.runs.is_empty() {
        let path = directory.join(SWEEP_FILE);
        let path = path.display();
        return Err(Failure::Usage(format!("{path}: no point of this sweep has a record yet")));
    }
    Ok(())
}

/// Every result in a directory, by name. An unreadable one is reported, and the others count.
fn directory(side: &mut Side, directory: &Path) -> Result<(), Failure> {
    let name = directory.display();
    let entries = std::fs::read_dir(directory)
        .map_err(|error| Failure::Usage(format!("{name}: the directory can't be read: {error}")))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let ending = |path: &Path| path.extension().and_then(|end| end.to_str().map(str::to_owned));
    paths.retain(|path| {
        path.is_file() && ending(path).is_some_and(|end| ENDINGS.contains(&end.as_str()))
    });
    for path in &paths {
        if let Err(failure) = file(side, path, &[], None) {
            side.notes.push(format!("left out: {failure}"));
        }
    }
    if side.runs.is_empty() {
        let found = match side.notes.first() {
            Some(note) => note.clone(),
            None => {
                format!(
                    "it has no file with the extension {}",
                    ENDINGS.map(|end| format!(".{end}")).join(", ")
                )
            }
        };
        return Err(Failure::Usage(format!(
            "{name}: there is no result in this directory: \
            {found}"
        )));
    }
    Ok(())
}

/// One result; of a record the sweep may have listed the digest.
fn file(
    side: &mut Side,
    path: &Path,
    at: &[(String, String)],
    listed: Option<&str>,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let text = text(path)?;
    let wrong = |why: String| Failure::Usage(format!("{name}: {why}"));
    if text.contains("\"schema_version\"") {
        let record = json::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let mut recheck = records::recheck(&record);
        if let Some(listed) = listed {
            records::hold_listed(&mut recheck, path, listed)?;
        }
        let doubt = recheck.doubt().map(|doubt| format!("{name}: {doubt}"));
        side.made.extend(record.run_of.clone());
        if recheck.misplaced.is_some() {
            side.lacks.push(format!("{name} is not the record that the sweep made there"));
        }
        let mut runs = of_record::runs(&record, &name, at);
        match recheck.unfounded().is_some() {
            false => side.notes.extend(doubt),
            true => runs.iter_mut().for_each(|run| {
                run.doubts = doubt.iter().cloned().collect();
            }),
        }
        if runs.is_empty() {
            return Err(wrong("no job of this record has a result".to_owned()));
        }
        side.runs.extend(runs);
        return Ok(());
    }
    let (tools, output) =
        gpuio_report::foreign::read(&text).map_err(|error| wrong(error.to_string()))?;
    let runs: Vec<Run> =
        output.readings.iter().map(|reading| of_reading::run(reading, &name, &text)).collect();
    side.runs.extend(runs);
    let skipped = output.skipped.iter();
    side.notes.extend(skipped.map(|one| format!("left out: {name}, {}: {}", one.place, one.why)));
    for line in tools.iter().flat_map(|tool| tool.measures) {
        if !side.notes.iter().any(|note| note == line) {
            side.notes.push((*line).to_owned());
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = input::read(path, input::MOST_RESULT).map_err(|error| {
        Failure::Usage(format!("{}: the result can't be read: {error}", path.display()))
    })?;
    // A log may have other text between its results.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
