//! Tools that look on while a load runs: the tables that [`gpuio_base::measured`] reads, as the
//! figures that results are held against.

mod cufile;
mod disks;
mod gpus;
mod module;

pub(crate) use cufile::CuFile;
pub(crate) use disks::{Disk, bytes_of, moved, moving};
pub(crate) use gpus::Traffic;
pub(crate) use module::Module;

use gpuio_base::measured::{
    DCGMI_DMON, GDS_STATS, IOSTAT, Measured, NVIDIA_DMON, Tool,
    iostat::{self, rows_on_one_line},
};

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
    /// The only report of iostat, which is the mean since boot (iostat(1), without `-y`): its
    /// figures do not show another.
    SinceBoot,
}

/// A tool, what its tables hold, and how many lines of others may stand among its own.
type Row = (Tool, fn(&[Measured]) -> Option<Sight>, usize);

const TOOLS: [Row; 4] = [
    (IOSTAT, disks::of, 0),
    (NVIDIA_DMON, gpus::of, 0),
    (DCGMI_DMON, gpus::of, 0),
    (GDS_STATS, cufile::of, 4),
];

/// The output of a tool from this line on, and the index behind its last line.
pub(crate) fn read(lines: &[Line], index: usize) -> Option<(Seen, usize)> {
    let seen = |tool, sight| Seen { line: lines[index].number, tool, sight };
    if let Some((sight, until)) = module::read(lines, index) {
        return Some((seen("nvidia-fs stats", sight), until));
    }
    TOOLS.iter().find_map(|(tool, of, others)| {
        let first = rows(&lines[index].text);
        first.iter().find(|row| (tool.begins)(row))?;
        let mut reader = (tool.reader)();
        let until = until(lines, index, *others, |text| {
            rows(text).into_iter().filter(|row| reader.line(row)).count() > 0
        });
        let tables = reader.tables();
        let sight = of(&tables)?;
        let is_only = tool.command == IOSTAT.command && tables.iter().all(|t| t.first_report == 0);
        let since_boot =
            is_only && begins_at_boot(&lines[..index]) && !iostat::are_of_seconds(&tables);
        Some((seen(tool.command, if since_boot { Sight::SinceBoot } else { sight }), until))
    })
}

/// Whether iostat's first report follows these lines: its line of the kernel stands above, and the
/// command, where it is there, leaves the mean since boot in.
fn begins_at_boot(above: &[Line]) -> bool {
    let mut own = above.iter().rev().take(8);
    let mut head = false;
    let command = own.find_map(|line| {
        head |= iostat::release_and_host_of(line.text.trim()).is_some();
        line.prompt.as_ref().map(|prompt| prompt.command.as_str())
    });
    let flags = command.unwrap_or_default().split_whitespace().skip(1);
    let mut flags = flags.filter(|word| word.starts_with('-') && !word.starts_with("--"));
    head && !flags.any(|word| word.contains('y'))
}

/// The index behind the last line of a tool whose output begins at `index`: until another command,
/// or more lines of others than these. Blank lines and dots are no lines.
fn until(lines: &[Line], index: usize, others: usize, mut line: impl FnMut(&str) -> bool) -> usize {
    let (mut last, mut strange) = (index, 0);
    for (at, one) in lines.iter().enumerate().skip(index) {
        if at > index && one.prompt.is_some() {
            break;
        }
        if line(one.text.trim()) {
            (last, strange) = (at, 0);
        } else if !one.text.chars().all(|c| matches!(c, '.' | '…' | ' ')) {
            strange += 1;
            if strange > others {
                break;
            }
        }
    }
    last + 1
}

/// The rows of a line, where a page has joined several.
fn rows(text: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut from = 0;
    for at in rows_on_one_line(text) {
        rows.push(text[from..at].trim());
        from = at;
    }
    rows.push(text[from..].trim());
    rows
}
