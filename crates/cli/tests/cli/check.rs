//! `gpuio check`: on this machine, and on small captured trees.

use std::fs;
use std::path::Path;

use gpuio_testkit::tree::put;

use crate::tool::{command, finish, gpuio, scratch, words};

/// A GPU on PCI and nothing else: no /run/udev.
pub(crate) fn gpu_without_udev(dir: &Path) {
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

/// One list of formats for all verbs: each is printed, is what its name says, and ends with the
/// same code as text.
#[test]
fn what_verbs_say_has_every_format() {
    let dir = scratch();
    gpu_without_udev(dir.path());
    for verb in [
        "check --from tree --only udev",
        "why",
        "topo --from tree",
        "plan --from tree",
        "explain udev",
        "list",
        // Finished after the first time: then only the table is printed.
        "sweep --vary threads=1,2 --size 64k --bs 4k --runtime 20ms --repeats 1 -q",
    ] {
        let run = |format: &str| {
            let line = format!("{verb} --format {format}");
            finish(command(dir.path()).args(words(&line)))
        };
        let code = run("text").code;
        let starts = |format: &str, start: &str| {
            let ran = run(format).exits(code);
            assert!(ran.out.starts_with(start), "{verb} {format}: {}", ran.out);
        };
        starts("json", "{\n");
        starts("html", "<!doctype html>\n");
        starts("csv", "");
        let markdown = run("markdown").exits(code).out;
        assert!(markdown.contains("\n- ") || markdown.contains("| --- |"), "{verb}: {markdown}");
        run("yaml").exits(2).prints(&["formats are text, json, "]);
    }
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
    let same = finish(command(dir.path()).args(words("explain sata_link"))).exits(0);
    assert_eq!(same.out.trim_end(), ran.out.trim_end());
}

#[test]
fn a_warning_is_explained_by_the_name_in_its_brackets() {
    let dir = scratch();
    let explain = |words: &[&str]| finish(command(dir.path()).arg("explain").args(words));
    let ran = explain(&["[holes]"]).exits(0);
    for part in ["holes: Some bytes", "for example: ", "--directory", "hole_bytes: Bytes in holes"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let all = explain(&[]).exits(0);
    for name in ["  direct_but_cached ", "  software_gpu ", "  sata-link "] {
        assert!(all.out.contains(name), "{name}: {}", all.out);
    }
    let word = explain(&["of", "best"]).exits(0).out;
    assert!(word.contains("of best") && word.contains("best point of the sweep"), "{word}");
    let every = explain(&["--all"]).exits(0).out;
    for word in ["\n  of best ", "\n  group_reporting ", "\n  aqu-sz ", "\n  epoch "] {
        assert!(every.contains(word), "no {word}: {every}");
    }
    let two = explain(&["run_too_short", "other_traffic"]).exits(0).out;
    assert!(two.contains("run_too_short") && two.contains("\nother_traffic"), "{two}");
    explain(&["run_too_short", "nosuch"]).exits(2).prints(&["nosuch: "]);
    explain(&["nosuch"]).exits(2).prints(&["nosuch", "gpuio explain lists them"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let dir = scratch();
    let refused = |line: &str, says: &[&str]| {
        finish(command(dir.path()).args(words(line))).exits(2).prints(says);
    };
    refused("check --only nosuch", &["--only nosuch", "pcie-link, sata-link"]);
    refused("check --skip nosuch", &["--skip nosuch"]);
    refused("check --explain nosuch", &["--explain nosuch"]);
    refused("check --only acs --skip acs", &["no rule"]);
    refused("check --format yaml", &["text, json"]);
    refused("check --from nowhere", &["--from nowhere", "No such file"]);
}

fn mode<'v>(page: &'v serde_json::Value, name: &str) -> &'v serde_json::Value {
    let modes = page["verdict"]["modes"].as_array().unwrap();
    modes.iter().find(|mode| mode["mode"] == name).unwrap()
}

#[test]
fn a_mount_is_judged_and_proven_with_the_software_gpu() {
    let dir = scratch();
    let line = "check --mount . --gpu software --prove --only direct-io --format json";
    let page = finish(command(dir.path()).args(words(line))).exits(0).json();
    assert_eq!(mode(&page, "host")["works"], "yes");
    assert_eq!(mode(&page, "gpuio")["works"], "yes");
    assert_eq!(mode(&page, "nvidia-fs")["works"], "no");
    let runs = page["proof"]["runs"].as_array().unwrap();
    for run in &runs[..3] {
        assert_eq!(run["outcome"]["ran"]["verified"], true, "{run}");
    }
    assert_eq!(runs[1]["outcome"]["ran"]["data_path"]["route"]["kind"], "bounce_host");
    assert!(runs[3]["outcome"]["not_tried"].as_str().unwrap().contains("test double"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    let line = "check --mount . --gpu none --prove --only direct-io";
    let ran = finish(command(dir.path()).args(words(line))).exits(0);
    assert!(
        ran.out.contains("VERDICT for") && ran.out.contains("all bytes correct"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("staged     not run  no GPU was found"), "{}", ran.out);
}

#[test]
fn what_was_predicted_and_fails_is_exit_code_1() {
    let dir = scratch();
    let line = "check --mount . --gpu software --prove --only direct-io --format json";
    let mut command = command(dir.path());
    command.env("GPUIO_SOFT_GPUS", "0");
    let page = finish(command.args(words(line))).exits(1).json();
    let findings = page["findings"].as_array().unwrap();
    let proven: Vec<_> = findings.iter().filter(|finding| finding["rule"] == "prove").collect();
    assert_eq!(proven.len(), 2, "staged and gather: {page}");
    assert!(proven[0]["observed"].as_str().unwrap().starts_with("gpuio was predicted to work"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_captured_mount_has_a_verdict_and_cufile_json_its_places() {
    let dir = scratch();
    gpu_without_udev(dir.path());
    let mounts = "30 1 0:40 / /data rw - nfs4 filer:/x rw,vers=4.2,proto=rdma,addr=10.0.0.7\n";
    put(dir.path(), "tree/proc/self/mountinfo", mounts);
    let line = "check --from tree --mount /data/set --gpu 0 --only nfs-transport --format json";
    let page = finish(command(dir.path()).args(words(line))).exits(0).json();
    assert_eq!(page["verdict"]["mount_point"], "/data");
    assert_eq!(page["findings"][0]["locations"][0], "/data");
    assert_eq!(mode(&page, "rdma")["works"], "no", "nvidia_fs is not loaded");
    assert_eq!(mode(&page, "host")["works"], "yes");
    let text = "{\n  \"logging\": {},\n  \"properties\": { \"alow_compat_mode\": true }\n}";
    put(dir.path(), "cufile.json", text);
    let ran = finish(command(dir.path()).args(words("check --from cufile.json"))).exits(0);
    assert!(ran.out.contains("at: cufile.json:3:19"), "{}", ran.out);
    assert!(ran.out.contains("did you mean properties.allow_compat_mode?"), "{}", ran.out);
}

#[test]
fn mounts_and_gpus_that_are_not_there_are_refused() {
    let dir = scratch();
    gpu_without_udev(dir.path());
    let refused = |line: &str, says: &[&str]| {
        finish(command(dir.path()).args(words(line))).exits(2).prints(says);
    };
    refused("check --prove", &["--mount"]);
    refused("check --gpu 0", &["--mount"]);
    refused("check --mount nowhere", &["--mount nowhere", "existing path"]);
    refused("check --mount /proc/self", &["/proc/self", "proc"]);
    refused("check --mount . --gpu 99", &["--gpu 99", "software"]);
    refused("check --from tree --mount data", &["--mount data", "absolute path"]);
    refused("check --from tree --mount /data", &["/data", "no mount"]);
    refused("check --from tree --mount /data --prove", &["--prove"]);
}

#[test]
fn variables_go_before_the_file() {
    let dir = scratch();
    put(dir.path(), "mine.json", r#"{ "properties": { "force_compat_mode": false } }"#);
    let run = |forced: &str| {
        let mut command = command(dir.path());
        command.env("CUFILE_ENV_PATH_JSON", dir.path().join("mine.json"));
        command.env("CUFILE_FORCE_COMPAT_MODE", forced);
        finish(command.args(words("check --only compat-mode --format json"))).exits(0).json()
    };
    assert_eq!(run("1")["findings"][0]["locations"][0], "CUFILE_FORCE_COMPAT_MODE=1");
    assert_eq!(run("0")["findings"][0]["severity"], "info");
}

#[test]
fn the_first_line_says_whether_gds_is_on_for_the_data() {
    let dir = scratch();
    let text = "$ uname -r\n5.15.0-1-generic\n$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: \
                GPU-5a8c9a2e-0000-1111-2222-333344445555)\n$ mount\n/dev/nvme0n1p2 on / type ext4 \
                (rw)\n/dev/nvme1n1 on /data type xfs (rw)\n$ gdscheck -p\n NVMe               : \
                Unsupported\n NVMeOF             : Unsupported\n NFS                : Supported\n";
    fs::write(dir.path().join("post.txt"), text).unwrap();
    let first = |line: &str| gpuio(dir.path(), line).out.lines().next().unwrap().to_owned();
    let said = first("check --from post.txt");
    assert!(said.starts_with("GDS is off for /data (xfs) and "), "{said}");
    let why = gpuio(dir.path(), "why --from post.txt").exits(0).out;
    assert!(why.contains("GDS is off for /data (xfs)"), "{why}");
    assert!(why.contains("nvme1n1: NVMe, over PCIe or a network\n"), "{why}");
    let said = first("check --from post.txt --only iommu");
    assert!(!said.contains("GDS is"), "{said}");
}

/// A variable that decides the way of the bytes was understood, though no fact of a machine is in
/// its line.
#[test]
fn a_line_that_a_conclusion_rests_on_is_not_called_unread() {
    let dir = scratch();
    let text = "$ export CUFILE_ALLOW_COMPAT_MODE=true\n$ export PS1=x\n\
        $ gdsio -f /d/x -d 0 -w 4 -s 4G -i 1M -x 0 -I 0\n\
        IoType: READ XferType: GPUD Threads: 4 DataSetSize: 4194304/4194304(KiB) IOSize: \
        1024(KiB) Throughput: 3.1 GiB/sec, Avg_Latency: 1260.0 usecs ops: 4096 total_time 1.290 \
        secs\n$ gdscheck -p\n NVMe : Unsupported\n properties.use_compat_mode : false\n";
    fs::write(dir.path().join("post.txt"), text).unwrap();
    let page = words(&gpuio(dir.path(), "check --from post.txt").exits(0).out).join(" ");
    assert!(page.contains("CUFILE_ALLOW_COMPAT_MODE=true"), "{page}");
    let left = "not understood: 1 line (post.txt line 2 \"$ export PS1=x\").";
    assert!(page.contains(left), "{page}");
}

#[test]
fn results_in_a_text_are_held_against_each_other() {
    let dir = scratch();
    let text = "h> gdsio -D /d -d 0 -w 32 -s 1G -i 1M -x 0 -I 1 -T 120\n\
        IoType: WRITE XferType: GPUD Threads: 64 DataSetSize: 876086272/67108864(KiB) IOSize: \
        1024(KiB) Throughput: 6.962237 GiB/sec, Avg_Latency: 8976.802942 usecs ops: 855553 \
        total_time 120.004668 secs\n";
    fs::write(dir.path().join("post.txt"), text).unwrap();
    let ran = gpuio(dir.path(), "check --from post.txt").exits(1);
    for words in ["RESULTS IN THESE TEXTS (1)", "CONTRADICTIONS (1)", "another command ran"] {
        assert!(ran.out.contains(words), "{words}: {ran:#?}");
    }
    assert!(ran.out.ends_with("contradict each other: 1 above.\n"), "{ran:#?}");
    // Rules have nothing to say of a machine that is not in the text.
    assert!(!ran.out.contains("UNKNOWN"), "{ran:#?}");
    let json = gpuio(dir.path(), "check --from post.txt --format json").exits(1).json();
    let all = json["results"].as_array().unwrap();
    let one = all.iter().find(|one| one["about"] == "contradiction").unwrap();
    assert_eq!(one["lines"], serde_json::json!([1, 2]));
    let topo = gpuio(dir.path(), "topo --from post.txt").exits(0);
    assert!(topo.out.contains("Read from gdsio: no device"), "{topo:#?}");
    // A line that results are read from is understood, and words beside it are not.
    let edit = format!("{text}Edit: after a reboot it works\n");
    fs::write(dir.path().join("edit.txt"), edit).unwrap();
    let ran = gpuio(dir.path(), "check --from edit.txt").exits(1);
    assert!(ran.out.contains("Not understood: 1 line (edit.txt line 3 \"Edit: after"), "{ran:#?}");
    // Figures of another tool are named; limits are none of them.
    let ior = "Max Read:  9380.12 MiB/sec\nLnkCap: Exit Latency L1 <16us\n";
    fs::write(dir.path().join("ior.txt"), ior).unwrap();
    let wanted =
        ["the figures 9380.12 MiB/sec (line 1). Nothing", "if the text was cut or changed"];
    gpuio(dir.path(), "check --from ior.txt").exits(2).prints(&wanted);
}

/// The mean of two loads is the rate of neither, and the mean since boot is of no run.
#[test]
fn reports_of_iostat_that_differ_have_no_mean() {
    let dir = scratch();
    let report = |reads: &str, rate: &str, queue: &str| {
        format!("Device r/s rkB/s aqu-sz %util\nsdb {reads} {rate} {queue} 76.00\n\n")
    };
    let [small, large] =
        [report("26314.00", "105256.00", "0.76"), report("98170.00", "392680.00", "31.35")];
    let page = |text: String| {
        fs::write(dir.path().join("post.txt"), text).unwrap();
        words(&gpuio(dir.path(), "check --from post.txt").exits(0).out).join(" ")
    };
    let two = page(small.clone() + &large);
    assert!(two.contains("sdb 2 r/s 26314 to 98170"), "{two}");
    assert!(two.contains("%util 76") && !two.contains("is left out"), "{two}");
    let boot = page(report("0.18", "3.20", "0.00") + &small);
    assert!(
        boot.contains("sdb 1 r/s 26314,") && boot.contains("first report is left out"),
        "{boot}"
    );
}
