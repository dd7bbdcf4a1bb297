//! Moves bytes between memory and all streams of one direction. Both ends use it: one sends, the
//! other receives, counts and decides when it is over.
//!
//! The sender closes its side, the receiver reads to the end and closes too: then both have
//! counted every byte. An end that does not do its part is given up: no wait here lasts longer than
//! [`Limit`] says, and threads end on every way out of the scope that joins them ([`Ending`]).

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope, sleep};
use std::time::{Duration, Instant};

use gpuio_host::tcp_info::tcp_info;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::wire::{Ask, HURRIED, TURN, is_pause};

/// Bytes per call of read(2) or write(2).
const PIECE: usize = 256 << 10;
/// Without a byte for so long the other end is given up.
const STALLED: Duration = Duration::from_secs(10);
/// Time in which the other end must have read what was sent, and closed.
pub(super) const DRAINED: Duration = Duration::from_secs(20);
/// A stream's thread has its data on the heap.
const STACK_BYTES: usize = 256 << 10;
/// Time for the kernel to release threads that have ended; see [`started`].
const RELEASED: Duration = Duration::from_millis(500);
/// Intervals of the measured time, unless they would be longer than a second or too short.
const INTERVALS: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(50);

/// The counts of one end in one direction, the ramp included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Bytes of data that all streams sent, or received.
    pub(super) bytes: u64,
    /// Processor time of the process. The kernel's work in interrupts is not in it.
    pub(super) cpu_ns: u64,
    /// From the receiver: nanoseconds since the streams began and bytes until then, at the end of
    /// the ramp and after each interval.
    pub(super) samples: Vec<(u64, u64)>,
    /// From the sender, as TCP counts.
    pub(super) retransmitted_segments: u64,
    pub(super) data_segments: u64,
    /// The smallest of all streams.
    pub(super) path_mtu_bytes: u64,
}

impl Counted {
    /// Bytes per second of each interval.
    pub(super) fn rates(&self) -> Vec<f64> {
        let rate = |pair: &[(u64, u64)]| {
            let [(t0, b0), (t1, b1)] = [pair[0], pair[1]];
            b1.saturating_sub(b0) as f64 * 1e9 / t1.saturating_sub(t0).max(1) as f64
        };
        self.samples.windows(2).map(rate).collect()
    }
}

/// The bounds of a direction besides the good will of the other end.
pub(super) struct Limit<'a> {
    /// A signal: the other end has a moment more.
    pub(super) stop: &'a AtomicBool,
    /// The same after this moment.
    pub(super) until: Instant,
}

impl Limit<'_> {
    /// How long the other end may take to end a direction.
    fn timeout(&self) -> Duration {
        let hurried = self.stop.load(Ordering::Relaxed) || Instant::now() > self.until;
        if hurried { HURRIED } else { DRAINED }
    }

    /// Waits until all threads have ended.
    ///
    /// # Errors
    /// `TimedOut` where the other end takes too long, or sends nothing any more: the threads are
    /// to be told to give up.
    fn await_end(&self, threads: &Threads<'_>, stalled: &mut dyn FnMut() -> bool) -> Result<()> {
        let since = Instant::now();
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            let timeout = self.timeout();
            if since.elapsed() > timeout {
                let what = format!("it did not end within {} s", timeout.as_secs());
                return Err(Error::new(ErrorKind::TimedOut, what));
            }
            if stalled() {
                return Err(Error::new(ErrorKind::TimedOut, "no byte arrived any more"));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Tells the threads of a direction to give up on every way out of their scope, a panic and a
/// thread that can't be started included: the scope joins them.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Threads<'scope> = Vec<ScopedJoinHandle<'scope, Result<()>>>;

/// Starts a thread for each stream. The threads of the transfer before have been joined, but the
/// kernel counts a thread until it has released it (setrlimit(2), `RLIMIT_NPROC`), which takes a
/// moment on a busy machine: a start that fails is tried again until [`RELEASED`] has passed.
fn started<'scope>(
    scope: &'scope Scope<'scope, '_>,
    streams: &'scope [TcpStream],
    one: impl Fn(&TcpStream) -> Result<()> + Copy + Send + 'scope,
) -> Result<Threads<'scope>> {
    let since = Instant::now();
    let start = |(nth, stream): (usize, &'scope TcpStream)| loop {
        let builder = Builder::new().name("gpuio-stream".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, move || one(stream)) {
            Ok(thread) => return Ok(thread),
            Err(error) if error.kind() == ErrorKind::WouldBlock && since.elapsed() < RELEASED => {
                sleep(Duration::from_millis(5));
            }
            Err(error) => {
                let what = format!(
                    "thread {} of {}, one for each stream, could not be started: {error}; use \
                     fewer --streams, or raise the limit on processes (ulimit -u, cgroup pids.max) \
                     or memory",
                    nth + 1,
                    streams.len()
                );
                return Err(Error::new(ErrorKind::OutOfMemory, what));
            }
        }
    };
    streams.iter().enumerate().map(start).collect()
}

/// Sends until `go_on` says no; each call of it takes a moment.
///
/// # Errors
/// Those of the streams and of `go_on`, and `TimedOut` by `limit`. All threads have ended then.
pub(super) fn send(
    streams: &[TcpStream],
    limit: &Limit<'_>,
    go_on: &mut dyn FnMut() -> Result<bool>,
) -> Result<Counted> {
    let began = cpu_ns();
    // Data that no link compresses.
    let mut piece = vec![0; PIECE];
    gpuio_base::pattern::fill(&mut piece, 1, 0);
    let (over, give_up, bytes) =
        (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let one = |stream: &TcpStream| send_one(stream, &piece, (&over, &give_up), &bytes);
    scope(|scope| {
        let ending = Ending(&give_up);
        let threads = started(scope, streams, one)?;
        while !threads.iter().any(ScopedJoinHandle::is_finished) {
            if !go_on()? {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        let ended = limit.await_end(&threads, &mut || false);
        drop(ending);
        // The wait's own error says more than those of the threads that it gave up.
        let joined = joined(threads);
        ended.and(joined)
    })?;
    let mut counted = Counted {
        bytes: bytes.into_inner(),
        cpu_ns: cpu_ns().saturating_sub(began),
        path_mtu_bytes: u64::MAX,
        ..Counted::default()
    };
    for stream in streams {
        let info = tcp_info(stream)?;
        counted.retransmitted_segments += info.retransmitted_segments;
        counted.data_segments += info.data_segments;
        counted.path_mtu_bytes = counted.path_mtu_bytes.min(info.path_mtu_bytes);
    }
    Ok(counted)
}

fn send_one(
    mut stream: &TcpStream,
    piece: &[u8],
    (over, give_up): (&AtomicBool, &AtomicBool),
    bytes: &AtomicU64,
) -> Result<()> {
    stream.set_write_timeout(Some(TURN))?;
    stream.set_read_timeout(Some(TURN))?;
    while !over.load(Ordering::Relaxed) && !give_up.load(Ordering::Relaxed) {
        match stream.write(piece) {
            Ok(sent) => {
                bytes.fetch_add(sent as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(ErrorKind::InvalidData.into()),
            Err(error) if is_pause(&error) && !give_up.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Receives for the times that were asked for, or until `go_on`, which must not take long, says no;
/// then calls `stop`, and reads what is still on its way.
///
/// # Errors
/// Those of the streams and of `stop`; `TimedOut` where no byte came for ten seconds, and by
/// `limit` where the other end goes on after `stop`. All threads have ended then.
pub(super) fn receive(
    streams: &[TcpStream],
    ask: &Ask,
    limit: &Limit<'_>,
    go_on: &mut dyn FnMut() -> bool,
    stop: &mut dyn FnMut() -> Result<()>,
) -> Result<Counted> {
    let began_cpu = cpu_ns();
    let (give_up, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut samples = Vec::new();
    let one = |stream: &TcpStream| receive_one(stream, &give_up, &bytes);
    scope(|scope| {
        let ending = Ending(&give_up);
        let threads = started(scope, streams, one)?;
        let began = Instant::now();
        let mut progress = Progress { bytes: 0, at: began };
        let interval = (ask.runtime / INTERVALS).clamp(SHORTEST, Duration::from_secs(1));
        let end = began + ask.ramp + ask.runtime;
        let mut next = began + ask.ramp;
        let any_open = || !threads.iter().all(ScopedJoinHandle::is_finished);
        while next <= end && any_open() && go_on() {
            let now = Instant::now();
            let so_far = bytes.load(Ordering::Relaxed);
            if now >= next {
                let ns = now.duration_since(began).as_nanos();
                samples.push((u64::try_from(ns).unwrap_or(u64::MAX), so_far));
                while next <= now {
                    next += interval;
                }
            }
            if progress.is_stalled(so_far, now) {
                break;
            }
            sleep(next.saturating_duration_since(now).min(TURN));
        }
        stop()?;
        let mut stalled = || progress.is_stalled(bytes.load(Ordering::Relaxed), Instant::now());
        let ended = limit.await_end(&threads, &mut stalled);
        drop(ending);
        let joined = joined(threads);
        ended.and(joined)
    })?;
    let cpu_ns = cpu_ns().saturating_sub(began_cpu);
    Ok(Counted { bytes: bytes.into_inner(), cpu_ns, samples, ..Counted::default() })
}

fn receive_one(mut stream: &TcpStream, give_up: &AtomicBool, bytes: &AtomicU64) -> Result<()> {
    let mut piece = vec![0; PIECE];
    stream.set_read_timeout(Some(TURN))?;
    // A sender that never pauses is given up as well as one that sends nothing.
    while !give_up.load(Ordering::Relaxed) {
        match stream.read(&mut piece) {
            Ok(0) => return stream.shutdown(Shutdown::Write),
            Ok(read) => {
                bytes.fetch_add(read as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::TimedOut, "the stream was given up"))
}

/// When the last byte came.
struct Progress {
    bytes: u64,
    at: Instant,
}

impl Progress {
    fn is_stalled(&mut self, bytes: u64, now: Instant) -> bool {
        if bytes > self.bytes {
            *self = Progress { bytes, at: now };
        }
        now.duration_since(self.at) > STALLED
    }
}

/// The first error of the threads.
fn joined(threads: Threads<'_>) -> Result<()> {
    let ended = threads.into_iter().map(|thread| {
        thread.join().unwrap_or_else(|_| Err(Error::other("a thread of a stream panicked")))
    });
    // All are waited for before the first error is returned.
    ended.collect::<Vec<_>>().into_iter().collect()
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}
