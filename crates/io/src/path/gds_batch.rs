//! `gds-batch`: cuFile's batches. gdsio's `-x 6`.
//!
//! `cuFileBatchIOSubmit` takes [`GpuSide::batch`] requests at once, and `cuFileBatchIOGetStatus`
//! tells of each when it has ended, in any order. A handle of the library's is submitted again when
//! all of its last batch has ended; with more slots than a batch takes there are several handles.
//! Requests that find none wait, and their latency counts it. A batch that is not full goes when
//! nothing else is under way.
//!
//! [`GpuSide::batch`]: super::GpuSide::batch

use std::time::Duration;

use gpuio_cufile::{Batch, Ended};
use gpuio_gpu::MemKind;

use super::gds::ends::{GdsEnds, fault, setup, sides, way};
use super::gds::progress::Progress;
use super::gds::silence::{Settle, Settled, Silence};
use super::{
    Calls, Config, Fault, Landed, Mismatch, Mover, Opened, Path, PathError, Request, Row, Start,
    cufile_words,
};
use crate::clock::Clock;

const NAME: &str = "gds-batch";

pub(super) const ROW: Row = Row {
    name: NAME,
    gdsio: Some(6),
    gdsio_name: "GPU_BATCH",
    summary: "cuFile's batches: many blocks in one submit, each with an event of its own",
    needs_gpu: true,
    via_gpu: false,
    buffered_only: false,
    buffered_because: None,
    mover: Mover::Cufile(Calls::Batch),
    batches: true,
    // On host memory, batches of release 1.15 fail or end the process (BENCHMARKS.md).
    memory: &[MemKind::Device, MemKind::Vmm],
    open,
};

/// After a submit that was refused: nothing more comes of it when nothing has come for this long.
const QUIET: Duration = Duration::from_millis(100);

/// A handle of the library's and the slots of its last submit that have not ended.
struct Submit {
    batch: Batch,
    slots: Vec<u32>,
}

struct Parts {
    // Drop order: the batches go before what their entries use.
    submits: Vec<Submit>,
    ends: GdsEnds,
    progress: Progress,
    /// Slots that wait for a submit, oldest first.
    open: Vec<u32>,
    /// Slots at which a batch is submitted.
    full: usize,
    ended: Vec<Ended>,
    silence: Silence,
    stuck: bool,
    /// What broke outside [`Path::advance`], for it to tell.
    broken: Option<PathError>,
}

struct GdsBatch(Settled<Parts>);

fn open(config: Config) -> Result<Opened, PathError> {
    let ends = GdsEnds::open(NAME, &config)?;
    let (gpu, cufile) = sides(NAME, &config)?;
    let full = gpu.batch.clamp(1, config.slots);
    let block = config.block_max as usize;
    let submit = |number: u32| {
        // The last handle takes what is left, so that no buffer is counted that nobody can use.
        let capacity = full.min(config.slots - number * full);
        let batch = Batch::set_up(&cufile.driver, capacity, block);
        let batch = batch.map_err(|error| setup(NAME, error.to_string()))?;
        Ok(Submit { batch, slots: Vec::with_capacity(full as usize) })
    };
    let submits = (0..config.slots.div_ceil(full)).map(submit);
    let submits = submits.collect::<Result<Vec<Submit>, PathError>>()?;
    let told = ends.told(&cufile.driver);
    let parts = Parts {
        submits,
        ends,
        progress: Progress::new(config.slots, &config.counters),
        open: Vec::with_capacity(config.slots as usize),
        full: full as usize,
        ended: Vec::with_capacity(full as usize),
        silence: Silence::new(cufile.silence_most),
        stuck: false,
        broken: None,
    };
    Ok(told.of(Box::new(GdsBatch(Settled::new(parts))), Vec::new()))
}

fn broken(what: String) -> PathError {
    PathError::Broken { path: NAME, what }
}

impl Parts {
    fn under_way(&self) -> usize {
        self.submits.iter().filter(|submit| submit.batch.out() > 0).count()
    }

    /// Submits full batches, as far as handles are idle.
    fn offer(&mut self, clock: &Clock) {
        while self.open.len() >= self.full && self.submit(clock) {}
    }

    /// Submits the oldest slots that wait; false if no handle is idle.
    fn submit(&mut self, clock: &Clock) -> bool {
        let idle = self.submits.iter().position(|submit| submit.batch.out() == 0);
        let Some(number) = idle.filter(|_| self.broken.is_none()) else {
            return false;
        };
        let Submit { batch, slots } = &mut self.submits[number];
        let count = self.open.len().min(batch.capacity());
        for slot in self.open.drain(..count) {
            let Some((request, done)) = self.progress.of(slot) else { continue };
            let (piece, handle) = (self.ends.rest(&request, done), self.ends.handle(&request));
            // A cookie of 0 would be a null pointer to the library.
            match batch.push(way(request.op), handle, piece, u64::from(slot) + 1) {
                Ok(()) => slots.push(slot),
                Err(error) => self.progress.land(slot, clock.now(), Err(fault(error))),
            }
        }
        if batch.pushed() == 0 {
            return true;
        }
        // SAFETY: each slot's part of the destination is its request's alone until it lands, what
        // filled it was waited for, and handles and memory live until the batches are gone.
        let submitted = unsafe { batch.submit() };
        if let Err(code) = submitted {
            self.refused(clock, number, code);
        }
        true
    }

    /// A submit failed: what is under way of it all the same ends, the rest fails with the code.
    fn refused(&mut self, clock: &Clock, number: usize, code: i32) {
        let mut ended = std::mem::take(&mut self.ended);
        let renewed = self.submits[number].batch.renew(QUIET, &mut ended);
        self.tell(clock, number, &mut ended);
        self.ended = ended;
        for slot in std::mem::take(&mut self.submits[number].slots) {
            self.progress.land(slot, clock.now(), Err(Fault::Cufile(code)));
        }
        if let Err(error) = renewed {
            self.broken = Some(broken(format!(
                "after a submit that was refused ({}) no other batch could be set up: {error}",
                cufile_words(code)
            )));
        }
    }

    /// Takes what the library says has ended of a batch: each request once.
    fn tell(&mut self, clock: &Clock, number: usize, ended: &mut Vec<Ended>) {
        if ended.is_empty() {
            return;
        }
        let now = clock.now();
        self.silence.broken();
        for (cookie, result) in ended.drain(..) {
            let slots = &mut self.submits[number].slots;
            let at = slots.iter().position(|&slot| u64::from(slot) + 1 == cookie);
            let Some(at) = at else {
                self.broken = Some(broken(format!(
                    "cuFile told of an I/O (cookie {cookie:#x}) that is not under way, or twice of \
                     one: its batches can't be counted"
                )));
                // One of the others may be under way though the library no longer says so.
                self.stuck = true;
                continue;
            };
            let slot = slots.swap_remove(at);
            if self.progress.moved(slot, now, result) {
                self.open.push(slot);
            }
        }
    }

    /// Asks one batch for what has ended, waiting as [`Batch::reap`] does.
    fn reap(&mut self, clock: &Clock, number: usize, least: usize, patience: Duration) {
        let mut ended = std::mem::take(&mut self.ended);
        let reaped = self.submits[number].batch.reap(least, patience, &mut ended);
        self.tell(clock, number, &mut ended);
        self.ended = ended;
        if let Err(code) = reaped {
            let words = cufile_words(code);
            self.broken = Some(broken(format!("cuFileBatchIOGetStatus: {words}")));
            self.stuck = true;
        }
    }

    /// Asks all batches that are under way; one alone is waited for in the library.
    fn look(&mut self, clock: &Clock, wait: bool) {
        let alone = self.under_way() == 1;
        let (least, patience) = match wait && alone {
            true => (1, self.silence.slice()),
            false => (0, Duration::ZERO),
        };
        for number in 0..self.submits.len() {
            if self.submits[number].batch.out() > 0 {
                self.reap(clock, number, least, patience);
            }
        }
        if wait && !alone {
            // Whichever ends first is to be seen first, so none of several is waited for.
            std::thread::yield_now();
        }
    }

    /// Moves requests on until one has landed; without `wait`, as far as they are.
    fn drive(&mut self, clock: &Clock, wait: bool) -> Result<(), PathError> {
        let mut first = true;
        loop {
            self.offer(clock);
            // Nothing is under way: what has come so far gains nothing by waiting for more.
            if self.under_way() == 0 && !self.open.is_empty() {
                self.submit(clock);
            }
            if let Some(error) = self.broken.take() {
                self.stuck |= self.under_way() > 0;
                return Err(error);
            }
            let done = !self.progress.none_ready() || self.progress.out() == 0;
            if done || (!wait && !first) {
                return Ok(());
            }
            self.look(clock, wait);
            first = false;
            if self.progress.none_ready() && self.under_way() > 0 {
                let goes_on = self.silence.goes_on(clock, NAME, self.progress.out());
                self.stuck |= goes_on.is_err();
                goes_on?;
            }
        }
    }
}

impl Settle for Parts {
    fn settle(&mut self) -> bool {
        let clock = Clock::start();
        // It was counted on the run's clock.
        self.silence.broken();
        while !self.stuck && self.under_way() > 0 {
            self.look(&clock, true);
            self.stuck |= self.silence.goes_on(&clock, NAME, self.progress.out()).is_err();
        }
        !self.stuck
    }
}

impl Path for GdsBatch {
    fn start(&mut self, clock: &Clock, request: Request) -> Start {
        self.0.progress.take(request);
        self.0.open.push(request.slot);
        self.0.offer(clock);
        Start::Taken
    }

    fn advance(
        &mut self,
        clock: &Clock,
        landed: &mut Vec<Landed>,
        wait: bool,
    ) -> Result<(), PathError> {
        let outcome = self.0.drive(clock, wait);
        // Also after an error: these have landed.
        self.0.progress.deliver(landed);
        outcome
    }

    fn in_flight(&self) -> usize {
        self.0.progress.out()
    }

    fn synchronous(&self) -> bool {
        false
    }

    // The GPU is waited for in both: an I/O of which the library said that it is complete may still
    // be on its way between buffers of the library's and GPU memory, in streams that it shows nobody.

    fn generate(&mut self, slot: u32, key: u64, offset: u64, len: u32) -> Result<(), PathError> {
        self.0.ends.quiet()?;
        self.0.ends.generate(slot, key, offset, len)
    }

    fn check(
        &mut self,
        slot: u32,
        key: u64,
        offset: u64,
        len: u32,
    ) -> Result<Option<Mismatch>, PathError> {
        self.0.ends.quiet()?;
        self.0.ends.check(slot, key, offset, len)
    }
}
