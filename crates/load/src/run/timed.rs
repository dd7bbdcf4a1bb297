//! The measured loop: the only code that runs while the clock does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gpuio_io::clock::Nanos;
use gpuio_io::engine::Op;
use gpuio_io::path::{self, Landed, Request, Start};
use gpuio_record::{JobPlan, VerifyMode};
use gpuio_stat::{Histogram, LiveTotals, Tally};

use super::RunError;
use super::failures::Failures;
use super::lane;
use super::rusage::Usage;
use super::verify::{self, Findings};
use super::worker::{self, Task, Tools, side};
use crate::pace::Pacer;
use crate::pattern::{Block, Pattern};
use crate::plan::blocks;

/// A worker gives up after this many failed I/Os: storage that answers with errors would
/// otherwise be asked millions of times.
const FAILURES_MOST: u64 = 1000;

/// Longest sleep between two looks for an interrupt.
const LOOK: Nanos = 50_000_000;

/// What the loop leaves behind.
#[derive(Debug)]
pub(super) struct Timed {
    pub(super) reads: Tally,
    pub(super) writes: Tally,
    pub(super) done_ns: Nanos,
    /// What the thread used from the end of the ramp on.
    pub(super) usage: Usage,
    pub(super) failures: Failures,
    /// What each slot was left with by its last read, for verification.
    pub(super) left: Vec<Option<Block>>,
    pub(super) inline: Findings,
    pub(super) between_ns: u64,
    pub(super) gave_up: bool,
    pub(super) interrupted: bool,
}

/// The bounds of the loop on the run's clock.
struct Bounds {
    /// I/Os started from here on count.
    from: Nanos,
    deadline: Option<Nanos>,
    bytes: Option<u64>,
}

struct Loop<'a> {
    task: &'a Task<'a>,
    tools: &'a mut Tools,
    bounds: Bounds,
    pattern: Pattern,
    pacer: Option<Pacer>,
    free: Vec<u32>,
    /// A block that the path had no room for.
    pending: Option<Block>,
    landed: Vec<Landed>,
    issued_bytes: u64,
    stopping: bool,
    /// Tallies of reads and of writes; their `total` histograms are merged from `recent`.
    tallies: [Tally; 2],
    recent: [Histogram; 2],
    epoch: u32,
    /// Bytes and I/Os that landed, ramp included; by direction, since a branch on a random
    /// direction costs more than all the counting.
    landed_bytes: [u64; 2],
    landed_ios: [u64; 2],
    failed: u64,
    counted_bytes: u64,
    last_landed: Nanos,
    /// This thread's CPU time when the ramp was over.
    counted_from: Option<Usage>,
    /// Landing of the last I/O for the live page, ramp included.
    last_ended: Nanos,
    /// The run's clock to `CLOCK_MONOTONIC`.
    monotonic: Nanos,
    keys: Vec<u64>,
    /// Whether writes get new data before each I/O.
    prepares: bool,
    /// Whether what landed is verified now or later.
    judges: bool,
    /// Whether a GPU leg and a queue exist, so that their histograms say something.
    has_gpu: bool,
    out: Timed,
}

/// Runs the load from `start` until its bounds, an interrupt, or too many failures.
pub(super) fn run(task: &Task<'_>, tools: &mut Tools, start: Nanos) -> Result<Timed, RunError> {
    let job = task.job;
    let from = start + job.start_delay_ns + job.ramp_ns;
    let bounds = Bounds {
        from,
        deadline: job.stop.runtime_ns.map(|time| from + time),
        bytes: job.stop.bytes_per_thread,
    };
    let began = start + job.start_delay_ns;
    let pattern = pattern_of(task, tools)?;
    let pacer = match &job.pacing {
        None => None,
        Some(pacing) => {
            let pacer = Pacer::new(pacing, 1, task.plan.seed, began);
            Some(pacer.map_err(|error| wrong(job, &error))?)
        }
    };
    let monotonic = gpuio_page::monotonic_ns().saturating_sub(task.gate.clock.now());
    if let Some(lane) = &mut tools.lane {
        lane.begin(u64::from(job.depth), began + monotonic);
    }
    let keys = tools.files.targets.iter().map(|&target| verify::key(job, target)).collect();
    let slots = job.depth as usize;
    let mut looped = Loop {
        task,
        tools,
        bounds,
        pattern,
        pacer,
        free: (0..job.depth).rev().collect(),
        pending: None,
        landed: Vec::with_capacity(slots),
        issued_bytes: 0,
        stopping: false,
        tallies: [Tally::default(), Tally::default()],
        recent: [Histogram::default(), Histogram::default()],
        epoch: 0,
        landed_bytes: [0; 2],
        landed_ios: [0; 2],
        failed: 0,
        counted_bytes: 0,
        last_landed: from,
        counted_from: None,
        last_ended: began,
        monotonic,
        keys,
        prepares: job.refill || job.verify == VerifyMode::Inline,
        judges: job.verify != VerifyMode::Off,
        has_gpu: path::find(&job.path.choice.got).is_some_and(path::Row::has_gpu_leg),
        out: Timed {
            reads: Tally::default(),
            writes: Tally::default(),
            done_ns: 0,
            usage: Usage::default(),
            failures: Failures::default(),
            left: vec![None; slots],
            inline: Findings::default(),
            between_ns: 0,
            gave_up: false,
            interrupted: false,
        },
    };
    looped.await_start(began);
    looped.go()?;
    Ok(looped.leave())
}

fn wrong(job: &JobPlan, error: &dyn std::fmt::Display) -> RunError {
    RunError::Pattern { job: job.name.clone(), what: error.to_string() }
}

fn pattern_of(task: &Task<'_>, tools: &Tools) -> Result<Pattern, RunError> {
    let config = blocks::config(task.job, task.plan, |target| tools.files.index_of(target));
    Pattern::new(&config).map_err(|error| wrong(task.job, &error))
}

impl Loop<'_> {
    /// Waits for the moment of the first I/O; an interrupt ends a long start delay.
    fn await_start(&self, began: Nanos) {
        let clock = &self.task.gate.clock;
        loop {
            let now = clock.now();
            if now + LOOK >= began || self.task.gate.stop.load(Ordering::Relaxed) {
                break;
            }
            clock.wait_until(now + LOOK);
        }
        if !self.task.gate.stop.load(Ordering::Relaxed) {
            clock.wait_until(began);
        }
    }

    fn go(&mut self) -> Result<(), RunError> {
        loop {
            let now = self.task.gate.clock.now();
            if self.counted_from.is_none() && now >= self.bounds.from {
                self.counted_from = Some(Usage::of_thread());
            }
            self.look_around(now);
            let waiting_until = if self.stopping { None } else { self.fill(now)? };
            let out = self.tools.path.in_flight();
            if out == 0 && self.stopping {
                return Ok(());
            }
            if out == 0
                && let Some(due) = waiting_until
            {
                self.idle_until(due);
                continue;
            }
            // With a due time ahead and a free slot the worker must not sleep past it: it looks,
            // and dozes only as long as it may. With nothing out and no room the path waits for
            // room.
            let wait = waiting_until.is_none();
            let mut landed = std::mem::take(&mut self.landed);
            let advanced = self.tools.path.advance(&self.task.gate.clock, &mut landed, wait);
            let none = landed.is_empty();
            for one in landed.drain(..) {
                self.land(&one)?;
            }
            self.landed = landed;
            advanced.map_err(|source| self.path_error(source))?;
            self.publish();
            if let Some(due) = waiting_until.filter(|_| none) {
                self.doze_until(due)?;
            }
        }
    }

    #[inline]
    fn publish(&self) {
        let (read, write) = (side(Op::Read), side(Op::Write));
        self.task.gate.live[self.task.page].publish(&LiveTotals {
            read_bytes: self.landed_bytes[read],
            write_bytes: self.landed_bytes[write],
            read_ios: self.landed_ios[read],
            write_ios: self.landed_ios[write],
            failed: self.failed,
            counted_bytes: self.counted_bytes,
        });
        if let Some(lane) = &self.tools.lane {
            lane.now(self.last_ended + self.monotonic, self.tools.path.in_flight() as u64);
        }
    }

    /// Bounds, interrupts, and the sampler's call for recent latencies.
    #[inline]
    fn look_around(&mut self, now: Nanos) {
        if self.bounds.deadline.is_some_and(|deadline| now >= deadline) {
            self.stopping = true;
        }
        if self.task.first_done.settled.load(Ordering::Relaxed) {
            self.stopping = true;
        }
        if self.task.gate.stop.load(Ordering::Relaxed) && !self.stopping {
            self.stopping = true;
            self.out.interrupted = true;
        }
        let epoch = self.task.gate.epoch.load(Ordering::Relaxed);
        if epoch != self.epoch {
            self.epoch = epoch;
            self.hand_over();
        }
    }

    /// Moves recent latencies to the tallies and to the live page.
    fn hand_over(&mut self) {
        for (tally, recent) in self.tallies.iter_mut().zip(&mut self.recent) {
            tally.legs.total.merge(recent);
            self.task.gate.live[self.task.page].add_window(recent);
        }
    }

    /// Starts I/Os until the path is full, the bounds are reached, or the next is not due yet;
    /// then says when it will be.
    #[inline]
    fn fill(&mut self, now: Nanos) -> Result<Option<Nanos>, RunError> {
        let synchronous = self.tools.path.synchronous();
        let mut stamp = now;
        let mut first = true;
        while let Some(&slot) = self.free.last() {
            let due = self.pacer.as_ref().map(Pacer::due);
            if let Some(due) = due
                && due > stamp
            {
                return Ok(Some(due));
            }
            let next = match self.pending {
                None => self.next_block(),
                held => held,
            };
            let Some(block) = next else {
                self.stopping = true;
                return Ok(None);
            };
            let worked = self.prepares && self.prepare(slot, &block)?;
            if worked || (synchronous && !first) {
                stamp = self.task.gate.clock.now();
            }
            first = false;
            let request = Request {
                op: block.op,
                file: block.file,
                offset: block.offset,
                len: block.len,
                slot,
                started: stamp,
                due: due.unwrap_or(stamp),
            };
            match self.tools.path.start(&self.task.gate.clock, request) {
                Start::Taken => self.pending = None,
                Start::Full => {
                    self.pending = Some(block);
                    return Ok(None);
                }
            }
            self.free.pop();
            if let Some(pacer) = &mut self.pacer {
                pacer.took(block.len);
            }
            if stamp >= self.bounds.from {
                self.issued_bytes += u64::from(block.len);
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_block(&mut self) -> Option<Block> {
        if self.bounds.bytes.is_some_and(|most| self.issued_bytes >= most) {
            return None;
        }
        self.pattern.next()
    }

    /// Puts data where a write begins; true when time went by.
    fn prepare(&mut self, slot: u32, block: &Block) -> Result<bool, RunError> {
        let job = self.task.job;
        if block.op == Op::Read {
            return Ok(false);
        }
        let began = self.task.gate.clock.now();
        let key = match job.fill {
            gpuio_record::Fill::Pattern => self.keys[block.file as usize],
            gpuio_record::Fill::Random => self.task.plan.seed ^ began,
        };
        let path = &mut self.tools.path;
        path.generate(slot, key, block.offset, block.len)
            .map_err(|source| self.path_error(source))?;
        self.out.between_ns += self.task.gate.clock.now() - began;
        Ok(true)
    }

    /// Nothing is out and nothing is due: sleeps, looking up for interrupts.
    fn idle_until(&self, due: Nanos) {
        let clock = &self.task.gate.clock;
        clock.wait_until(due.min(clock.now() + LOOK));
    }

    /// Nothing landed and nothing is due: sleeps until something may have landed, looking up for
    /// interrupts. The last microseconds before the due time are spent awake.
    fn doze_until(&mut self, due: Nanos) -> Result<(), RunError> {
        let Some(patience) = self.task.gate.clock.may_sleep(due) else {
            return Ok(());
        };
        let patience = patience.min(Duration::from_nanos(LOOK));
        self.tools.path.doze(patience).map_err(|source| self.path_error(source))
    }

    #[inline]
    fn land(&mut self, landed: &Landed) -> Result<(), RunError> {
        let request = &landed.request;
        if let Some(lane) = &self.tools.lane {
            lane::count(lane, landed);
            self.last_ended = landed.ended;
        }
        self.free.push(request.slot);
        let (at, bytes) = (side(request.op), u64::from(request.len));
        let counts = request.started >= self.bounds.from;
        if let Err(fault) = landed.result {
            let target = self.tools.files.targets[request.file as usize];
            self.out.failures.add(target, request, fault);
            self.out.left[request.slot as usize] = None;
            self.failed += 1;
            self.tallies[at].failed += u64::from(counts);
            if self.out.failures.total >= FAILURES_MOST {
                self.stopping = true;
                self.out.gave_up = true;
            }
            return Ok(());
        }
        self.landed_bytes[at] += bytes;
        self.landed_ios[at] += 1;
        if counts {
            self.counted_bytes += bytes;
            self.count(landed, at, bytes);
        }
        if self.judges { self.judge(request) } else { Ok(()) }
    }

    #[inline]
    fn count(&mut self, landed: &Landed, at: usize, bytes: u64) {
        let request = &landed.request;
        let tally = &mut self.tallies[at];
        tally.ios += 1;
        tally.bytes += bytes;
        self.last_landed = self.last_landed.max(landed.ended);
        self.recent[at].record(landed.ended.saturating_sub(request.due));
        // Without a GPU leg or a rate, queue and GPU leg are nothing and the file leg is the whole.
        if self.has_gpu {
            tally.legs.file.record(landed.file_ns);
            tally.legs.gpu.record(landed.gpu_ns);
        }
        if self.pacer.is_some() {
            tally.legs.queue.record(request.started.saturating_sub(request.due));
            if !self.has_gpu {
                tally.legs.file.record(landed.file_ns);
            }
        }
    }

    /// Verification between I/Os, or a note of what the slot holds for verification afterwards.
    fn judge(&mut self, request: &Request) -> Result<(), RunError> {
        let block =
            Block { op: request.op, file: request.file, offset: request.offset, len: request.len };
        self.out.left[request.slot as usize] = (request.op == Op::Read).then_some(block);
        if self.task.job.verify != VerifyMode::Inline || request.op == Op::Write {
            return Ok(());
        }
        let began = self.task.gate.clock.now();
        verify::block(self.task, self.tools, request.slot, &block, &mut self.out.inline, true)?;
        self.out.between_ns += self.task.gate.clock.now() - began;
        Ok(())
    }

    fn path_error(&self, source: gpuio_io::path::PathError) -> RunError {
        let (job, thread) = (self.task.job.name.clone(), self.task.plan.thread);
        RunError::Path { job, thread, source: Box::new(source) }
    }

    fn leave(mut self) -> Timed {
        self.hand_over();
        self.publish();
        self.task.first_done.note(self.last_landed, || worker::counted(self.task));
        let [mut reads, mut writes] = self.tallies;
        if !self.has_gpu && self.pacer.is_none() {
            for tally in [&mut reads, &mut writes] {
                tally.legs.file = tally.legs.total.clone();
            }
        }
        self.out.inline.complete = !self.out.interrupted;
        Timed {
            reads,
            writes,
            done_ns: self.last_landed.saturating_sub(self.bounds.from),
            usage: self
                .counted_from
                .map(|from| from.until(&Usage::of_thread()))
                .unwrap_or_default(),
            ..self.out
        }
    }
}
