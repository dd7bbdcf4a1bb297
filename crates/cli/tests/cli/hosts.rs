//! `gpuio plan --hosts` and `gpuio check --hosts`: clients of Dell's report, one capture for each.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tool::{Ran, command, finish, scratch, words};
use gpuio_testkit::machines::R7525;
use gpuio_testkit::tree::{self, Tree};

/// The report's client with the mount of node `node`.
fn client(node: usize) -> String {
    R7525.replace("10.100.10.1", &format!("10.100.10.{node}"))
}

/// Captures as directories of trees, which live as long as the answer.
fn captures(dir: &Path, hosts: &[(&str, String)]) -> Vec<Tree> {
    fs::create_dir(dir.join("captures")).unwrap();
    let host = |(name, text): &(&str, String)| {
        let tree = tree::build(text);
        std::os::unix::fs::symlink(tree.path(""), dir.join("captures").join(name)).unwrap();
        tree
    };
    hosts.iter().map(host).collect()
}

fn clients(dir: &Path, count: usize) -> Vec<Tree> {
    let names: Vec<String> = (1..=count).map(|number| format!("worker{number:03}")).collect();
    let hosts: Vec<(&str, String)> =
        names.iter().zip(1..).map(|(name, node)| (name.as_str(), client(node))).collect();
    captures(dir, &hosts)
}

/// Checks that standard output has each of these.
#[track_caller]
fn shows(ran: &Ran, words: &[&str]) {
    for word in words {
        assert!(ran.out.contains(word), "no {word:?} in {}", ran.out);
    }
}

#[track_caller]
fn gpuio(dir: &Path, line: &str) -> Ran {
    finish(command(dir).args(words(line)))
}

fn gigabytes(expected: &Value) -> f64 {
    (expected["bytes_per_s"].as_f64().unwrap() / 1e8).round() / 10.0
}

#[test]
fn seven_clients_are_one_plan_with_the_sum_and_its_bottleneck() {
    let dir = scratch();
    let _trees = clients(dir.path(), 7);
    let server = "--bs 512k --server name=10.100.10.*,read=8.2GB/s,source=report";
    let ran = gpuio(dir.path(), &format!("plan --hosts captures {server}")).exits(0);
    shows(
        &ran,
        &[
            "HOSTS (7) worker001–worker007\n",
            "all 7 hosts:\n",
            "10.100.10.3:/ifs/benchmark",
            "all 7 hosts, each",
            "57.4 GB/s",
            "--host worker001:2,worker002:2",
            "-np 14",
        ],
    );
    assert_eq!(ran.out.matches("GPU0").count(), 1, "hosts that are alike stand once: {}", ran.out);
    let json = gpuio(dir.path(), &format!("plan --hosts captures --format json {server}"));
    let json = json.exits(0).json();
    assert_eq!(json["gpuio_plan_hosts"], 1);
    assert!((gigabytes(&json["total"]) - 57.4).abs() < 0.01, "{}", json["total"]);
    let hosts = json["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 7);
    for (number, host) in (1..).zip(hosts) {
        assert_eq!(host["host"], format!("worker{number:03}"));
        // Two GPUs share the node: half of it each.
        assert!((gigabytes(&host["plan"]["total"]) - 8.2).abs() < 0.01);
        assert!((gigabytes(&host["plan"]["pairs"][1]["expected"]["expected"]) - 4.1).abs() < 0.01);
        assert_eq!(host["mounts"][0]["source"], format!("10.100.10.{number}:/ifs/benchmark"));
        assert_eq!(host["mounts"][0]["nic"], "mlx5_0");
    }
    let bottleneck = json["total"]["bottleneck"].as_str().unwrap();
    assert!(bottleneck.contains("and 4 more: 8.20 GB/s read (report)"), "{bottleneck}");
    // One server for all of them: they share it.
    let line = "plan --hosts captures --format json --server read=24.6GB/s";
    let json = gpuio(dir.path(), line).exits(0).json();
    assert!((gigabytes(&json["total"]) - 24.6).abs() < 0.01);
}

/// 64 hosts: captures in tar files, one of them with a GPU less.
#[test]
fn hosts_that_differ_are_named() {
    let dir = scratch();
    let captures = dir.path().join("captures");
    fs::create_dir(&captures).unwrap();
    let tree = tree::build(R7525);
    let from = tree.path("");
    let from = from.to_str().unwrap();
    let line = format!("topo --from {from} --keep-addresses --capture captures/n1.tar");
    gpuio(dir.path(), &line).exits(0);
    for number in 2..=64 {
        fs::copy(captures.join("n1.tar"), captures.join(format!("n{number}.tar"))).unwrap();
    }
    // One GPU less, an older kernel, another mount option, and a card at half width.
    let other: Vec<&str> = R7525.lines().filter(|line| !line.contains("e1:00.0")).collect();
    let card = "a1:00.0 15b3:101d 020000 port=end link=16.0x16";
    let other =
        other.join("\n").replace("5.4.0-150-", "5.4.0-149-").replace("rsize=524288", "rsize=65536");
    let other = other.replace(card, "a1:00.0 15b3:101d 020000 port=end link=16.0x8");
    assert_ne!(other.matches("16.0x8").count(), 0);
    let tree = tree::build(&other);
    fs::remove_file(captures.join("n7.tar")).unwrap();
    std::os::unix::fs::symlink(tree.path(""), captures.join("n7")).unwrap();

    let ran = gpuio(dir.path(), "check --hosts captures");
    shows(&ran, &["HOSTS (64) n1–n64\n", "63 hosts: 5.4.0-150-generic; n7: 5.4.0-149"]);
    let (out, lines) = (&ran.out, ran.out.lines().count());
    let joined = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("PCIe lanes mlx5_0: 63 hosts: x16; n7: x8"), "{out}");
    assert!(joined.contains("GPU1: 63 hosts: NVIDIA A100 80GB PCIe; n7: absent"), "{out}");
    assert!(joined.contains("/mnt/f600_gdsio1 rsize: 63 hosts: 524288; n7: 65536"), "{out}");
    assert_eq!(out.matches("n7: absent").count(), 1, "GPU1 is missing once: {out}");
    assert_eq!(out.matches("why: Each request").count(), 1, "a reason stands once: {out}");
    assert!(out.find("DIFFERENCES").unwrap() < out.find("UNKNOWN").unwrap(), "{out}");
    assert!(lines < 110, "{lines} lines for 64 hosts: {out}");
    let json = gpuio(dir.path(), "check --hosts captures --format json").json();
    assert_eq!(json["schema"], "gpuio-check-hosts-v1");
    assert_eq!(json["hosts"].as_array().unwrap().len(), 64);
    let kernel = json["differences"].as_array().unwrap();
    let kernel = kernel.iter().find(|one| one["aspect"] == "kernel").unwrap();
    assert_eq!(kernel["values"][1]["hosts"], serde_json::json!(["n7"]));

    let ran = gpuio(dir.path(), "plan --hosts captures --format text").exits(0);
    shows(&ran, &["The hosts differ: 2 kinds of them.", "  63 hosts:\n", "  n7:\n", "-np 127"]);
    gpuio(dir.path(), "plan --hosts captures --write jobs.ini").exits(0);
    let file = fs::read_to_string(dir.path().join("jobs.ini")).unwrap();
    let header = file.lines().find(|line| line.starts_with("[place") && line.ends_with("/1]"));
    assert!(header.unwrap().contains("n6,n8"), "rank 1 is on all but n7: {file}");
    assert_eq!(file.matches("\n[place ").count(), 2, "{file}");
}

/// The job file of the plan, for this host and a rank of it.
#[test]
fn the_job_file_is_one_for_bench() {
    let dir = scratch();
    let uname = crate::tool::plain("uname").arg("-n").output().unwrap().stdout;
    let here = String::from_utf8(uname).unwrap().trim().to_owned();
    let _trees = captures(dir.path(), &[("worker002", client(2)), (&here, client(1))]);
    gpuio(dir.path(), "plan --hosts captures --write jobs.ini").exits(0);
    let file = fs::read_to_string(dir.path().join("jobs.ini")).unwrap();
    let local = file.replace("gpu = ", "gpu = software:").replace("= /mnt", "= mnt");
    assert_ne!(file, local);
    fs::write(dir.path().join("jobs.ini"), &local).unwrap();
    fs::create_dir_all(dir.path().join("mnt/f600_gdsio1")).unwrap();
    let bench = |name: &str| {
        let mut bench = command(dir.path());
        bench.env("GPUIO_SOFT_GPUS", "2").args(["bench", name, "--dry-run"]);
        finish(&mut bench)
    };
    let planned = bench("jobs.ini").exits(0);
    shows(&planned, &["directory = mnt/f600_gdsio1\n", "gpu = software:0\n", "[read]\n"]);
    fs::write(dir.path().join("other.ini"), local.replace(&here, "elsewhere")).unwrap();
    bench("other.ini").exits(2).prints(&["no [place] is for host", "rank 0 there"]);
}

#[test]
fn servers_of_captures_without_addresses_are_not_taken_for_the_same() {
    let dir = scratch();
    fs::create_dir(dir.path().join("captures")).unwrap();
    let tree = tree::build(R7525);
    let from = tree.path("");
    let from = from.to_str().unwrap();
    for host in ["a", "b"] {
        let line = format!("topo --from {from} --capture captures/{host}.tar");
        gpuio(dir.path(), &line).exits(0);
    }
    let ran = gpuio(dir.path(), "plan --hosts captures --server name=*.*,read=8GB/s").exits(0);
    shows(&ran, &["16.0 GB/s", "--keep-addresses keeps them"]);
    assert!(!ran.out.contains("10.100.10.1:"), "{}", ran.out);
    for host in ["a", "b"] {
        fs::remove_file(dir.path().join(format!("captures/{host}.tar"))).unwrap();
        let to = format!("--capture captures/{host}.tar --keep-addresses");
        gpuio(dir.path(), &format!("topo --from {from} {to}")).exits(0);
    }
    let ran = gpuio(dir.path(), "plan --hosts captures --server name=*.*,read=8GB/s").exits(0);
    shows(&ran, &["8.00 GB/s", "10.100.10.1:/ifs/benchmark"]);
    assert!(!ran.out.contains("keeps them"), "{}", ran.out);
}

#[test]
fn what_is_no_capture_is_named() {
    let dir = scratch();
    fs::create_dir(dir.path().join("captures")).unwrap();
    let refused = |line: &str, text: &str| gpuio(dir.path(), line).exits(2).prints(&[text]);
    refused("plan --hosts captures", "--hosts captures: it holds no capture");
    refused("check --hosts missing", "--hosts missing: ");
    fs::write(dir.path().join("captures/notes.txt"), "x").unwrap();
    refused("check --hosts captures", "notes.txt is no capture of a host");
    fs::remove_file(dir.path().join("captures/notes.txt")).unwrap();
    fs::write(dir.path().join("captures/a.tar"), "x").unwrap();
    refused("check --hosts captures", "--hosts captures/a.tar: ");
    fs::create_dir(dir.path().join("captures/a")).unwrap();
    refused("check --hosts captures", "are of one host");
    let _ = fs::remove_file(dir.path().join("captures/a.tar"));
    refused("check --hosts captures", "neither sys and proc nor the output of tools");
    refused("plan --hosts captures --from x", "cannot be used with");
    refused("plan --hosts captures --format gdsio", "for one host");
}
