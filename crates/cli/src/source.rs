//! The machine to describe: this one, a captured tree, or one from the output of tools.

use std::path::{Path, PathBuf};

use gpuio_capture::{Captured, KINDS, Matrix};
use gpuio_host::Root;
use gpuio_record::facts::ReadProblem;
use gpuio_topo::Printed;

use crate::captured;
use crate::failure::Failure;

/// The requested machine: this one, a captured tree, or one from texts.
pub(crate) fn read(from: &[PathBuf]) -> Result<Captured, Failure> {
    let whole =
        |root: &Root| Captured { machine: gpuio_load::machine::read(root), ..Captured::default() };
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
    let name = file.display();
    let text = String::from_utf8_lossy(bytes);
    let kind = gpuio_capture::kind_of(&text).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.command).collect();
        let known = known.join(", ");
        Failure::Usage(format!("--from {name}: it looks like none of: {known}"))
    })?;
    gpuio_capture::add(kind, &text, captured)
        .map_err(|error| Failure::Usage(format!("--from {name} ({}): {error}", kind.command)))
}

/// What a captured matrix reports about each pair of devices.
pub(crate) fn cells(matrix: &Matrix) -> Vec<Printed<'_>> {
    let rows = matrix.rows.iter().zip(&matrix.cells);
    let cells = rows.flat_map(|(row, cells)| {
        let columns = matrix.columns.iter().zip(cells);
        columns.map(move |(column, cell)| Printed { row, column, cell })
    });
    cells.collect()
}

/// Unreadable parts, as sentences.
pub(crate) fn problems(captured: &Captured) -> Vec<String> {
    let machine = &captured.machine;
    let all = machine.host.problems.iter().chain(&machine.problems);
    let words = |problem: &ReadProblem| {
        let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("Not read: {}{line}: {}", problem.path, problem.message)
    };
    all.map(words).collect()
}
