//! `nvidia-smi topo -m` and `-mp`: the matrix of GPUs and network cards.
//!
//! Posts have it without its head, with rows or columns cut, and with cells run together
//! (`NODEPXB`). A row's own column is the one with its `X`, so that a matrix without head has its
//! names all the same, and rows have theirs that a PDF has torn (`GPU 10` with a border read as 1).
//! A cell that is not there is empty.

use gpuio_host::parse_cpu_list;
use gpuio_record::facts::{
    Fact, GpuFacts, Machine, NicFacts, NumaNode, NvLinkEnd, NvLinkPeer, PrintedCell, RdmaFacts,
};

use crate::prompt::is_dots;
use crate::{CaptureError, Captured, Kind, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi topo -m",
    gives: "GPUs, network cards, distances, NVLinks, NUMA nodes, CPUs; also `-mp`; `-p2p` is \
        passed over",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| row(line).is_some_and(|row| row.is_certain())),
    add,
};

const WHY: &str = "nvidia-smi topo does not report it";
/// More rows and columns than any machine has.
const MOST: usize = 256;
/// Characters from which on a list of processors may have been cut: the column's width.
const LONGEST_CPUS: usize = 12;
/// The text in cells that the tool could not fill.
const EMPTY: [&str; 5] = ["N/A", "ERR!", "ERR", "?", "-"];

/// Pairs that contradict each other, which are named before the others are counted.
const SHOWN: usize = 4;

/// The words that `nvidia-smi topo -p2p` prints in its cells.
const PEER_STATES: [&str; 8] = ["OK", "NOK", "CNS", "GNS", "TNS", "NS", "DR", "U"];

/// First words of rows that are torn.
const TORN: [&str; 2] = ["GPU", "NIC"];

/// The matrix as printed. It may be cut: fewer columns than rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    /// The devices of the columns: `GPU0`, `mlx5_0`. `NIC0` and so on are spelled by the legend's
    /// name where there is a legend; empty where it is not known.
    pub columns: Vec<String>,
    /// The devices of the rows, spelled like `columns`.
    pub rows: Vec<String>,
    /// A row's cells, one per column: `X`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, `NV6`, or empty
    /// where it was cut.
    pub cells: Vec<Vec<String>>,
    /// A row's processors (`CPU Affinity`), where they are printed.
    pub cpus: Vec<Option<String>>,
    /// A row's NUMA nodes (`NUMA Affinity`): none, one, or several as `0-1`.
    pub nodes: Vec<Vec<u32>>,
    /// The NUMA node that a row's GPU memory is (`GPU NUMA ID`), where one is printed.
    pub memory_nodes: Vec<Option<u32>>,
    /// Whether it was printed with NVLinks (`-m`): then a cell without is known to have none.
    pub shows_nvlinks: bool,
}

impl Matrix {
    /// The cell of a row and a column by name; `None` too where it is empty.
    pub fn cell(&self, row: &str, column: &str) -> Option<&str> {
        let row = self.rows.iter().position(|name| name == row)?;
        let column = self.columns.iter().position(|name| name == column)?;
        let cell = self.cells.get(row)?.get(column)?;
        Some(cell.as_str()).filter(|cell| !cell.is_empty())
    }

    /// The cells that hold something.
    pub(crate) fn printed(&self) -> impl Iterator<Item = PrintedCell> {
        self.rows.iter().zip(&self.cells).flat_map(|(row, cells)| {
            let filled = self.columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
            filled.map(|(column, cell)| PrintedCell {
                row: row.clone(),
                column: column.clone(),
                cell: cell.clone(),
            })
        })
    }

    /// Empties the cells of pairs that one device's row has otherwise than the other's, and says
    /// how.
    fn drop_conflicts(&mut self) -> Vec<String> {
        // Drivers before 384 print SOC for SYS.
        let class = |cell: &str| if cell == "SOC" { "SYS".to_owned() } else { cell.to_owned() };
        let mut all = Vec::new();
        for (nth, a) in self.rows.iter().enumerate() {
            for b in &self.rows[nth + 1..] {
                let Some((one, other)) = self.cell(a, b).zip(self.cell(b, a)) else { continue };
                if class(one) != class(other) {
                    all.push((
                        a.clone(),
                        b.clone(),
                        format!("row {a} has {one} for {b}, row {b} has {other} for {a}"),
                    ));
                }
            }
        }
        for (a, b, _) in &all {
            for (row, column) in [(a, b), (b, a)] {
                let row = self.rows.iter().position(|name| name == row);
                let column = self.columns.iter().position(|name| name == column);
                let cell =
                    row.zip(column).and_then(|(row, at)| self.cells.get_mut(row)?.get_mut(at));
                cell.into_iter().for_each(String::clear);
            }
        }
        all.into_iter().map(|one| one.2).collect()
    }

    /// The numbers of the GPUs in it.
    pub(crate) fn gpus(&self) -> std::collections::BTreeSet<u32> {
        let names = self.rows.iter().chain(&self.columns);
        names.filter_map(|name| name.strip_prefix("GPU")?.parse().ok()).collect()
    }

    /// Cells that hold something, of pairs of two devices.
    pub fn filled(&self) -> usize {
        let all = self.cells.iter().flatten();
        all.filter(|cell| !cell.is_empty() && *cell != "X").count()
    }
}

struct Row<'t> {
    name: &'t str,
    cells: Vec<String>,
    /// The text behind the cells.
    rest: Vec<&'t str>,
}

impl Row<'_> {
    /// Whether no other tool prints such a line.
    fn is_certain(&self) -> bool {
        let class = |cell: &String| cell != "X" && !cell.is_empty();
        let gpu = self.name.trim_end_matches(|c: char| c.is_ascii_digit()) == "GPU";
        let own = self.cells.iter().any(|cell| cell == "X");
        let classes = self.cells.iter().filter(|cell| class(cell)).count();
        // Rows of cards alone are left where the head was cut.
        own && (gpu && (classes > 0 || self.cells.len() == 1) || classes > 4)
    }
}

fn row(line: &str) -> Option<Row<'_>> {
    // Between tabs a value may be missing; between blanks it can't be told.
    let tabs = line.contains('\t') && line.split('\t').all(|field| !field.trim().contains("  "));
    let words: Vec<&str> = match tabs {
        true => line.trim_end().split('\t').map(str::trim).collect(),
        false => line.split_whitespace().filter(|word| *word != ".").collect(),
    };
    let (name, words) = words.split_first()?;
    if TORN.contains(name) {
        return torn_row(line);
    }
    is_name(name).then(|| row_of(name, words, tabs)).flatten()
}

/// A row whose number stands apart from its name, mixed with marks of a border: its `X` says which
/// one it is, and its name has no number.
fn torn_row(line: &str) -> Option<Row<'_>> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let mark = |c: char| c.is_ascii_digit() || matches!(c, ':' | '|' | 'O' | 'o' | 'I' | 'l');
    words.next().filter(|word| word.len() <= 4 && word.chars().all(mark))?;
    let row = row_of(name, &words.collect::<Vec<_>>(), false)?;
    let own = row.cells.iter().filter(|cell| *cell == "X").count() == 1;
    (own && row.cells.len() > 1).then_some(row)
}

fn row_of<'t>(name: &'t str, words: &[&'t str], tabs: bool) -> Option<Row<'t>> {
    let mut cells = Vec::new();
    let mut read = 0;
    while let Some(parts) = words.get(read).and_then(|word| split_cells(word)) {
        cells.extend(parts);
        read += 1;
    }
    let mut rest = words[read..].to_vec();
    // `1 N/A`: the processors are missing, as two more columns would follow them.
    if !tabs && rest.len() == 2 && rest[1] == "N/A" && rest[0].parse::<u32>().is_ok() {
        rest.insert(0, "");
    }
    // `topo -p2p` has heads and names like these, and states of peer access in its cells.
    let peers = rest.first().is_some_and(|word| PEER_STATES.contains(word));
    (!cells.is_empty() && !peers).then_some(Row { name, cells, rest })
}

/// The cells of a word: one, or several that run together.
fn split_cells(word: &str) -> Option<Vec<String>> {
    if word.is_empty() {
        return None;
    }
    if EMPTY.contains(&word) {
        return Some(vec![String::new()]);
    }
    // A Cyrillic letter where a PDF was read by its looks.
    if word == "\u{425}" {
        return Some(vec!["X".to_owned()]);
    }
    let mut cells = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        let links = rest.strip_prefix("NV").map_or(0, |rest| {
            rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
        });
        let known = ["PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB", "X"];
        let length = match known.iter().find(|cell| rest.starts_with(**cell)) {
            Some(cell) => cell.len(),
            None if links > 0 => 2 + links,
            None => return None,
        };
        cells.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    Some(cells)
}

/// The names of a head, and whether it announces NVLinks' columns; `None` for another line.
fn head(line: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for word in line.split_whitespace() {
        if ["CPU", "NUMA"].contains(&word) || word.starts_with("CPU") {
            break;
        }
        if word == "GPU" {
            // `GPU NUMA ID`
            break;
        }
        if is_dots(word) {
            continue;
        }
        names.extend(split_names(word)?);
    }
    // A row of GPU0 alone has its X behind the name.
    (!names.is_empty() && names.len() <= MOST).then_some(names)
}

/// `NIC8NIC9` where a column's gap was lost.
fn split_names(word: &str) -> Option<Vec<String>> {
    if let Some(mended) = mended(word) {
        return Some(vec![mended]);
    }
    if !is_name(word) {
        return None;
    }
    let mut names = vec![String::new()];
    let mut digit = false;
    for letter in word.chars() {
        let begins = digit && letter.is_ascii_uppercase();
        if begins {
            names.push(String::new());
        }
        digit = letter.is_ascii_digit();
        names.last_mut()?.push(letter);
    }
    Some(names)
}

/// `NICO` and `GPUI`, where 0 and 1 were read as letters.
fn mended(word: &str) -> Option<String> {
    let name = TORN.iter().find(|name| word.len() == 4 && word.starts_with(**name))?;
    match word.as_bytes()[3] {
        b'O' | b'o' => Some(format!("{name}0")),
        b'I' | b'l' => Some(format!("{name}1")),
        _ => None,
    }
}

/// Parses the matrices: posts have `-m` and `-mp` one after the other.
pub(crate) fn parse(
    text: &str,
    skip: &mut dyn FnMut(CaptureError),
) -> Result<Vec<Matrix>, CaptureError> {
    let mut all: Vec<Draft> = vec![Draft::default()];
    let mut in_legend = false;
    for (index, line) in lines(text) {
        let Some(draft) = all.last_mut() else { break };
        if draft.matrix.rows.len() > MOST {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
        if let Some(row) = row(line).filter(|row| draft.has_place(row)) {
            in_legend = false;
            let lacks = draft.has_head && row.cells.len() < draft.matrix.columns.len();
            if lacks {
                let wanted = "as many cells as columns";
                skip(match row.rest.iter().find(|word| !word.is_empty()) {
                    Some(word) => CaptureError::at(index, line, word, wanted),
                    None => CaptureError::new(index, line, line.len(), wanted),
                });
            }
            draft.add(row);
        } else if line.trim_start().starts_with("Legend") || line.contains("NIC Legend") {
            in_legend = true;
        } else if let Some(names) = head(line).filter(|_| !in_legend || line.contains("GPU0")) {
            in_legend = false;
            if !draft.matrix.rows.is_empty() || !draft.matrix.columns.is_empty() {
                all.push(Draft::default());
            }
            let Some(draft) = all.last_mut() else { break };
            draft.matrix.columns = names;
            draft.has_head = true;
        } else if !legend(line, &mut draft.matrix) {
            skip(wrong(index, line, &draft.matrix));
        }
    }
    let matrices: Vec<Matrix> = all.into_iter().map(Draft::finish).collect();
    Ok(matrices.into_iter().filter(|matrix| !matrix.rows.is_empty()).collect())
}

fn wrong(index: usize, line: &str, matrix: &Matrix) -> CaptureError {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    if matrix.columns.is_empty() {
        return CaptureError::new(index, line, 0, "names of GPUs, like GPU0 GPU1");
    }
    if !is_name(name) {
        return CaptureError::at(index, line, name, "a GPU's or card's name");
    }
    let wanted = "X, PIX, PXB, PHB, NODE, SYS or NV with a number";
    CaptureError::at(index, line, words.next().unwrap_or(name), wanted)
}

/// A matrix while its lines come in.
#[derive(Default)]
struct Draft {
    matrix: Matrix,
    has_head: bool,
}

impl Draft {
    /// Whether a row has a name: a torn one has that of the column of its `X`, where all of its
    /// cells are there, the name fits and no other row has it.
    fn has_place(&self, row: &Row<'_>) -> bool {
        let Matrix { columns, rows, .. } = &self.matrix;
        let own = row.cells.iter().position(|cell| cell == "X").and_then(|at| columns.get(at));
        let fits = |own: &String| own.starts_with(row.name) && !rows.contains(own);
        !TORN.contains(&row.name) || row.cells.len() == columns.len() && own.is_some_and(fits)
    }

    fn add(&mut self, row: Row<'_>) {
        let Row { name, mut cells, rest } = row;
        let matrix = &mut self.matrix;
        if self.has_head {
            cells.truncate(matrix.columns.len());
        }
        let own = cells.iter().position(|cell| cell == "X").and_then(|at| matrix.columns.get(at));
        let name = own.filter(|_| TORN.contains(&name)).map_or(name, String::as_str).to_owned();
        let is_cpus = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let cpus = rest.first().copied().filter(is_cpus).map(str::to_owned);
        let nodes = rest.get(1).and_then(|word| parse_cpu_list(word).ok());
        let nodes = nodes.filter(|nodes| nodes.len() <= MOST).unwrap_or_default();
        let memory = rest.get(2..).unwrap_or_default().iter().find(|word| !word.is_empty());
        matrix.shows_nvlinks |= cells.iter().any(|cell| cell.starts_with("NV"));
        matrix.rows.push(name);
        matrix.cells.push(cells);
        matrix.cpus.push(cpus);
        matrix.nodes.push(nodes);
        matrix.memory_nodes.push(memory.and_then(|word| word.parse().ok()));
    }

    fn finish(self) -> Matrix {
        let Draft { mut matrix, has_head } = self;
        let width = matrix.cells.iter().map(Vec::len).max().unwrap_or(0);
        if !has_head {
            matrix.columns = vec![String::new(); width];
            for (row, cells) in matrix.rows.iter().zip(&matrix.cells) {
                if let Some(own) = cells.iter().position(|cell| cell == "X") {
                    matrix.columns[own].clone_from(row);
                }
            }
            fill_names(&mut matrix.columns);
        }
        let width = matrix.columns.len();
        matrix.cells.iter_mut().for_each(|cells| cells.resize(width, String::new()));
        matrix
    }
}

/// Names of columns whose rows were cut: numbers count up within a word (`GPU2` before `GPU3`).
fn fill_names(columns: &mut [String]) {
    let known: Vec<Option<(String, usize)>> = columns
        .iter()
        .map(|name| numbered(name).map(|(word, number)| (word.to_owned(), number)))
        .collect();
    for at in 0..columns.len() {
        if !columns[at].is_empty() {
            continue;
        }
        let before = known[..at].iter().rposition(Option::is_some);
        let after = known[at..].iter().position(Option::is_some).map(|step| at + step);
        let from = |other: usize| {
            let (word, number) = known[other].as_ref()?;
            let number = (number + at).checked_sub(other)?;
            Some((word.clone(), number))
        };
        let guess = match (before.and_then(from), after.and_then(from)) {
            (Some(left), Some(right)) => (left == right).then_some(left),
            // The first columns are GPUs from 0.
            (None, Some((word, number))) if word == "GPU" && number == at => Some((word, number)),
            _ => None,
        };
        if let Some((word, number)) = guess {
            columns[at] = format!("{word}{number}");
        }
    }
}

/// Word and number of `GPU3` and `mlx5_0`.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((word, name[word.len()..].parse().ok()?))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut skipped = Vec::new();
    let mut matrices = parse(text, &mut |why| skipped.push(why))?;
    // A cell without NVLinks says that there are none only where the tool showed them.
    let legend = text.contains("NV#");
    matrices.iter_mut().for_each(|matrix| matrix.shows_nvlinks |= legend);
    let differ: Vec<String> = matrices.iter_mut().flat_map(Matrix::drop_conflicts).collect();
    if !differ.is_empty() {
        let more = differ.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        captured.conflict(format!(
            "nvidia-smi topo contradicts itself, and neither cell counts: {}{more}.",
            differ[..differ.len().min(SHOWN)].join("; ")
        ));
    }
    captured.matrices.extend(matrices);
    skipped.into_iter().for_each(|why| captured.skip(why));
    Ok(())
}

/// Adds the matrices' facts, whichever text came first: GPUs and cards where no other text lists
/// them, NUMA nodes with their processors, NVLinks.
pub(crate) fn complete(captured: &mut Captured) {
    let Captured { machine, matrices, .. } = captured;
    for matrix in matrices {
        gpus(machine, matrix);
        cards(machine, matrix);
        nodes(machine, matrix);
        nodes_of_cards(machine, matrix);
    }
}

fn gpus(machine: &mut Machine, matrix: &Matrix) {
    let gpus = &mut machine.gpus;
    if gpus.iter().any(|gpu| !is_name_only(gpu)) {
        gpus.retain(|gpu| !is_name_only(gpu));
    } else if gpus.is_empty() {
        gpus.extend(matrix.gpus().into_iter().map(|number| GpuFacts {
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
        match matrix.nodes[row].as_slice() {
            [node] => gpu.node = gpu.node.or(Some(*node)),
            several => gpu.near_nodes = several.to_vec(),
        }
        gpu.near_cpus = gpu.near_cpus.take().or_else(|| whole_cpus(matrix.cpus[row].as_deref()));
        gpu.memory_node = gpu.memory_node.or(matrix.memory_nodes[row]);
        let peers = peers(matrix, row, &numbers);
        let printed = |peer: &NvLinkPeer| peer.kind == NvLinkEnd::Unknown && peer.version.is_none();
        let better = gpu.nvlinks.known().is_some_and(|known| !known.iter().all(printed));
        if (!peers.is_empty() || matrix.shows_nvlinks) && !better {
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

/// Cards that no other text lists by name.
fn cards(machine: &mut Machine, matrix: &Matrix) {
    let names = matrix.rows.iter().chain(&matrix.columns);
    let cards = names.filter(|name| {
        !name.is_empty() && name.strip_prefix("GPU").is_none_or(|n| n.parse::<u32>().is_err())
    });
    for name in cards {
        let known = machine.nics.iter().any(|nic| {
            nic.rdma.iter().any(|one| one.name == *name)
                || nic.interfaces.iter().any(|one| one.name == *name)
        });
        if !known && machine.nics.len() < crate::MOST_DEVICES {
            let card = merge::card(machine, None, Some(name), None);
            card.rdma.push(RdmaFacts { name: name.clone(), ..RdmaFacts::default() });
        }
    }
}

/// NUMA nodes that GPUs are near to, with their processors: not all that the machine has.
fn nodes(machine: &mut Machine, matrix: &Matrix) {
    if machine.listed.nodes {
        return;
    }
    for (cpus, near) in matrix.cpus.iter().zip(&matrix.nodes) {
        // Processors of several nodes together are those of none.
        let cpus = whole_cpus(cpus.as_deref()).filter(|_| near.len() == 1);
        for node in near {
            let nodes = &mut machine.host.numa.nodes;
            match nodes.iter_mut().find(|known| known.node == *node) {
                Some(known) => known.cpus = known.cpus.take().or(cpus.clone()),
                None => {
                    nodes.push(NumaNode { node: *node, cpus: cpus.clone(), ..NumaNode::default() });
                }
            }
        }
    }
    machine.host.numa.nodes.sort_by_key(|node| node.node);
}

/// A list of processors that is whole: nvidia-smi cuts those that are long, and single numbers may
/// be the first of many.
fn whole_cpus(cpus: Option<&str>) -> Option<Vec<u32>> {
    let cut = |cpus: &&str| !cpus.contains('-') && cpus.len() >= LONGEST_CPUS;
    parse_cpu_list(cpus.filter(|cpus| !cut(cpus))?).ok()
}

/// The nodes of cards by their classes: up to NODE, a card is on the GPU's own node, and with SYS
/// on the other one of two.
fn nodes_of_cards(machine: &mut Machine, matrix: &Matrix) {
    let two = match machine.host.numa.nodes.as_slice() {
        [one, other] if machine.listed.nodes => Some([one.node, other.node]),
        _ => None,
    };
    for (cells, near) in matrix.cells.iter().zip(&matrix.nodes) {
        let &[node] = near.as_slice() else { continue };
        for (column, cell) in matrix.columns.iter().zip(cells) {
            let node = match cell.as_str() {
                "PIX" | "PXB" | "PHB" | "NODE" => Some(node),
                "SYS" => two.and_then(|two| two.into_iter().find(|other| *other != node)),
                _ => None,
            };
            let Some(node) = node else { continue };
            let is = |nic: &&mut NicFacts| nic.rdma.iter().any(|one| one.name == *column);
            for nic in machine.nics.iter_mut().filter(is) {
                nic.node = nic.node.or(Some(node));
            }
        }
    }
}

/// Takes in a line of the legend; `false` for another line. Spells cards by it: `NIC0: mlx5_0`.
fn legend(line: &str, matrix: &mut Matrix) -> bool {
    let line = line.trim();
    let class = line.split_once('=').map(|(class, _)| class.trim());
    if class.is_some_and(|class| class == "NV#" || split_cells(class).is_some()) {
        return true;
    }
    let Some((number, name)) = line.split_once(':') else { return false };
    let name = name.trim();
    if !number.starts_with("NIC") || !is_name(number) || name.is_empty() || name.contains(' ') {
        return false;
    }
    for known in matrix.columns.iter_mut().chain(&mut matrix.rows) {
        if known == number {
            name.clone_into(known);
        }
    }
    true
}

fn is_name(word: &str) -> bool {
    // The headings behind the names are words without a digit: CPU Affinity, NUMA Affinity.
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.ends_with(|c: char| c.is_ascii_digit())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(letters)
        && split_cells(word).is_none()
}
