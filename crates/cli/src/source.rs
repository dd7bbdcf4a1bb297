//! The machine to describe: this one, a captured tree, or one from the output of tools; and the
//! results in those texts.

use std::path::{Path, PathBuf};

use gpuio_capture::{Captured, Matrix};
use gpuio_host::Root;
use gpuio_machine::topo::Printed;
use gpuio_record::facts::ReadProblem;
use gpuio_report::post::{self, Post};

use crate::captured;
use crate::failure::Failure;

/// The first line of what `gpuio collect`'s script prints.
const COLLECTED: &str = "# gpuio collect ";

/// The requested machine: this one, a captured tree, or one from texts.
pub(crate) fn read(from: &[PathBuf]) -> Result<Captured, Failure> {
    read_with(from, &mut None)
}

/// The same with the results that texts have. A text with results need not have a machine.
pub(crate) fn read_with_posts(from: &[PathBuf]) -> Result<(Captured, Vec<Post>), Failure> {
    let mut posts = Some(Vec::new());
    let captured = read_with(from, &mut posts)?;
    Ok((captured, posts.unwrap_or_default()))
}

fn read_with(from: &[PathBuf], posts: &mut Option<Vec<Post>>) -> Result<Captured, Failure> {
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
            add(one, &bytes, &mut captured, posts)?;
            Ok(captured)
        }
        files => {
            let mut captured = Captured::default();
            for file in files {
                add(file, &captured::bytes(file)?, &mut captured, posts)?;
            }
            Ok(captured)
        }
    }
}

fn add(
    file: &Path,
    bytes: &[u8],
    captured: &mut Captured,
    posts: &mut Option<Vec<Post>>,
) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = String::from_utf8_lossy(bytes);
    if text.starts_with(COLLECTED) {
        add_collected(&name, &text, captured);
        return Ok(());
    }
    let read = gpuio_capture::read(&name, &text, captured);
    if let Some(posts) = posts {
        let post = post::read(&name, &text);
        let has_results = !post.is_empty();
        posts.push(post);
        if has_results {
            return Ok(());
        }
    }
    read.map_err(|error| Failure::Usage(format!("--from {name}: {error}")))
}

/// The sections of a collected text, each below its command. One that is not understood is left
/// out: each machine has others.
fn add_collected(name: &str, text: &str, captured: &mut Captured) {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("# left out: ")) {
        if let Some(command) = line.strip_prefix("$ ") {
            sections.push((format!("{name}: {command}"), String::new()));
        } else if let Some((_, section)) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    for (name, section) in sections {
        let _ = gpuio_capture::read(&name, &section, captured);
    }
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
