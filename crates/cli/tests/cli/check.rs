//! `gpuio check`: on this machine, and on small captured trees.

use std::fs;
use std::path::Path;

use crate::tool::{command, finish, scratch, words};

fn put(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A GPU on PCI and nothing else: no /run/udev.
fn gpu_without_udev(dir: &Path) {
    let device = "tree/sys/devices/pci0000:00/0000:00:01.0";
    for (file, text) in [("vendor", "0x10de\n"), ("device", "0x2330\n"), ("class", "0x030200\n")] {
        put(dir, &format!("{device}/{file}"), text);
    }
    let bus = dir.join("tree/sys/bus/pci/devices");
    fs::create_dir_all(&bus).unwrap();
    let aim = "../../../devices/pci0000:00/0000:00:01.0";
    std::os::unix::fs::symlink(aim, bus.join("0000:00:01.0")).unwrap();
    put(dir, "tree/sys/module/nvidia/version", "580.65.06\n");
    fs::create_dir_all(dir.join("tree/run")).unwrap();
    put(dir, "tree/proc/sys/kernel/osrelease", "6.8.0\n");
}

#[test]
fn a_failure_is_exit_code_1_in_text_and_json() {
    let dir = scratch();
    gpu_without_udev(dir.path());
    let ran = finish(command(dir.path()).args(words("check --from tree --only udev"))).exits(1);
    assert!(ran.out.starts_with("FAIL (1)\n  udev"), "{}", ran.out);
    assert!(ran.out.contains("5027"), "{}", ran.out);
    let line = "check --from tree --only udev,bar1 --format json";
    let page = finish(command(dir.path()).args(words(line))).exits(1).json();
    assert_eq!(page["findings"][0]["severity"], "fail");
    assert_eq!(page["findings"][1]["rule"], "bar1");
    let line = "check --from tree --skip udev";
    finish(command(dir.path()).args(words(line))).exits(0);
}

#[test]
fn this_machine_has_an_answer_from_each_rule() {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(words("check --format json")));
    assert!(ran.code == 0 || ran.code == 1, "{ran:#?}");
    let page = ran.json();
    let findings = page["findings"].as_array().unwrap();
    for rule in ["pcie-link", "io-uring", "p2pdma"] {
        assert!(findings.iter().any(|finding| finding["rule"] == rule), "{rule}: {page}");
    }
}

#[test]
fn a_rule_is_explained() {
    let dir = scratch();
    let ran = finish(command(dir.path()).args(words("check --explain sata-link"))).exits(0);
    assert!(ran.out.contains("300 MB/s"), "{}", ran.out);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let dir = scratch();
    let refused = |line: &str, says: &[&str]| {
        finish(command(dir.path()).args(words(line))).exits(2).says(says);
    };
    refused("check --only nosuch", &["--only nosuch", "pcie-link, sata-link"]);
    refused("check --skip nosuch", &["--skip nosuch"]);
    refused("check --explain nosuch", &["--explain nosuch"]);
    refused("check --only acs --skip acs", &["no rule"]);
    refused("check --format yaml", &["text, json"]);
    refused("check --from nowhere", &["--from nowhere"]);
}
