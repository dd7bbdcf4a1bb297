//! The machine to describe: this one, a captured tree, or one from the output of tools.

use std::path::{Path, PathBuf};

use gpuio_capture::{Captured, Matrix};
use gpuio_host::Root;
use gpuio_machine::topo::Printed;
use gpuio_record::facts::ReadProblem;

use crate::captured;
use crate::failure::Failure;

/// The requested machine: this one, a captured tree, or one from texts.
pub(crate) fn read(from: &[PathBuf]) -> Result<Captured, Failure> {
    let whole = |root: &Root| Captured::of(gpuio_load::machine::read(root));
    match from {
        [] => Ok(whole(&Root::live())),
        [one] if one.is_dir() => Ok(whole(&captured::root(Some(one))?)),
        [one] => {
            let bytes = captured::bytes(one)?;
            if captured::is_tar(&bytes) {
                return Ok(whole(&captured::tar(one, &bytes)?));
            }
            let mut captured = Captured::default();
            add(one, &bytes, &mut captured)?;
            Ok(captured)
        }
        files => {
            let mut captured = Captured::default();
            for file in files {
                add(file, &captured::bytes(file)?, &mut captured)?;
            }
            Ok(captured)
        }
    }
}

fn add(file: &Path, bytes: &[u8], captured: &mut Captured) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = String::from_utf8_lossy(bytes);
    gpuio_capture::read(&name, &text, captured)
        .map_err(|error| Failure::Usage(format!("--from {name}: {error}")))
}

/// The cells of captured matrices for each pair of devices.
pub(crate) fn cells(matrices: &[Matrix]) -> Vec<Printed<'_>> {
    let rows = matrices.iter().flat_map(|matrix| {
        let rows = matrix.rows.iter().zip(&matrix.cells);
        rows.map(move |(row, cells)| (&matrix.columns, row, cells))
    });
    let cells = rows.flat_map(|(columns, row, cells)| {
        let filled = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        filled.map(move |(column, cell)| Printed { row, column, cell })
    });
    cells.collect()
}

/// The texts that were read, and their differences, as sentences; empty for a whole machine.
pub(crate) fn read_notes(captured: &Captured) -> Vec<String> {
    let mut notes: Vec<String> = captured.summary().into_iter().collect();
    let differ = &captured.contradictions;
    if !differ.is_empty() {
        notes.push(format!("Texts differ, and the later one counts: {}.", differ.join("; ")));
    }
    notes
}

/// [`read_notes`], and unreadable parts, as sentences.
pub(crate) fn problems(captured: &Captured) -> Vec<String> {
    let mut notes = read_notes(captured);
    let machine = &captured.machine;
    let all = machine.host.problems.iter().chain(&machine.problems);
    let words = |problem: &ReadProblem| {
        let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("Not read: {}{line}: {}", problem.path, problem.message)
    };
    notes.extend(all.map(words));
    notes
}
