//! CPU time and context switches, from getrusage(2).
#![allow(unsafe_code)]

use gpuio_record::{CpuCost, CpuScope};

/// One reading.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    user_s: f64,
    system_s: f64,
    voluntary: u64,
    involuntary: u64,
}

impl Usage {
    /// Of the calling thread alone.
    pub(super) fn of_thread() -> Usage {
        read(libc::RUSAGE_THREAD)
    }

    /// Of the whole process.
    pub(super) fn of_process() -> Usage {
        read(libc::RUSAGE_SELF)
    }

    /// What was used from `self` to `later`.
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
    #[expect(clippy::cast_precision_loss, reason = "a cost per MiB needs no 64 bits")]
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

fn read(who: libc::c_int) -> Usage {
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is a valid place for the kernel to write one rusage.
    let answer = unsafe { libc::getrusage(who, &raw mut raw) };
    if answer != 0 {
        // Both values of `who` exist since Linux 2.6.26; with EFAULT excluded nothing can fail.
        return Usage::default();
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds and microseconds are small")]
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Usage {
        user_s: seconds(raw.ru_utime),
        system_s: seconds(raw.ru_stime),
        voluntary: u64::try_from(raw.ru_nvcsw).unwrap_or(0),
        involuntary: u64::try_from(raw.ru_nivcsw).unwrap_or(0),
    }
}
