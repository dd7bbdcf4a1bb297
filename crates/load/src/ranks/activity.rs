//! Whether a process does anything: what its program reports, its CPU time, and its I/O.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuio_host::{Root, proc_io};
use rustix::time::{ClockId, clock_gettime};

/// The current work of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It prepares or finishes: its progress, CPU time or I/O shows that it works.
    Working,
    /// It is in its measured time: only I/Os that complete count.
    Running,
    /// It waits for other ranks.
    Waiting,
}

/// The program's report about itself; written by its threads, read by the thread of the ranks.
#[derive(Debug, Default)]
pub struct Activity {
    stage: AtomicU8,
    progress: AtomicU64,
    /// Whether I/Os are due now, so that none completing means something.
    due: AtomicBool,
    bytes_per_s: AtomicU64,
    iops: AtomicU64,
    failed: AtomicU64,
}

impl Activity {
    pub fn enter(&self, stage: Stage) {
        let number = match stage {
            Stage::Working => 0,
            Stage::Running => 1,
            Stage::Waiting => 2,
        };
        self.stage.store(number, Ordering::Relaxed);
        self.step();
    }

    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            1 => Stage::Running,
            2 => Stage::Waiting,
            _ => Stage::Working,
        }
    }

    /// Something was done.
    pub fn step(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// I/Os are due now, or they are not: before a start delay has passed, at a low rate.
    pub fn expect_ios(&self, due: bool) {
        self.due.store(due, Ordering::Relaxed);
    }

    /// Sets the present rates, for the progress of all ranks.
    pub fn moves(&self, bytes_per_s: u64, iops: u64, failed: u64) {
        self.bytes_per_s.store(bytes_per_s, Ordering::Relaxed);
        self.iops.store(iops, Ordering::Relaxed);
        self.failed.store(failed, Ordering::Relaxed);
    }

    /// Bytes and I/Os per second, and failed I/Os.
    pub(crate) fn rates(&self) -> (u64, u64, u64) {
        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (load(&self.bytes_per_s), load(&self.iops), load(&self.failed))
    }
}

/// Shares of a CPU and of a disk below which a process does nothing: its samplers of devices and
/// its heartbeats take less.
const CPU_SHARE: f64 = 0.05;
const IO_BYTES_PER_S: f64 = 1e6;

/// One reading of a process.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    stage: Stage,
    progress: u64,
    cpu: Duration,
    io_bytes: u64,
}

/// Looks how long this process has done nothing. Used by the thread of the ranks, whose own CPU
/// time does not count.
pub(crate) struct Idle {
    last: Option<Reading>,
    active_at: Instant,
}

impl Idle {
    pub(crate) fn new() -> Idle {
        Idle { last: None, active_at: Instant::now() }
    }

    /// How long it has done nothing by now.
    pub(crate) fn look(&mut self, activity: &Activity) -> Duration {
        let now = Reading {
            at: Instant::now(),
            stage: activity.stage(),
            progress: activity.progress.load(Ordering::Relaxed),
            cpu: cpu_time(),
            io_bytes: io_bytes(),
        };
        let due = activity.due.load(Ordering::Relaxed);
        if self.last.is_none_or(|last| is_active(&last, &now, due)) {
            self.active_at = now.at;
        }
        self.last = Some(now);
        now.at - self.active_at
    }
}

fn is_active(last: &Reading, now: &Reading, due: bool) -> bool {
    if now.stage == Stage::Waiting || now.progress != last.progress || now.stage != last.stage {
        return true;
    }
    if now.stage == Stage::Running {
        return !due;
    }
    let span = (now.at - last.at).as_secs_f64().max(1e-3);
    let cpu = now.cpu.saturating_sub(last.cpu).as_secs_f64() / span;
    let io = now.io_bytes.saturating_sub(last.io_bytes) as f64 / span;
    cpu > CPU_SHARE || io > IO_BYTES_PER_S
}

/// CPU time of the process without that of this thread.
fn cpu_time() -> Duration {
    let of = |clock| {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    of(ClockId::ProcessCPUTime).saturating_sub(of(ClockId::ThreadCPUTime))
}

/// Bytes that the process read and wrote, through calls and at storage (proc_pid_io(5)); 0 where
/// the kernel does not count them.
fn io_bytes() -> u64 {
    let Ok(Some(sample)) = proc_io::sample(&Root::live()) else { return 0 };
    let all = sample.total;
    [all.read_call_bytes, all.write_call_bytes, all.storage_read_bytes, all.storage_write_bytes]
        .into_iter()
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, stage: Stage, progress: u64, cpu_ms: u64, io_bytes: u64) -> Reading {
        Reading { at, stage, progress, cpu: Duration::from_millis(cpu_ms), io_bytes }
    }

    #[test]
    fn what_counts_as_activity() {
        let from = Instant::now();
        let at = from + Duration::from_secs(1);
        let (working, running) = (Stage::Working, Stage::Running);
        let last = reading(from, working, 1, 0, 0);
        assert!(!is_active(&last, &reading(at, working, 1, 20, 500_000), true));
        assert!(is_active(&last, &reading(at, working, 2, 0, 0), true));
        assert!(is_active(&last, &reading(at, working, 1, 100, 0), true), "CPU time");
        assert!(is_active(&last, &reading(at, working, 1, 0, 2_000_000), true), "I/O");
        assert!(is_active(&last, &reading(at, Stage::Waiting, 1, 0, 0), true));
        // A thread that polls for an I/O that never comes back uses CPU time.
        let last = reading(from, running, 1, 0, 0);
        assert!(!is_active(&last, &reading(at, running, 1, 900, 9_000_000), true));
        assert!(is_active(&last, &reading(at, running, 1, 0, 0), false), "none is due");
    }
}
