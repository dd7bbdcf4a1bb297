//! The measured loop: what a worker runs while the clock does.
//!
//! The clock is read once for each batch that is filled, each reap and each look at the GPU's
//! completions on asynchronous engines, and around each call on synchronous ones. An I/O counts
//! when it completed after the ramp. Those in flight at the end of the ramp count, and those in
//! flight at the end of the run don't: about as many, so a short window has the rate of a long one.
//! Those during which the process was stopped don't: how long storage took is not known.
//! Samples that a feed's tier in host memory delivered are verified like all others, and not
//! counted here.

mod habits;
mod leave;
mod rates;

use std::sync::atomic::Ordering;
use std::time::Duration;

use gpuio_base::stat::{Counted, Histogram, IoLine, IoLines, IoLog, Legs, Live, LiveTotals, Tally};
use gpuio_io::clock::{Nanos, stops};
use gpuio_io::engine::{IoFault, Op};
use gpuio_io::path::{self, Completion, Fault, PathInfo, PatternBlock, Place, Request, Start};
use gpuio_record::{DrawnSizes, FAILURES_MOST, JobPlan, NeverStarted, VerifyMode};

use super::RunError;
use super::failures::IoFaults;
use super::feed::{FeedReader, Step};
use super::pattern_keys;
use super::reached::ReachedMap;
use super::replay::{LaneReader, Look};
use super::rusage::Usage;
use super::stonewall;
use super::task::{Task, Tools, side};
use super::verify::{self, Findings};
use super::worker_slot;
use gpuio_base::pattern::Key;
use gpuio_job::workload::blocks;
use gpuio_job::workload::pace::ThreadPhase;
use gpuio_job::workload::sequence::{Block, BlockSequence};
use habits::{Flushes, Thinker};
use rates::Paced;

/// Longest sleep between two looks for an interrupt.
const LOOK: Nanos = 50_000_000;

/// Between two looks of a lane with calls in flight for the ends of others.
const NEXT_LOOK: Nanos = 20_000;

/// The results of the loop.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) reads: Tally,
    pub(super) writes: Tally,
    /// When it counted, on the run's clock: the end of the ramp, and the last I/O that was back.
    pub(super) counted: (Nanos, Nanos),
    /// The totals when the last job of the group began to count; none if it was done before.
    pub(super) before_all: LiveTotals,
    /// The use of the thread and those of its engine from the end of the ramp on.
    pub(super) usage: Usage,
    /// Whether the threads of the engine could be read.
    pub(super) usage_whole: bool,
    pub(super) never_started: Option<NeverStarted>,
    pub(super) drawn_sizes: Option<DrawnSizes>,
    pub(super) failures: IoFaults,
    /// The block that each slot's last read left there, for verification.
    pub(super) left: Vec<Option<Block>>,
    pub(super) inline: Findings,
    pub(super) between_ns: u64,
    /// Calls that sent written data to the medium, and their time.
    pub(super) flushed: Histogram,
    pub(super) gave_up: bool,
    pub(super) interrupted: bool,
    /// I/Os during which the process was stopped, or the machine slept: they count nowhere.
    pub(super) left_out: u64,
    /// The lines of its log, where the job has logs.
    pub(super) log: IoLines,
}

/// The bounds of the loop on the run's clock.
struct Bounds {
    /// I/Os that complete from here on count: the end of the ramp.
    from: Nanos,
    /// From here on all jobs of the group count.
    all_from: Nanos,
    deadline: Option<Nanos>,
    bytes: Option<u64>,
    /// The deadline is behind, and how many bytes are to follow is not known yet.
    wears_out: bool,
}

struct Loop<'a> {
    task: &'a Task<'a>,
    tools: &'a mut Tools,
    bounds: Bounds,
    blocks: Blocks<'a>,
    /// The next block may not be read yet: its batch is too far ahead.
    ahead: bool,
    paced: Paced,
    /// Pauses and flushes, where requested.
    thinker: Option<Thinker>,
    flushes: Option<Flushes>,
    free: Vec<u32>,
    /// A block that the path had no space for.
    pending: Option<Block>,
    completed: Vec<Completion>,
    /// Bytes of I/Os that were started, and of those that completed before the ramp ended.
    issued_bytes: u64,
    early_bytes: u64,
    stopping: bool,
    /// It stops since all bytes that were requested are in flight.
    enough: bool,
    /// When it was seen that nothing more is to be started.
    stopped_at: Option<Nanos>,
    /// Legs of reads and of writes; the total is in `Live`.
    legs: [Legs; 2],
    /// The last I/O that counts was back then.
    last_back: Nanos,
    /// The next of two moments to be taken down: the end of the ramp, and that of all ramps.
    next_mark: Nanos,
    /// This thread's CPU time and that of its engine's threads when the ramp was over.
    used_before: Option<(Usage, Option<Usage>)>,
    /// The totals when all jobs of the group counted.
    before_all: Option<LiveTotals>,
    /// End of the last I/O for `Live`, ramp included.
    last_ended: Nanos,
    /// The run's clock to `CLOCK_MONOTONIC`.
    monotonic: Nanos,
    /// Stops of the process so far, and those when the I/O of each slot was started.
    stops: u32,
    slot_stops: Vec<u32>,
    keys: Vec<Key>,
    /// Whether writes get new data before each I/O.
    prepares: bool,
    /// Whether what completed is verified now or later.
    checks: bool,
    /// Whether the path has a file leg, and whether it has a GPU leg, so that their histograms say
    /// something.
    has_file: bool,
    has_gpu: bool,
    log: Option<IoLog<'a>>,
    out: Timed,
}

/// Where the blocks of a worker come from.
#[expect(clippy::large_enum_variant, reason = "one for each worker; a sequence is at hand")]
enum Blocks<'a> {
    Sequence(BlockSequence),
    Feed(Box<FeedReader<'a>>),
    /// Recorded calls.
    Replay(Box<LaneReader<'a>>),
}

impl Blocks<'_> {
    /// The next block; `None` where all are moved, or where `ahead` is set and none may be yet.
    /// The worker has worked between I/Os for so long. With `op` the block has that direction.
    #[inline]
    fn next(
        &mut self,
        now: Nanos,
        worked_ns: Nanos,
        ahead: &mut bool,
        op: Option<Op>,
    ) -> Option<Block> {
        match self {
            Blocks::Sequence(sequence) => match op {
                Some(op) => sequence.next_as(op),
                None => sequence.next(),
            },
            Blocks::Feed(reader) => match reader.next(now, worked_ns) {
                Step::Read(block) => Some(block),
                Step::End => None,
                Step::Wait => {
                    *ahead = true;
                    None
                }
            },
            Blocks::Replay(lane) => lane.next(now),
        }
    }
}

/// Runs the load from `start` until its bounds, an interrupt, or too many failures.
pub(super) fn run(task: &Task<'_>, tools: &mut Tools, start: Nanos) -> Result<Timed, RunError> {
    let job = task.job;
    let (began, from) = (start + job.latest_first_io_ns(), start + job.measured_from_ns());
    let bounds = Bounds {
        from,
        all_from: start + task.all_from_ns,
        deadline: job.time_over_ns().map(|time| start + time),
        bytes: job.stop.bytes_per_thread,
        wears_out: false,
    };
    let blocks = match (task.feed, task.replay) {
        (Some(feed), _) => Blocks::Feed(Box::new(FeedReader::new(feed, job, task.plan.thread))),
        (None, Some(replay)) => {
            let lane = LaneReader::new(replay, job, task.plan.thread, began);
            Blocks::Replay(Box::new(lane.ok_or_else(|| wrong(job, &"a thread without calls"))?))
        }
        (None, None) => Blocks::Sequence(block_sequence(task, tools)?),
    };
    let paced = Paced::new(job, phase(task), task.plan.seed, began);
    let paced = paced.map_err(|error| wrong(job, &error))?;
    let monotonic = monotonic(task);
    if let Some(worker_slot) = &mut tools.worker_slot {
        worker_slot.begin(u64::from(job.depth), began + monotonic);
    }
    let keys = tools.files.targets.iter().map(|&target| pattern_keys::key(job, target)).collect();
    let slots = job.depth as usize;
    let info = path::find(&job.path.choice.actual).map(|row| &row.info);
    let mut looped = Loop {
        task,
        tools,
        bounds,
        blocks,
        ahead: false,
        paced,
        thinker: job.think.map(Thinker::new),
        flushes: job.flush.map(Flushes::new),
        free: (0..job.depth).rev().collect(),
        pending: None,
        completed: Vec::with_capacity(slots),
        issued_bytes: 0,
        early_bytes: 0,
        stopping: false,
        enough: false,
        stopped_at: None,
        legs: [Legs::default(), Legs::default()],
        last_back: from,
        next_mark: from,
        used_before: None,
        before_all: None,
        last_ended: began,
        monotonic,
        stops: stops::count(),
        slot_stops: vec![0; slots],
        keys,
        prepares: job.works_between_ios(),
        checks: job.verify != VerifyMode::Off,
        has_file: info.is_none_or(PathInfo::has_file_leg),
        has_gpu: info.is_some_and(PathInfo::times_gpu_leg),
        log: log(task),
        out: Timed { left: vec![None; slots], ..Timed::default() },
    };
    looped.await_start(began);
    task.gate.begins(task.gate.clock.now().saturating_sub(began - start));
    looped.go()?;
    looped.flush_at_close()?;
    Ok(looped.leave())
}

/// The offset to add to a time of the run's clock for `CLOCK_MONOTONIC`.
fn monotonic(task: &Task<'_>) -> Nanos {
    gpuio_watch::page::monotonic_ns().saturating_sub(task.gate.clock.now())
}

fn wrong(job: &JobPlan, error: &dyn std::fmt::Display) -> RunError {
    RunError::InvalidPlan { job: job.name.clone(), what: error.to_string() }
}

/// The log of the I/Os that count, where the job has logs.
fn log<'a>(task: &Task<'a>) -> Option<IoLog<'a>> {
    let plan = task.job.logs.as_ref()?;
    Some(IoLog::new(task.log_space?, plan.line_ns))
}

/// Its turn among the threads of the job, which keep the rate each.
fn phase(task: &Task<'_>) -> ThreadPhase {
    ThreadPhase {
        thread: task.plan.thread,
        threads: task.job.threads,
        mean_bytes: u32::try_from(task.job.mean_block_bytes()).unwrap_or(u32::MAX),
    }
}

fn block_sequence(task: &Task<'_>, tools: &Tools) -> Result<BlockSequence, RunError> {
    let config = blocks::config(task.job, task.plan, |target| tools.files.index_of(target));
    BlockSequence::new(&config).map_err(|error| wrong(task.job, &error))
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
            let stops = stops::count();
            if stops != self.stops {
                (self.stops, self.monotonic) = (stops, monotonic(self.task));
            }
            if now >= self.next_mark {
                self.note_begin(now);
            }
            self.look_around(now);
            let waiting_until = if self.stopping { None } else { self.fill(now)? };
            if self.stopping && self.stopped_at.is_none() {
                self.stopped_at = Some(now);
            }
            let out = self.tools.path.in_flight();
            if out == 0 && self.stopping {
                return self.flush_at_end();
            }
            if out == 0 && self.ahead {
                self.await_turn();
                continue;
            }
            if out == 0
                && let Some(due) = waiting_until
            {
                self.idle_until(due);
                continue;
            }
            // With a due time ahead and a free slot the worker must not sleep past it: it looks,
            // and sleeps only as long as it may. With nothing out and no space the path waits for
            // space.
            let wait = waiting_until.is_none();
            let mut completed = std::mem::take(&mut self.completed);
            let advanced = self.tools.path.advance(&self.task.gate.clock, &mut completed, wait);
            let none = completed.is_empty();
            for one in completed.drain(..) {
                self.complete(&one)?;
            }
            self.completed = completed;
            advanced.map_err(|source| self.path_error(source))?;
            self.publish();
            if let Some(due) = waiting_until.filter(|_| none) {
                self.wait_until_due(due)?;
            }
        }
    }

    /// Takes down what was used and moved before the clock of the job, and of all jobs.
    #[cold]
    fn note_begin(&mut self, now: Nanos) {
        if self.used_before.is_none() && now >= self.bounds.from {
            let helpers = Usage::of_threads(&self.tools.helpers);
            self.used_before = Some((Usage::of_thread(), helpers));
            self.task.first_done.process_begins();
        }
        if self.before_all.is_none() && now >= self.bounds.all_from {
            self.before_all = Some(self.live().totals());
        }
        let boundaries = [
            (self.used_before.is_none(), self.bounds.from),
            (self.before_all.is_none(), self.bounds.all_from),
        ];
        let ahead = boundaries.iter().filter(|(ahead, _)| *ahead).map(|(_, at)| *at);
        self.next_mark = ahead.min().unwrap_or(Nanos::MAX);
    }

    /// The time is over, and the load goes on.
    #[cold]
    fn come_to_stonewall(&mut self, now: Nanos) {
        (self.bounds.deadline, self.bounds.wears_out) = (None, true);
        let (moved, begun) =
            (self.live().totals().counted_bytes, self.issued_bytes - self.early_bytes);
        self.task.first_done.wall.come(now, moved, begun);
    }

    #[inline]
    fn live(&self) -> &Live {
        &self.task.gate.live[self.task.live_index]
    }

    #[inline]
    fn publish(&self) {
        if let Some(worker_slot) = &self.tools.worker_slot {
            worker_slot.now(self.last_ended + self.monotonic, self.tools.path.in_flight() as u64);
        }
    }

    /// Bounds and interrupts.
    #[inline]
    fn look_around(&mut self, now: Nanos) {
        if self.bounds.deadline.is_some_and(|deadline| now >= deadline) {
            match stonewall::is_of(self.task.job) {
                true => self.come_to_stonewall(now),
                false => self.stopping = true,
            }
        }
        if self.bounds.wears_out
            && let Some(goal) = self.task.first_done.wall.goal()
        {
            (self.bounds.bytes, self.bounds.wears_out) = (Some(goal), false);
        }
        if self.task.first_done.ended.load(Ordering::Relaxed) {
            self.stopping = true;
        }
        if self.task.gate.stop.load(Ordering::Relaxed) && !self.stopping {
            self.stopping = true;
            self.out.interrupted = true;
        }
    }

    /// Starts I/Os until the path is full, the bounds are reached, or the next is not due yet;
    /// then says when it will be.
    #[inline]
    fn fill(&mut self, now: Nanos) -> Result<Option<Nanos>, RunError> {
        let synchronous = self.tools.path.synchronous();
        let mut stamp = now;
        let mut first = true;
        self.ahead = false;
        while let Some(&slot) = self.free.last() {
            if let Some(thinker) = &mut self.thinker {
                match thinker.look(stamp, self.tools.path.in_flight() == 0) {
                    habits::Think::No => {}
                    habits::Think::WaitForAll => return Ok(None),
                    habits::Think::Until(time) => return Ok(Some(time)),
                }
            }
            if let Some(wait) = self.await_call(stamp) {
                return Ok(wait);
            }
            let due = self.due(stamp);
            if let Some(due) = due
                && due > stamp
            {
                return Ok(Some(due));
            }
            let next = match self.pending {
                None => self.next_block(stamp),
                held => held,
            };
            let Some(block) = next else {
                self.stopping = !self.ahead;
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
                place: match &self.blocks {
                    Blocks::Feed(reader) => reader.place(),
                    Blocks::Sequence(_) | Blocks::Replay(_) => Place::Slot,
                },
                started: stamp,
                due: due.unwrap_or(stamp),
            };
            self.slot_stops[slot as usize] = self.stops;
            match self.tools.path.start(&self.task.gate.clock, request) {
                Start::Taken => self.pending = None,
                Start::Full => {
                    self.pending = Some(block);
                    return Ok(None);
                }
            }
            self.free.pop();
            match &mut self.blocks {
                Blocks::Sequence(_) => {}
                Blocks::Feed(reader) => reader.started(slot, self.out.between_ns),
                Blocks::Replay(lane) => lane.started(slot),
            }
            self.paced.took(block.op, block.len);
            self.issued_bytes += u64::from(block.len);
            if let Some(thinker) = &mut self.thinker {
                thinker.took();
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_block(&mut self, now: Nanos) -> Option<Block> {
        // In the ramp there is no bound; what it left in flight completes after it and counts.
        if let Some(most) = self.bounds.bytes
            && self.used_before.is_some()
            && self.issued_bytes - self.early_bytes >= most
        {
            self.enough = true;
            return None;
        }
        let op = self.paced.direction();
        self.blocks.next(now, self.out.between_ns, &mut self.ahead, op)
    }

    /// The time before which a replay's next call may not start; `None` where it may, or where
    /// there is no replay. With nothing in flight the lane waits for others ([`Loop::await_turn`]).
    #[inline]
    fn await_call(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        let Blocks::Replay(lane) = &mut self.blocks else { return None };
        if self.pending.is_some() {
            return None;
        }
        match lane.look(now) {
            Look::Ready | Look::End => None,
            Look::Until(due) => Some(Some(due)),
            Look::Wait if self.tools.path.in_flight() > 0 => Some(Some(now + NEXT_LOOK)),
            Look::Wait => {
                self.ahead = true;
                Some(None)
            }
        }
    }

    /// Sleeps until the batch in hand may be read, or the next call made, or for a while.
    #[cold]
    fn await_turn(&self) {
        match &self.blocks {
            Blocks::Sequence(_) => {}
            Blocks::Feed(reader) => reader.wait(),
            Blocks::Replay(lane) => lane.wait(),
        }
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
            gpuio_record::Fill::Random => {
                pattern_keys::random_key(job, self.task.plan.seed ^ began)
            }
            gpuio_record::Fill::Zero => pattern_keys::zeros(),
        };
        let offset = pattern_keys::offset(job, block.offset);
        let path = &mut self.tools.path;
        path.generate(PatternBlock::new(slot, key, offset, block.len))
            .map_err(|source| self.path_error(source))?;
        self.out.between_ns += self.task.gate.clock.now() - began;
        Ok(true)
    }

    /// Nothing is out and nothing is due: sleeps, looking up for interrupts.
    fn idle_until(&self, due: Nanos) {
        let clock = &self.task.gate.clock;
        clock.wait_until(due.min(clock.now() + LOOK));
    }

    /// Nothing completed and nothing is due: sleeps until something may have completed, looking up
    /// for interrupts. The last microseconds before the due time are spent awake.
    fn wait_until_due(&mut self, due: Nanos) -> Result<(), RunError> {
        let Some(timeout) = self.task.gate.clock.may_sleep(due) else {
            return Ok(());
        };
        let timeout = timeout.min(Duration::from_nanos(LOOK));
        self.tools.path.wait_timeout(timeout).map_err(|source| self.path_error(source))
    }

    #[inline]
    fn complete(&mut self, completed: &Completion) -> Result<(), RunError> {
        let request = &completed.request;
        // A sample from a tier is no I/O, and in none of the counts of I/Os.
        let from_tier = matches!(request.place, Place::Kept(_)) && completed.result.is_ok();
        if let Some(worker_slot) = self.tools.worker_slot.as_ref().filter(|_| !from_tier) {
            worker_slot::count(worker_slot, completed);
            self.last_ended = completed.ended;
        }
        self.free.push(request.slot);
        let (at, bytes) = (side(request.op), u64::from(request.len));
        let whole = self.slot_stops[request.slot as usize] == stops::count();
        self.out.left_out += u64::from(!whole);
        let counts = whole && completed.ended >= self.bounds.from;
        if counts {
            self.last_back = self.last_back.max(completed.ended);
        } else {
            self.back_early(bytes);
        }
        let counted = Counted { write: request.op == Op::Write, ramp: !counts };
        let latency_ns = completed.ended.saturating_sub(request.due);
        let result = match self.task.job.max_latency_ns {
            Some(most) if latency_ns > most && completed.result.is_ok() => {
                (self.stopping, self.out.gave_up) = (true, true);
                Err(Fault::File(IoFault::Errno(libc::ETIMEDOUT)))
            }
            _ => completed.result,
        };
        if result.is_err() {
            self.live().fail(counted);
        } else if !from_tier && whole {
            self.live().complete(counted, bytes, latency_ns);
            if counts {
                self.note_line(completed, latency_ns);
            }
        }
        // Counted first: an accelerator that takes the last batch of an epoch takes down what was
        // moved until its end.
        match &mut self.blocks {
            Blocks::Sequence(_) => {}
            Blocks::Feed(reader) => {
                reader.completed(request, completed.ended, completed.result.is_ok());
            }
            Blocks::Replay(lane) => lane.completed(request.slot, completed.ended),
        }
        if let Err(fault) = result {
            let target = self.tools.files.targets[request.file as usize];
            self.out.failures.add(target, request, fault);
            self.out.left[request.slot as usize] = None;
            self.note_write(request, target, ReachedMap::failed);
            if self.out.failures.total >= FAILURES_MOST {
                self.stopping = true;
                self.out.gave_up = true;
            }
            return Ok(());
        }
        if from_tier {
            return if self.checks { self.check(request) } else { Ok(()) };
        }
        if request.op == Op::Write && self.flushes.as_mut().is_some_and(Flushes::wrote) {
            self.flush(counts)?;
        }
        if counts && self.has_parts() {
            self.count_legs(completed, at);
        }
        if self.checks { self.check(request) } else { Ok(()) }
    }

    /// A line of the log, where there is one.
    #[inline]
    fn note_line(&mut self, completed: &Completion, latency_ns: Nanos) {
        let Some(log) = &mut self.log else { return };
        let request = &completed.request;
        log.add(IoLine {
            at_ns: completed.ended.saturating_sub(self.bounds.from),
            span_ns: latency_ns,
            ios: 1,
            bytes: u64::from(request.len),
            latency_ns,
            started_ns: completed.ended.saturating_sub(request.started),
            offset: request.offset,
            write: request.op == Op::Write,
        });
    }

    /// I/Os that completed during the ramp don't count toward io_size, even if their completion was
    /// reaped after it.
    fn back_early(&mut self, bytes: u64) {
        self.early_bytes += bytes;
        if self.enough && !self.out.gave_up {
            (self.enough, self.stopping, self.stopped_at) = (false, false, None);
        }
    }

    /// Whether a latency has several parts, so that their histograms say something. Without a queue
    /// the only leg is the whole.
    #[inline]
    fn has_parts(&self) -> bool {
        self.has_file && self.has_gpu || self.paced.is_some()
    }

    #[inline]
    fn count_legs(&mut self, completed: &Completion, at: usize) {
        let legs = &mut self.legs[at];
        if self.has_file {
            legs.file.record(completed.file_ns);
        }
        if self.has_gpu {
            legs.gpu.record(completed.gpu_ns);
        }
        if self.paced.is_some() {
            let request = &completed.request;
            legs.queue.record(request.started.saturating_sub(request.due));
        }
    }

    /// Verification between I/Os, or a note of what the slot holds for verification afterwards.
    fn check(&mut self, request: &Request) -> Result<(), RunError> {
        let block =
            Block { op: request.op, file: request.file, offset: request.offset, len: request.len };
        self.out.left[request.slot as usize] = (request.op == Op::Read).then_some(block);
        let target = self.tools.files.targets[request.file as usize];
        self.note_write(request, target, ReachedMap::completed);
        if self.task.job.verify != VerifyMode::Inline || request.op == Op::Write {
            return Ok(());
        }
        let began = self.task.gate.clock.now();
        verify::block(self.task, self.tools, request.slot, &block, &mut self.out.inline, true)?;
        self.out.between_ns += self.task.gate.clock.now() - began;
        Ok(())
    }

    /// Notes where a write came to its end, for the read-back.
    fn note_write(&self, request: &Request, target: u32, note: fn(&ReachedMap, u64, u64)) {
        if let Some(map) = self.task.reached_maps.get(target as usize)
            && request.op == Op::Write
        {
            note(map, request.offset, u64::from(request.len));
        }
    }

    fn path_error(&self, source: gpuio_io::path::PathError) -> RunError {
        let (job, thread) = (self.task.job.name.clone(), self.task.plan.thread);
        RunError::Path { job, thread, source: Box::new(source) }
    }
}
