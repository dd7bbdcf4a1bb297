//! Traces of the calls that a program makes.

use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gpuio_base::trace::{Call, End, Op, Trace, Within};

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{
    Cufile, Entry, GOOD, alone, child, cuda, cufile, is_child, name, on_system, random_bytes,
};
use crate::file::{made, opened};
use crate::nvidia::stand_in;
use crate::stream::Kept;

/// Reads the trace of a test that ran with these further variables.
fn trace_of(test: &str, more: &[(&str, &str)], body: impl FnOnce()) -> Option<Trace> {
    if is_child(test) {
        body();
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let mut variables = vec![("GPUIO_CUFILE_RECORD", path.to_str().unwrap())];
    variables.extend_from_slice(more);
    let said = alone(test, &variables, || {});
    assert!(!said.contains("gpuio: "), "{said}");
    let trace = gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    Some(trace)
}

fn of(trace: &Trace, within: impl Fn(Within) -> bool) -> Vec<&Call> {
    trace.calls.iter().filter(|call| within(call.within)).collect()
}

#[test]
fn all_calls_with_their_threads_batches_and_streams() {
    let test = name(all_calls_with_their_threads_batches_and_streams);
    let trace = trace_of(test, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &random_bytes(1, 1 << 20)), 0);
        let handle = cufile.register(&file).unwrap();
        let base = cuda.room(1 << 20);
        std::thread::scope(|scope| {
            for thread in 0..3_i64 {
                let cufile = &cufile;
                scope.spawn(move || {
                    for nth in 0..100 {
                        let at = (thread * 100 + nth) * 1024;
                        assert_eq!(cufile.read(handle, base, 1024, at, at), 1024);
                    }
                });
            }
        });
        assert_eq!(cufile.write(handle, base, 4096, 8192, 0), 4096);
        assert_eq!(cufile.read(handle, base, 4096, (1 << 20) - 10, 0), 10);
        let batch = set_up(&cufile, 8).unwrap();
        let entry = |cookie: u64| Entry {
            mode: 1,
            base,
            file_offset: i64::try_from(cookie).unwrap() * 4096,
            buffer_offset: 0,
            len: 4096,
            handle,
            opcode: 0,
            cookie,
        };
        let mut entries: Vec<Entry> = (0..4).map(entry).collect();
        assert_eq!(submit(&cufile, batch, &mut entries), GOOD);
        assert_eq!(fetch(&cufile, batch, 4, 8, None).len(), 4);
        destroy(&cufile, batch);
        let mut stream = 0;
        // SAFETY: room for one stream.
        assert_eq!(unsafe { (cuda.cuStreamCreate)(&raw mut stream, 1) }, 0);
        let mut kept = Kept::new(65536, 131_072, 0);
        assert_eq!(kept.put(cufile.cuFileReadAsync, handle, base, stream), GOOD);
        // SAFETY: the test's stream.
        assert_eq!(unsafe { (cuda.cuStreamSynchronize)(stream) }, 0);
        cufile.deregister(handle);
    });
    let Some(trace) = trace else { return };
    assert_eq!((trace.end, trace.lost, trace.files.len()), (End::Whole, 0, 1));
    assert!(trace.files[0].path.as_ref().unwrap().ends_with("/data"), "{:?}", trace.files);
    assert_eq!(trace.files[0].size, 1 << 20);
    let alone = of(&trace, |within| within == Within::Thread);
    assert_eq!(alone.len(), 302);
    let mut threads: Vec<u32> = alone.iter().map(|call| call.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 4);
    for thread in &threads {
        let calls: Vec<_> = alone.iter().filter(|call| call.thread == *thread).collect();
        assert!(calls.is_sorted_by(|a, b| a.end_ns() <= b.begin_ns), "a thread's calls in turn");
        let reads = calls.iter().filter(|call| call.bytes == 1024);
        assert!(reads.map(|call| call.offset).is_sorted_by(|a, b| b - a == 1024));
    }
    let written = alone.iter().find(|call| call.op == Op::Write).unwrap();
    assert_eq!((written.offset, written.bytes, written.result), (8192, 4096, 4096));
    assert!(alone.iter().any(|call| (call.bytes, call.result) == (4096, 10)));
    let batch = of(&trace, |within| matches!(within, Within::Batch(_)));
    let mut offsets: Vec<u64> = batch.iter().map(|call| call.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 4096, 8192, 12288]);
    assert!(batch.iter().all(|call| call.begin_ns == batch[0].begin_ns));
    let stream = of(&trace, |within| matches!(within, Within::Stream(_)));
    assert_eq!((stream.len(), stream[0].offset, stream[0].result), (1, 131_072, 65536));
    assert!(trace.calls.iter().all(|call| call.gpu == Some(0)));
}

#[test]
fn an_anonymous_trace_has_no_names() {
    let test = name(an_anonymous_trace_has_no_names);
    let trace = trace_of(test, &[("GPUIO_CUFILE_RECORD_ANONYMOUS", "1")], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let handle = cufile.register(&file).unwrap();
        assert_eq!(cufile.read(handle, cuda.room(4096), 4096, 0, 0), 4096);
    });
    let Some(trace) = trace else { return };
    assert_eq!((trace.program, &trace.files[0].path, trace.calls.len()), (None, &None, 1));
}

#[test]
fn a_killed_program_leaves_what_it_did() {
    let test = name(a_killed_program_leaves_what_it_did);
    if is_child(test) {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 65536]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        // Goes on until the first calls are in the file: as long as it takes, and no longer.
        let path = std::env::var("GPUIO_CUFILE_RECORD").unwrap();
        let recorded =
            || gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap().calls.len();
        while recorded() == 0 {
            assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
            std::thread::sleep(Duration::from_millis(1));
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let variables = [("GPUIO_CUFILE_RECORD", path.to_str().unwrap())];
    let (status, output) = child(test, &variables);
    assert!(!status.success(), "{output}");
    let trace = gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap();
    assert!(!trace.calls.is_empty() && trace.end != End::Whole, "{:?} {output}", trace.end);
}

#[test]
fn calls_that_are_passed_on_are_recorded_too() {
    if on_system() {
        return;
    }
    let library = stand_in();
    let test = name(calls_that_are_passed_on_are_recorded_too);
    let variables = [("GPUIO_CUFILE", "nvidia"), ("GPUIO_CUFILE_LIB", library.as_str())];
    let trace = trace_of(test, &variables, || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &random_bytes(1, 1 << 20)), 0);
        let handle = cufile.register(&file).unwrap();
        let base = cuda.room(1 << 20);
        assert_eq!(cufile.read(handle, base, 4096, (1 << 20) - 10, 0), 10);
        assert_eq!(cufile.write(handle, base, 4096, 8192, 0), 4096);
        assert!(cufile.read(handle, base, 4096, -1, 0) < 0);
        let batch = set_up(&cufile, 8).unwrap();
        let entry = |cookie: u64| Entry {
            mode: 1,
            base,
            file_offset: i64::try_from(cookie).unwrap() * 4096,
            buffer_offset: 0,
            len: 4096,
            handle,
            opcode: 0,
            cookie,
        };
        assert_eq!(submit(&cufile, batch, &mut [entry(1), entry(2)]), GOOD);
        assert_eq!(fetch(&cufile, batch, 2, 8, None).len(), 2);
        destroy(&cufile, batch);
        cufile.deregister(handle);
    });
    let Some(trace) = trace else { return };
    let alone = of(&trace, |within| within == Within::Thread);
    let results: Vec<i64> = alone.iter().map(|call| call.result).collect();
    assert!(matches!(results[..], [10, 4096, failed] if failed < 0), "{results:?}");
    assert_eq!((alone[1].op, alone[1].offset, alone[1].gpu), (Op::Write, 8192, Some(0)));
    let batch = of(&trace, |within| matches!(within, Within::Batch(_)));
    assert_eq!(batch.iter().map(|call| call.offset).sum::<u64>(), 3 * 4096);
    assert!(trace.files[0].path.as_ref().unwrap().ends_with("/data"), "{:?}", trace.files);
}

/// Nobody waits for a trace that will not come.
#[test]
fn without_nvidia_s_library_nothing_is_recorded_and_that_is_said() {
    let test = name(without_nvidia_s_library_nothing_is_recorded_and_that_is_said);
    if is_child(test) {
        let _ = cufile().open();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let variables = [
        ("GPUIO_CUFILE_RECORD", path.to_str().unwrap()),
        ("GPUIO_CUFILE", "nvidia"),
        ("GPUIO_CUFILE_LIB", "/nowhere/libcufile.so.0"),
    ];
    let (_, output) = child(test, &variables);
    assert!(output.contains("no trace is recorded: NVIDIA's library was not found"), "{output}");
    assert!(!path.exists());
}

/// A limit of the size of files stands for a full disk: the program goes on, what was written can
/// be read, and both say that the end is missing.
#[test]
fn a_full_disk_ends_the_trace_and_not_the_program() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let test = name(a_full_disk_ends_the_trace_and_not_the_program);
    if is_child(test) {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 1 << 20]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        let path = std::env::var("GPUIO_CUFILE_RECORD").unwrap();
        let len = || std::fs::metadata(&path).unwrap().len();
        let mut offset = 0;
        let mut read_until = |end: u64| {
            while len() < end {
                offset = (offset + 12_345) % 1_000_000;
                assert_eq!(cufile.read(handle, base, 4096, offset, 0), 4096);
            }
        };
        // Calls are written together, on fast hardware many at once: the first are there whole.
        read_until(1000);
        // The thread that writes has all signals blocked, so that it gets an error. So far away
        // that no write can pass it before it holds.
        let end = len() + (256 << 10);
        setrlimit(Resource::Fsize, Rlimit { current: Some(end), maximum: None }).unwrap();
        read_until(end);
        for _ in 0..100 {
            assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let variables = [("GPUIO_CUFILE_RECORD", path.to_str().unwrap())];
    let (status, output) = child(test, &variables);
    assert!(status.success() && output.contains("the trace ends here"), "{output}");
    let trace = gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap();
    assert!(!trace.calls.is_empty() && trace.end != End::Whole, "{:?}", trace.end);
}

/// A program may have put its own data, a pipe that nothing reads or a full one at descriptor 2.
#[test]
fn what_the_program_has_at_descriptor_2_is_left_alone() {
    use std::io::Write as _;
    let test = name(what_the_program_has_at_descriptor_2_is_left_alone);
    let directory = tempfile::tempdir().unwrap();
    if is_child(test) {
        let (cuda, cufile) = (cuda(), cufile());
        let file = opened(&made(directory.path(), &[7; 1 << 20]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
        let data = directory.path().join("at-2");
        std::fs::write(&data, "header").unwrap();
        let (reads, mut pipe) = std::io::pipe().unwrap();
        let kind = std::env::var("AT_2").unwrap();
        let at_2: std::os::fd::OwnedFd = match kind.as_str() {
            "data" => std::fs::File::options().append(true).open(&data).unwrap().into(),
            "full" => {
                rustix::io::ioctl_fionbio(&pipe, true).unwrap();
                while pipe.write(&[0; 4096]).is_ok() {}
                rustix::io::ioctl_fionbio(&pipe, false).unwrap();
                pipe.into()
            }
            _ => pipe.into(),
        };
        if kind == "alone" {
            // SAFETY: the default; Rust's tests ignore it.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            drop(reads);
        }
        // A failed assertion is to be seen.
        std::panic::set_hook(Box::new(|why| println!("{why}")));
        // SAFETY: two open numbers; nothing here owns 2.
        assert_eq!(unsafe { libc::dup2(at_2.as_raw_fd(), 2) }, 2);
        // The trace can't go on, and the call after that would say so.
        std::fs::remove_file(std::env::var("GPUIO_CUFILE_RECORD").unwrap()).unwrap();
        for _ in 0..60 {
            assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(std::fs::read(&data).unwrap(), b"header");
        println!("untouched");
        return;
    }
    for kind in ["data", "full", "alone"] {
        let path = directory.path().join(kind);
        let variables = [("GPUIO_CUFILE_RECORD", path.to_str().unwrap()), ("AT_2", kind)];
        let (status, output) = child(test, &variables);
        assert!(status.success() && output.contains("untouched"), "{kind}: {status}, {output}");
    }
}

#[test]
fn refused_calls_are_in_the_trace_beside_the_others() {
    let test = name(refused_calls_are_in_the_trace_beside_the_others);
    let trace = trace_of(test, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        assert!(cufile.read(handle, base, usize::MAX, 0, 0) < 0);
        assert!(cufile.read(handle, base, 4096, -5, 0) < 0);
        assert!(cufile.read(handle, base, 4096, i64::MAX - 10, 0) <= 0);
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
    });
    let Some(trace) = trace else { return };
    let asked: Vec<_> = trace.calls.iter().map(|call| (call.offset, call.bytes)).collect();
    let far = [(-5_i64).cast_unsigned(), (i64::MAX - 10).cast_unsigned()];
    assert_eq!(asked, [(0, u64::MAX), (far[0], 4096), (far[1], 4096), (0, 4096)]);
    let moved: Vec<_> = trace.calls.iter().map(Call::moved).collect();
    assert_eq!((moved, trace.end), (vec![None, None, None, Some(0..4096)], End::Whole));
}

/// The calls that are made at the end: the library, a handle and memory.
static LAST: OnceLock<(Cufile, usize, u64)> = OnceLock::new();

/// Refused before a GPU is asked: the software GPU has no calls of threads that have ended.
fn read_last(at: i64) {
    let (cufile, handle, base) = LAST.get().unwrap();
    assert!(cufile.read(*handle, *base, usize::MAX, at, 0) < 0);
}

extern "C" fn read_at_exit() {
    read_last(32);
}

struct ReadAtThreadEnd;

impl Drop for ReadAtThreadEnd {
    fn drop(&mut self) {
        read_last(16);
    }
}

thread_local! {
    static READ_AT_THREAD_END: ReadAtThreadEnd = const { ReadAtThreadEnd };
}

#[test]
fn calls_of_threads_and_programs_that_end_are_in_the_trace() {
    let test = name(calls_of_threads_and_programs_that_end_are_in_the_trace);
    let trace = trace_of(test, &[], || {
        // Before the library's first call: what it registered then would run before this.
        // SAFETY: the function is the program's own.
        assert_eq!(unsafe { libc::atexit(read_at_exit) }, 0);
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let handle = cufile.register(&file).unwrap();
        let base = cuda.room(4096);
        assert!(LAST.set((cufile, handle, base)).is_ok());
        std::thread::spawn(|| {
            // Values of a thread end in the opposite order: the library's before this.
            READ_AT_THREAD_END.with(|_| read_last(0));
        })
        .join()
        .unwrap();
    });
    let Some(trace) = trace else { return };
    let mut offsets: Vec<_> = trace.calls.iter().map(|call| call.offset).collect();
    offsets.sort_unstable();
    assert_eq!((offsets, trace.end, trace.lost), (vec![0, 16, 32], End::Whole, 0));
}

#[test]
fn a_call_of_no_known_file_is_counted_and_not_anothers() {
    if on_system() {
        return;
    }
    let test = name(a_call_of_no_known_file_is_counted_and_not_anothers);
    if is_child(test) {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
        assert!(cufile.read(handle + 999, base, 4096, 0, 0) < 0);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let library = stand_in();
    let variables = [
        ("GPUIO_CUFILE_RECORD", path.to_str().unwrap()),
        ("GPUIO_CUFILE", "nvidia"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
    ];
    let said = alone(test, &variables, || {});
    assert!(said.contains("1 call is not in the trace: nothing shows which file"), "{said}");
    let trace = gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((trace.calls.len(), trace.lost, trace.end), (1, 1, End::Whole));
}

#[test]
fn a_lack_of_descriptors_passes() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let test = name(a_lack_of_descriptors_passes);
    let trace = trace_of(test, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        // The driver opens files of its own in first launches (CUDA 13.0, CUDA_LAUNCH_BLOCKING).
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
        // Several times as long as calls wait to be written.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(500) {
            assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
            std::thread::sleep(Duration::from_millis(1));
        }
        setrlimit(Resource::Nofile, before).unwrap();
        assert_eq!(cufile.read(handle, base, 1, 0, 0), 1);
    });
    let Some(trace) = trace else { return };
    assert_eq!((trace.calls.last().unwrap().bytes, trace.lost), (1, 0));
    assert!(trace.calls.len() > 1 && trace.end == End::Whole);
}

/// Otherwise its descriptors take the lowest number from the program, which may close or replace
/// them.
#[test]
fn the_writer_has_a_table_of_descriptors_of_its_own() {
    let test = name(the_writer_has_a_table_of_descriptors_of_its_own);
    // SAFETY: it gives this thread alone another table.
    let apart = || unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 2) };
    if std::thread::spawn(apart).join().unwrap() != 0 {
        eprintln!("SKIPPED: the system refuses a thread a table of descriptors of its own");
        return;
    }
    let trace = trace_of(test, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let file = opened(&made(directory.path(), &[7; 4096]), 0);
        let (handle, base) = (cufile.register(&file).unwrap(), cuda.room(4096));
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let is_writer = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm == "gpuio-record\n")
        };
        let writer = tasks.map(|task| task.unwrap().path()).find(is_writer).unwrap();
        let number = file.as_raw_fd().to_string();
        let is_open =
            |task: &std::path::Path| task.join("fd").join(&number).symlink_metadata().is_ok();
        assert!(is_open("/proc/self".as_ref()) && !is_open(&writer));
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
    });
    assert!(trace.is_none_or(|trace| trace.calls.len() == 1 && trace.end == End::Whole));
}

#[test]
fn a_trace_that_can_t_begin_leaves_no_empty_file() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let test = name(a_trace_that_can_t_begin_leaves_no_empty_file);
    if is_child(test) {
        // The live page can't be made either, and that is a signal.
        // SAFETY: no handler is given.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let before = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..before }).unwrap();
        let opened = cufile().open();
        setrlimit(Resource::Fsize, before).unwrap();
        assert_eq!(opened, GOOD);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    alone(test, &[("GPUIO_CUFILE_RECORD", path.to_str().unwrap())], || {});
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
