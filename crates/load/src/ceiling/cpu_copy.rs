//! Copies between memory and memory of the job's blocks by the job's threads.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use gpuio_base::units::format_bytes;
use gpuio_io::clock::{Clock, Nanos};
use gpuio_job::plan::ceiling::{largest_block, unbound};
use gpuio_record::facts::HostFacts;
use gpuio_record::{CeilingPlan, JobPlan, WorkerPlan};

use super::{Bench, Reading};
use crate::run::affinity;
use crate::run::gate::{Gate, Stage};

/// Cache to exceed where the machine does not report it its own.
const CACHE_GUESS: u64 = 64 << 20;
/// All threads' buffers together take at most one part in this of the memory that may be used.
const MEMORY_PART: u64 = 4;
/// A thread looks at the clock after as many bytes as this, or a block.
const LOOK_BYTES: usize = 1 << 20;
/// A thread that copies keeps nothing on its stack.
const STACK_BYTES: usize = 256 << 10;

/// Buffers of one thread, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffers {
    pub(super) block: usize,
    /// Whole blocks: what stands for the page cache.
    pub(super) source: usize,
    /// Whole blocks: what stands for the job's slots.
    pub(super) ring: usize,
}

/// The source is twice the largest cache, so that a walk over it finds nothing there; or as large
/// as the thread's data, whose copies come from that cache too; and no larger than memory allows.
pub(super) fn buffers(job: &JobPlan, host: &HostFacts) -> Result<Buffers, String> {
    let block = largest_block(job);
    let ring = block.saturating_mul(u64::from(job.depth.max(1)));
    let cache = host.cpu.l3_cache_bytes.or(host.cpu.l2_cache_bytes).unwrap_or(CACHE_GUESS);
    let usable = host.memory.usable_bytes.unwrap_or(1 << 30);
    let share = usable / MEMORY_PART / u64::from(job.threads.max(1));
    let room = share.saturating_sub(ring);
    if room < block {
        return Err(format!(
            "{} threads with rings of {} and as much to copy from need more memory than a \
             {MEMORY_PART}th of what may be used",
            job.threads,
            format_bytes(ring)
        ));
    }
    let source = job.size_bytes.min(cache.saturating_mul(2)).min(room).max(block);
    let whole = |bytes: u64| {
        usize::try_from(bytes - bytes % block)
            .map_err(|_| "buffers too large to address".to_owned())
    };
    Ok(Buffers { block: whole(block)?, source: whole(source)?, ring: whole(ring)? })
}

/// The copies of one thread.
struct Copied {
    copies: u64,
    /// When it began to count, and its end.
    from: Nanos,
    end: Nanos,
}

pub(super) fn find(
    ceiling: &CeilingPlan,
    job: &JobPlan,
    bench: &mut dyn Bench,
) -> Result<Reading, String> {
    let load = unbound(ceiling, job);
    let buffers = buffers(&load, bench.host())?;
    let cache = bench.host().cpu.l3_cache_bytes.or(bench.host().cpu.l2_cache_bytes);
    let all = threads(&load, buffers, bench.clock(), bench.stop())?;
    if bench.stop().load(Ordering::Relaxed) {
        return Err("it was interrupted".to_owned());
    }
    let copies: u64 = all.iter().map(|one| one.copies).sum();
    let from = all.iter().map(|one| one.from).min().unwrap_or(0);
    let end = all.iter().map(|one| one.end).max().unwrap_or(0);
    let elapsed = end.saturating_sub(from);
    if copies == 0 || elapsed == 0 {
        return Err("no copy ended in its time; give it more (ceilings=TIME)".to_owned());
    }
    let (per_s, block) = (copies as f64 * 1e9 / elapsed as f64, buffers.block as f64);
    Ok(Reading {
        bytes_per_s: per_s * block,
        iops: Some(per_s),
        detail: Some(detail(buffers, cache)),
    })
}

/// Where the bytes came from, as far as the caches are known.
fn detail(buffers: Buffers, cache: Option<u64>) -> String {
    let source = buffers.source as u64;
    let words = match cache {
        None => "; caches unknown".to_owned(),
        Some(cache) if source > cache => {
            format!(", more than the cache of {}", format_bytes(cache))
        }
        Some(cache) => format!(", which the cache of {} can hold", format_bytes(cache)),
    };
    format!("each thread from {}{words}", format_bytes(source))
}

/// Runs the copies of all threads, pinned as the job's, from one moment on.
fn threads(
    load: &JobPlan,
    buffers: Buffers,
    clock: Clock,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Copied>, String> {
    let gate = Gate::new(clock, load.threads, Arc::clone(stop));
    let panicked = || "a thread that copied panicked, which is a bug in gpuio".to_owned();
    std::thread::scope(|scope| {
        let _until_joined = gate.until_joined();
        let (sender, receiver) = channel();
        let mut handles = Vec::with_capacity(load.workers.len());
        for worker in &load.workers {
            let (gate, sender) = (&gate, sender.clone());
            let body = move || copier(load, worker, buffers, gate, sender);
            let builder = Builder::new().name("gpuio-copy".to_owned()).stack_size(STACK_BYTES);
            handles.push(
                builder.spawn_scoped(scope, body).map_err(|error| {
                    format!("a thread that copies could not be started: {error}")
                })?,
            );
        }
        drop(sender);
        let ready = handles.iter().try_for_each(|_| receiver.recv().map_err(|_| panicked())?);
        gate.open(match ready {
            Ok(()) => Stage::Running(clock.now()),
            Err(_) => Stage::Abandoned,
        });
        let mut done = Vec::with_capacity(handles.len());
        for handle in handles {
            done.extend(handle.join().map_err(|_| panicked())?);
        }
        ready.map(|()| done)
    })
}

/// The body of a thread that copies; `None` when some thread could not.
fn copier(
    load: &JobPlan,
    worker: &WorkerPlan,
    buffers: Buffers,
    gate: &Gate,
    sender: Sender<Result<(), String>>,
) -> Option<Copied> {
    let (memory, word) = match prepare(worker, buffers) {
        Ok(memory) => (Some(memory), Ok(())),
        Err(why) => (None, Err(why)),
    };
    // The receiver outlives the threads; once all have spoken or died it hears no more.
    let _ = sender.send(word);
    drop(sender);
    let Stage::Running(start) = gate.await_start() else { return None };
    Some(measure(load, buffers, memory?, gate, start))
}

/// Source and ring, every page touched by the thread that will use it.
fn prepare(worker: &WorkerPlan, buffers: Buffers) -> Result<[Vec<u8>; 2], String> {
    affinity::pin(&worker.cpus).map_err(|error| error.to_string())?;
    let filled = |bytes: usize, byte: u8| -> Result<Vec<u8>, String> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).map_err(|error| format!("{bytes} bytes: {error}"))?;
        buffer.resize(bytes, byte);
        Ok(buffer)
    };
    // Not zeros: a page of zeros might be one that all share.
    Ok([filled(buffers.source, 0xa5)?, filled(buffers.ring, 0x5a)?])
}

fn measure(
    load: &JobPlan,
    buffers: Buffers,
    memory: [Vec<u8>; 2],
    gate: &Gate,
    start: Nanos,
) -> Copied {
    let [source, mut ring] = memory;
    let mut copying = Copying { buffers, source: &source, ring: &mut ring, at: 0 };
    let (_, from) = copying.until(start + load.measured_from_ns(), gate.clock, &gate.stop);
    let time = load.stop.runtime_ns.unwrap_or(0);
    let (copies, end) = copying.until(from + time, gate.clock, &gate.stop);
    Copied { copies, from, end }
}

struct Copying<'a> {
    buffers: Buffers,
    source: &'a [u8],
    ring: &'a mut [u8],
    at: u64,
}

impl Copying<'_> {
    /// Copies block after block until the moment, or until stopped; the copies made, and the time
    /// after the last.
    fn until(&mut self, moment: Nanos, clock: Clock, stop: &AtomicBool) -> (u64, Nanos) {
        let Buffers { block, source, ring } = self.buffers;
        let (sources, slots) = ((source / block) as u64, (ring / block) as u64);
        let stretch = (LOOK_BYTES / block).max(1) as u64;
        let mut copies = 0;
        loop {
            let now = clock.now();
            if now >= moment || stop.load(Ordering::Relaxed) {
                return (copies, now);
            }
            for _ in 0..stretch {
                let from = start(self.at % sources, block);
                let to = start(self.at % slots, block);
                self.ring[to..to + block].copy_from_slice(&self.source[from..from + block]);
                self.at += 1;
            }
            black_box(&mut *self.ring);
            copies += stretch;
        }
    }
}

/// Where block `nth` of a buffer begins. Buffers were allocated, so their ends fit in a `usize`.
#[expect(clippy::cast_possible_truncation, reason = "an offset in a buffer that exists")]
fn start(nth: u64, block: usize) -> usize {
    nth as usize * block
}
