//! Sums of counters: over the workers of a job, and over the ranks of a run.

use std::ops::{Add, AddAssign, Sub};

use crate::{
    FileLegCounters, InjectedFaults, LibraryBytes, LibraryResult, SegmentBytes, ViaResult,
};

impl AddAssign for FileLegCounters {
    fn add_assign(&mut self, other: Self) {
        self.read_ios += other.read_ios;
        self.read_bytes += other.read_bytes;
        self.write_ios += other.write_ios;
        self.write_bytes += other.write_bytes;
        self.short_ios += other.short_ios;
        self.faults += other.faults;
        self.injected += other.injected;
    }
}

impl Add for InjectedFaults {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// The faults since an earlier reading of the same counters.
impl Sub for InjectedFaults {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            eio: self.eio - before.eio,
            enospc: self.enospc - before.enospc,
            lost: self.lost - before.lost,
            short: self.short - before.short,
            delay: self.delay - before.delay,
            stall: self.stall - before.stall,
        }
    }
}

impl AddAssign for InjectedFaults {
    fn add_assign(&mut self, other: Self) {
        self.eio += other.eio;
        self.enospc += other.enospc;
        self.lost += other.lost;
        self.short += other.short;
        self.delay += other.delay;
        self.stall += other.stall;
    }
}

impl AddAssign for LibraryResult {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.write += other.write;
    }
}

impl AddAssign for LibraryBytes {
    fn add_assign(&mut self, other: Self) {
        self.cached_bytes += other.cached_bytes;
        self.direct_bytes += other.direct_bytes;
        self.by_kernel_bytes += other.by_kernel_bytes;
        self.by_copy_bytes += other.by_copy_bytes;
    }
}

/// The near GPU remains that of the left side.
impl AddAssign<&Self> for ViaResult {
    fn add_assign(&mut self, other: &Self) {
        self.through_host |= other.through_host;
        self.read += other.read;
        self.write += other.write;
    }
}

impl AddAssign for SegmentBytes {
    fn add_assign(&mut self, other: Self) {
        self.host_near_bytes += other.host_near_bytes;
        self.near_far_bytes += other.near_far_bytes;
    }
}
