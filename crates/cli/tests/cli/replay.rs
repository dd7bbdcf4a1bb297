//! `gpuio exec --record` and `gpuio replay`: a program is recorded, and its calls are made again.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gpuio_base::trace::write::{Frame, Source, header};
use gpuio_base::trace::{Call, End, Holes, Op, Trace, TraceFile, Within};
use serde_json::Value;

use crate::exec::{cc, compile};
use crate::record::n;
use crate::tool::{GPUIO, Ran, command, finish, scratch, words};

fn replay(dir: &Path, line: &str) -> Ran {
    finish(command(dir).arg("replay").args(words(line)))
}

fn write_trace(place: &Path, files: &[TraceFile], calls: &[Call], ends: bool) {
    let (mut bytes, mut frame) = (header().to_vec(), Frame::new());
    frame.program("wave", 1);
    (0..).zip(files).for_each(|(number, file)| frame.file(number, file));
    let mut source = Source::default();
    calls.iter().for_each(|call| frame.calls(0, source.encode(call).as_bytes()));
    if ends {
        frame.end();
    }
    frame.take(&mut bytes);
    std::fs::write(place, bytes).unwrap();
}

/// Two threads, one with batches, and a stream over a file with holes and one that is written.
fn mixed() -> (Vec<TraceFile>, Vec<Call>) {
    let holes = Holes::All(vec![16384..65536, 100_000..100_010, 983_040..1 << 20]);
    let sparse = TraceFile { size: 1 << 20, holes, ..TraceFile::default() };
    let written = TraceFile { size: 4096, ..TraceFile::default() };
    let unused = TraceFile { size: 1 << 40, ..TraceFile::default() };
    let call = |nth: u64, thread, within, bytes: u64, offset| Call {
        offset,
        bytes,
        result: bytes.cast_signed(),
        begin_ns: nth * 1000,
        duration_ns: 100 + nth % 7 * 100,
        thread,
        within,
        gpu: Some(0),
        ..Call::NONE
    };
    let mut calls: Vec<Call> =
        (0..64).map(|n| call(n, 0, Within::Thread, 16384, n % 64 * 16384)).collect();
    calls.extend((0..16).map(|n| call(n / 4 * 8, 1, Within::Batch(0), 4096, n * 8192)));
    calls.extend((0..16).map(|n| call(n * 3, 2, Within::Stream(1), 65536, n * 65536)));
    calls.extend((0..8).map(|n| Call {
        op: Op::Write,
        file: 2,
        ..call(100 + n, 3, Within::Thread, 32768, n * 32768)
    }));
    (vec![sparse, unused, written], calls)
}

#[track_caller]
fn is_exact(record: &Value, calls: (u64, u64, u64, u64)) {
    let (reads, read_bytes, writes, written) = calls;
    for (plan, job) in
        record["plan"]["jobs"].as_array().unwrap().iter().zip(record["jobs"].as_array().unwrap())
    {
        let (read, write) = (&job["read"], &job["write"]);
        assert_eq!((n(&read["ios"]), n(&read["bytes"])), (reads, read_bytes), "{job:#}");
        assert_eq!((n(&write["ios"]), n(&write["bytes"])), (writes, written), "{job:#}");
        assert_eq!(n(&job["replay"]["calls"]), reads + writes, "{job:#}");
        assert_eq!(n(&plan["replay"]["calls"]), reads + writes);
        let verify = &job["verify"];
        if verify.is_object() {
            assert_eq!((n(&verify["bad_blocks"]), n(&verify["failed"])), (0, 0), "{verify:#}");
            assert_eq!(verify["complete"], true);
        }
        assert_eq!(job["ended"], "complete");
    }
}

/// The bytes of all files of a directory that have gpuio's names, in the order of these.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("replay."))
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_trace_is_repeated_on_every_path_with_its_holes() {
    let dir = scratch();
    let (files, calls) = mixed();
    write_trace(&dir.path().join("t"), &files, &calls, true);
    let reads = (64 + 16 + 16, 64 * 16384 + 16 * 4096 + 16 * 65536, 8, 8 * 32768);
    let line = "t --directory d --gpu software --format json";
    let paths = "--path staged,gather,library,library-batch,library-stream";
    let record = replay(dir.path(), &format!("{line} {paths}")).exits(0).json();
    assert_eq!(record["jobs"].as_array().unwrap().len(), 5);
    is_exact(&record, reads);
    let plan = &record["plan"]["jobs"][0];
    assert_eq!((n(&plan["threads"]), n(&plan["depth"])), (3, 4), "{plan:#}");
    assert_eq!(plan["targets"].as_array().unwrap().len(), 2, "the unused file is not made");
    assert_eq!(n(&plan["replay"]["hole_bytes"]), 49152 + 10 + 65536);
    // Every byte of a call, once more after the clock: the file with the holes, and the other.
    assert_eq!(n(&record["jobs"][0]["verify"]["pass_bytes"]) % 4096, 0);
    assert_eq!(record["jobs"][0]["verify"]["subject"], "reads_and_writes");
    let first = contents(&dir.path().join("d"));
    assert_eq!(first.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), [1 << 20, 262_144]);
    let sparse = &first[0].1;
    let zeros = |range: std::ops::Range<usize>| sparse[range].iter().all(|byte| *byte == 0);
    assert!(zeros(16384..65536) && zeros(100_000..100_010) && zeros(983_040..1 << 20));
    assert!(!zeros(0..16384) && !zeros(65536..100_000));
    // Again, on another path and with another check: the same bytes.
    for more in [
        "--path host --gpu none",
        "--path staged --gpu software --bs 8k",
        "--path mapped --gpu software",
    ] {
        let line = format!("t --directory d {more} --verify inline --format json");
        let record = replay(dir.path(), &line).exits(0).json();
        let job = &record["jobs"][0];
        assert_eq!(n(&job["replay"]["calls"]), 104);
        assert_eq!((n(&job["read"]["bytes"]), n(&job["write"]["bytes"])), (reads.1, reads.3));
        assert_eq!((n(&job["verify"]["bad_blocks"]), n(&job["failed"])), (0, 0));
        assert_eq!(contents(&dir.path().join("d")), first);
    }
    // A path that only reads refuses a trace that writes.
    replay(dir.path(), "t --directory d --gpu software --path fan-out")
        .exits(2)
        .prints(&["only reads"]);
}

/// One byte changes between two runs, and nothing of the file says so.
#[test]
fn a_byte_that_is_wrong_is_found() {
    let dir = scratch();
    let (_, calls) = mixed();
    let whole = TraceFile { size: 1 << 20, ..TraceFile::default() };
    write_trace(&dir.path().join("t"), &[whole], &calls[..64], true);
    let line = "t --gpu software --directory d --format json";
    replay(dir.path(), line).exits(0);
    let path = dir.path().join("d/replay.0");
    let time = path.metadata().unwrap().modified().unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 70_000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 70_000).unwrap();
    file.set_modified(time).unwrap();
    for verify in ["pass", "inline"] {
        let record = replay(dir.path(), &format!("{line} --verify {verify}")).exits(1).json();
        let verify = &record["jobs"][0]["verify"];
        assert_eq!((n(&verify["bad_blocks"]), n(&verify["bad_words"])), (1, 1), "{verify:#}");
        assert_eq!(n(&verify["mismatches"][0]["offset"]), 70_000);
    }
    replay(dir.path(), &format!("{line} --verify off")).exits(0);
}

/// 1 ms of pause before each call, where pauses are kept.
#[test]
fn recorded_pauses_take_their_time() {
    let dir = scratch();
    let calls: Vec<Call> = (0..50)
        .map(|n| Call {
            offset: n * 4096,
            bytes: 4096,
            result: 4096,
            begin_ns: n * 1_000_100,
            duration_ns: 100,
            ..Call::NONE
        })
        .collect();
    let file = TraceFile { size: 50 * 4096, ..TraceFile::default() };
    write_trace(&dir.path().join("t"), &[file], &calls, false);
    let line = "t --gpu none --pace recorded --order threads -o r.json --quiet --no-watch \
                --no-stats-page";
    replay(dir.path(), line).exits(0);
    let saved = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&saved).unwrap();
    assert!(n(&record["jobs"][0]["last_done_ns"]) >= 49_000_000, "{record:#}");
    let plan = &record["plan"]["jobs"][0]["replay"];
    assert_eq!((&plan["order"], &plan["pace"]), (&"threads".into(), &"recorded".into()));
    assert!(plan["missing"].as_str().unwrap().contains("no end marker"), "{plan:#}");
    assert!(!dir.path().join("gpuio-scratch").exists());
    let text = finish(command(dir.path()).args(["show", "r.json"])).exits(0).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("replay: replay t (gpuio 2): 50 calls by wave, "), "{text}");
    assert!(text.contains("order threads, pace recorded"), "{text}");
    assert!(text.contains("made all 50 calls in"), "{text}");
    // All but 5 µs are pauses.
    let pauses = ", pauses included; 5.00 µs of it in calls)";
    assert!(text.contains(", recorded in 49.0 ms (") && text.contains(pauses), "{text}");
    assert!(text.contains("reads p50 / p99: recorded 100 ns / -, now "), "{text}");
    assert!(text.contains("recorded bytes: all of host memory; "), "{text}");
    let recorded = &plan["recorded_calls"];
    assert_eq!((n(&recorded["in_calls_ns"]), n(&recorded["read"]["p50_ns"])), (5000, 100));
    let words = ["show", "r.json", "--format", "summary"];
    let short = finish(command(dir.path()).args(words)).exits(0).out;
    let short = short.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(short.contains(": made all 50 calls in "), "{short}");
    assert!(short.contains(", recorded in 49.0 ms (") && short.contains(pauses), "{short}");
    assert!(!short.contains("fastest way") && !short.contains("Your storage"), "{short}");
    for format in ["markdown", "html"] {
        let words = ["report", "r.json", "-o", "-", "--format", format];
        let page = finish(command(dir.path()).args(words)).exits(0).out;
        // The answer on top, and all lines below.
        assert_eq!(page.matches("made all 50 calls in").count(), 2, "{page}");
        assert!(page.contains("reads p50 / p99: recorded 100 ns / -, now "), "{page}");
    }
}

#[test]
fn bad_traces_have_their_place() {
    let dir = scratch();
    let (files, calls) = mixed();
    let place = dir.path().join("t");
    write_trace(&place, &files, &calls, true);
    let good = std::fs::read(&place).unwrap();
    let with = |bytes: &[u8], line: &str| {
        std::fs::write(&place, bytes).unwrap();
        replay(dir.path(), line)
    };
    let mut newer = good.clone();
    newer[8] = 9;
    with(&newer, "t").exits(2).prints(&["t: byte 8: ", "version 9", "newer"]);
    let mut damaged = good.clone();
    damaged[40] ^= 0xff;
    let said = ["damaged at byte 12", "checksum", "nothing to replay"];
    with(&damaged, "t").exits(2).prints(&said);
    with(&good[..10], "t").exits(2).prints(&["t: byte 10: "]);
    // A cut file has lost its only frame.
    with(&good[..good.len() - 1], "t").exits(2).prints(&["cut at byte 12", "nothing to replay"]);
    with(b"fio version 2 iolog\na add\na wait -5\n", "t").exits(2).prints(&["line 3, column 8"]);
    with(b"fio version 7 iolog\n", "t").exits(2).prints(&["line 1, column 1", "version 7"]);
    with(b"PNG", "t").exits(2).prints(&["byte 0", "no trace"]);
    replay(dir.path(), "nowhere").exits(2).prints(&["nowhere", "can't be read"]);
    for more in ["--set size=1m", "--set threads=2", "--set filename=x", "--set runtime=1"] {
        with(&good, &format!("t {more}")).exits(2).prints(&["the trace says", "--set"]);
    }
}

#[test]
fn fio_s_traces_are_repeated() {
    let dir = scratch();
    let two: String = (0..32).map(|n| format!("/dev/x read {} 4096\n", n * 8192)).collect();
    let text = format!("fio version 2 iolog\n/dev/x add\n/dev/x open\n{two}/dev/x close\n");
    std::fs::write(dir.path().join("two"), text).unwrap();
    let line = "two --gpu software --path gather --depth 8 --dry-run";
    let plan = replay(dir.path(), line).exits(0).out;
    assert!(plan.contains("# two (fio 2): 32 calls, 128 KiB read"), "{plan}");
    assert!(plan.lines().any(|line| line == "depth = 8"), "{plan}");
    let line = line.replace("--dry-run", "--format json --directory d");
    let record = replay(dir.path(), &line).exits(0).json();
    is_exact(&record, (32, 32 * 4096, 0, 0));
    let three = "fio version 3 iolog\n0 f add\n1 f open\n5 f write 0 8192\n9 f read 4096 4096\n";
    std::fs::write(dir.path().join("three"), three).unwrap();
    let line = "three --gpu none --pace recorded --format json";
    is_exact(&replay(dir.path(), line).exits(0).json(), (1, 4096, 1, 8192));
}

/// Files that are not gpuio's are not touched.
#[test]
fn files_of_others_are_kept() {
    let dir = scratch();
    let (files, calls) = mixed();
    write_trace(&dir.path().join("t"), &files, &calls, true);
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("d/replay.1"), "mine").unwrap();
    replay(dir.path(), "t --directory d --gpu none").exits(2).prints(&["replay.1"]);
    assert_eq!(std::fs::read(dir.path().join("d/replay.1")).unwrap(), b"mine");
}

/// Flags of what is loaded, printed and saved do here what they do elsewhere.
#[test]
fn flags_of_every_run() {
    let dir = scratch();
    let (files, calls) = mixed();
    write_trace(&dir.path().join("t"), &files[..1], &calls[..64], true);
    replay(dir.path(), "t --gpu none --spec absent.spec").exits(2).prints(&["absent.spec"]);
    let server = "t --gpu none --server reed=1GB/s";
    replay(dir.path(), server).exits(2).prints(&["--server:1:1", "reed"]);
    let lib = "t --gpu software --path gds --cufile-lib /nowhere/libcufile.so.0";
    replay(dir.path(), lib).exits(3).prints(&["/nowhere/libcufile.so.0"]);
    let key = "t --gpu software --path gds --cufile-set properties.nonsense=1";
    replay(dir.path(), key).exits(2).prints(&["properties.nonsense"]);
    let text = replay(dir.path(), "t --gpu none --evidence --details").exits(0).out;
    assert!(text.contains("replay:\n"), "{text}");
    replay(dir.path(), "t --gpu none -o r.json --quiet").exits(0);
    replay(dir.path(), "t --gpu none -o r.json --quiet --force").exits(0);
    replay(dir.path(), "t --gpu none --serve nowhere:x").exits(2).prints(&["--serve"]);
}

/// Four threads that read in turn: each call after the one of the thread before.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include "cuda_driver.h"
#include "cufile.h"
enum { THREADS = 4, ROUNDS = 20, BYTES = 8192 };
static struct cuda_driver cuda;
static cuda_context context;
static CUfileHandle_t handle;
static cuda_address memory;
static pthread_barrier_t barrier;
static int failed;
static void *reads(void *argument) {
  long thread = (long)argument, round, turn;
  cuda.set_current(context);
  for (round = 0; round < ROUNDS; round++) {
    long at = (round * THREADS + thread) * BYTES;
    /* Even rounds in turn, odd ones together. */
    for (turn = 0; turn < THREADS; turn++) {
      if (turn == (round % 2 ? 0 : thread)) {
        if (cuFileRead(handle, (void *)(uintptr_t)memory, BYTES, at, thread * BYTES) != BYTES)
          failed = 1;
      }
      pthread_barrier_wait(&barrier);
    }
  }
  return NULL;
}
int main(int argc, char **argv) {
  char gpu[128];
  CUfileDescr_t descriptor;
  pthread_t threads[THREADS];
  long n;
  (void)argc;
  context = cuda_start(&cuda, 0, gpu);
  if (cuFileDriverOpen().err) return 4;
  memset(&descriptor, 0, sizeof descriptor);
  descriptor.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  descriptor.handle.fd = open(argv[1], O_RDWR);
  if (cuFileHandleRegister(&handle, &descriptor).err) return 5;
  if (cuda.alloc(&memory, THREADS * BYTES)) return 6;
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, reads, (void *)n);
  for (n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
  if (cuFileWrite(handle, (void *)(uintptr_t)memory, BYTES, 0, 0) != BYTES) return 7;
  return failed;
}
"#;

fn object(name: &str) -> PathBuf {
    let deps = Path::new(GPUIO).with_file_name("deps").join(name);
    if deps.is_file() { deps } else { Path::new(GPUIO).with_file_name(name) }
}

/// Runs the program under `exec --record` with these further flags.
fn record(dir: &Path, more: &str) -> Ran {
    let mut exec = command(dir);
    exec.env("GPUIO_CUFILE_DRIVER", object("libgpuio_softgpu.so")).arg("exec");
    finish(exec.args(words(more)).args(["--", "./program", "data"]))
}

#[test]
fn a_recorded_program_is_repeated() {
    let Some(cc) = cc() else { return };
    let dir = scratch();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let include = |place: &str| format!("-I{}", root.join(place).display());
    let libcufile = object("libcufile.so");
    let flags = [
        &include("crates/dropin/include"),
        &include("examples/c"),
        libcufile.to_str().unwrap(),
        "-lpthread",
        "-ldl",
    ];
    compile(&cc, &dir.path().join("program"), PROGRAM, &flags);
    std::fs::write(dir.path().join("data"), vec![7; 80 * 8192]).unwrap();
    record(dir.path(), "--record t").exits(0);
    record(dir.path(), "--record t").exits(2).prints(&["--record t", "is kept"]);
    record(dir.path(), "--record u --anonymous").exits(0);
    let read = |name: &str| -> Trace {
        gpuio_base::trace::read(&std::fs::read(dir.path().join(name)).unwrap()).unwrap()
    };
    let (named, anonymous) = (read("t"), read("u"));
    assert_eq!((named.end, named.calls.len(), named.lost), (End::Whole, 81, 0));
    assert!(named.files[0].path.as_ref().unwrap().ends_with("/data"));
    assert_eq!((&anonymous.files[0].path, &anonymous.program), (&None, &None));
    let before = std::fs::read(dir.path().join("data")).unwrap();
    for path in ["staged", "gather", "library", "gds"] {
        let line = format!("t --directory d --gpu software --path {path} --format json");
        let ran = replay(dir.path(), &line).exits(0).json();
        is_exact(&ran, (80, 80 * 8192, 1, 8192));
        // The threads of the even rounds waited for one another.
        assert_eq!(n(&ran["plan"]["jobs"][0]["threads"]), 4);
    }
    // The program's own file is as it left it.
    assert_eq!(std::fs::read(dir.path().join("data")).unwrap(), before);
}

/// There is no trace of a program without calls, and its user would look for it.
#[test]
fn a_program_without_calls_leaves_a_word_instead_of_a_trace() {
    let dir = scratch();
    // Its shell ends by exit(3), at which objects run their end.
    let run = |shell: &str| {
        let mut exec = command(dir.path());
        finish(exec.args(words("exec --record t -- bash -c")).arg(shell))
    };
    let ran = run("bash -c 'exit 3'; exit 3").exits(3);
    assert_eq!(ran.err.matches("no call of cuFile was made").count(), 1, "{ran:#?}");
    let ran = run("touch t").exits(0);
    assert!(!ran.err.contains("no trace"), "a process that it started may have made one: {ran:#?}");
}
