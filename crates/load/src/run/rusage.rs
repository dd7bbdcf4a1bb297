//! CPU time and context switches, from getrusage(2); of helper threads, CPU time from their clocks.
#![allow(unsafe_code)]

use gpuio_record::{CpuCost, CpuScope};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    user_s: f64,
    system_s: f64,
    voluntary: u64,
    involuntary: u64,
}

impl Usage {
    /// The use of the calling thread alone.
    pub(super) fn of_thread() -> Usage {
        read(libc::RUSAGE_THREAD)
    }

    /// The use of the whole process.
    pub(super) fn of_process() -> Usage {
        read(libc::RUSAGE_SELF)
    }

    /// The use of other threads of the process, by the kernel's numbers: CPU time only. `None`
    /// where the kernel has no clock for one of them, or it is gone.
    pub(super) fn of_threads(threads: &[i32]) -> Option<Usage> {
        let mut all = Usage::default();
        for &thread in threads {
            let busy = thread_clock(thread, SCHEDULED)?;
            let (ticks, user) = (thread_clock(thread, TICKED)?, thread_clock(thread, TICKED_USER)?);
            // Scheduled time is exact; ticks say how it was split (proc_pid_stat(5), utime).
            let share = if ticks > 0.0 { (user / ticks).clamp(0.0, 1.0) } else { 0.0 };
            all.user_s += busy * share;
            all.system_s += busy * (1.0 - share);
        }
        Some(all)
    }

    /// The use from `self` to `later`.
    pub(super) fn until(&self, later: &Usage) -> Usage {
        Usage {
            user_s: (later.user_s - self.user_s).max(0.0),
            system_s: (later.system_s - self.system_s).max(0.0),
            voluntary: later.voluntary.saturating_sub(self.voluntary),
            involuntary: later.involuntary.saturating_sub(self.involuntary),
        }
    }

    /// CPU time, in the kernel and outside it. getrusage(2) counts in microseconds.
    pub(super) fn busy_ns(&self) -> u64 {
        let busy = std::time::Duration::try_from_secs_f64(self.user_s + self.system_s);
        busy.map_or(0, |busy| u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn add(&mut self, other: &Usage) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }

    /// The cost of moving `bytes` in `elapsed_ns`.
    pub(super) fn cost(&self, scope: CpuScope, elapsed_ns: u64, bytes: u64) -> CpuCost {
        let busy = self.user_s + self.system_s;
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let mib = bytes as f64 / f64::from(1 << 20);
        CpuCost {
            user_s: self.user_s,
            system_s: self.system_s,
            cores_busy: if elapsed_s > 0.0 { busy / elapsed_s } else { 0.0 },
            us_per_mib: (bytes > 0).then(|| busy * 1e6 / mib),
            voluntary_switches: self.voluntary,
            involuntary_switches: self.involuntary,
            scope,
        }
    }
}

/// Which of a thread's CPU clocks: utime + stime, utime, time on a CPU (the kernel's
/// `CPUCLOCK_PROF`, `CPUCLOCK_VIRT` and `CPUCLOCK_SCHED` of include/linux/posix-timers.h, part of
/// its interface since 2.6.12: pthread_getcpuclockid(3) makes the last of them).
const TICKED: i32 = 0;
const TICKED_USER: i32 = 1;
const SCHEDULED: i32 = 2;
/// The clock is a thread's and not a process'.
const PER_THREAD: i32 = 4;

/// Seconds of CPU time of a thread of this process.
fn thread_clock(thread: i32, kind: i32) -> Option<f64> {
    let clock = (!thread << 3) | PER_THREAD | kind;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid memory for the kernel to write one timespec; a clock that does not
    // exist is an error and nothing else.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    (answer == 0).then_some(seconds)
}

fn read(who: libc::c_int) -> Usage {
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is valid memory for the kernel to write one rusage.
    let answer = unsafe { libc::getrusage(who, &raw mut raw) };
    if answer != 0 {
        // Both values of `who` exist since Linux 2.6.26; with EFAULT excluded nothing can fail.
        return Usage::default();
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Usage {
        user_s: seconds(raw.ru_utime),
        system_s: seconds(raw.ru_stime),
        voluntary: u64::try_from(raw.ru_nvcsw).unwrap_or(0),
        involuntary: u64::try_from(raw.ru_nivcsw).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_busy_helper_threads_cpu_time_is_what_the_kernel_reports_the_thread_itself() {
        let ((say_id, receive_id), (say_end, receive_end)) = (channel(), channel::<()>());
        std::thread::scope(|scope| {
            let helper = scope.spawn(move || {
                let from = Usage::of_thread();
                say_id.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                while from.until(&Usage::of_thread()).busy_ns() < 300_000_000 {
                    for n in 0..10_000 {
                        let _ = black_box(n);
                    }
                }
                say_id.send(0).unwrap();
                let _ = receive_end.recv();
                Usage::of_thread()
            });
            let id = receive_id.recv().unwrap();
            let before = Usage::of_threads(&[id]).unwrap();
            assert_eq!(receive_id.recv(), Ok(0));
            let after = Usage::of_threads(&[id]).unwrap();
            say_end.send(()).unwrap();
            let own = helper.join().unwrap();
            let [seen, own] = [before.until(&after), own].map(|usage| usage.busy_ns() as f64);
            assert!((seen / own - 1.0).abs() < 0.05, "{seen} of {own}");
        });
        assert!(Usage::of_threads(&[]).is_some());
        assert!(Usage::of_threads(&[i32::MAX - 1]).is_none(), "there is no such thread");
    }
}
