//! The thread of an accelerator: it takes batch after batch and keeps its GPU busy for a step.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use gpuio_base::stat::Histogram;
use gpuio_base::units::{float, whole};
use gpuio_gpu::{Busy, Context, Event, GpuError, Wait};
use gpuio_io::clock::{Clock, Nanos};
use gpuio_record::{FeedCompute, JobPlan};

use super::{Feed, LOOK, hold, storage_read};
use crate::run::RunError;
use crate::run::computation::{self, FIRST_PIECES, LAUNCH_NS};
use crate::run::gate::{Gate, Stage};

/// Launches that are timed to find their size, and how often that is tried.
const TRIAL: u32 = 4;
const TRIALS: u32 = 8;
/// Launches between two marks, and such batches of them in flight: streams may share a queue of the
/// hardware's, where the copies of readers behind many launches would wait for all of them.
const BATCH: u32 = 2;
const AHEAD: usize = 4;
/// Steps that are timed with nothing else going on, as many as this time has, and this many at
/// most.
const ALONE_NS: u64 = 1_000_000_000;
const ALONE_MOST: u64 = 5;

/// The measurements of an accelerator.
#[derive(Debug, Default)]
pub(in crate::run) struct Accelerated {
    pub(super) number: u32,
    pub(super) gpu: Option<u32>,
    pub(super) steps: u64,
    pub(super) samples: u64,
    pub(super) stall_ns: u64,
    pub(super) first_batch_ns: u64,
    pub(super) wait: Histogram,
    /// A step's computation: alone, and all of them during the feed.
    pub(super) alone_ns: Option<u64>,
    pub(super) compute_ns: u64,
    pub(super) occupied: Option<u32>,
    pub(super) multiprocessors: Option<u32>,
    pub(super) epochs: Vec<EpochSeen>,
    /// When the feed began and its last step was over, on the run's clock.
    pub(super) span: (Nanos, Nanos),
    pub(super) failed: Option<String>,
    /// It came to its end: all that it made is written.
    pub(super) is_over: bool,
}

/// Bytes that were moved for a job until some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MovedSoFar {
    /// By I/Os of its own that were back.
    pub(super) moved: u64,
    /// Read from storage; `None` where the process's counter has more than the job's.
    pub(super) storage: Option<u64>,
}

impl MovedSoFar {
    fn now(feed: &Feed, gate: &Gate) -> MovedSoFar {
        let own = gate.live.get(feed.live.clone()).unwrap_or_default();
        MovedSoFar {
            moved: own.iter().map(|live| live.totals().counted_bytes).sum(),
            storage: storage_read().filter(|_| feed.reads_alone),
        }
    }
}

/// The measurements of an accelerator in an epoch. Times are on the run's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct EpochSeen {
    pub(super) steps: u64,
    /// Ends of its first step, its last but one and its last.
    pub(super) first_end: Nanos,
    pub(super) before_last_end: Nanos,
    pub(super) last_end: Nanos,
    /// Time of the computation of its last step, and of all between the first and the last.
    last_ns: u64,
    pub(super) between_ns: u64,
    /// Bytes that had been moved by its end, or when the feed was cut short in it.
    pub(super) moved: Option<MovedSoFar>,
}

pub(in crate::run) struct Accelerators<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Accelerated>>,
}

impl<'scope> Accelerators<'scope> {
    /// Starts the threads of a job and returns when all are calibrated.
    pub(in crate::run) fn begin(
        scope: &'scope Scope<'scope, '_>,
        feed: &'scope Feed,
        job: &'scope JobPlan,
        gate: &'scope Gate,
        context: impl Fn(u32) -> Option<Context>,
    ) -> Result<Accelerators<'scope>, RunError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..feed.plan.accelerators {
            let gpu = job.gpus.get(number as usize % job.gpus.len().max(1)).map(|gpu| gpu.index);
            let (context, sender) = (gpu.and_then(&context), sender.clone());
            let runtime_ns = job.stop.runtime_ns;
            let body =
                move || run(feed, gate, (number, gpu), (context.as_ref(), runtime_ns), &sender);
            let builder = Builder::new().name(format!("gpuio-compute-{number}"));
            let thread = builder.spawn_scoped(scope, body).map_err(|error| RunError::Spawn {
                job: job.name.clone(),
                thread: number,
                threads: feed.plan.accelerators,
                what: error.to_string(),
            })?;
            threads.push(thread);
        }
        drop(sender);
        for _ in 0..threads.len() {
            let failed = |what: String, index| RunError::NoComputation {
                job: job.name.clone(),
                index,
                what,
            };
            match receiver.recv() {
                Ok(Ok(())) => {}
                Ok(Err((what, gpu))) => return Err(failed(what, gpu)),
                Err(_) => {
                    let what = "a thread of an accelerator ended before it was ready".to_owned();
                    return Err(RunError::Panic { job: job.name.clone(), what });
                }
            }
        }
        Ok(Accelerators { threads })
    }

    /// The measurements of all, once they have ended; `None` for one that panicked.
    pub(in crate::run) fn join(self) -> Vec<Option<Accelerated>> {
        self.threads.into_iter().map(|thread| thread.join().ok()).collect()
    }
}

/// Counts an accelerator out, and ends the feed where it was not at its end.
struct AtWork<'a>(&'a Feed, bool);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.end();
        }
        self.0.leave();
    }
}

/// A failure and the GPU that it is of.
type AcceleratorError = (String, u32);

fn run(
    feed: &Feed,
    gate: &Gate,
    (number, gpu): (u32, Option<u32>),
    (context, runtime_ns): (Option<&Context>, Option<u64>),
    sender: &Sender<Result<(), AcceleratorError>>,
) -> Accelerated {
    let mut at_work = AtWork(feed, false);
    let mut seen = Accelerated { number, gpu, ..Accelerated::default() };
    let mut work = match Work::new(feed, context, gate.clock, &mut seen) {
        Ok(work) => work,
        Err(error) => {
            let _ = sender.send(Err((error.to_string(), gpu.unwrap_or(0))));
            return seen;
        }
    };
    let _ = sender.send(Ok(()));
    let Stage::Running(start) = gate.await_start() else { return seen };
    // The start is announced a little ahead.
    gate.clock.wait_until(start);
    seen.span = (start, start);
    match steps(feed, gate, &mut work, runtime_ns, &mut seen) {
        Ok(all) => (at_work.1, seen.is_over) = (all, all),
        Err(error) => seen.failed = Some(error.to_string()),
    }
    note_moved(feed, gate, &mut seen);
    seen
}

/// Takes batches to the end; false where the readers ended before.
fn steps(
    feed: &Feed,
    gate: &Gate,
    work: &mut Work,
    runtime_ns: Option<u64>,
    seen: &mut Accelerated,
) -> Result<bool, GpuError> {
    let (shape, number) = (&feed.shape, seen.number);
    let clock = gate.clock;
    let mut from = seen.span.0;
    let deadline = runtime_ns.map_or(Nanos::MAX, |time| from + time);
    let mut is_first = true;
    for step in 0..shape.all_steps() {
        if let Some(batch) = shape.batch_of(number, step) {
            let awaited = feed.awaited(step);
            if awaited.is_some_and(|step| !await_batch(feed, gate, deadline, (number, step))) {
                return Ok(false);
            }
            if !feed.plan.writes {
                take(feed, number, step);
            }
            let there = clock.now();
            let waited = there.saturating_sub(from);
            if is_first {
                seen.first_batch_ns = waited;
            } else {
                seen.stall_ns += waited;
                seen.wait.record(waited);
            }
            is_first = false;
            work.step(clock, feed.plan.compute_ns)?;
            let done = clock.now();
            if feed.plan.writes {
                take(feed, number, step);
            }
            seen.compute_ns += done - there;
            seen.steps += 1;
            seen.samples += shape.samples_in(batch);
            note(feed, step, (there, done), seen);
        } else if feed.plan.writes {
            // Nothing to write, and its reader may see that.
            take(feed, number, step);
        }
        if feed.plan.accelerators > 1 && !feed.meet(step) {
            return Ok(false);
        }
        from = clock.now();
        // The last writes are waited for first.
        let is_last = feed.plan.writes && step + 1 == shape.all_steps();
        if (step + 1).is_multiple_of(shape.steps()) && !is_last {
            note_moved(feed, gate, seen);
        }
    }
    Ok(!feed.plan.writes || await_written(feed, gate, deadline, seen))
}

/// Takes down what had been moved when the last epoch of this accelerator ended, for whatever
/// reason.
fn note_moved(feed: &Feed, gate: &Gate, seen: &mut Accelerated) {
    if let Some(last) = seen.epochs.last_mut() {
        last.moved.get_or_insert_with(|| MovedSoFar::now(feed, gate));
    }
}

/// Waits until the last batches that were made are written; false where they will not be.
fn await_written(feed: &Feed, gate: &Gate, deadline: Nanos, seen: &mut Accelerated) -> bool {
    let all = feed.shape.all_steps();
    let from = gate.clock.now();
    for step in all.saturating_sub(feed.ahead())..all {
        let is_one = feed.shape.batch_of(seen.number, step).is_some();
        if is_one && !await_batch(feed, gate, deadline, (seen.number, step)) {
            return false;
        }
    }
    let waited = gate.clock.now().saturating_sub(from);
    seen.stall_ns += waited;
    seen.wait.record(waited);
    seen.span.1 = gate.clock.now();
    true
}

/// Says that a batch was taken, or made.
fn take(feed: &Feed, number: u32, step: u64) {
    let queue = feed.queue(number);
    let state = hold(&queue.state);
    queue.taken.store(step + 1, Ordering::Relaxed);
    drop(state);
    queue.changed.notify_all();
}

/// Takes down a step: when its computation began and ended.
fn note(feed: &Feed, step: u64, (began, done): (Nanos, Nanos), seen: &mut Accelerated) {
    seen.span.1 = done;
    let epoch = epoch_mut(feed, step, seen);
    let before = std::mem::replace(&mut epoch.last_ns, done - began);
    match epoch.steps {
        0 => epoch.first_end = done,
        1 => {}
        _ => epoch.between_ns += before,
    }
    epoch.steps += 1;
    (epoch.before_last_end, epoch.last_end) = (epoch.last_end, done);
}

/// The measurements of the epoch of a step.
fn epoch_mut<'a>(feed: &Feed, step: u64, seen: &'a mut Accelerated) -> &'a mut EpochSeen {
    let at = usize::try_from(feed.shape.epoch_of(step)).unwrap_or(0);
    if seen.epochs.len() <= at {
        seen.epochs.resize(at + 1, EpochSeen::default());
    }
    &mut seen.epochs[at]
}

/// Waits until the batch of a step is there, or written; false where it will not be, or is not to
/// be waited for.
fn await_batch(feed: &Feed, gate: &Gate, deadline: Nanos, (number, step): (u32, u64)) -> bool {
    let queue = feed.queue(number);
    let reader = usize::try_from(step % u64::from(feed.plan.readers)).unwrap_or(0);
    let mut state = hold(&queue.state);
    loop {
        if gate.stop.load(Ordering::Relaxed) || gate.clock.now() >= deadline {
            return false;
        }
        if state.readers[reader].read_before > step {
            return true;
        }
        if state.readers[reader].left || feed.has_ended() {
            return false;
        }
        let woken = queue.changed.wait_timeout(state, LOOK);
        state = woken.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The work of an accelerator for a step.
enum Work {
    Kernel(Box<Kernel>),
    Sleep,
    Nothing,
}

struct Kernel {
    busy: Busy,
    /// Ends of batches of launches, in turn, and the end of a step.
    marks: Vec<Event>,
    done: Event,
    launches: u32,
    pieces: u64,
}

impl Work {
    /// Gets ready and, where a kernel is to be used, finds out how much of it is a step.
    fn new(
        feed: &Feed,
        context: Option<&Context>,
        clock: Clock,
        seen: &mut Accelerated,
    ) -> Result<Work, GpuError> {
        let (with, share) = match (feed.plan.compute, context) {
            (FeedCompute::None, _) => return Ok(Work::Nothing),
            (FeedCompute::Kernel { with, share_percent }, Some(_)) => (with, share_percent),
            (FeedCompute::Sleep | FeedCompute::Kernel { .. }, _) => {
                seen.alone_ns = Some(feed.plan.compute_ns);
                return Ok(Work::Sleep);
            }
        };
        // The plan has no kernel on paths without a GPU.
        let Some(context) = context else { return Ok(Work::Sleep) };
        let _alone = hold(&feed.calibrating);
        context.make_current()?;
        let multiprocessors = context.driver().multiprocessors(context.device())?;
        let blocks = computation::share(multiprocessors, share);
        let mut kernel = Kernel {
            busy: Busy::load(context, computation::busy_with(with), blocks)?,
            marks: (0..AHEAD)
                .map(|_| Event::new(context, Wait::Block))
                .collect::<Result<_, GpuError>>()?,
            done: Event::new(context, Wait::Block)?,
            launches: 1,
            pieces: FIRST_PIECES * u64::from(blocks),
        };
        kernel.calibrate(clock, feed.plan.compute_ns)?;
        seen.multiprocessors = Some(multiprocessors);
        seen.occupied = Some(kernel.busy.occupied(kernel.pieces)?);
        seen.alone_ns = Some(kernel.alone(clock, feed.plan.compute_ns)?);
        Ok(Work::Kernel(Box::new(kernel)))
    }

    fn step(&mut self, clock: Clock, compute_ns: u64) -> Result<(), GpuError> {
        match self {
            Work::Kernel(kernel) => kernel.step(),
            Work::Sleep => {
                clock.wait_until(clock.now() + compute_ns);
                Ok(())
            }
            Work::Nothing => Ok(()),
        }
    }
}

impl Kernel {
    /// Computes for a step and waits for its end.
    fn step(&mut self) -> Result<(), GpuError> {
        let mut batches = 0;
        for nth in 0..self.launches {
            if nth.is_multiple_of(BATCH) && batches >= AHEAD {
                self.marks[batches % AHEAD].sync()?;
            }
            self.busy.launch(self.pieces)?;
            if (nth + 1).is_multiple_of(BATCH) {
                self.marks[batches % AHEAD].record(self.busy.stream())?;
                batches += 1;
            }
        }
        self.done.record(self.busy.stream())?;
        self.done.sync()
    }

    /// Time of `launches` launches.
    fn time(&mut self, clock: Clock, launches: u32) -> Result<f64, GpuError> {
        let kept = std::mem::replace(&mut self.launches, launches);
        let began = clock.now();
        let stepped = self.step();
        self.launches = kept;
        stepped.map(|()| float(clock.now() - began))
    }

    /// The shortest of a few such times: what else is at work only makes them longer, and launches
    /// that were sized by it would compute too little.
    fn shortest(&mut self, clock: Clock, launches: u32) -> Result<f64, GpuError> {
        let mut least = f64::MAX;
        for _ in 0..3 {
            least = least.min(self.time(clock, launches)?);
        }
        Ok(least)
    }

    /// Finds the number and size of launches that take the time of a step.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
    fn calibrate(&mut self, clock: Clock, compute_ns: u64) -> Result<(), GpuError> {
        const MOST: f64 = 1e6;
        let step_ns = float(compute_ns);
        let blocks = u64::from(self.busy.blocks());
        let wanted = step_ns / (step_ns / LAUNCH_NS).ceil().max(1.0);
        // The first launches find clocks and caches cold.
        self.time(clock, TRIAL)?;
        for _ in 0..TRIALS {
            let took = self.shortest(clock, TRIAL)? / f64::from(TRIAL);
            if (0.95..1.05).contains(&(took / wanted)) || took <= 0.0 {
                break;
            }
            let each = float(self.pieces / blocks) * wanted / took;
            self.pieces = each.round().clamp(1.0, MOST) as u64 * blocks;
        }
        self.launches = (step_ns / wanted).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        // A whole step has less of what each wait costs.
        let took = self.shortest(clock, self.launches)?;
        let each = float(self.pieces / blocks) * step_ns / took.max(1.0);
        self.pieces = each.round().clamp(1.0, MOST) as u64 * blocks;
        Ok(())
    }

    /// The mean time of a step with nothing else going on, in nanoseconds.
    fn alone(&mut self, clock: Clock, compute_ns: u64) -> Result<u64, GpuError> {
        let times = (ALONE_NS / compute_ns.max(1)).clamp(1, ALONE_MOST);
        let mut all = 0.0;
        for _ in 0..times {
            all += self.time(clock, self.launches)?;
        }
        Ok(whole((all / float(times)).round()))
    }
}
