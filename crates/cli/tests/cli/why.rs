//! `gpuio why`: of this machine, of captured trees, and of programs that run.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::check::gpu_without_udev;
use crate::exec::{cc, compile};
use crate::stats::{LOAD, Run};
use crate::tool::{GPUIO, finish, gpuio, other, scratch, words};

#[test]
fn this_directory_has_an_answer() {
    let dir = scratch();
    let text = gpuio(dir.path(), "why").exits(0).out;
    let words = ["Bytes go\n", "NVIDIA's libcufile", "gpuio's libcufile", "\nEvidence\n", "Next: "];
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(text.lines().any(|line| line.contains("GDS")), "{text}");
    let page = gpuio(dir.path(), "why --mount . --gpu software --format json").exits(0).json();
    assert_eq!(page["schema"], "gpuio-why-v1");
    assert!(page["overview"].is_null(), "one mount was named");
    let answer = &page["answer"];
    assert_eq!(answer["gds"], "no");
    assert!(answer["conclusion"].as_str().unwrap().contains("software GPU"), "{answer}");
    assert_eq!(answer["ways"][1]["mode"], "gpuio");
}

#[test]
fn another_machine_is_answered_from_its_files() {
    let dir = scratch();
    gpu_without_udev(dir.path());
    let mounts = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                  21 1 259:0 / /data rw,noatime - xfs /dev/nvme0n1 rw\n\
                  22 1 0:40 / /far rw - nfs filer:/x rw,proto=tcp,addr=10.0.0.7\n";
    std::fs::create_dir_all(dir.path().join("tree/proc/self")).unwrap();
    std::fs::write(dir.path().join("tree/proc/self/mountinfo"), mounts).unwrap();
    let text = gpuio(dir.path(), "why --from tree").exits(0).out;
    assert!(text.contains("/data") && text.contains("/far"), "a table of all mounts: {text}");
    let page = gpuio(dir.path(), "why --from tree --mount /data/x --format json").exits(0).json();
    assert_eq!(page["answer"]["gds"], "no");
    assert_eq!(page["answer"]["mount_options"], "rw,noatime");
    let udev = page["answer"]["evidence"].as_array().unwrap();
    assert!(udev.iter().any(|one| one["about"] == "udev" && one["met"] == "no"), "{udev:#?}");
    gpuio(dir.path(), "why --from tree --gpu 7").exits(2).prints(&["no such GPU"]);
    for verb in ["why", "check"] {
        let typo = gpuio(dir.path(), &format!("{verb} --from tree --mount /dta/x")).exits(2);
        typo.prints(&["no mount but / holds this path", "/data"]);
    }
    gpuio(dir.path(), "why --from tree --mount /").exits(0);
    // A path is taken for one wherever it stands.
    for line in ["why /data/x --from tree", "why --from tree --file /data/x"] {
        let page = gpuio(dir.path(), &format!("{line} --format json")).exits(0).json();
        assert_eq!(page["answer"]["mount_options"], "rw,noatime", "{line}");
    }
    gpuio(dir.path(), "why .").exits(0);
}

#[test]
fn what_can_not_be_answered_is_refused() {
    let dir = scratch();
    gpuio(dir.path(), "why 0").exits(2);
    gpuio(dir.path(), "why 1 --mount /").exits(2);
    gpuio(dir.path(), "why . --mount /").exits(2);
    gpuio(dir.path(), "why 1 --gpu 0").exits(2).prints(&["the number of a process"]);
    gpuio(dir.path(), "why gone").exits(2).prints(&["gone"]);
    gpuio(dir.path(), "why --format yaml").exits(2).prints(&["text, json"]);
    gpuio(dir.path(), "why --mount gone").exits(2).prints(&["--mount gone"]);
    gpuio(dir.path(), "why --mount /proc").exits(2).prints(&["holds no data"]);
    let mut blocks = std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten();
    let node = blocks.find_map(|one| {
        let node = std::path::Path::new("/dev").join(one.file_name());
        node.exists().then_some(node)
    });
    if let Some(node) = node {
        let line = format!("why --mount {}", node.display());
        gpuio(dir.path(), &line).exits(2).prints(&["it is a block device", "gpuio bench"]);
    }
    // Beyond the largest number that the kernel gives.
    gpuio(dir.path(), "why 4194305").exits(3).prints(&["4194305", "none of this number"]);
}

#[test]
fn a_run_of_gpuio_is_answered_by_its_live_page() {
    let dir = scratch();
    let load = LOAD.replace("--path host", "--path staged --gpu software");
    let run = Run::start(dir.path(), &load);
    let text = gpuio(dir.path(), &format!("why {}", run.pid())).exits(0).out;
    assert!(text.contains("all of it through host memory"), "{text}");
    assert!(text.contains("software GPU 0: "), "{text}");
    assert!(text.contains("data/gpuio.0"), "{text}");
}

/// Prints a line, waits for one, reads a file into GPU memory through libcufile, again and again,
/// and prints a line after the first.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
struct answer { int code, cuda; };
struct descriptor { int kind; unsigned long fd; const void *operations; };
#define F(library, name, type) __typeof__(type) name = (__typeof__(type))dlsym(library, #name)
int main(int argc, char **argv) {
  void *cuda = dlopen(argv[1], RTLD_NOW), *cufile = dlopen(argv[2], RTLD_NOW);
  if (!cuda || !cufile) { puts(dlerror()); return 1; }
  F(cuda, cuInit, int (*)(unsigned));
  F(cuda, cuDevicePrimaryCtxRetain, int (*)(void **, int));
  F(cuda, cuCtxSetCurrent, int (*)(void *));
  F(cuda, cuMemAlloc_v2, int (*)(unsigned long *, unsigned long));
  F(cufile, cuFileHandleRegister, struct answer (*)(void **, struct descriptor *));
  F(cufile, cuFileRead, long (*)(void *, unsigned long, unsigned long, long, long));
  void *context, *handle;
  unsigned long memory;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 2;
  if (cuMemAlloc_v2(&memory, 65536)) return 3;
  puts("mapped"); fflush(stdout); getchar();
  struct descriptor file = {1, open(argv[3], O_RDONLY), 0};
  if (cuFileHandleRegister(&handle, &file).code) return 4;
  for (int at = 0; at < 60000; at++) {
    if (cuFileRead(handle, memory, 65536, 0, 0) != 65536) return 5;
    if (!at) { puts("reads"); fflush(stdout); }
    usleep(10000);
  }
  return 0;
}
"#;

/// Runs a program under a filter that forbids io_uring_setup(2), as those of containers do.
const FILTER: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 90;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 91;
  execv(argv[1], argv + 1);
  return 92;
}
"#;

/// No setting shows it: a ring was tried, also for a capture.
#[test]
fn a_filter_that_forbids_rings_is_seen_and_named() {
    if let Err(why) = gpuio_io::path::rings_available() {
        return eprintln!("SKIPPED: {why}");
    }
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let program = dir.path().join("filter");
    compile(&cc, &program, FILTER, &[]);
    let filtered = |line: &str| {
        let mut command = other(dir.path(), &program);
        finish(command.current_dir(dir.path()).arg(GPUIO).args(words(line)))
    };
    let line = "why --mount . --gpu software --format json";
    let way = |page: serde_json::Value| page["answer"]["ways"][3].clone();
    let (with, without) = (way(filtered(line).exits(0).json()), gpuio(dir.path(), line).exits(0));
    assert_eq!((&with["with"], &with["mode"]), (&"path initiated".into(), &().into()));
    let said = with["words"].as_str().unwrap();
    assert!(said.starts_with("not here: a seccomp filter forbids io_uring"), "{said}");
    assert!(said.contains("allow io_uring_setup"), "{said}");
    let free = way(without.json());
    assert!(!free["words"].as_str().unwrap().contains("seccomp"), "{free}");
    let check = "check --only io-uring --format json";
    let found = |ran: crate::tool::Ran| ran.exits(0).json()["findings"][0].clone();
    assert_eq!(found(gpuio(dir.path(), check))["severity"], "pass");
    filtered("topo --capture filtered.tar").exits(0);
    let captured = gpuio(dir.path(), &format!("{check} --from filtered.tar"));
    for found in [found(filtered(check)), found(captured)] {
        assert_eq!(found["severity"], "warn", "{found}");
        assert!(found["observed"].as_str().unwrap().contains("seccomp"), "{found}");
    }
}

/// A child that ends with the test.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_on_gpuios_libcufile_is_answered_by_what_it_has_and_moved() {
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let built = |name: &str| Path::new(GPUIO).with_file_name("deps").join(name);
    let (program, data) = (dir.path().join("client"), dir.path().join("data"));
    compile(&cc, &program, PROGRAM, &["-ldl"]);
    std::fs::write(&data, vec![7_u8; 65536]).unwrap();
    let json = crate::tool::file(dir.path(), "cufile.json", "{}");
    let mut command = other(dir.path(), &program);
    command.arg(built("libgpuio_softgpu.so")).arg(built("libcufile.so")).arg(&data);
    command.env("GPUIO_CUFILE_DRIVER", built("libgpuio_softgpu.so"));
    command.env("CUFILE_ENV_PATH_JSON", &json).env_remove("GPUIO_CUFILE");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Client(pipes.spawn().unwrap());
    let pid = client.0.id();
    let mut lines = BufReader::new(client.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "mapped");
    let text = gpuio(dir.path(), &format!("why {pid}")).exits(0).out;
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("it has made no call of cuFile yet"), "{text}");
    assert!(words.contains("requests unknown: a live page alone counts their sizes"), "{text}");
    assert!(words.contains(&format!("gpuio stats {pid} --level 3 --interval 1s")), "{text}");
    assert!(!text.contains("gds_stats"), "{text}");
    let mut start = client.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut start, b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "reads");
    let text = gpuio(dir.path(), &format!("why {pid}")).exits(0).out;
    assert!(text.contains("GDS is off. gpuio's libcufile moved "), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains(" requests software GPU 0: "), "{text}");
    assert!(words.contains(" in flight on average, pauses included"), "{text}");
    let page = gpuio(dir.path(), &format!("why {pid} --format json")).exits(0).json();
    let process = &page["process"];
    assert_eq!(process["gds"], "no");
    let libraries = process["process"]["libraries"]["known"].as_array().unwrap();
    let ours = |one: &&serde_json::Value| one["path"].as_str().unwrap().contains("/libcufile.so");
    let ours = libraries.iter().find(ours).unwrap();
    assert_eq!(ours["made_by"]["known"], "gpuio");
    let moved = process["page"]["known"]["moved"].as_array().unwrap();
    assert!(moved.iter().any(|one| one["gpu"] == 0 && one["read_bytes"].as_u64() > Some(0)));
    let files = process["process"]["files"]["known"].as_array().unwrap();
    let name = data.canonicalize().unwrap();
    let name = name.to_str().unwrap();
    assert!(files.iter().any(|file| file["path"] == name && file["reads"] == true), "{files:#?}");
    let variables = &process["process"]["environment"]["known"];
    assert_eq!(variables["CUFILE_ENV_PATH_JSON"], json.to_str().unwrap());
}
