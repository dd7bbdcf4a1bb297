//! A computation on one GPU: a thread that loads the kernel and keeps its stream filled.
//!
//! Launches of about a millisecond follow one another in a stream of their own, of normal priority,
//! and no more of them are in flight than keep the GPU busy while the thread wakes: streams may
//! share a queue of the hardware's, where what comes behind launches waits for them. Events that
//! keep the GPU's time stand around each batch, so a thread that wakes late measures no less.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use gpuio_base::units;
use gpuio_gpu::{Busy, BusyWith, Context, Event, GpuError, Wait};
use gpuio_io::clock::Clock;
use gpuio_record::{ComputationKind, ComputationPlan};

use super::launch_spans::{LaunchSpan, LaunchSpans};
use crate::run::rusage::Usage;

/// How long a launch should take.
pub(in crate::run) const LAUNCH_NS: f64 = 1e6;
/// Launches between two events, and such batches in flight.
const BATCH: u64 = 2;
const AHEAD: usize = 4;
/// Launches that are timed to find their size, and how often that is tried.
const TRIAL: u64 = 4;
const TRIALS: u32 = 8;
/// Pieces of a block in the first trial: some 15 microseconds each.
pub(in crate::run) const FIRST_PIECES: u64 = 16;

/// The measurements of a thread.
#[derive(Debug, Default)]
pub(super) struct Computed {
    pub(super) multiprocessors: u32,
    pub(super) blocks: u32,
    pub(super) occupied: u32,
    /// Operations or bytes of a launch.
    pub(super) launch_work: u64,
    pub(super) spans: LaunchSpans,
    pub(super) cpu_ns: u64,
    /// The failure that ended it.
    pub(super) failed: Option<String>,
}

/// A computation in flight. Dropping it ends it.
pub(super) struct Computing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Computed>>,
    failed: Option<String>,
}

impl Computing {
    /// Starts the thread and returns when the GPU is busy, or the thread has failed, which is
    /// reported by [`Computing::end`].
    pub(super) fn begin(context: &Context, plan: ComputationPlan, clock: Clock) -> Computing {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = channel();
        let (context, requested) = (context.clone(), Arc::clone(&stop));
        let body = move || {
            let mut done = Computed::default();
            let before = Usage::of_thread();
            if let Err(error) = work(&context, plan, clock, &requested, &sender, &mut done) {
                done.failed = Some(error.to_string());
            }
            done.cpu_ns = before.until(&Usage::of_thread()).busy_ns();
            done
        };
        let (thread, failed) = match Builder::new().name("gpuio-busy".to_owned()).spawn(body) {
            Ok(thread) => (Some(thread), None),
            Err(error) => (None, Some(format!("its thread could not be started: {error}"))),
        };
        // It hangs up without a word where it fails.
        let _ = receiver.recv();
        Computing { stop, thread, failed }
    }

    /// Ends it once what is in flight is done.
    pub(super) fn end(mut self) -> Computed {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return Computed { failed: self.failed.take(), ..Computed::default() };
        };
        let broken =
            || Computed { failed: Some("its thread panicked".to_owned()), ..Computed::default() };
        thread.join().unwrap_or_else(|_| broken())
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The kernel's name for what a plan wants.
pub(in crate::run) fn busy_with(kind: ComputationKind) -> BusyWith {
    match kind {
        ComputationKind::Compute => BusyWith::Compute,
        ComputationKind::Memory => BusyWith::Memory,
    }
}

/// Loads the kernel once and drops it: whether this GPU can run the computation at all.
pub(super) fn try_out(context: &Context, plan: ComputationPlan) -> Result<(), GpuError> {
    context.make_current()?;
    Busy::load(context, busy_with(plan.with), 1).map(drop)
}

/// Multiprocessors that are to be busy: the requested share, rounded, and one at least.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the number of multiprocessors"
)]
pub(in crate::run) fn share(multiprocessors: u32, percent: f64) -> u32 {
    let wanted = (f64::from(multiprocessors) * percent / 100.0).round() as u32;
    wanted.clamp(1, multiprocessors.max(1))
}

fn work(
    context: &Context,
    plan: ComputationPlan,
    clock: Clock,
    stop: &AtomicBool,
    sender: &Sender<()>,
    done: &mut Computed,
) -> Result<(), GpuError> {
    context.make_current()?;
    done.multiprocessors = context.driver().multiprocessors(context.device())?;
    done.blocks = share(done.multiprocessors, plan.share_percent);
    let mut busy = Busy::load(context, busy_with(plan.with), done.blocks)?;
    let mut batches = Batches::new(context)?;
    let pieces = calibrate(&mut busy, &batches)?;
    done.occupied = busy.occupied(pieces)?;
    done.launch_work = pieces.saturating_mul(busy.of_piece());
    batches.origin(&busy, clock)?;
    for _ in 0..AHEAD {
        batches.put(&mut busy, pieces)?;
    }
    loop {
        let span = batches.take()?;
        if done.spans.is_empty() {
            let _ = sender.send(());
        }
        done.spans.push(span);
        if stop.load(Ordering::Relaxed) {
            return busy.stream().sync();
        }
        batches.put(&mut busy, pieces)?;
    }
}

/// Pieces of a launch that takes about [`LAUNCH_NS`], a multiple of the blocks.
fn calibrate(busy: &mut Busy, batches: &Batches) -> Result<u64, GpuError> {
    const MOST: f64 = 1e6;
    let blocks = u64::from(busy.blocks());
    let mut each = FIRST_PIECES;
    for _ in 0..TRIALS {
        let [from, to] = &batches.events[0];
        // The first launch finds clocks and caches cold.
        busy.launch(each * blocks)?;
        from.record(busy.stream())?;
        for _ in 0..TRIAL {
            busy.launch(each * blocks)?;
        }
        to.record(busy.stream())?;
        to.sync()?;
        let took = to.ns_since(from)? / TRIAL as f64;
        if (0.8..1.25).contains(&(took / LAUNCH_NS)) || took <= 0.0 {
            break;
        }
        each = units::whole((each as f64 * LAUNCH_NS / took).round().clamp(1.0, MOST));
    }
    Ok(each * blocks)
}

/// Batches of launches in flight, each between two events.
struct Batches {
    /// One pair more than batches in flight: the end of the one before is still looked at.
    events: Vec<[Event; 2]>,
    /// Batches that were put and taken.
    put: usize,
    taken: usize,
    /// When the last one that was taken had ended, on the run's clock.
    end: f64,
}

impl Batches {
    fn new(context: &Context) -> Result<Batches, GpuError> {
        let pair =
            |_| Ok([Event::timed(context, Wait::Block)?, Event::timed(context, Wait::Block)?]);
        let events = (0..=AHEAD).map(pair).collect::<Result<_, GpuError>>()?;
        Ok(Batches { events, put: 0, taken: 0, end: 0.0 })
    }

    /// Finds the offset between the GPU's clock and the run's: at an event in the empty stream,
    /// known within half of the time that it takes to see it. They part by some microseconds in a
    /// second at most, which moves a span and changes no rate.
    fn origin(&mut self, busy: &Busy, clock: Clock) -> Result<(), GpuError> {
        let before = clock.now();
        let end = &self.events[AHEAD][1];
        end.record(busy.stream())?;
        end.sync()?;
        self.end = (before + (clock.now() - before) / 2) as f64;
        Ok(())
    }

    fn put(&mut self, busy: &mut Busy, pieces: u64) -> Result<(), GpuError> {
        let [from, to] = &self.events[self.put % self.events.len()];
        from.record(busy.stream())?;
        for _ in 0..BATCH {
            busy.launch(pieces)?;
        }
        to.record(busy.stream())?;
        self.put += 1;
        Ok(())
    }

    /// Waits for the oldest batch.
    fn take(&mut self) -> Result<LaunchSpan, GpuError> {
        let count = self.events.len();
        let [from, to] = &self.events[self.taken % count];
        let last = &self.events[(self.taken + count - 1) % count][1];
        to.sync()?;
        let (whole, busy) = (to.ns_since(last)?, to.ns_since(from)?);
        self.taken += 1;
        let begin = self.end;
        self.end += whole;
        let (begin, end) = (units::whole(begin), units::whole(self.end));
        Ok(LaunchSpan { begin, end, busy: busy.min(whole), launches: BATCH })
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_of_whole_multiprocessors() {
        assert_eq!(share(132, 100.0), 132);
        assert_eq!(share(132, 50.0), 66);
        assert_eq!(share(132, 0.1), 1);
        assert_eq!(share(132, 1.2), 2);
        assert_eq!(share(1, 50.0), 1);
        assert_eq!(share(1, 1.0), 1);
    }
}
