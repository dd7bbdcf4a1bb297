//! `--from` with what people send: directories, archives, several files, standard input, texts of
//! several machines.

use std::io::Write as _;
use std::process::Stdio;

use crate::tool::{Ran, command, file, finish, gpuio, other, scratch, wait, words};

const LSBLK: &str = "NAME    SIZE TYPE MODEL    MOUNTPOINT\nnvme0n1 3.5T disk SAMSUNG1 /data\n";
const MOUNTS: &str = "nas:/x /nas nfs4 rw,vers=4.2,proto=rdma,port=20049,addr=192.0.2.1 0 0\n";

/// Checks that standard output has each of these.
#[track_caller]
fn shows(ran: &Ran, words: &[&str]) {
    for word in words {
        assert!(ran.out.contains(word), "no {word:?} in {ran:#?}");
    }
}

#[test]
fn a_directory_is_read_whole_and_the_rest_is_listed_once() {
    let dir = scratch();
    let at = dir.path();
    std::fs::create_dir_all(at.join("bundle/storage")).unwrap();
    file(at, "bundle/storage/lsblk.txt", LSBLK);
    file(at, "bundle/mounts", MOUNTS);
    file(at, "bundle/README", "Sent by the customer.\n");
    std::fs::write(at.join("bundle/shot.png"), b"\x89PNG\r\n").unwrap();
    let ran = gpuio(at, "topo --from bundle").exits(0);
    shows(
        &ran,
        &[
            "nvme0n1",
            "SAMSUNG1",
            "/data",
            "/nas",
            "vers=4.2,proto=rdma,port=20049,addr=192.0.2.1",
            "Not understood: bundle/README: no output of a known tool; bundle/shot.png: a picture",
        ],
    );
    let mut tar = other(at, "tar");
    let tar = tar.current_dir(at).args(["-czf", "bundle.tar.gz", "bundle"]).status();
    assert!(tar.unwrap().success());
    let ran = gpuio(at, "topo --from bundle.tar.gz").exits(0);
    shows(&ran, &["SAMSUNG1", "/nas", "README"]);
    let ran = gpuio(at, "plan --from bundle --mount /nas").exits(0);
    shows(&ran, &["MOUNT COMMANDS", "mount -t nfs -o vers=4.2,proto=rdma,port=20049 nas:/x /nas"]);
    shows(&gpuio(at, "check --from bundle"), &["Read from cat /proc/mounts, lsblk", "README"]);
    std::fs::remove_dir_all(at.join("bundle/storage")).unwrap();
    std::fs::remove_file(at.join("bundle/mounts")).unwrap();
    let ran = gpuio(at, "topo --from bundle").exits(2);
    ran.prints(&["nothing of these files is understood", "README", "shot.png: a picture"]);
}

#[test]
fn standard_input_is_a_text() {
    let dir = scratch();
    let mut gpuio = command(dir.path());
    gpuio.args(words("topo --from -")).stdin(Stdio::piped());
    gpuio.stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = std::time::Instant::now();
    let mut child = gpuio.spawn().unwrap();
    child.stdin.take().unwrap().write_all(LSBLK.as_bytes()).unwrap();
    shows(&wait(child, began).exits(0), &["nvme0n1", "/data"]);
}

#[test]
fn each_machine_is_answered_and_one_is_picked_by_name() {
    let dir = scratch();
    let at = dir.path();
    let other = LSBLK.replace("SAMSUNG1", "INTEL001").replace("/data", "/bulk");
    file(at, "post.txt", &format!("joe@n1:~$ lsblk\n{LSBLK}joe@n2:~$ lsblk\n{other}"));
    let both = gpuio(at, "topo --from post.txt").exits(0);
    shows(&both, &["==== n1 ====", "SAMSUNG1", "==== n2 ====", "INTEL001"]);
    let one = finish(command(at).args(words("topo --from post.txt --machine n2"))).exits(0);
    assert!(!one.out.contains("SAMSUNG1") && one.out.contains("/bulk"), "{}", one.out);
    gpuio(at, "topo --from post.txt --format json")
        .exits(2)
        .prints(&["2 machines (n1, n2)", "--machine NAME"]);
    let _ = gpuio(at, "topo --from post.txt --machine n2 --format json").exits(0).json();
    gpuio(at, "topo --from post.txt --machine n3").exits(2).prints(&["n1, n2"]);
    shows(&gpuio(at, "plan --from post.txt").exits(0), &["==== n1 ====", "/bulk"]);
    let check = gpuio(at, "check --from post.txt");
    shows(&check, &["==== n2 ====", "==== n1, n2 ====", "DIFFERENCES (", "n1: SAMSUNG1"]);
    for line in ["plan --from post.txt --machine n2", "check --from post.txt --machine n2"] {
        let ran = gpuio(at, line);
        assert!(!ran.out.contains("====") && !ran.out.contains("SAMSUNG1"), "{}", ran.out);
    }
    let why = gpuio(at, "why --from post.txt --machine n2 --mount /bulk").exits(0);
    assert!(why.out.contains("/bulk") && !why.out.contains("===="), "{}", why.out);
}

#[test]
fn texts_without_a_name_are_of_the_machine_that_is_named() {
    let dir = scratch();
    let at = dir.path();
    let other = LSBLK.replace("SAMSUNG1", "INTEL001").replace("/data", "/bulk");
    file(at, "post.txt", &format!("joe@n1:~$ lsblk\n{LSBLK}joe@n2:~$ lsblk\n{other}"));
    file(at, "mounts.txt", MOUNTS);
    let both = gpuio(at, "topo --from post.txt mounts.txt").exits(0);
    shows(&both, &["Left out", "mounts.txt", "--machine"]);
    let one = gpuio(at, "topo --from post.txt mounts.txt --machine n2").exits(0);
    shows(&one, &["Read as of n2, since --machine names it: mounts.txt", "/nas", "/bulk"]);
}

#[test]
fn figures_and_logs_of_texts_are_shown() {
    let dir = scratch();
    let at = dir.path();
    let iostat = "Device            r/s     rkB/s  %util\nnvme2n1       1000.00 128000.00  99.00\n";
    let log = " 11-10-2023 15:49:50:24 [pid=1 tid=1] ERROR  cufio-fs:268 Unsupported block \
        device: /dev/dm-0\n";
    file(at, "iostat.txt", iostat);
    file(at, "cufile.log", log);
    let ran = gpuio(at, "check --from iostat.txt cufile.log");
    shows(
        &ran,
        &["MEASURED", "nvme2n1", "rkB/s 128000", "MESSAGES OF CUFILE", "does not take this kind"],
    );
    shows(&gpuio(at, "topo --from iostat.txt").exits(0), &["nvme2n1", "%util 99"]);
    shows(&gpuio(at, "list").exits(0), &["TEXTS", "mdadm --detail"]);
    let check = |nvme: &str| format!("GDS release version: 1.7\n NVMe : {nvme}\n");
    let mount = "/dev/nvme0n1 on /d type xfs (rw)\n";
    let both = format!("{}{}{mount}", check("Supported"), check("Unsupported"));
    file(at, "two.txt", &both);
    let differ = "gdscheck's reports (NVMe: Supported, then Unsupported;";
    for verb in ["why", "check", "topo", "plan"] {
        let said = gpuio(at, &format!("{verb} --from two.txt"));
        let said = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(differ), "{verb}: {said}");
    }
    let ports = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: \
                 200\n\t\tLink layer: InfiniBand\n";
    let diag = "| Diagnostic | Result |\n| PCIe | Fail - GPU: 3 |\n| Warning | Gen 3 |\n";
    file(at, "ports.txt", ports);
    file(at, "diag.txt", diag);
    let both = ["PORTS", "mlx5_0", "DOWN", "Polling", "200 Gb/s", "TESTS OF DCGM", "GPU: 3"];
    shows(&gpuio(at, "topo --from ports.txt diag.txt").exits(0), &both);
    let failed = gpuio(at, "check --from diag.txt").exits(1);
    shows(&failed, &["FAIL (1)", "dcgmi diag printed `PCIe: Fail`: Gen 3", "at: GPU: 3"]);
    file(at, "slides.txt", "# GPUs and storage\n- GDS reads 12.3 GB/s\n- POSIX 6.1 GB/s\n");
    gpuio(at, "check --from slides.txt")
        .exits(2)
        .prints(&["12.3 GB/s (line 2), 6.1 GB/s (line 3)"]);
}
