//! The counters of `cuFileGetStatsL1` to `L3`.
//!
//! Groups of threads have counters on cache lines of their own, which are added up on request.
//! Level 1 has totals, level 2 adds histograms of sizes, level 3 an entry per GPU. The structures
//! are those of release 1.15, or of 1.20 if `GPUIO_CUFILE_VERSION=1200` says that the program was
//! built for it: the size changed and the interface has no mark of that, so the smaller one is the
//! default.
//!
//! "POSIX" transfers are ours, through the kernel's file interface and host memory; those "by
//! nvidia-fs" were forwarded to NVIDIA's library.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use gpuio_gpu::DeviceFacts;

use crate::abi::{OpCounter, STATS_CLASSES, STATS_GPUS, STATS_MORE_1_20, StatsGpu, StatsLevel1};
use crate::code::{CallError, INVALID_VALUE};
use crate::environment::VERSION_LARGE;
use crate::live_page::CompletedCall;

/// Groups of threads with counters of their own.
const GROUPS: usize = 8;

/// Operations of registration and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedOp {
    HandleRegister,
    HandleDeregister,
    BufferRegister,
    BufferDeregister,
    BatchSetup,
    BatchSubmit,
    BatchCancel,
    BatchDestroy,
    BatchEnqueued,
    BatchProcessed,
}

const OPS: usize = CountedOp::BatchProcessed as usize + 1;

#[derive(Debug, Default)]
struct Side {
    ok: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
    unaligned: AtomicU64,
    forwarded: AtomicU64,
}

/// Counters of a group of threads.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Group {
    sides: [Side; 2],
    sizes: [[AtomicU64; STATS_CLASSES]; 2],
    gpus: [[Side; 2]; STATS_GPUS],
    ops: [[AtomicU64; 2]; OPS],
}

#[derive(Debug, Default)]
pub(crate) struct Stats {
    level: AtomicU8,
    /// Whether the program has set the level itself.
    chosen: AtomicBool,
    stopped: AtomicBool,
    /// When counting began, `CLOCK_MONOTONIC` nanoseconds.
    since_ns: AtomicU64,
    groups: [Group; GROUPS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ok: u64,
    failed: u64,
    bytes: u64,
    latency_us: u64,
    unaligned: u64,
    forwarded: u64,
}

/// The counter group of the calling thread.
fn group() -> usize {
    crate::sync::thread_number() % GROUPS
}

/// The size class as in release 1.15: class 0 below 4 KiB, each further one twice as large.
fn class(bytes: u64) -> usize {
    ((bytes >> 11).max(1).ilog2() as usize).min(STATS_CLASSES - 1)
}

impl Side {
    fn count(&self, done: &CompletedCall) {
        match done.bytes {
            Some(bytes) => {
                self.ok.fetch_add(1, Relaxed);
                self.bytes.fetch_add(bytes, Relaxed);
                self.latency_ns.fetch_add(done.latency_ns, Relaxed);
            }
            None => {
                self.failed.fetch_add(1, Relaxed);
            }
        }
        if done.unaligned {
            self.unaligned.fetch_add(1, Relaxed);
        }
        if done.forwarded {
            self.forwarded.fetch_add(1, Relaxed);
        }
    }

    fn counters(&self) -> [&AtomicU64; 6] {
        let Side { ok, failed, bytes, latency_ns, unaligned, forwarded } = self;
        [ok, failed, bytes, latency_ns, unaligned, forwarded]
    }
}

impl Stats {
    /// Applies the configured level at the open, unless the program has set one.
    pub(crate) fn begin(&self, level: usize) {
        if !self.chosen.load(Relaxed) {
            self.level.store(u8::try_from(level.min(3)).unwrap_or(0), Relaxed);
        }
        self.since_ns.store(gpuio_watch::page::monotonic_ns(), Relaxed);
    }

    pub(crate) fn set_level(&self, level: i32) -> Result<(), CallError> {
        let known = u8::try_from(level).ok().filter(|level| *level <= 3);
        self.level.store(known.ok_or(CallError::from(INVALID_VALUE))?, Relaxed);
        self.chosen.store(true, Relaxed);
        Ok(())
    }

    pub(crate) fn level(&self) -> u8 {
        self.level.load(Relaxed)
    }

    pub(crate) fn run(&self, on: bool) {
        self.stopped.store(!on, Relaxed);
    }

    fn counts(&self) -> bool {
        self.level.load(Relaxed) > 0 && !self.stopped.load(Relaxed)
    }

    /// Sets all counters to zero.
    pub(crate) fn reset(&self) {
        for group in &self.groups {
            let gpus = group.gpus.iter().flatten();
            let sides = group.sides.iter().chain(gpus).flat_map(Side::counters);
            let rest = group.sizes.iter().flatten().chain(group.ops.iter().flatten());
            sides.chain(rest).for_each(|counter| counter.store(0, Relaxed));
        }
        self.since_ns.store(gpuio_watch::page::monotonic_ns(), Relaxed);
    }

    pub(crate) fn count(&self, done: &CompletedCall) {
        if !self.counts() {
            return;
        }
        let group = &self.groups[group()];
        group.sides[done.op as usize].count(done);
        if let Some(bytes) = done.bytes {
            group.sizes[done.op as usize][class(bytes)].fetch_add(1, Relaxed);
        }
        let gpu = done.gpu.and_then(|gpu| group.gpus.get(gpu as usize));
        if let Some(sides) = gpu {
            sides[done.op as usize].count(done);
        }
    }

    /// Counts operations of one kind that succeeded or failed.
    pub(crate) fn operations(&self, op: CountedOp, good: bool, count: u64) {
        if self.counts() {
            let counter = &self.groups[group()].ops[op as usize][usize::from(!good)];
            counter.fetch_add(count, Relaxed);
        }
    }

    fn operation(&self, op: CountedOp) -> OpCounter {
        let sum = |which: usize| {
            self.groups.iter().map(|group| group.ops[op as usize][which].load(Relaxed)).sum()
        };
        OpCounter { ok: sum(0), err: sum(1) }
    }

    fn sum(&self, side: impl Fn(&Group) -> &Side) -> Sum {
        let mut total = [0_u64; 6];
        for group in &self.groups {
            for (sum, counter) in total.iter_mut().zip(side(group).counters()) {
                *sum += counter.load(Relaxed);
            }
        }
        let [ok, failed, bytes, latency_ns, unaligned, forwarded] = total;
        Sum { ok, failed, bytes, latency_us: latency_ns / 1000, unaligned, forwarded }
    }

    fn per_second(&self, count: u64) -> u64 {
        let since = self.since_ns.load(Relaxed);
        let ns = gpuio_watch::page::monotonic_ns().saturating_sub(since).max(1);
        let rate = u128::from(count) * 1_000_000_000 / u128::from(ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn level1(&self) -> StatsLevel1 {
        let [read, write] = [0, 1].map(|direction| self.sum(|group| &group.sides[direction]));
        StatsLevel1 {
            read_ops: OpCounter { ok: read.ok, err: read.failed },
            write_ops: OpCounter { ok: write.ok, err: write.failed },
            handle_register_ops: self.operation(CountedOp::HandleRegister),
            handle_deregister_ops: self.operation(CountedOp::HandleDeregister),
            buffer_register_ops: self.operation(CountedOp::BufferRegister),
            buffer_deregister_ops: self.operation(CountedOp::BufferDeregister),
            read_bytes: read.bytes,
            write_bytes: write.bytes,
            read_bytes_per_second: self.per_second(read.bytes),
            write_bytes_per_second: self.per_second(write.bytes),
            read_latency_mean_us: read.latency_us.checked_div(read.ok).unwrap_or(0),
            write_latency_mean_us: write.latency_us.checked_div(write.ok).unwrap_or(0),
            reads_per_second: self.per_second(read.ok),
            writes_per_second: self.per_second(write.ok),
            read_latency_sum_us: read.latency_us,
            write_latency_sum_us: write.latency_us,
            batch_submit_ops: self.operation(CountedOp::BatchSubmit),
            batch_complete_ops: self.operation(CountedOp::BatchProcessed),
            batch_setup_ops: self.operation(CountedOp::BatchSetup),
            batch_cancel_ops: self.operation(CountedOp::BatchCancel),
            batch_destroy_ops: self.operation(CountedOp::BatchDestroy),
            batch_enqueued_ops: self.operation(CountedOp::BatchEnqueued),
            batch_posix_enqueued_ops: self.operation(CountedOp::BatchEnqueued),
            batch_processed_ops: self.operation(CountedOp::BatchProcessed),
            batch_posix_processed_ops: self.operation(CountedOp::BatchProcessed),
            batch_total_submit_ops: self.operation(CountedOp::BatchSubmit),
            ..StatsLevel1::default()
        }
    }

    fn gpu(&self, index: usize, facts: &DeviceFacts, registered: u64) -> StatsGpu {
        let [read, write] = [0, 1].map(|direction| self.sum(|group| &group.gpus[index][direction]));
        let posix = |sum: Sum| sum.ok.saturating_sub(sum.forwarded);
        StatsGpu {
            uuid: uuid(&facts.uuid),
            read_bytes: read.bytes,
            read_bytes_per_second: self.per_second(read.bytes),
            read_duration_us: read.latency_us,
            reads: read.ok,
            nvidia_fs_reads: read.forwarded,
            posix_reads: posix(read),
            unaligned_reads: read.unaligned,
            failed_reads: read.failed,
            write_bytes: write.bytes,
            write_bytes_per_second: self.per_second(write.bytes),
            write_duration_us: write.latency_us,
            writes: write.ok,
            nvidia_fs_writes: write.forwarded,
            posix_writes: posix(write),
            unaligned_writes: write.unaligned,
            failed_writes: write.failed,
            registered_bytes: registered,
            ..StatsGpu::default()
        }
    }

    /// The structure of a level, as bytes. Refused if the current level is lower.
    pub(crate) fn bytes(
        &self,
        level: u8,
        version: i32,
        gpus: &[DeviceFacts],
        registered: impl Fn(u32) -> u64,
    ) -> Result<Vec<u8>, CallError> {
        if self.level() < level {
            return Err(INVALID_VALUE.into());
        }
        let mut bytes = Vec::with_capacity(8192);
        bytes.extend_from_slice(plain(&self.level1()));
        if version >= VERSION_LARGE {
            bytes.resize(bytes.len() + STATS_MORE_1_20, 0);
        }
        if level >= 2 {
            for direction in 0..2 {
                for class in 0..STATS_CLASSES {
                    let each =
                        self.groups.iter().map(|group| group.sizes[direction][class].load(Relaxed));
                    bytes.extend_from_slice(&each.sum::<u64>().to_ne_bytes());
                }
            }
        }
        if level >= 3 {
            let count = gpus.len().min(STATS_GPUS);
            bytes.extend_from_slice(&(count as u64).to_ne_bytes());
            for (index, facts) in gpus.iter().take(count).enumerate() {
                let gpu = self.gpu(index, facts, registered(facts.index));
                bytes.extend_from_slice(plain(&gpu));
            }
            bytes.resize(bytes.len() + (STATS_GPUS - count) * size_of::<StatsGpu>(), 0);
        }
        Ok(bytes)
    }
}

/// A structure of whole numbers without gaps.
trait Plain {}
impl Plain for StatsLevel1 {}
impl Plain for StatsGpu {}

fn plain<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `value` is live, and all of its bytes are initialised: it has no gaps.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The bytes of `GPU-xxxxxxxx-…`; zeros for other text.
pub(crate) fn uuid(text: &str) -> [u8; 16] {
    let digits: Vec<u8> = text.trim_start_matches("GPU-").bytes().filter(|b| *b != b'-').collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or("");
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use gpuio_transfer::Op;

    use super::*;

    fn done(op: Op, bytes: Option<u64>) -> CompletedCall {
        let (gpu, latency_ns, ended_ns) = (Some(0), 2_000_000, 0);
        CompletedCall { op, gpu, bytes, latency_ns, ended_ns, unaligned: false, forwarded: false }
    }

    fn at(bytes: &[u8], offset: usize) -> u64 {
        u64::from_ne_bytes(bytes[offset..offset + 8].try_into().unwrap())
    }

    #[test]
    fn each_transfer_counts_once_where_the_release_has_it() {
        let stats = Stats::default();
        stats.count(&done(Op::Read, Some(4096)));
        assert!(stats.bytes(1, 1150, &[], |_| 0).is_err(), "nothing is counted at level 0");
        stats.set_level(3).unwrap();
        stats.count(&done(Op::Read, Some(4096)));
        stats.count(&CompletedCall { unaligned: true, ..done(Op::Read, Some(100)) });
        stats.count(&CompletedCall { forwarded: true, ..done(Op::Write, Some(1 << 20)) });
        stats.count(&done(Op::Write, None));
        stats.operations(CountedOp::HandleRegister, true, 1);
        let small = stats.bytes(3, 1150, &[], |_| 0).unwrap();
        assert_eq!((small.len(), at(&small, 0), at(&small, 96)), (5000, 2, 4196));
        assert_eq!((at(&small, 16), at(&small, 24), at(&small, 104)), (1, 1, 1 << 20));
        assert_eq!((at(&small, 32), at(&small, 128), at(&small, 160)), (1, 2000, 4000));
        // Classes of release 1.15: 100 bytes in the first, 4 KiB in the second, 1 MiB in the tenth.
        assert_eq!((at(&small, 512), at(&small, 520), at(&small, 768 + 72)), (1, 1, 1));
        let large = stats.bytes(3, 1200, &[], |_| 0).unwrap();
        assert_eq!((large.len(), at(&large, 624), at(&large, 880 + 72)), (5112, 1, 1));
        assert_eq!(stats.bytes(1, 1150, &[], |_| 0).unwrap().len(), 512);
        assert_eq!(stats.bytes(2, 1200, &[], |_| 0).unwrap().len(), 1136);
        stats.run(false);
        stats.count(&done(Op::Read, Some(4096)));
        assert_eq!(at(&stats.bytes(1, 1150, &[], |_| 0).unwrap(), 0), 2);
        stats.reset();
        assert_eq!(at(&stats.bytes(3, 1150, &[], |_| 0).unwrap(), 0), 0);
        assert!(stats.set_level(4).is_err() && stats.set_level(-1).is_err());
        stats.set_level(0).unwrap();
        stats.begin(3);
        assert_eq!(stats.level(), 0, "what the program set goes before the configuration");
    }

    #[test]
    fn a_uuid_is_its_bytes() {
        let bytes = uuid("GPU-00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!((bytes[1], bytes[15]), (0x11, 0xff));
        assert_eq!(uuid("?"), [0; 16]);
    }
}
