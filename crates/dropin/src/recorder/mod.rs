//! Recording of a program's calls as a trace (`GPUIO_CUFILE_RECORD`, docs/replay.md).
//!
//! A call is put into a ring of its thread when it has ended; a thread of ours takes it out and
//! appends it to the file. A call that can't be put in is counted by its [`Reason`], in the trace
//! and on standard error at the end: no call of the program ever waits for the recording. The first
//! call of a thread makes its ring, under a lock; registering a file takes another. Calls of a
//! thread whose ring is gone, because it is ending, share one.
//!
//! The file is made when the driver is first opened, under a name that nothing has, and opened anew
//! for each write, by the writer's thread, which has a table of descriptors of its own
//! (`gpuio_transfer::apart`). A child of `fork(2)` is not recorded: it has no driver, and its
//! parent's trace goes on. A program that it executes is a process like any other, with a trace of
//! its own.
//!
//! The end, in this order: no more calls are put in, the writer takes what is in the rings, and
//! writes it with the mark of the end. A call that another thread puts in at that very moment can
//! be in no count.

mod facts;
mod ring;
mod sink;

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use gpuio_base::trace::write::Source;
use gpuio_base::trace::{Call, FILES_MOST, TraceFile, Within};
use gpuio_base::units::many;

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
/// How long the end of the program may wait for the last write.
const LAST: Duration = Duration::from_secs(5);

/// Why a call is not in the trace.
#[derive(Debug, Clone, Copy)]
enum Reason {
    Full,
    Threads,
    File,
    Over,
}

impl Reason {
    const ALL: [(Reason, &'static str); 4] = [
        (Reason::Full, "more came than was written in time"),
        (Reason::Threads, "more than 512 threads made calls at about the same time"),
        (Reason::File, "nothing shows which file was meant"),
        (Reason::Over, "made after its end"),
    ];
}

/// A call's file, and the thread, batch or stream that it is ordered in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// `None` where nothing is recorded, or the file can't be found out.
    pub(crate) file: Option<u32>,
    pub(crate) thread: u32,
    pub(crate) within: Within,
}

impl Origin {
    /// The origin of a call that this thread makes.
    pub(crate) fn here(file: Option<u32>, within: Within) -> Origin {
        Origin { file, thread: u32::try_from(thread_number()).unwrap_or(u32::MAX), within }
    }
}

struct Recorder {
    /// The fork generation of the process that records, and its number: a child that was made
    /// without handlers for forks has the same generation.
    generation: u32,
    process: u32,
    /// `CLOCK_MONOTONIC` at the beginning.
    began_ns: u64,
    is_anonymous: bool,
    rings: Mutex<Vec<Arc<Ring>>>,
    /// Rings that were ever made.
    sources: AtomicU32,
    /// The ring of threads whose own is gone.
    late: Mutex<Option<ThreadRing>>,
    files: Mutex<Files>,
    batches: AtomicU32,
    /// Calls that are not in the trace, by [`Reason`].
    lost: [AtomicU64; Reason::ALL.len()],
    /// Recording has ended: no call is put in any more.
    is_over: AtomicBool,
    /// Why it ended before the program did, until that is said.
    notice: Mutex<Option<String>>,
    writer: Thread,
    /// The writer's answer at the end; it hangs up if recording has ended before.
    ended: Mutex<Receiver<io::Result<()>>>,
}

/// Files by their identities; those that the trace does not name yet.
#[derive(Debug, Default)]
struct Files {
    known: std::collections::BTreeMap<facts::Identity, u32>,
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

/// The recorder that this process began.
#[inline]
fn begun() -> Option<&'static Recorder> {
    let recorder = RECORDER.get()?.as_ref()?;
    (recorder.generation == fork::generation()).then_some(recorder)
}

/// The same while it records.
fn recorder() -> Option<&'static Recorder> {
    begun().filter(|recorder| !recorder.is_over.load(Ordering::Relaxed))
}

/// Begins to record, if that is requested. Without a file the program runs all the same.
pub(crate) fn begin() {
    let mut starts = None;
    let recorder = RECORDER.get_or_init(|| {
        let environment = environment::get();
        let path = environment.record.as_ref()?;
        let is_anonymous = environment.record_anonymous;
        let (start, ended, writer) = match start_writer(path.clone(), is_anonymous) {
            Ok(started) => started,
            Err(why) => {
                say(&format!("no trace is recorded: {why}"));
                return None;
            }
        };
        starts = Some(start);
        let began_ns = gpuio_watch::page::monotonic_ns();
        Some(Recorder { began_ns, is_anonymous, ..Recorder::new(writer, ended) })
    });
    if let (Some(recorder), Some(start)) = (recorder, starts) {
        let _ = start.send(recorder);
    }
}

/// The writer's start, its answer at the end, and its thread.
type Started = (SyncSender<&'static Recorder>, Receiver<io::Result<()>>, Thread);

/// Starts the writer, which makes the file.
fn start_writer(path: std::path::PathBuf, is_anonymous: bool) -> Result<Started, String> {
    let (start, starts) = sync_channel::<&'static Recorder>(1);
    let (ends, ended) = sync_channel(1);
    let (made, is_made) = sync_channel(1);
    let spawned = gpuio_transfer::spawn_thread("gpuio-record", move || {
        let shares_table = !gpuio_transfer::apart::leave_table();
        match Sink::create(&path, is_anonymous, shares_table) {
            Ok(sink) => {
                let _ = made.send(Ok(std::thread::current()));
                if let Ok(recorder) = starts.recv() {
                    write_on(recorder, sink, &ends);
                }
            }
            Err(error) => {
                let _ = made.send(Err(format!("{}: {error}", path.display())));
            }
        }
    });
    if !spawned {
        return Err("the system refuses a thread".to_owned());
    }
    let writer = is_made.recv().unwrap_or_else(|_| Err("its writer failed".to_owned()))?;
    Ok((start, ended, writer))
}

/// A line for the user, who asked for the recording.
pub(crate) fn say(text: &str) {
    let text = gpuio_base::units::printable_short(text);
    crate::standard_error::write(&format!("gpuio: {text}\n"));
}

/// The function that runs when the object is unloaded: after the handlers of atexit(3), at the end
/// of a program that exits.
// SAFETY: the loader calls each address in this section without arguments that count (elf(5),
// DT_FINI_ARRAY); this is a function of C's calling convention that takes none and never unwinds.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    crate::call::run_void(|| match RECORDER.get() {
        Some(recorder) => recorder.iter().for_each(Recorder::end),
        None => say_if_unused(),
    });
}

/// Says that there is no trace where the program that `gpuio exec --record` started made no call,
/// nor any process that it started: otherwise its user would look for the file.
fn say_if_unused() {
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
}

/// The number of a file that a program registers; `None` where nothing is recorded, or the file
/// can't be asked.
pub(crate) fn file(fd: BorrowedFd<'_>) -> Option<u32> {
    let recorder = recorder()?;
    let (identity, mut facts) = facts::of(fd)?;
    if recorder.is_anonymous {
        facts.path = None;
    }
    let mut files = hold(&recorder.files);
    let next = u32::try_from(files.known.len()).ok().filter(|next| *next < FILES_MOST);
    let Files { known, new } = &mut *files;
    if let Some(number) = known.get(&identity) {
        return Some(*number);
    }
    let next = next?;
    known.insert(identity, next);
    new.push((next, facts));
    Some(next)
}

/// A number for the entries of one submission.
pub(crate) fn batch() -> u32 {
    recorder().map_or(0, |recorder| recorder.batches.fetch_add(1, Ordering::Relaxed))
}

/// Whether calls are recorded.
pub(crate) fn is_on() -> bool {
    recorder().is_some()
}

/// Records a call that has ended, of the file of this number. `call` has its times by
/// `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn record(file: Option<u32>, call: impl FnOnce(u32) -> Call) {
    let Some(recorder) = begun() else { return };
    if recorder.is_over.load(Ordering::Relaxed) {
        recorder.lose(Reason::Over);
        recorder.say_notice();
        return;
    }
    match file {
        Some(file) => recorder.put(call(file)),
        None => recorder.lose(Reason::File),
    }
}

impl Recorder {
    /// One of this process, since the clock began, with nothing in it.
    fn new(writer: Thread, ended: Receiver<io::Result<()>>) -> Self {
        Self {
            generation: fork::generation(),
            process: std::process::id(),
            began_ns: 0,
            is_anonymous: false,
            rings: Mutex::default(),
            sources: AtomicU32::new(0),
            late: Mutex::default(),
            files: Mutex::default(),
            batches: AtomicU32::new(0),
            lost: Default::default(),
            is_over: AtomicBool::new(false),
            notice: Mutex::default(),
            writer,
            ended: Mutex::new(ended),
        }
    }

    fn put(&self, call: Call) {
        let begin_ns = call.begin_ns.saturating_sub(self.began_ns);
        let call = Call { begin_ns, ..call };
        let put = RING.try_with(|own| {
            let ring = match own.get() {
                Some(ring) => ring,
                None => {
                    let new = self.ring()?;
                    own.get_or_init(|| new)
                }
            };
            ring.put(&call);
            Some(())
        });
        // At its end a thread has no values of its own any more.
        let put = put.unwrap_or_else(|_| {
            let mut late = hold(&self.late);
            if late.is_none() {
                *late = self.ring();
            }
            late.as_ref().map(|ring| ring.put(&call))
        });
        if put.is_none() {
            self.lose(Reason::Threads);
        }
    }

    fn lose(&self, reason: Reason) {
        self.lost[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Says why recording has ended, once. The writer has no standard error.
    fn say_notice(&self) {
        let notice = self.notice.try_lock().ok().and_then(|mut notice| notice.take());
        if let Some(notice) = notice {
            say(&notice);
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
    fn give_up(&self, why: String) {
        *hold(&self.notice) = Some(why);
        self.is_over.store(true, Ordering::Release);
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
        for (ring, head) in heads {
            found |= sink.calls(&ring, head);
            self.lost[Reason::Full as usize].fetch_add(ring.take_lost(), Ordering::Relaxed);
        }
        sink.lost(self.lost.iter().map(|count| count.load(Ordering::Relaxed)).sum());
        found
    }

    /// Ends the trace when the program ends by exit(3), after all that it does then.
    fn end(&self) {
        if self.generation != fork::generation() || self.process != std::process::id() {
            return;
        }
        if !self.is_over.swap(true, Ordering::SeqCst) {
            self.writer.unpark();
            let answer = hold(&self.ended).recv_timeout(LAST);
            let missing = match answer {
                Ok(result) => result.err().map(|error| error.to_string()),
                Err(RecvTimeoutError::Timeout) => {
                    Some(format!("writing it takes more than {} s", LAST.as_secs()))
                }
                Err(RecvTimeoutError::Disconnected) if hold(&self.notice).is_some() => None,
                Err(RecvTimeoutError::Disconnected) => Some("its writer failed".to_owned()),
            };
            if let Some(why) = missing {
                say(&format!("the end of the trace is missing: {why}"));
            }
        }
        self.say_notice();
        for (reason, why) in Reason::ALL {
            let count = self.lost[reason as usize].load(Ordering::Relaxed);
            if count > 0 {
                let calls = many(count, "call is|calls are");
                say(&format!("{calls} not in the trace: {why}"));
            }
        }
    }
}

/// The writer's work.
fn write_on(recorder: &Recorder, mut sink: Sink, ended: &SyncSender<io::Result<()>>) {
    let mut pause = BUSY;
    loop {
        std::thread::park_timeout(pause);
        // Before the rings are looked at: no call is put in afterwards.
        let is_over = recorder.is_over.load(Ordering::SeqCst);
        if is_over || sink.has_room() {
            pause = if recorder.drain(&mut sink) { BUSY } else { IDLE };
        }
        if is_over {
            let _ = ended.send(sink.finish());
            return;
        }
        if let Err(error) = sink.flush_if_due() {
            let path = sink.path().display();
            recorder.give_up(format!(
                "the trace ends here, and later calls are not recorded: {path}: {error}"
            ));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(process: u32) -> Recorder {
        Recorder { process, ..Recorder::new(std::thread::current(), sync_channel(1).1) }
    }

    fn lost(recorder: &Recorder) -> [u64; Reason::ALL.len()] {
        std::array::from_fn(|reason| recorder.lost[reason].load(Ordering::Relaxed))
    }

    #[test]
    fn only_the_process_that_records_ends_the_trace() {
        let own = std::process::id();
        for (process, ends) in [(own, true), (own + 1, false)] {
            let recorder = recorder(process);
            recorder.end();
            assert_eq!(recorder.is_over.into_inner(), ends);
        }
    }

    #[test]
    fn calls_of_too_many_threads_are_counted_as_those() {
        let recorder = recorder(0);
        let most: Vec<_> = std::iter::repeat_with(|| recorder.ring()).take(RINGS_MOST).collect();
        assert!(most.iter().all(Option::is_some));
        std::thread::scope(|scope| {
            scope.spawn(|| recorder.put(Call::NONE));
        });
        assert_eq!(lost(&recorder), [0, 1, 0, 0]);
    }

    #[test]
    fn a_call_that_full_rings_refuse_is_counted_in_the_trace() {
        let recorder = recorder(0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let mut sink = Sink::create(&path, false, false).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..20_000).for_each(|_| recorder.put(Call::NONE)));
        });
        recorder.lose(Reason::File);
        assert!(recorder.drain(&mut sink));
        sink.finish().unwrap();
        let trace = gpuio_base::trace::read(&std::fs::read(&path).unwrap()).unwrap();
        // No file is named, so all calls make no sense.
        assert_eq!(trace.senseless + trace.lost, 20_001);
        assert_eq!((lost(&recorder)[0] + 1, lost(&recorder)[2]), (trace.lost, 1));
    }
}
