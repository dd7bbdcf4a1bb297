//! Recording of a program's calls as a trace (`GPUIO_CUFILE_RECORD`, docs/replay.md).
//!
//! A call is put into a ring of its thread when it has ended; a thread of ours takes it out and
//! appends it to the file. Where the ring is full the call is counted as lost, in the trace and on
//! standard error at the end: no call of the program ever waits for the recording. The first call
//! of a thread makes its ring, under a lock; registering a file takes another.
//!
//! The file is made when the driver is first opened, under a name that nothing has, and opened anew
//! for each write: no descriptor of ours stays open in the program, which may close any. A child of
//! `fork(2)` is not recorded: it has no driver, and its parent's trace goes on. A program that it
//! executes is a process like any other, with a trace of its own.

mod facts;
mod ring;
mod sink;

use std::cell::{Cell, OnceCell};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_base::trace::write::Source;
use gpuio_base::trace::{Call, TraceFile, Within};

use crate::environment;
use crate::fork;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::thread_number;
use ring::Ring;
use sink::Sink;

/// Between two looks of the writer: while calls come, and while none do.
const BUSY: Duration = Duration::from_millis(5);
const IDLE: Duration = Duration::from_millis(20);
/// Most rings at a time, so that memory is bounded: each has 128 KiB. Calls of further threads are
/// counted as lost.
const RINGS_MOST: usize = 512;
/// How long the end of the program may wait for a write that is under way.
const LAST_NS: u64 = 1_000_000_000;

/// A call's file, and the thread, batch or stream that it is ordered in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) file: u32,
    pub(crate) thread: u32,
    pub(crate) within: Within,
}

impl Origin {
    /// The origin of a call that this thread makes.
    pub(crate) fn here(file: u32, within: Within) -> Origin {
        Origin { file, thread: u32::try_from(thread_number()).unwrap_or(u32::MAX), within }
    }
}

struct Recorder {
    /// The fork generation of the process that records.
    generation: u32,
    /// `CLOCK_MONOTONIC` at the beginning.
    began_ns: u64,
    is_anonymous: bool,
    rings: Mutex<Vec<Arc<Ring>>>,
    /// Rings that were ever made.
    sources: AtomicU32,
    files: Mutex<Files>,
    batches: AtomicU32,
    /// Calls of threads that were ending, or that were too many.
    lost: AtomicU64,
    /// Recording has ended: no call is put in any more.
    is_over: AtomicBool,
    /// Empty once recording has ended.
    sink: Mutex<Option<Sink>>,
}

/// Files by device and inode; those that the trace does not name yet.
#[derive(Debug, Default)]
struct Files {
    known: std::collections::BTreeMap<(u64, u64), u32>,
    new: Vec<(u32, TraceFile)>,
}

static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();

/// A thread's ring, closed when the thread ends.
struct ThreadRing {
    ring: Arc<Ring>,
    source: Cell<Source>,
}

impl ThreadRing {
    fn put(&self, call: &Call) {
        if self.ring.fits() {
            let mut source = self.source.get();
            self.ring.put(&source.encode(call));
            self.source.set(source);
        }
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        self.ring.close();
    }
}

thread_local! {
    static RING: OnceCell<ThreadRing> = const { OnceCell::new() };
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's recorder, if it has one.
#[inline]
fn recorder() -> Option<&'static Recorder> {
    let recorder = RECORDER.get()?.as_ref()?;
    let is_on =
        recorder.generation == fork::generation() && !recorder.is_over.load(Ordering::Relaxed);
    is_on.then_some(recorder)
}

/// Begins to record, if that is requested. Without a file the program runs all the same.
pub(crate) fn begin() {
    let mut is_new = false;
    let recorder = RECORDER.get_or_init(|| {
        let environment = environment::get();
        let path = environment.record.as_ref()?;
        let is_anonymous = environment.record_anonymous;
        let sink = match Sink::create(path, is_anonymous) {
            Ok(sink) => sink,
            Err(error) => {
                say(&format!("no trace is recorded: {}: {error}", path.display()));
                return None;
            }
        };
        is_new = true;
        Some(Recorder {
            generation: fork::generation(),
            began_ns: gpuio_watch::page::monotonic_ns(),
            is_anonymous,
            rings: Mutex::default(),
            sources: AtomicU32::new(0),
            files: Mutex::default(),
            batches: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            sink: Mutex::new(Some(sink)),
        })
    });
    let Some(recorder) = recorder.as_ref().filter(|_| is_new) else { return };
    if !gpuio_transfer::spawn_thread("gpuio-record", || write_on(recorder)) {
        recorder.give_up(&mut hold(&recorder.sink));
        say("no trace is recorded: the system refuses a thread");
        return;
    }
    // SAFETY: the function lives as long as the process: the object is never unloaded.
    let _ = unsafe { libc::atexit(end) };
}

/// A line for the user, who asked for the recording.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let line = format!("gpuio: {}\n", gpuio_base::units::printable_short(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The function that runs when the object is unloaded: after the handlers of atexit(3), at the end
/// of a program that exits.
// SAFETY: the loader calls each address in this section without arguments that count (elf(5),
// DT_FINI_ARRAY); this is a function of C's calling convention that takes none and never unwinds.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = say_if_unused;

/// Says that there is no trace where the program that `gpuio exec --record` started made no call,
/// nor any process that it started: otherwise its user would look for the file.
extern "C" fn say_if_unused() {
    if RECORDER.get().is_some() {
        return;
    }
    crate::call::run_void(|| {
        let variable = gpuio_guard::objects::environment::variable;
        let started = variable("GPUIO_CUFILE_RECORD_PID");
        if started.is_none_or(|pid| pid != *std::process::id().to_string()) {
            return;
        }
        let Some(path) = &environment::get().record else { return };
        if !path.exists() {
            say(&format!(
                "no trace: no call of cuFile was made, so {} was not written. Calls of gpuio's own \
                 library (libgpuio.so.0, Python's gpuio) are not recorded",
                path.display()
            ));
        }
    });
}

/// The number of a file that a program registers; 0 where nothing is recorded.
pub(crate) fn file(fd: BorrowedFd<'_>) -> u32 {
    let Some(recorder) = recorder() else { return 0 };
    let (identity, mut facts) = facts::of(fd);
    if recorder.is_anonymous {
        facts.path = None;
    }
    let mut files = hold(&recorder.files);
    let next = u32::try_from(files.known.len()).unwrap_or(u32::MAX);
    let Files { known, new } = &mut *files;
    *known.entry(identity).or_insert_with(|| {
        new.push((next, facts));
        next
    })
}

/// A number for the entries of one submission.
pub(crate) fn batch() -> u32 {
    recorder().map_or(0, |recorder| recorder.batches.fetch_add(1, Ordering::Relaxed))
}

/// Whether calls are recorded.
pub(crate) fn is_on() -> bool {
    recorder().is_some()
}

/// Records a call that has ended. `call` has its times by `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn record(call: impl FnOnce() -> Call) {
    if let Some(recorder) = recorder() {
        recorder.put(call());
    }
}

impl Recorder {
    fn put(&self, call: Call) {
        let begin_ns = call.begin_ns.saturating_sub(self.began_ns);
        let put = RING.try_with(|own| {
            let ring = match own.get() {
                Some(ring) => ring,
                None => {
                    let new = self.ring()?;
                    own.get_or_init(|| new)
                }
            };
            ring.put(&Call { begin_ns, ..call });
            Some(())
        });
        if put.ok().flatten().is_none() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A ring for this thread; none where there are too many.
    fn ring(&self) -> Option<ThreadRing> {
        let mut rings = hold(&self.rings);
        if rings.len() >= RINGS_MOST {
            return None;
        }
        let number = self.sources.fetch_add(1, Ordering::Relaxed);
        let ring = Arc::new(Ring::new(number));
        rings.push(Arc::clone(&ring));
        Some(ThreadRing { ring, source: Cell::default() })
    }

    /// Ends the recording where it can't go on. Calls in the rings are freed with their threads.
    fn give_up(&self, sink: &mut Option<Sink>) {
        self.is_over.store(true, Ordering::Relaxed);
        *sink = None;
        hold(&self.rings).clear();
    }

    /// Takes what is in the rings; whether there was something.
    fn drain(&self, sink: &mut Sink) -> bool {
        // A call's file was registered before the call was put in, so files come after the heads.
        let mut rings = hold(&self.rings);
        let heads: Vec<(Arc<Ring>, u64)> =
            rings.iter().map(|ring| (Arc::clone(ring), ring.head())).collect();
        rings.retain(|ring| !ring.is_done());
        drop(rings);
        let new = std::mem::take(&mut hold(&self.files).new);
        let mut found = !new.is_empty();
        for (number, facts) in &new {
            sink.file(*number, facts);
        }
        let mut lost = self.lost.swap(0, Ordering::Relaxed);
        for (ring, head) in heads {
            found |= sink.calls(&ring, head);
            lost += ring.take_lost();
        }
        sink.lost(lost);
        found
    }
}

/// The body of the writer's thread.
fn write_on(recorder: &Recorder) {
    let mut pause = BUSY;
    loop {
        std::thread::sleep(pause);
        let mut sink = hold(&recorder.sink);
        let Some(open) = sink.as_mut() else { return };
        pause = if recorder.drain(open) { BUSY } else { IDLE };
        if let Err(error) = open.flush_if_due() {
            say(&format!(
                "the trace ends here, and later calls are not recorded: {}: {error}",
                open.path().display()
            ));
            recorder.give_up(&mut sink);
            return;
        }
    }
}

/// Ends the trace when the program ends by exit(3).
extern "C" fn end() {
    let Some(recorder) = recorder() else { return };
    let began_ns = gpuio_watch::page::monotonic_ns();
    let mut sink = loop {
        if let Ok(sink) = recorder.sink.try_lock() {
            break sink;
        }
        if gpuio_watch::page::monotonic_ns().saturating_sub(began_ns) > LAST_NS {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let Some(mut open) = sink.take() else { return };
    recorder.drain(&mut open);
    recorder.is_over.store(true, Ordering::Relaxed);
    let lost = open.all_lost();
    if let Err(error) = open.finish() {
        say(&format!("the end of the trace is missing: {error}"));
    }
    if lost > 0 {
        say(&format!("{lost} calls are not in the trace: they came faster than it was written"));
    }
}
