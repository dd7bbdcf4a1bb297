//! Texts of machines as people posted them, in `posted/`: each with its source in the first line,
//! and a file of what the right answer is, written down before gpuio read the text.
//! docs/lab-book/posted-texts.md has the score.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use gpuio_base::units::format_cpu_list;
use gpuio_capture::Captured;
use gpuio_machine::topo::{DeviceKind, Printed, Route, Topology};
use gpuio_record::facts::{Fact, LinkLayer, PciFacts, RdmaPort};

/// A text, and its right answer: a line for each question.
struct Posted {
    name: String,
    text: String,
    expected: String,
}

fn all() -> Vec<Posted> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/posted");
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .filter_map(|entry| {
            Some(entry.unwrap().file_name().to_str()?.strip_suffix(".txt")?.to_owned())
        })
        .collect();
    names.sort();
    let read = |file: String| std::fs::read_to_string(directory.join(file)).unwrap();
    let posted = names.into_iter().map(|name| Posted {
        text: read(format!("{name}.txt")),
        expected: read(format!("{name}.expected")),
        name,
    });
    posted.collect()
}

/// gpuio's answers on a text.
struct Answers {
    captured: Captured,
    topology: Topology,
}

impl Answers {
    fn of(captured: Captured) -> Answers {
        let mut cells: Vec<Printed<'_>> = Vec::new();
        for matrix in &captured.matrices {
            for (row, line) in matrix.rows.iter().zip(&matrix.cells) {
                for (column, cell) in matrix.columns.iter().zip(line) {
                    cells.push(Printed { row, column, cell });
                }
            }
        }
        let topology = Topology::of(&captured.machine, &cells);
        Answers { captured, topology }
    }

    fn count(&self, kind: DeviceKind) -> String {
        self.topology.of_kind(kind).count().to_string()
    }

    fn route(&self, a: &str, b: &str) -> Option<&Route> {
        self.topology.route(self.topology.find(a)?, self.topology.find(b)?)
    }

    fn function(&self, address: &str) -> Option<&PciFacts> {
        self.captured.machine.function(address)
    }

    fn port(&self, name: &str) -> Option<&RdmaPort> {
        let mut all = self.captured.machine.nics.iter().flat_map(|nic| &nic.rdma);
        // The one of two ports that is up.
        all.find(|one| one.name == name)?.ports.last()
    }

    fn node_of(&self, name: &str) -> Option<u32> {
        match self.topology.find(name) {
            Some(at) => self.topology.devices[at].node,
            None => self.function(name)?.node,
        }
    }

    /// The answer to a question, as the expected files spell it; `?` where it is not known.
    fn answer(&self, question: &[&str]) -> String {
        let machine = &self.captured.machine;
        let gpu = |name: &str| {
            let number = name.strip_prefix("GPU").and_then(|number| number.parse().ok());
            let by_number = machine
                .gpus
                .iter()
                .find(|gpu| number.is_some() && gpu.index.known() == number.as_ref());
            let at = self.topology.find(name);
            let pci = at.and_then(|at| self.topology.devices[at].pci.first());
            let by_address =
                machine.gpus.iter().find(|gpu| pci.is_some() && gpu.pci.as_ref() == pci);
            by_address.or(by_number)
        };
        let found: Option<String> = match question {
            ["gpus"] => Some(self.count(DeviceKind::Gpu)),
            ["nics"] => Some(self.count(DeviceKind::Nic)),
            ["drives"] => Some(self.count(DeviceKind::Drive)),
            ["functions"] => Some(machine.pci.len().to_string()),
            ["numa"] => Some(machine.host.numa.nodes.len().to_string()),
            ["whole"] => Some(yes(machine.listed.nodes)),
            ["skipped"] => Some(yes(self.captured.texts.iter().any(|t| !t.skipped.is_empty()))),
            ["pair", a, b] => self
                .route(a, b)
                .and_then(|route| route.class.known().map(|class| class.name().to_owned())),
            ["links", a, b] => {
                self.route(a, b).and_then(|route| route.nvlinks.known().map(u32::to_string))
            }
            ["node", name] => self.node_of(name).map(|node| node.to_string()),
            ["cpus", name] => {
                let row = self.topology.affinity.iter().find(|row| row.gpu == *name);
                row.and_then(|row| row.cpus.as_ref()).map(|cpus| format_cpu_list(cpus))
            }
            ["near", name, "nics"] => {
                let row = self.topology.affinity.iter().find(|row| row.gpu == *name);
                row.map(|row| {
                    row.nics.iter().map(|near| near.name.as_str()).collect::<Vec<_>>().join(" ")
                })
            }
            ["pci", name] => {
                let at = self.topology.find(name);
                at.and_then(|at| self.topology.devices[at].pci.first().cloned())
            }
            ["name", name] => gpu(name).and_then(|gpu| gpu.name.known().cloned()),
            ["gen", name] => gpu(name).and_then(|gpu| {
                let link = gpu.pcie_most.known()?;
                let generation = gpuio_base::units::pcie_generation(link.mega_transfers?)?;
                Some(format!("{generation} {}", link.width?))
            }),
            ["model", name] => {
                let drive = machine.block.iter().find(|one| one.facts.name == *name);
                drive.and_then(|drive| drive.facts.model.clone())
            }
            other => return self.answer_on_parts(other),
        };
        found.unwrap_or_else(|| "?".to_owned())
    }

    /// As [`Answers::answer`], on ports, NUMA nodes and PCI functions.
    fn answer_on_parts(&self, question: &[&str]) -> String {
        let machine = &self.captured.machine;
        let numa =
            |node: &str| machine.host.numa.nodes.iter().find(|one| one.node.to_string() == node);
        let found: Option<String> = match question {
            ["rate", name] => self.port(name).and_then(|port| port.megabits).map(|m| m.to_string()),
            ["state", name] => self.port(name).and_then(|port| port.state.clone()),
            ["layer", name] => self.port(name).and_then(|port| port.carries).map(|carries| {
                let word = match carries {
                    LinkLayer::Infiniband => "infiniband",
                    LinkLayer::Ethernet => "ethernet",
                };
                word.to_owned()
            }),
            ["interface", name] => self.port(name).and_then(|port| port.interface.clone()),
            ["firmware", name] => {
                let mut all = machine.nics.iter().flat_map(|nic| &nic.rdma);
                all.find(|one| one.name == *name).and_then(|one| one.firmware.clone())
            }
            ["nodecpus", node] => numa(node).and_then(|node| node.cpus.as_ref()).map(|cpus| {
                if cpus.is_empty() { "none".to_owned() } else { format_cpu_list(cpus) }
            }),
            ["memory", node] => {
                numa(node).and_then(|node| node.total_bytes).map(|b| (b >> 20).to_string())
            }
            ["distance", from, to] => numa(from).and_then(|node| {
                let nodes = &machine.host.numa.nodes;
                let to = nodes.iter().position(|node| node.node.to_string() == *to)?;
                node.distances.as_ref()?.get(to).map(u32::to_string)
            }),
            ["parent", address] => self.function(address).and_then(|one| one.parent.clone()),
            ["root", address] => self.function(address).and_then(|one| one.host_bridge.clone()),
            ["class", address] => {
                self.function(address).and_then(|one| one.class).map(|class| format!("{class:06x}"))
            }
            ["ids", address] => self
                .function(address)
                .and_then(|one| Some(format!("{:04x}:{:04x}", one.vendor?, one.device?))),
            ["most", address] => self.function(address).and_then(|one| {
                Some(format!("{} {}", one.link_most.mega_transfers?, one.link_most.width?))
            }),
            other => panic!("no question like {other:?}"),
        };
        found.unwrap_or_else(|| "?".to_owned())
    }
}

fn yes(is: bool) -> String {
    if is { "yes".to_owned() } else { "no".to_owned() }
}

/// How many words of a line are the question.
const QUESTIONS: [(&str, usize); 4] = [("pair", 3), ("links", 3), ("near", 3), ("distance", 3)];

/// Right answers of all questions, and what is wrong.
fn judge(posted: &Posted) -> (usize, usize, Vec<String>) {
    let mut captured = Captured::default();
    let read = gpuio_capture::read(&posted.name, &posted.text, &mut captured);
    if posted.expected.trim() == "refused" {
        let wrong = read.is_ok().then(|| format!("{}: was to be refused", posted.name));
        return (usize::from(read.is_err()), 1, wrong.into_iter().collect());
    }
    let mut wrong = Vec::new();
    let (mut right, mut of) = (0, 0);
    if let Err(error) = &read {
        wrong.push(format!("{}: {error}", posted.name));
    }
    let answers = Answers::of(captured);
    for line in posted.expected.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let alone = ["gpus", "nics", "drives", "functions", "numa", "whole", "skipped"];
        let listed = QUESTIONS.iter().find(|(word, _)| *word == words[0]).map(|(_, count)| *count);
        let count = listed.unwrap_or(if alone.contains(&words[0]) { 1 } else { 2 });
        let answer = answers.answer(&words[..count]);
        let expected = words[count..].join(" ");
        of += 1;
        if answer == expected && read.is_ok() {
            right += 1;
        } else {
            wrong.push(format!("{}: {line}, not {answer}", posted.name));
        }
    }
    (right, of, wrong)
}

/// The score by text, as docs/lab-book/posted-texts.md prints it.
#[test]
fn the_score_is_the_one_in_the_documentation() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let (mut texts, mut whole, mut right_of_all, mut of_all) = (0, 0, 0, 0);
    for posted in all() {
        let source = posted.text.lines().next().unwrap().strip_prefix("# source: ").unwrap();
        let (right, of, errors) = judge(&posted);
        let (link, what) = source.split_once(" (").unwrap();
        let _ = writeln!(
            table,
            "| [{}]({link}) | {} | {right} of {of} |",
            posted.name,
            what.trim_end_matches(')')
        );
        wrong.extend(errors);
        texts += 1;
        whole += usize::from(right == of);
        right_of_all += right;
        of_all += of;
    }
    let score = format!(
        "**{whole} of {texts} texts are read right in every answer, {right_of_all} of {of_all} \
         answers are right.**"
    );
    let page = include_str!("../../../../docs/lab-book/posted-texts.md");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(page.contains(&score), "docs/lab-book/posted-texts.md lacks: {score}");
    for line in table.lines() {
        assert!(page.contains(line), "docs/lab-book/posted-texts.md lacks: {line}");
    }
}

/// Texts of one machine, in any order, make one machine; what they differ in is said.
#[test]
fn texts_merge_and_contradictions_are_shown() {
    let table = "|   0  NVIDIA A100-SXM4-40GB  On | 00000000:82:00.0 Off | Off |\n\
                 |   1  NVIDIA A100-SXM4-40GB  On | 00000000:C1:00.0 Off | Off |\n";
    let matrix = "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n\
                  GPU0\t X \tNV4\tSYS\t0-15\t0\nGPU1\tNV4\t X \tPIX\t16-31\t1\n";
    let list = "82:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n\
                c1:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n\
                c2:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n";
    let ports = "mlx5_0 port 1 ==> ib0 (Up)\n";
    let mut answers = BTreeMap::new();
    for order in [[table, matrix, list, ports], [ports, list, matrix, table]] {
        let mut captured = Captured::default();
        for (at, text) in order.iter().enumerate() {
            gpuio_capture::read(&at.to_string(), text, &mut captured).unwrap();
        }
        let all = Answers::of(captured);
        let answer = ["pci GPU1", "node GPU1", "links GPU0 GPU1", "pair GPU1 mlx5_0", "gpus"];
        let answer = answer.map(|q| all.answer(&q.split(' ').collect::<Vec<_>>()));
        *answers.entry(answer).or_insert(0) += 1;
    }
    let expected = ["0000:c1:00.0", "1", "4", "PIX", "2"].map(str::to_owned);
    assert_eq!(answers, BTreeMap::from([(expected, 2)]));
    let mut captured = Captured::default();
    for node in ["0", "1"] {
        let text = format!("82:00.0 3D controller: NVIDIA Corporation X\n\tNUMA node: {node}\n");
        gpuio_capture::read("t", &text, &mut captured).unwrap();
    }
    assert_eq!(captured.contradictions.len(), 1, "{:?}", captured.contradictions);
    assert!(captured.contradictions[0].contains("NUMA node 0 in one text, 1 in a later one"));
}

/// hwloc 3 has bits for kinds, models in `info`, and a matrix of NVLinks.
#[test]
fn hwloc_3_is_read() {
    let text = include_str!("../fixtures/hwloc-3.lstopo.xml");
    let mut captured = Captured::default();
    gpuio_capture::read("x", text, &mut captured).unwrap();
    let all = Answers::of(captured);
    for (question, expected) in [
        ("gpus", "2"),
        ("nics", "1"),
        ("drives", "1"),
        ("model nvme0n1", "SAMSUNG MZ"),
        ("name GPU1", "NVIDIA A100-SXM4-80GB"),
        ("links GPU0 GPU1", "12"),
        ("pci mlx5_0", "0000:03:00.0"),
        ("whole", "yes"),
    ] {
        assert_eq!(all.answer(&question.split(' ').collect::<Vec<_>>()), expected, "{question}");
    }
    assert_eq!(all.captured.machine.gpus[0].c2c, Fact::default());
}
