//! `gpuio plan`: this machine, the guides' servers, and job files that `gpuio bench` takes.

use std::fs;
use std::path::Path;

use crate::tool::{Ran, command, finish, scratch, words};
use gpuio_testkit::machines::{DGX_2, DGX_A100};
use gpuio_testkit::tree::{self, Tree};

#[track_caller]
fn plan(dir: &Path, line: &str) -> Ran {
    finish(command(dir).arg("plan").args(words(line)))
}

/// A plan of a server of the guides.
#[track_caller]
fn plan_of(table: &str, dir: &Path, line: &str) -> Ran {
    plan_from(&tree::build(table), dir, line)
}

/// The same of one that is built: that takes longer than the plan.
#[track_caller]
fn plan_from(tree: &Tree, dir: &Path, line: &str) -> Ran {
    finish(command(dir).arg("plan").arg("--from").arg(tree.path("")).args(words(line)))
}

/// NVIDIA's guide (5.1): mounts are named after the client's interfaces; ib0 is next to GPU 0 and
/// 1, ib1 to 2 and 3. Its own texts tell no route; `ip route` does, and then no note is needed.
#[test]
fn the_guides_mounts_go_to_the_gpus_near_their_cards() {
    let dir = scratch();
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/fixtures");
    let mount = |card: u32, net: u32| {
        format!(
            "192.168.{net}.10:/nfs on /mnt/nfs/ib{card}/data/0 type nfs \
             (rw,vers=3,proto=rdma,port=20049,addr=192.168.{net}.10)\n"
        )
    };
    let route = |card: u32, net: u32| format!("192.168.{net}.0/24 dev ib{card} scope link\n");
    fs::write(dir.path().join("mount"), mount(0, 9) + &mount(1, 8)).unwrap();
    fs::write(dir.path().join("route"), route(0, 9) + &route(1, 8)).unwrap();
    let of = |more: &[&str]| {
        let mut gpuio = command(dir.path());
        gpuio.args(["plan", "--format", "json", "--from"]);
        gpuio.args(["dgx-2-nfs.topo-mp", "dgx-2.ibdev2netdev"].map(|name| texts.join(name)));
        let ran = finish(gpuio.arg("mount").args(more)).exits(0);
        let plan = ran.json();
        let pairs = plan["pairs"].as_array().unwrap().clone();
        let given = pairs[..4].iter().map(|pair| {
            let store = &pair["stores"][0];
            let (nic, class) = (&store["nic"], &store["class"]);
            [&store["name"], nic, class].map(|v| v.as_str().unwrap_or("?").to_owned()).join(" ")
        });
        (given.collect::<Vec<_>>(), ran.out.contains("`ip route` would show"))
    };
    let near = |card: u32| format!("/mnt/nfs/ib{card}/data/0 mlx5_{card} PIX");
    let pairs = vec![near(0), near(0), near(1), near(1)];
    assert_eq!(of(&[]), (pairs.clone(), true));
    assert_eq!(of(&["route"]), (pairs, false));
}

#[test]
fn this_machine_has_an_answer() {
    let dir = scratch();
    // A machine may have no storage that could be used (a container): then 3, and the answer.
    let ran = plan(dir.path(), "--format json");
    assert!([0, 3].contains(&ran.code), "{ran:#?}");
    let json = ran.json();
    assert_eq!(json["gpuio_plan"], 1);
    let empty = json["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .all(|pair| pair["stores"].as_array().unwrap().is_empty());
    assert_eq!(ran.code, if empty { 3 } else { 0 });
    assert!(plan(dir.path(), "").out.starts_with("PAIRS (read, 1M)\n"));
}

/// The directory of the test itself is on some mount of this machine.
#[test]
fn a_job_file_of_this_machine_is_one_for_bench() {
    let dir = scratch();
    let here = dir.path().to_str().unwrap();
    let ran = plan(dir.path(), &format!("--mount {here} --bs 64k --rw randread --write job.ini"));
    if ran.code == 2 {
        // Mounts of this machine that are no block device's (overlayfs) are named all the same.
        panic!("{ran:#?}");
    }
    assert!(ran.out.contains("Job file: job.ini"), "{ran:#?}");
    let file = fs::read_to_string(dir.path().join("job.ini")).unwrap();
    assert!(file.contains(&format!("directory = {here}\n")), "{file}");
    assert!(file.contains("rw = randread\nbs = 64K\n"), "{file}");
    let bench = |line: &str| finish(command(dir.path()).arg("bench").args(words(line)));
    let gpus = file.contains("gpu = ");
    let line = if gpus { "job.ini --dry-run --gpu software" } else { "job.ini --dry-run" };
    let planned = bench(line).exits(0).out;
    assert!(planned.contains(&format!("directory = {here}\n")), "{planned}");
    assert!(planned.contains("rw = randread\nbs = 64K\n"), "{planned}");
}

#[test]
fn a_job_file_is_never_overwritten() {
    let dir = scratch();
    fs::write(dir.path().join("job.ini"), "mine").unwrap();
    let ran = plan_of(DGX_A100, dir.path(), "--output job.ini").exits(2);
    ran.prints(&["-o job.ini", "choose another name"]);
    assert_eq!(fs::read_to_string(dir.path().join("job.ini")).unwrap(), "mine");
}

/// All 16 sections, on as many software GPUs, with data here.
#[test]
fn job_files_of_the_guides_servers_are_some_for_bench() {
    let dir = scratch();
    for (table, gpus) in [(DGX_2, 16), (DGX_A100, 8)] {
        plan_of(table, dir.path(), "--write job.ini").exits(0);
        let text = fs::read_to_string(dir.path().join("job.ini")).unwrap();
        let soft =
            text.replace("gpu = ", "gpu = software:").replace("directory = /", "directory = ");
        fs::write(dir.path().join("job.ini"), soft).unwrap();
        let mut bench = command(dir.path());
        bench.env("GPUIO_SOFT_GPUS", gpus.to_string()).args(["bench", "job.ini", "--dry-run"]);
        let planned = finish(&mut bench).exits(0).out;
        for number in 0..gpus {
            assert!(planned.contains(&format!("[gpu{number}]")), "{planned}");
            assert!(planned.contains(&format!("file_prefix = gpuio-gpu{number}\n")), "{planned}");
        }
        assert!(!dir.path().join("raid").exists(), "a dry run made something");
        fs::remove_file(dir.path().join("job.ini")).unwrap();
    }
}

#[test]
fn what_should_be_reached_stands_beside_each_pair() {
    let dir = scratch();
    let server = tree::build(DGX_A100);
    let spec = "[drive SAMSUNG_MZWLJ3T8HBLS*]\nread = 7GB/s\n\
                read-iops = 1500k\nread-latency = 100us\nsource = a test\n";
    fs::write(dir.path().join("spec.ini"), spec).unwrap();
    let json = plan_from(&server, dir.path(), "--format json --spec spec.ini").exits(0).json();
    let pairs = json["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 8);
    let rate = |value: &serde_json::Value| value["bytes_per_s"].as_f64().unwrap();
    let sum: f64 = pairs.iter().map(|pair| rate(&pair["expected"]["expected"])).sum();
    assert!((rate(&json["total"]) / sum - 1.0).abs() < 1e-6);
    // Eight drives of 7 GB/s.
    assert!((rate(&json["total"]) / 56e9 - 1.0).abs() < 0.01, "{}", json["total"]);
    assert_eq!(pairs[0]["expected"]["by"], "host_memory");
    // The same drives in four arrays, below a switch with their GPUs.
    assert_eq!(json["regroup"][0]["expected"]["by"], "direct");
    assert!((rate(&json["regroup"][0]["expected"]["expected"]) / 56e9 - 1.0).abs() < 0.01);
    let line = "--format json --spec spec.ini --rw randread";
    let json = plan_from(&server, dir.path(), line).exits(0).json();
    let start = &json["pairs"][0]["start"];
    // An eighth of 12 million I/Os a second, each at least 100 us: 150 under way.
    let in_flight = start["in_flight"].as_u64().unwrap();
    assert!((300..330).contains(&in_flight), "{start}");
    assert!(start["why"].as_str().unwrap().starts_with("twice the "), "{start}");
    let text = plan_from(&server, dir.path(), "--spec spec.ini").exits(0).out;
    assert!(text.contains("\nEXPECTED ") && text.contains("limited by "), "{text}");
}

/// The page shows a real one.
#[test]
fn the_screen_of_the_page_is_what_is_printed() {
    let page = include_str!("../../../../docs/plan.md");
    let shown = page.split("```").find(|part| part.contains("PAIRS (read, 1M)")).unwrap();
    let out = plan_of(DGX_2, scratch().path(), "").exits(0).out;
    let mut lines = out.lines();
    for line in shown.lines().filter(|line| !line.is_empty() && line.trim() != "…") {
        assert!(lines.any(|printed| printed == line), "not printed, or not there: {line}\n{out}");
    }
}

#[test]
fn other_forms() {
    let dir = scratch();
    let server = tree::build(DGX_2);
    let job = plan_from(&server, dir.path(), "--gpu 0 --format job").exits(0).out;
    assert!(job.contains("[gpu0]\n") && job.contains("path = auto\ngpu = 0\n"), "{job}");
    let gdsio = plan_from(&server, dir.path(), "--gpu 0,3 --format gdsio").exits(0).out;
    assert!(
        gdsio.contains("gpu_dev_id=3\n") && gdsio.contains("directory=/raid/gpuio-gpu3\n"),
        "{gdsio}"
    );
    fs::write(dir.path().join("c.gdsio"), gdsio.replace("rw=read", "rw=write")).unwrap();
    let text = fs::read_to_string(dir.path().join("c.gdsio")).unwrap();
    fs::write(dir.path().join("c.gdsio"), text.replace("directory=/raid/", "directory=")).unwrap();
    let line = "gdsio c.gdsio --dry-run --gpu software";
    let mut gdsio = command(dir.path());
    finish(gdsio.env("GPUIO_SOFT_GPUS", "4").args(words(line))).exits(0);
}

#[test]
fn what_is_not_there_is_refused() {
    let dir = scratch();
    let server = tree::build(DGX_2);
    let refused = |line: &str, code| plan_from(&server, dir.path(), line).exits(code);
    refused("--gpu 99", 3).prints(&["--gpu 99: no such GPU", "GPU15"]);
    refused("--mount nowhere", 2).prints(&["--mount nowhere", "/raid"]);
    refused("--drive nvme3n1", 2).prints(&["part of md1"]);
    refused("--rw randrw", 2).prints(&["--rw randrw", "randwrite"]);
    refused("--bs 0", 2).prints(&["--bs 0"]);
    refused("--format svg", 2).prints(&["text, json, job, gdsio"]);
    refused("--spec missing", 2).prints(&["--spec missing"]);
    refused("--server speed=1", 2).prints(&["--server", "speed"]);
    plan(dir.path(), "--system missing").exits(2).prints(&["--system missing"]);
    plan(dir.path(), "--system a --gpu 0").exits(2);
}
