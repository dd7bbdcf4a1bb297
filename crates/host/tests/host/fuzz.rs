//! Hostile and broken machines: every file that facts are read from, changed at random.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use gpuio_host::{Entry, MOST_BYTES, Root, Tree, machine};
use gpuio_record::facts::{Machine, ReadProblem};
use gpuio_testkit::machines::{DGX_STATION, R7525};
use gpuio_testkit::on_cpu;
use gpuio_testkit::tree;
use proptest::prelude::*;

/// The files of two servers: between them each reader has something to read.
static NOTED: LazyLock<[Tree; 2]> = LazyLock::new(|| {
    [DGX_STATION, R7525].map(|table| {
        let tree = tree::build(table);
        let (root, recorder) = tree.root().recording();
        assert!(machine::read(&root).problems.is_empty());
        recorder.tree()
    })
});

fn files(tree: &Tree) -> Vec<(PathBuf, Vec<u8>)> {
    let files = tree.entries().filter_map(|(path, entry)| match entry {
        Entry::File(bytes) => Some((path.to_owned(), bytes.clone())),
        _ => None,
    });
    files.collect()
}

/// One way to break a file.
#[derive(Debug, Clone)]
enum Harm {
    Flip(prop::sample::Index, u8),
    CutLine(prop::sample::Index),
    DoubleLine(prop::sample::Index),
    Truncate(prop::sample::Index),
    Nul(prop::sample::Index),
    NotUtf8(prop::sample::Index),
    Replace(Vec<u8>),
    LongLine(usize),
    Number(String),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Flip(at, byte)),
        at().prop_map(Harm::CutLine),
        at().prop_map(Harm::DoubleLine),
        at().prop_map(Harm::Truncate),
        at().prop_map(Harm::Nul),
        at().prop_map(Harm::NotUtf8),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Harm::Replace),
        (1usize..200_000).prop_map(Harm::LongLine),
        "(-1|0|255|0x|4294967296|18446744073709551616|1e9|99999 GT/s|0-4000000000|1:2:3|/\\.\\.)"
            .prop_map(Harm::Number),
    ]
}

impl Harm {
    fn done_to(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let lines = || -> Vec<&[u8]> { bytes.split_inclusive(|byte| *byte == b'\n').collect() };
        let some = |at: &prop::sample::Index, count: usize| at.index(count.max(1));
        match self {
            Harm::Flip(at, byte) if !out.is_empty() => {
                let at = at.index(out.len());
                out[at] ^= byte;
            }
            Harm::CutLine(at) => {
                let mut lines = lines();
                if !lines.is_empty() {
                    lines.remove(some(at, lines.len()));
                }
                out = lines.concat();
            }
            Harm::DoubleLine(at) => {
                let mut lines = lines();
                if !lines.is_empty() {
                    let at = some(at, lines.len());
                    lines.insert(at, lines[at]);
                }
                out = lines.concat();
            }
            Harm::Truncate(at) => out.truncate(some(at, bytes.len())),
            Harm::Nul(at) => out.insert(some(at, bytes.len()).min(bytes.len()), 0),
            Harm::NotUtf8(at) => out.insert(some(at, bytes.len()).min(bytes.len()), 0xff),
            Harm::Replace(new) => out.clone_from(new),
            Harm::LongLine(length) => out = b"x7,".repeat(length / 3 + 1),
            Harm::Number(word) => out = word.clone().into_bytes(),
            Harm::Flip(..) => {}
        }
        out
    }
}

/// Problems name their file, and the line where one is not understood.
fn problems_have_their_place(machine: &Machine) -> Result<(), TestCaseError> {
    for ReadProblem { path, line, message } in machine.problems.iter().chain(&machine.host.problems)
    {
        prop_assert!(path.starts_with('/'), "{path}");
        let understood = !message.contains("expected");
        prop_assert!(understood || line.is_some_and(|line| line >= 1), "{path}: {message}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 300,
        ..ProptestConfig::default()
    })]

    /// A few files broken: facts are read, and what is not understood is said.
    #[test]
    fn broken_files_never_panic(
        which in 0usize..2,
        harms in prop::collection::vec((any::<prop::sample::Index>(), harm()), 1..12),
    ) {
        let mut tree = NOTED[which].clone();
        let files = files(&tree);
        for (at, harm) in &harms {
            let (path, bytes) = at.get(&files);
            tree.put(path, Entry::File(harm.done_to(bytes)));
        }
        let start = on_cpu();
        let machine = machine::read(&Root::of(tree));
        problems_have_their_place(&machine)?;
        let spent = on_cpu() - start;
        prop_assert!(spent < Duration::from_secs(20), "{spent:?}");
    }

    /// Links that lead elsewhere, files where directories were.
    #[test]
    fn broken_links_never_panic(
        harms in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..6),
    ) {
        let noted = &NOTED[0];
        let paths: Vec<PathBuf> = noted.entries().map(|(path, _)| path.to_owned()).collect();
        let mut tree = noted.clone();
        for [at, to] in &harms {
            let (from, to): (&PathBuf, &PathBuf) = (at.get(&paths), to.get(&paths));
            let up = "../".repeat(from.components().count() - 1);
            tree.put(from, Entry::Link(Path::new(&up).join(to)));
        }
        problems_have_their_place(&machine::read(&Root::of(tree)))?;
    }
}

/// The files that have many lines, each as long as a kernel file may be: hostile lines that are
/// understood, and ones that are not.
#[test]
fn the_longest_files_end_soon() {
    let line = |text: &str| text.repeat(usize::try_from(MOST_BYTES).unwrap() / text.len());
    for (path, lines) in [
        ("proc/self/mountinfo", "36 25 0:60 / /raid rw - nfs 10.0.0.1:/x rw,addr=10.0.0.1\n"),
        ("proc/self/mountinfo", "36 35 98:0 / "),
        ("proc/self/cgroup", "4:memory:/a/b/c\n"),
        ("proc/cpuinfo", "flagsx : y\n"),
        ("proc/cpuinfo", ":"),
        ("proc/meminfo", "MemTotalx: 1 kB\n"),
        ("proc/net/route", "eno1\t000A4D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"),
        ("proc/net/fib_trie", "|-- 10.0.0.1\n"),
        ("sys/devices/system/cpu/online", "0,"),
        ("sys/devices/system/cpu/online", "0-1048575,"),
        ("sys/devices/system/node/node0/cpulist", "1,"),
        ("sys/devices/system/node/node0/distance", "10 "),
        ("proc/cmdline", "pci=realloc "),
        ("proc/driver/nvidia/params", "a: 1\n"),
        ("boot/config-4.4.0-104-generic", "CONFIG_NUMA=y\n"),
    ] {
        let mut tree = NOTED[0].clone();
        tree.put(Path::new(path), Entry::File(line(lines).into_bytes()));
        let start = on_cpu();
        let machine = machine::read(&Root::of(tree));
        problems_have_their_place(&machine).unwrap();
        let spent = on_cpu() - start;
        assert!(spent < Duration::from_secs(20), "{path}: {spent:?}");
    }
}

#[test]
fn a_file_of_a_gib_is_refused_and_a_pipe_does_not_wait() {
    let tree = tree::Tree::new();
    tree.file("proc/cpuinfo", "");
    let file = std::fs::OpenOptions::new().write(true).open(tree.path("proc/cpuinfo")).unwrap();
    file.set_len(1 << 30).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    let pipe = tree.path("proc/meminfo");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let start = Instant::now();
    let machine = machine::read(&tree.root());
    // Nobody would ever write into the pipe.
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    let problem = machine.host.problems.iter().find(|one| one.path.ends_with("cpuinfo")).unwrap();
    assert!(problem.message.contains("longer than 16 MiB"), "{problem:?}");
}

#[test]
fn more_devices_than_a_machine_has_are_a_problem() {
    let mut tree = Tree::default();
    for number in 0..5000 {
        let path = format!("sys/class/net/eth{number}/mtu");
        tree.put(Path::new(&path), Entry::File(b"1500\n".to_vec()));
    }
    let machine = machine::read(&Root::of(tree));
    let problem = machine.problems.iter().find(|one| one.path == "/sys/class/net").unwrap();
    assert!(problem.message.contains("4096 devices at most"), "{problem:?}");
}
