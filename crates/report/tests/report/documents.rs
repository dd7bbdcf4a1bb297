//! The documents that gpuio comes from, in facts and figures: which results, tables and misprints
//! are found in each, and nothing else that contradicts.

use std::collections::BTreeSet;

use gpuio_capture::Captured;
use gpuio_capture::machines::{self, Found, Text};
use gpuio_machine::flow::Figures;
use gpuio_machine::topo::{Printed, Topology};
use gpuio_report::post::{self, About, Known, Post, Statement};

macro_rules! machine {
    ($name:literal) => {
        include_str!(concat!("../../../capture/tests/fixtures/", $name))
    };
}

/// Texts of a host as commands with their outputs.
fn host(name: &str, outputs: &[(&str, &str)]) -> String {
    outputs.iter().map(|(command, text)| format!("{name}> {command}\n{text}\n")).collect()
}

fn dgx_2() -> String {
    let outputs = [
        ("lspci -tv", machine!("dgx-2.lspci-tv")),
        ("ls -l /dev/disk/by-path", machine!("dgx-2.by-path")),
        ("nvidia-smi --query-gpu=index --format=csv", machine!("dgx-2.query.csv")),
    ];
    host("dgx2", &outputs)
}

fn dgx_a100() -> String {
    let outputs = [
        ("lspci -tv", machine!("dgx-a100.lspci-tv")),
        ("ls -l /dev/disk/by-path", machine!("dgx-a100.by-path")),
        ("nvidia-smi --query-gpu=index --format=csv", machine!("dgx-a100.query.csv")),
    ];
    host("dgxa100", &outputs)
}

fn machines_of(text: &str) -> Vec<Found> {
    let text = Text { name: "guide".to_owned(), body: text.to_owned() };
    machines::read_all(&[text]).machines
}

/// A text with what follows from it, each host's machine being known by that host's lines.
fn held(text: &str) -> (Post, Vec<Statement>) {
    let post = post::read("guide", text);
    let figures = Figures::built_in();
    let machines: Vec<(Found, Topology)> = machines_of(text)
        .into_iter()
        .map(|found| {
            let topology = Topology::of(&found.captured.machine, &[] as &[Printed<'_>]);
            (found, topology)
        })
        .collect();
    let known: Vec<Known<'_>> = machines
        .iter()
        .map(|(found, topology)| Known {
            host: Some(&found.name),
            machine: &found.captured.machine,
            topology,
            figures: &figures,
        })
        .collect();
    let statements = post::hold(std::slice::from_ref(&post), &known);
    (post, statements)
}

/// The hosts of a post's runs.
fn hosts(post: &Post) -> BTreeSet<&str> {
    post.runs.iter().filter_map(|run| run.host.as_deref()).collect()
}

fn of(all: &[Statement], about: About) -> Vec<&str> {
    all.iter().filter(|one| one.about == about).map(|one| one.words.as_str()).collect()
}

/// Each mark is in the statement of its place, and there are no more statements.
fn has(all: &[Statement], about: About, marks: &[&str]) {
    let said = of(all, about);
    let listed = said.join("\n");
    assert_eq!(said.len(), marks.len(), "{about:?}:\n{listed}");
    for (words, mark) in said.iter().zip(marks) {
        assert!(words.contains(mark), "{mark:?} is not in {words:?}; all:\n{listed}");
    }
}

#[test]
fn torn_texts_are_read_as_far_as_they_go() {
    let whole = [
        include_str!("posts/dgx-2.txt"),
        include_str!("posts/nfs.txt"),
        include_str!("posts/ssd.txt"),
        include_str!("posts/zh.txt"),
    ];
    for text in whole {
        let places = (0..text.len()).filter(|at| text.is_char_boundary(*at));
        for at in places.step_by(421) {
            for torn in [&text[..at], &text[at..]] {
                let (post, all) = held(torn);
                let last = torn.lines().count();
                let mut lines = all.iter().flat_map(|one| &one.lines);
                assert!(lines.all(|line| (1..=last).contains(line)), "{torn}");
                assert!(post.runs.len() < 64);
            }
        }
    }
}

#[test]
fn the_guide_s_dgx_2() {
    let (post, all) = held(&(dgx_2() + include_str!("posts/dgx-2.txt")));
    assert_eq!((post.runs.len(), hosts(&post)), (10, BTreeSet::from(["dgx2"])));
    has(
        &all,
        About::Path,
        &[
            "none of 78.2 k I/Os of GPU 2 took the POSIX path",
            "not decided by what is here",
            "GPU 2 and nvme2n1 and nvme3n1 are below one switch",
            "through the memory of GPU 0, which is not the target: dcgmi dmon",
            "their XferType (path gds) is a request",
            "GPU 0 and nvme2n1 and nvme3n1 are below one switch",
            "63 of 64 bounce buffers of GPU 0 in use",
        ],
    );
    has(&all, About::Limit, &["100 % of what nvme2n1 and nvme3n1", "always had requests"]);
    has(
        &all,
        About::Contradiction,
        &[
            "shifted down by a row",
            "33554432 is probably meant",
            "2X is said of the latency; from the results it is 1.67 times",
            "-d 2 is explained as GPU 12",
            "27k writes-per-second: iostat has them as reads",
            "threads (128 and 64)",
            "gds_stats has 129 MiB/s, gdsio 108 MiB/s",
        ],
    );
    assert!(of(&all, About::Agreement).iter().any(|words| words.contains("6 rows agree")));
    has(
        &all,
        About::Compared,
        &[
            "From GPU 2 to GPU 12: 0.60 of the rate",
            "Rising up to the last step",
            "From GPU 0 to GPU 10: 0.06",
        ],
    );
    has(&all, About::Next, &["Decide the way", "GPU 0, through which cuFile sent the bytes"]);
}

#[test]
fn the_guide_s_dgx_a100() {
    let (post, all) = held(&(dgx_a100() + include_str!("posts/dgx-a100.txt")));
    assert_eq!(post.runs.len(), 2, "one of them in words alone");
    has(
        &all,
        About::Path,
        &["not decided", "GPU 7 and nvme8n1 and nvme9n1 are below one switch", "memory of GPU 6"],
    );
    has(&all, About::Contradiction, &["7.46GB/s is said of iostat; it has 7.36 GiB/s"]);
    has(&all, About::Limit, &["101 % of what nvme8n1 and nvme9n1", "always had requests"]);
}

#[test]
fn the_guide_s_nfs() {
    let (post, all) = held(include_str!("posts/nfs.txt"));
    assert_eq!((post.runs.len(), hosts(&post)), (9, BTreeSet::from(["nfs_client"])));
    has(&all, About::Path, &["their XferType (path gds)", "nvidia-fs counts 12.8 GiB/s"]);
    has(
        &all,
        About::Contradiction,
        &[
            "19% is said of the IOPS; from the results it is 11.3 %",
            "a latency of 137 µs, not 194us",
            "the data set is 64 x 1G",
            "block size (1M and 2M)",
            "3.4ms is 3.30 ms",
            "514365 I/Os of 2M are its data",
        ],
    );
    has(
        &all,
        About::Compared,
        &["0.89 of the rate", "0.71 of the rate", "GPU 0 and GPU 8 are not comparable"],
    );
}

#[test]
fn a_post_on_storage_for_deep_learning() {
    let (post, all) = held(include_str!("posts/ssd.txt"));
    assert_eq!(post.runs.len(), 13);
    has(&all, About::Path, &["9.5 times", "38.5 times", "3.9 times"]);
    has(
        &all,
        About::Limit,
        &[
            "91 % of the 572 MiB/s",
            "101 % of what sdb should deliver",
            "direct=1 is not set",
            "sdb always had requests",
            "26 % of the 383 MiB/s",
            "26 % of the 383 MiB/s",
            "iodepth has no effect",
            "100 % of what sdb should deliver",
            "38 % of the 352 MiB/s",
            "89 % of the 286 MiB/s",
            "libaio waits",
            "sda always had requests",
            "92 % of the 286 MiB/s",
        ],
    );
    has(
        &all,
        About::Contradiction,
        &[
            "engine psync, the result has libaio",
            "threads 1, the result has 4",
            "22061MB/sec is 21.5 GiB/s",
            "the text says 1.6GB/sec",
            "depth 32, the result has 128",
        ],
    );
}

#[test]
fn the_chinese_edition() {
    let text = dgx_2() + &dgx_a100() + include_str!("posts/zh.txt");
    let (post, all) = held(&text);
    assert_eq!((post.runs.len(), hosts(&post)), (13, BTreeSet::from(["dgx2", "nfs_client"])));
    let machines = machines_of(&text);
    let names: Vec<&str> = machines.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["dgx2", "dgxa100", "gpu01", "nfs_client"]);
    has(
        &all,
        About::Contradiction,
        &[
            "19% is said of the IOPS; from the results it is 11.3 %",
            "the data set is 64 x 1G",
            "block size (1M and 2M)",
            "3.4ms is 3.30 ms",
            "514365 I/Os of 2M are its data",
        ],
    );
    assert!(of(&all, About::Agreement).iter().any(|words| words.contains("6 rows agree")));
}

/// A result of gdsio with 1 MiB of block.
fn gdsio(threads: u32, ops: u32, gib: f64, us: f64, seconds: f64) -> String {
    let kib = ops * 1024;
    format!(
        "IoType: READ XferType: GPUD Threads: {threads} DataSetSize: {kib}/8388608(KiB) IOSize: \
         1024(KiB) Throughput: {gib:.6} GiB/sec, Avg_Latency: {us:.6} usecs ops: {ops} \
         total_time {seconds:.6} secs\n"
    )
}

#[test]
fn only_relations_that_hold_agree() {
    let (_, all) = held(&gdsio(8, 819_200, 12.92, 604.5, 61.9));
    has(&all, About::Agreement, &["1 result: I/Os x size are the data in 1, data / time"]);
    assert!(of(&all, About::Agreement)[0].contains("threads have in flight in 1"), "{all:?}");
    let (_, all) = held(&gdsio(8, 819_200, 12.92, 61.9, 61.9));
    has(&all, About::Contradiction, &["Latency x rate are 0.8 I/Os in flight, and 8 threads"]);
    has(&all, About::Agreement, &["data / time is the rate in 1."]);
    let (_, all) = held(&gdsio(8, 8192, 25.0, 604.0, 0.619));
    has(&all, About::Contradiction, &["Data / time is 12.9 GiB/s, the rate says 25.0 GiB/s"]);
    assert!(!of(&all, About::Agreement)[0].contains("time is the rate"), "{all:?}");
    let (_, all) = held(include_str!("fixtures/foreign/gdsio_runs_getting-started.txt"));
    has(&all, About::Limit, &["For 99.6 % of the threads' 7.06 ms", "For 98.8 %"]);
    assert!(!of(&all, About::Agreement)[0].contains("in flight"), "{all:?}");
    // gpuio's own lines may have more in flight than they have threads.
    let own = gdsio(1, 819_200, 12.92, 604.5, 61.9) + "# path: of the library\n";
    has(&held(&own).1, About::Contradiction, &[]);
}

#[test]
fn documents_without_results_say_nothing() {
    for text in [include_str!("posts/powerscale.txt"), include_str!("posts/slides.txt")] {
        let (post, all) = held(text);
        assert!(post.is_empty() && all.is_empty(), "{all:?}");
    }
    let mut captured = Captured::default();
    let text = include_str!("posts/powerscale.txt");
    gpuio_capture::read("report", text, &mut captured).unwrap();
    assert!(captured.machine.gdscheck.is_some(), "its gdscheck is read");
}
