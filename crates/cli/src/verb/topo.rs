//! `gpuio topo`: which GPU, drive, array, network card and mount belong together.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_capture::{Captured, KINDS, Matrix};
use gpuio_host::Root;
use gpuio_record::facts::ReadProblem;
use gpuio_topo::{Printed, Topology, explain, format};

use crate::args::Topo;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(topo: &Topo) -> Result<ExitCode, Failure> {
    let json = match topo.format.as_deref() {
        None | Some("text") => false,
        Some("json") => true,
        Some(other) => {
            return Err(Failure::Usage(format!("--format {other}: formats are text, json")));
        }
    };
    let captured = read(&topo.from)?;
    let printed = captured.matrix.as_ref().map(cells).unwrap_or_default();
    let mut topology = Topology::of(&captured.machine, &printed);
    topology.notes.extend(problems(&captured));
    let text = match topo.pair.as_slice() {
        [] if json => format::json(&topology).map_err(unprintable)?,
        [] => format::text(&topology),
        [a, b] => {
            let (one, two) = (find(&topology, a)?, find(&topology, b)?);
            let explanation = explain(&captured.machine, &topology, one, two)
                .ok_or_else(|| Failure::Usage(format!("{a} and {b} are the same device")))?;
            if json {
                format::json(&explanation).map_err(unprintable)?
            } else {
                format::pair(&explanation)
            }
        }
        _ => return Err(Failure::Usage("name two devices, or none".to_owned())),
    };
    output::put(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn unprintable(error: impl Display) -> Failure {
    Failure::Ran(format!("the topology can't be printed: {error}"))
}

/// The machine that was asked about: this one, a captured tree, or one from texts.
pub(crate) fn read(from: &[PathBuf]) -> Result<Captured, Failure> {
    let whole = |root: &Root| Captured { machine: gpuio_load::machine::read(root), matrix: None };
    match from {
        [] => Ok(whole(&Root::live())),
        [dir] if dir.is_dir() => {
            if !dir.join("sys").is_dir() && !dir.join("proc").is_dir() {
                return Err(Failure::Usage(format!(
                    "--from {}: it has neither sys nor proc; give a tree with copies of /sys and \
                     /proc, or files with what tools printed",
                    dir.display()
                )));
            }
            Ok(whole(&Root::at(dir)))
        }
        files => {
            let mut captured = Captured::default();
            files.iter().try_for_each(|file| add(file, &mut captured))?;
            Ok(captured)
        }
    }
}

fn add(file: &Path, captured: &mut Captured) -> Result<(), Failure> {
    let name = file.display();
    if file.is_dir() {
        let words = "give one directory alone, or files";
        return Err(Failure::Usage(format!("--from {name}: it is a directory; {words}")));
    }
    let bytes =
        std::fs::read(file).map_err(|error| Failure::Usage(format!("--from {name}: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let kind = gpuio_capture::kind_of(&text).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.command).collect();
        let known = known.join(", ");
        Failure::Usage(format!("--from {name}: it looks like none of: {known}"))
    })?;
    gpuio_capture::add(kind, &text, captured)
        .map_err(|error| Failure::Usage(format!("--from {name} ({}): {error}", kind.command)))
}

fn cells(matrix: &Matrix) -> Vec<Printed<'_>> {
    let rows = matrix.rows.iter().zip(&matrix.cells);
    let cells = rows.flat_map(|(row, cells)| {
        let columns = matrix.columns.iter().zip(cells);
        columns.map(move |(column, cell)| Printed { row, column, cell })
    });
    cells.collect()
}

fn problems(captured: &Captured) -> Vec<String> {
    let machine = &captured.machine;
    let all = machine.host.problems.iter().chain(&machine.problems);
    let words = |problem: &ReadProblem| {
        let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("Not read: {}{line}: {}", problem.path, problem.message)
    };
    all.map(words).collect()
}

fn find(topology: &Topology, name: &str) -> Result<usize, Failure> {
    topology.find(name).ok_or_else(|| {
        let known: Vec<&str> = topology.devices.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!(
            "'{name}' is no GPU, network card or drive here; there are: {known}"
        ))
    })
}
