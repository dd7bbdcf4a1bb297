//! Tools that look on while a load runs.
//!
//! Columns are found by their heads. A row with another number of cells than its head is left out.

mod cufile;
mod disks;
mod gpus;
mod module;

pub(crate) use cufile::CuFile;
pub(crate) use disks::Disk;
pub(crate) use gpus::Traffic;
pub(crate) use module::Module;

use crate::post::Seen;
use crate::post::line::Line;

/// The content of a tool's output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sight {
    /// Block devices: one interval, or the mean of several.
    Disks(Vec<Disk>),
    /// PCIe traffic of GPUs, mean of the rows.
    Gpus(Vec<Traffic>),
    /// gds_stats of one process.
    CuFile(CuFile),
    /// Counters of nvidia-fs since it was loaded.
    Module(Module),
}

/// A tool: its name, and a reader that gives what it printed from this line on, with the index
/// behind its last line.
type Reader = (&'static str, fn(&[Line], usize) -> Option<(Sight, usize)>);

const READERS: [Reader; 5] = [
    ("iostat", disks::read),
    ("nvidia-smi dmon", gpus::dmon),
    ("dcgmi dmon", gpus::dcgmi),
    ("gds_stats", cufile::read),
    ("nvidia-fs stats", module::read),
];

pub(crate) fn read(lines: &[Line], index: usize) -> Option<(Seen, usize)> {
    READERS.iter().find_map(|(tool, reader)| {
        let (sight, until) = reader(lines, index)?;
        Some((Seen { line: lines[index].number, tool, sight }, until))
    })
}

/// The words of a line; dots that stand for columns that were cut are one word.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let dots = word.chars().all(|c| matches!(c, '.' | '…'));
        if !(dots && words.last().is_some_and(|last| *last == "…")) {
            words.push(if dots { "…" } else { word });
        }
    }
    words
}

/// Whether a line has nothing but dots or blanks: lines that were cut.
fn is_gap(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '.' | '…' | ' '))
}

/// The number behind a name: `n=` in `Reads : n=424436862 ok=…`.
fn behind(text: &str, name: &str) -> Option<f64> {
    let (_, rest) = text.split_once(name)?;
    let number = rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    number.parse().ok()
}
