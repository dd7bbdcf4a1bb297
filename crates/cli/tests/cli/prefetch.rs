//! `gpuio prefetch`: pages that were evicted are in the page cache afterwards.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpuio_base::trace::write::{self, Frame, Source};
use gpuio_base::trace::{Call, TraceFile};
use gpuio_host::residency;

use crate::tool::{GPUIO, Scratch, TIMEOUT, command, finish, gpuio, other, plain, scratch, skip};

const MIB: u64 = 1 << 20;

/// Bytes of a file's range in the page cache.
fn cached(path: &Path, range: Range<u64>) -> u64 {
    let file = File::open(path).unwrap();
    residency::residency(&file, range.start, range.end - range.start).cached_bytes.unwrap()
}

/// A file that is not in the page cache; `None` where pages stay, as on tmpfs.
fn cold(path: &Path, bytes: u64) -> Option<PathBuf> {
    std::fs::write(path, vec![7; usize::try_from(bytes).unwrap()]).unwrap();
    residency::drop_cache(&File::open(path).unwrap()).unwrap();
    if cached(path, 0..u64::MAX) != 0 {
        skip("the page cache stays filled here");
        return None;
    }
    Some(path.to_owned())
}

/// A model of two files that its index names, and a third file.
fn model(dir: &Scratch) -> Option<[PathBuf; 3]> {
    let place = |name: &str| dir.path().join("model").join(name);
    std::fs::create_dir(dir.path().join("model")).unwrap();
    let index = r#"{"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}}"#;
    std::fs::write(place("model.safetensors.index.json"), index).unwrap();
    let file = |name: &str, bytes| cold(&place(name), bytes);
    Some([
        file("a.safetensors", 3 * MIB + 17)?,
        file("b.safetensors", MIB)?,
        file("c.safetensors", MIB)?,
    ])
}

#[test]
fn the_files_of_a_model_are_read_once() {
    let dir = scratch();
    let Some([a, b, c]) = model(&dir) else { return };
    let ran = gpuio(dir.path(), "prefetch model").exits(0).prints(&["c.safetensors"]);
    let words = "prefetch: 2 files, 4.00 MiB: 0 B cached already, 4.00 MiB read in ";
    assert!(ran.out.starts_with(words) && ran.out.lines().count() == 1, "{ran:?}");
    let all = 0..u64::MAX;
    assert_eq!((cached(&a, all.clone()), cached(&b, all.clone())), (3 * MIB + 17, MIB));
    assert_eq!(cached(&c, all), 0);
    let ran = gpuio(dir.path(), "prefetch model/a.safetensors model/b.safetensors").exits(0);
    let words = "prefetch: 2 files, 4.00 MiB: 4.00 MiB cached already, 0 B read\n";
    // The kernel may drop pages meanwhile, which are then read again.
    assert!(ran.out == words || !ran.out.contains(": 0 B cached already"), "{ran:?}");
}

#[test]
fn a_trace_has_what_was_read_and_its_order() {
    let dir = scratch();
    let Some(data) = cold(&dir.path().join("data"), 20 * MIB) else { return };
    let text = |path: &Path| Some(path.to_str().unwrap().to_owned());
    let traced = |name: &str, path: Option<String>| {
        let (mut frame, mut source) = (Frame::new(), Source::default());
        frame.program("serve", 1);
        frame.file(0, &TraceFile { path, size: 20 * MIB, ..TraceFile::default() });
        // The end of the file first; nothing is read by a call that failed, or of what a trace only
        // claims.
        for (offset, result, begin_ns) in [
            (100, 4096, 9),
            (16 * MIB + MIB / 2, 2 * 1_048_576, 5),
            (4 * MIB, -5, 7),
            (20 * MIB, 1 << 61, 8),
        ] {
            let call = Call { offset, bytes: 1 << 62, result, begin_ns, ..Call::NONE };
            frame.calls(0, source.encode(&call).as_bytes());
        }
        frame.end();
        let mut bytes = write::header().to_vec();
        frame.take(&mut bytes);
        std::fs::write(dir.path().join(name), bytes).unwrap();
    };
    traced("trace", text(&data));
    let ran = gpuio(dir.path(), "prefetch trace").exits(0);
    assert!(ran.out.contains("data, 4.00 MiB: 0 B cached already, 4.00 MiB read"), "{ran:?}");
    assert_eq!(cached(&data, 0..MIB), MIB);
    assert_eq!(cached(&data, 16 * MIB..19 * MIB), 3 * MIB);
    assert_eq!(cached(&data, 4 * MIB..12 * MIB), 0);
    traced("anonymous", None);
    gpuio(dir.path(), "prefetch anonymous").exits(2).prints(&["no names of files", "directory"]);
    traced("old", text(&dir.path().join("gone")));
    gpuio(dir.path(), "prefetch old").exits(2).prints(&["none of its files", "gone"]);
}

#[test]
fn exec_prefetches_while_the_program_runs() {
    let dir = scratch();
    let Some([a, ..]) = model(&dir) else { return };
    // Nothing that the program has to wait for was started for it.
    let program = "read kids < /proc/$$/task/$$/children; echo \"children: $kids\"; \
                   while ! grep -q 'cached already' err; do sleep 0.02; done; exit 7";
    let line = "exec \"$0\" exec --prefetch model -- sh -c \"$1\" 2> err";
    let mut shell = other(dir.path(), "sh");
    shell.args(["-c", line, GPUIO, program]).current_dir(dir.path());
    let ran = finish(&mut shell).exits(7);
    assert_eq!(ran.out.trim(), "children:", "{ran:?}");
    assert_eq!(cached(&a, 0..u64::MAX), 3 * MIB + 17);
    gpuio(dir.path(), "exec --prefetch gone -- true").exits(2).prints(&["gone", "--prefetch"]);
    gpuio(dir.path(), "exec --env --prefetch model").exits(2).prints(&["--prefetch"]);
}

#[test]
fn the_background_ends_with_a_process() {
    let dir = scratch();
    let Some([a, b, _]) = model(&dir) else { return };
    let mut ended = plain("true").spawn().unwrap();
    ended.wait().unwrap();
    let line = format!("prefetch model --while {}", ended.id());
    let ran = gpuio(dir.path(), &line).exits(0);
    let why = format!("4.00 MiB left out: stopped by the end of process {}", ended.id());
    assert!(ran.out.contains(&why), "{ran:?}");
    assert_eq!(cached(&a, 0..u64::MAX), 0);
    let err = File::create(dir.path().join("err")).unwrap();
    let mut background = command(dir.path());
    background.args(["prefetch", "--background", "model"]).stderr(err);
    let out = background.output().unwrap();
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let began = Instant::now();
    while !std::fs::read_to_string(dir.path().join("err")).unwrap().contains("MiB read in") {
        assert!(began.elapsed() < TIMEOUT, "it hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The kernel may have taken some pages already.
    assert!(cached(&b, 0..u64::MAX) > MIB / 2);
}

#[test]
fn what_is_no_file_is_refused() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(plain("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    for (path, why) in [
        ("gone", "No such file"),
        ("empty", "no file is in it"),
        ("pipe", "no regular file"),
        ("/dev/null", "no regular file"),
    ] {
        gpuio(dir.path(), &format!("prefetch {path}")).exits(2).prints(&[path, why]);
    }
}
