//! `nvidia-smi topo -m` and `-mp`: the matrix of GPUs and network cards.

use gpuio_record::facts::{Fact, GpuFacts, NvLinkEnd, NvLinkPeer};

use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi topo -m",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines()
            .any(|line| plain(line).trim_start().starts_with("GPU0 ") && line.contains(" X "))
            || text.lines().any(|line| plain(line).trim_start().starts_with("GPU0\t"))
    },
    add,
};

const WHY: &str = "nvidia-smi topo does not report it";
/// More rows and columns than any machine has.
const MOST: usize = 256;

/// The matrix as printed. It may be cut: fewer columns than rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    /// What the columns stand for: `GPU0`, `mlx5_0`. `NIC0` and so on are spelled by the legend's
    /// name where there is a legend.
    pub columns: Vec<String>,
    /// What the rows stand for, spelled like `columns`.
    pub rows: Vec<String>,
    /// A row's cells, one per column: `X`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, `NV6`.
    pub cells: Vec<Vec<String>>,
    /// A row's processors (`CPU Affinity`), where they are printed.
    pub cpus: Vec<Option<String>>,
    /// A row's NUMA node (`NUMA Affinity`), where one is printed.
    pub nodes: Vec<Option<u32>>,
}

impl Matrix {
    /// The cell of a row and a column by name.
    #[must_use]
    pub fn cell(&self, row: &str, column: &str) -> Option<&str> {
        let row = self.rows.iter().position(|name| name == row)?;
        let column = self.columns.iter().position(|name| name == column)?;
        self.cells.get(row)?.get(column).map(String::as_str)
    }
}

/// Parses the matrix.
pub(crate) fn parse(text: &str) -> Result<Matrix, CaptureError> {
    let mut matrix = Matrix::default();
    let mut in_matrix = true;
    for (index, line) in lines(text, "nvidia-smi") {
        let line = &plain(line);
        let mut words = line.split_whitespace().filter(|word| *word != ".");
        if line.trim_start().starts_with("Legend") {
            in_matrix = false;
        } else if !in_matrix {
            legend(line, &mut matrix);
        } else if matrix.columns.is_empty() {
            matrix.columns = words.take_while(|word| is_name(word)).map(str::to_owned).collect();
            if matrix.columns.is_empty() || matrix.columns.len() > MOST {
                return Err(CaptureError::new(index, line, 0, "names of GPUs, like GPU0 GPU1"));
            }
        } else {
            let name = words.next().unwrap_or_default();
            if !is_name(name) || matrix.rows.len() == MOST {
                return Err(CaptureError::at(index, line, name, "a GPU's or card's name"));
            }
            let mut cells = Vec::new();
            for _ in &matrix.columns {
                let cell = words.next().ok_or_else(|| {
                    CaptureError::new(index, line, line.len(), "as many cells as columns")
                })?;
                if !is_cell(cell) {
                    let wanted = "X, PIX, PXB, PHB, NODE, SYS or NV with a number";
                    return Err(CaptureError::at(index, line, cell, wanted));
                }
                cells.push(cell.to_owned());
            }
            matrix.rows.push(name.to_owned());
            matrix.cells.push(cells);
            matrix.cpus.push(words.next().map(str::to_owned));
            matrix.nodes.push(words.next().and_then(|word| word.parse().ok()));
        }
    }
    Ok(matrix)
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.matrix = Some(parse(text)?);
    Ok(())
}

/// Adds the matrix's facts to the GPUs, whichever text came first: NUMA nodes and NVLinks, and
/// where no other text lists a GPU, the GPUs themselves.
pub(crate) fn complete(captured: &mut Captured) {
    let Some(matrix) = &captured.matrix else { return };
    let gpus = &mut captured.machine.gpus;
    if gpus.iter().any(|gpu| !is_name_only(gpu)) {
        gpus.retain(|gpu| !is_name_only(gpu));
    } else if gpus.is_empty() {
        let numbers = matrix.rows.iter().filter_map(|row| row.strip_prefix("GPU")?.parse().ok());
        gpus.extend(numbers.map(|number| GpuFacts {
            index: Fact::Known(number),
            name: Fact::unknown(WHY),
            uuid: Fact::unknown(WHY),
            ..GpuFacts::default()
        }));
    }
    // The driver's numbers, or positions in the list where it did not report them.
    let numbers: Vec<(u32, Option<String>)> = gpus
        .iter()
        .zip(0u32..)
        .map(|(gpu, position)| (gpu.index.known().copied().unwrap_or(position), gpu.pci.clone()))
        .collect();
    for (gpu, (number, _)) in gpus.iter_mut().zip(&numbers) {
        let Some(row) = matrix.rows.iter().position(|name| *name == format!("GPU{number}")) else {
            continue;
        };
        gpu.node = gpu.node.or(matrix.nodes[row]);
        let peers = peers(matrix, row, &numbers);
        let printed = |peer: &NvLinkPeer| peer.kind == NvLinkEnd::Unknown && peer.version.is_none();
        let better = gpu.nvlinks.known().is_some_and(|known| !known.iter().all(printed));
        if !peers.is_empty() && !better {
            gpu.nvlinks = Fact::Known(peers);
        }
    }
}

/// Whether the matrix is the only source on a GPU.
fn is_name_only(gpu: &GpuFacts) -> bool {
    gpu.pci.is_none() && gpu.uuid.known().is_none() && gpu.name.known().is_none()
}

fn peers(matrix: &Matrix, row: usize, numbers: &[(u32, Option<String>)]) -> Vec<NvLinkPeer> {
    let cells = matrix.columns.iter().zip(&matrix.cells[row]);
    let linked = cells.filter_map(|(column, cell)| {
        let links = cell.strip_prefix("NV")?.parse().ok()?;
        let other: u32 = column.strip_prefix("GPU")?.parse().ok()?;
        let pci = numbers.iter().find(|(number, _)| *number == other)?.1.clone();
        let kind = NvLinkEnd::Unknown;
        Some(NvLinkPeer { pci, kind, links, version: None, bytes_per_second: None })
    });
    linked.collect()
}

/// Spells cards by the legend: `NIC0: mlx5_0`.
fn legend(line: &str, matrix: &mut Matrix) {
    let Some((number, name)) = line.trim().split_once(':') else { return };
    let name = name.trim();
    if !number.starts_with("NIC") || name.is_empty() {
        return;
    }
    for known in matrix.columns.iter_mut().chain(&mut matrix.rows) {
        if known == number {
            name.clone_into(known);
        }
    }
}

fn is_name(word: &str) -> bool {
    // The headings behind the names are words without a digit: CPU Affinity, NUMA Affinity.
    word.ends_with(|c: char| c.is_ascii_digit())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn is_cell(word: &str) -> bool {
    // SOC was SYS until driver 384.
    let links = word.strip_prefix("NV").is_some_and(|links| links.parse::<u32>().is_ok());
    links || ["X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"].contains(&word)
}

/// A line without the marks for underlining (`ESC [ 4 m`) that the heading carries.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find('m').filter(|_| part.starts_with('['));
        out.push_str(end.map_or(part, |end| &part[end + 1..]));
    }
    out
}
