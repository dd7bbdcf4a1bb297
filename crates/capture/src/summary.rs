//! The understood and the unknown parts of texts, in a line.

use gpuio_record::facts::{BlockKind, Machine, NicFacts};

use crate::{Captured, TextRead, cufile_json};

/// Lines that are named before the others are counted.
const SHOWN: usize = 3;
/// Places in a text whose numbers are printed.
const MOST_RUNS: usize = 24;

impl Captured {
    /// The facts read from texts, those that they do not have, and those that were passed over;
    /// `None` where no text was read.
    pub fn summary(&self) -> Option<String> {
        self.summary_beside(|_, _| false)
    }

    /// The same where something else has read lines: a text's name and a line of it, from 1. They
    /// are not among those that were passed over.
    pub fn summary_beside(&self, is_read: impl Fn(&str, usize) -> bool) -> Option<String> {
        if self.texts.is_empty() {
            return None;
        }
        let commands = self.commands();
        let found = self.found();
        let found = if found.is_empty() { self.beside() } else { found };
        let found = if found.is_empty() { "no device".to_owned() } else { found.join(", ") };
        let missing = missing(&self.machine, self.matrices.is_empty());
        let missing = match missing.len() {
            0 => String::new(),
            _ => format!("; not in it: {}", missing.join(", ")),
        };
        let skipped = self.left(is_read);
        let skipped = skipped.map(|lines| format!("; not understood: {lines}"));
        let skipped = skipped.unwrap_or_default();
        Some(format!("Read from {}: {found}{missing}{skipped}.", commands.join(", ")))
    }

    /// The lines that were passed over, those aside that something else has read.
    pub fn not_understood(&self, is_read: impl Fn(&str, usize) -> bool) -> Option<String> {
        self.left(is_read).map(|lines| format!("Not understood: {lines}."))
    }

    fn left(&self, is_read: impl Fn(&str, usize) -> bool) -> Option<String> {
        let left = |text: &TextRead| {
            let skipped = text.skipped.iter().filter(|one| !is_read(&text.name, one.line));
            TextRead { skipped: skipped.cloned().collect(), ..text.clone() }
        };
        let texts: Vec<TextRead> = self.texts.iter().map(left).collect();
        skipped(&texts)
    }

    /// The commands whose output was read, each once.
    pub fn commands(&self) -> Vec<&'static str> {
        let mut commands: Vec<&str> = Vec::new();
        for command in self.texts.iter().flat_map(|text| &text.commands) {
            if !commands.contains(command) {
                commands.push(command);
            }
        }
        commands
    }

    /// Contents of texts without a device of their own.
    fn beside(&self) -> Vec<String> {
        let machine = &self.machine;
        let arrays = machine.block.iter().filter(|one| one.facts.kind == BlockKind::Md).count();
        let release = usize::from(machine.host.kernel.release.is_some());
        let words = machine.settings.command_line.as_ref().map_or(0, Vec::len);
        let all = [
            (words, "argument of the kernel", "arguments of the kernel"),
            (arrays, "array", "arrays"),
            (self.log.len(), "kind of message", "kinds of messages"),
            (machine.modules.len(), "kernel module", "kernel modules"),
            (release, "kernel's release", "kernels' releases"),
        ];
        counted(all)
    }

    /// The contents of the texts, with numbers.
    fn found(&self) -> Vec<String> {
        let machine = &self.machine;
        let drives = machine.block.iter().filter(|device| device.facts.kind == BlockKind::Disk);
        let drives = drives.filter(|device| !device.facts.is_optical()).count();
        let real = |nic: &&NicFacts| nic.pci.is_some() || !nic.rdma.is_empty();
        let nics = machine.nics.iter().filter(real).count();
        let cells = self.matrices.iter().map(crate::Matrix::filled).sum();
        let (node, nodes) = match machine.listed.nodes {
            true => ("NUMA node", "NUMA nodes"),
            false => ("NUMA node at least", "NUMA nodes at least"),
        };
        let all = [
            (machine.gpus.len(), "GPU", "GPUs"),
            (nics, "network card", "network cards"),
            (drives, "drive", "drives"),
            (machine.mounts.len(), "mount", "mounts"),
            (machine.pci.len(), "PCI function", "PCI functions"),
            (self.nodes(), node, nodes),
            (cells, "cell of a matrix", "cells of a matrix"),
            (self.network.interfaces.len(), "interface", "interfaces"),
            (machine.diagnoses.len(), "result of a test", "results of tests"),
        ];
        let mut found = counted(all);
        if machine.gdscheck.is_some() {
            found.push("gdscheck's report".to_owned());
        }
        if machine.cufile.text.known().is_some() {
            found.push("cufile.json".to_owned());
        }
        if self.network.table.is_some() {
            found.push("routes".to_owned());
        }
        found
    }

    /// NUMA nodes that the texts show. SYS is between two of them, whatever a matrix names.
    fn nodes(&self) -> usize {
        let named = self.machine.host.numa.nodes.len();
        let between =
            |matrix: &crate::Matrix| matrix.cells.iter().flatten().any(|cell| cell == "SYS");
        let apart = named > 0 && !self.machine.listed.nodes && self.matrices.iter().any(between);
        if apart { named.max(2) } else { named }
    }
}

/// Those that are there, with their number.
fn counted<const N: usize>(all: [(usize, &str, &str); N]) -> Vec<String> {
    let known = all.into_iter().filter(|(count, ..)| *count > 0);
    known
        .map(|(count, one, more)| format!("{count} {}", if count == 1 { one } else { more }))
        .collect()
}

/// The facts that the answers need and no text has, with the command that prints them.
fn missing(machine: &Machine, no_matrix: bool) -> Vec<&'static str> {
    let tree = machine.pci.iter().any(|one| one.parent.is_some() || one.host_bridge.is_some());
    let linked = machine
        .pci
        .iter()
        .any(|one| one.link_now.width.is_some() || one.link_bytes_per_second.is_some());
    let all = [
        (machine.gpus.is_empty(), "GPUs (nvidia-smi)"),
        (machine.nics.is_empty(), "network cards (lspci -tv, nvidia-smi topo -m)"),
        (machine.block.is_empty(), "drives (lspci -tv, lsblk)"),
        (machine.mounts.is_empty(), "mounts (mount)"),
        (!tree && no_matrix, "distances (lspci -tv, nvidia-smi topo -m)"),
        (!tree && !no_matrix, "the PCIe tree (lspci -tv)"),
        (!linked, "speeds of links (lspci -vv)"),
        (machine.host.numa.nodes.is_empty(), "NUMA nodes (lscpu)"),
    ];
    all.into_iter().filter(|(missing, _)| *missing).map(|(_, what)| what).collect()
}

/// Lines that were passed over: the first few, and how many there are.
fn skipped(texts: &[TextRead]) -> Option<String> {
    let all: Vec<String> = texts
        .iter()
        .flat_map(|text| {
            text.skipped.iter().map(move |one| {
                let words = one.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let words: String = words.chars().take(40).collect();
                let title = one.wanted == cufile_json::NO_TITLE;
                let title =
                    if title { ", which is no JSON: # begins no comment there" } else { "" };
                format!("{} line {} {words:?}{title}", text.name, one.line)
            })
        })
        .collect();
    if all.is_empty() {
        return None;
    }
    let least = if all.len() >= crate::MOST_SKIPPED { "at least " } else { "" };
    let lines = match all.len() {
        1 => "1 line".to_owned(),
        count => format!("{least}{count} lines"),
    };
    let shown = all[..all.len().min(SHOWN)].join(", ");
    Some(format!("{lines} ({shown}{})", others(texts)))
}

/// The numbers of the lines that are not shown: `; also post.txt lines 17-20, 31`.
fn others(texts: &[TextRead]) -> String {
    let mut hidden = SHOWN;
    let mut all = Vec::new();
    for text in texts {
        let lines: Vec<usize> = text.skipped.iter().skip(hidden).map(|one| one.line).collect();
        hidden = hidden.saturating_sub(text.skipped.len());
        let runs = lines.chunk_by(|a, b| *b <= a + 1).filter_map(|run| run.first().zip(run.last()));
        let runs = runs.map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let mut runs: Vec<String> = runs.collect();
        let more = runs.len().saturating_sub(MOST_RUNS);
        runs.truncate(MOST_RUNS);
        if !runs.is_empty() {
            let word = if lines.len() == 1 { "line" } else { "lines" };
            // Prose of a guide, whose every line stands alone.
            let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
            all.push(format!("{} {word} {}{more}", text.name, runs.join(", ")));
        }
    }
    if all.is_empty() { String::new() } else { format!("; also {}", all.join("; ")) }
}

#[cfg(test)]
mod tests {
    use crate::Captured;

    #[test]
    fn all_lines_that_are_not_understood_are_numbered() {
        let text = "$ lspci\n01:00.0 VGA compatible controller: X\na1\nb2\nc3\nd4\ne5\n\
                    02:00.0 VGA compatible controller: X\nf6\n";
        let mut captured = Captured::default();
        crate::read("p.txt", text, &mut captured).unwrap();
        let said = captured.summary().unwrap();
        let end = "6 lines (p.txt line 3 \"a1\", p.txt line 4 \"b2\", p.txt line 5 \"c3\"; also \
                   p.txt lines 6-7, 9).";
        assert!(said.ends_with(end), "{said}");
    }
}
