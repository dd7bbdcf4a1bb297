//! Faults on purpose: errors, short transfers and delays, by a seed.
//!
//! The n-th I/O that is taken has the n-th fate of the seed, so the same pushes meet the same
//! faults. A delayed I/O runs at once and comes back late; others pass it. In a synchronous
//! engine the push itself takes longer.

pub use gpuio_base::catalog::{Inject, InjectError};

use super::{Done, Engine, EngineConfig, EngineError, Io, IoFault, LegCounters, Op, Push};
use crate::clock::{Clock, Nanos};
use gpuio_base::stat::add_single_writer;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep between two looks at the engine while an I/O is being held back.
const NAP_NS: Nanos = 50_000;

/// The fate of one I/O.
#[derive(Debug, Clone, Copy)]
struct Fate {
    eio: bool,
    enospc: bool,
    lost: bool,
    /// Where to cut, as a random number yet to be brought into range.
    cut: Option<u64>,
    delay: Option<Nanos>,
    /// Requested in the stall, which is no matter of chance.
    stalled: bool,
}

/// An I/O that went to the engine changed, or is to come back late.
struct Marked {
    io: Io,
    due: Nanos,
}

/// The decorator.
pub struct FaultInjector {
    inner: Box<dyn Engine>,
    inject: Inject,
    rng: Xoshiro256PlusPlus,
    direct: bool,
    depth: usize,
    clock: Clock,
    /// When the first I/O came: a stall is that far away from it.
    began: Option<Nanos>,
    /// Drawn for an I/O that the engine had no space for; the next push gets it.
    drawn: Option<Fate>,
    marked: Vec<Marked>,
    /// Back from the engine, or never sent to it, and not to be handed back before the time.
    held: Vec<(Nanos, Done)>,
    /// Kept between calls for its memory.
    batch: Vec<Done>,
    counters: Arc<LegCounters>,
}

impl std::fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultInjector").field("inject", &self.inject).finish_non_exhaustive()
    }
}

impl FaultInjector {
    /// Injects into `inner`, which was opened with `config`. `counters` has what was made.
    pub fn new(
        inner: Box<dyn Engine>,
        inject: &Inject,
        config: &EngineConfig,
        counters: Arc<LegCounters>,
    ) -> FaultInjector {
        FaultInjector {
            counters,
            inner,
            inject: inject.clone(),
            rng: Xoshiro256PlusPlus::seed_from_u64(inject.seed),
            direct: config.direct,
            depth: config.depth.max(1) as usize,
            clock: Clock::start(),
            began: None,
            drawn: None,
            marked: Vec::new(),
            held: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Always five numbers, so that one probability does not shift the others' sequence; a sixth
    /// where writes are to be lost.
    fn draw(&mut self) -> Fate {
        let mut hit = |probability: f64| {
            // 53 random bits make a float in [0, 1) that every one of them can reach.
            let random = (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            random < probability
        };
        let (eio, enospc) = (hit(self.inject.eio), hit(self.inject.enospc));
        let (short, late) = (hit(self.inject.short), hit(self.inject.delay.0));
        let lost = self.inject.lost > 0.0 && hit(self.inject.lost);
        let place = self.rng.next_u64();
        let delay = late.then_some(self.inject.delay.1);
        Fate { eio, enospc, lost, cut: short.then_some(place), delay, stalled: false }
    }

    /// The end of the stall in which the device is now.
    fn stalled_until(&mut self) -> Option<Nanos> {
        let (after, length) = self.inject.stall?;
        let now = self.clock.now();
        let from = self.began.get_or_insert(now).saturating_add(after);
        let until = from.saturating_add(length);
        (from..until).contains(&now).then_some(until)
    }

    /// The bytes left by a cut: at least 1 and fewer than all, whole blocks on a direct file;
    /// all of them when the I/O is too small to be cut.
    fn cut(&self, len: u32, place: u64) -> u32 {
        let (unit, most) = Inject::cuts(len, self.direct);
        if most == 0 {
            return len;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a u32")]
        let units = 1 + (place % u64::from(most)) as u32;
        units * unit
    }

    /// The I/O as it was pushed, and when it may go back.
    fn restore(&mut self, done: Done) -> (Nanos, Done) {
        let (token, ptr) = (done.io.token, done.io.span.as_ptr());
        let same = |m: &Marked| m.io.token == token && m.io.span.as_ptr() == ptr;
        match self.marked.iter().position(same) {
            Some(at) => {
                let Marked { io, due } = self.marked.swap_remove(at);
                (due, Done { io, ..done })
            }
            None => (0, done),
        }
    }

    /// Takes what the engine gives back and hands over all that is due.
    fn collect(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        if self.marked.is_empty() {
            // Those held are not in the engine: what comes out of it has no mark.
            self.inner.reap(done, at_least)?;
        } else {
            let mut batch = std::mem::take(&mut self.batch);
            let outcome = self.inner.reap(&mut batch, at_least);
            for transfer in batch.drain(..) {
                match self.restore(transfer) {
                    (0, back) => done.push(back),
                    held => self.held.push(held),
                }
            }
            self.batch = batch;
            outcome?;
        }
        if !self.held.is_empty() {
            let now = self.clock.now();
            self.held.sort_by_key(|(due, _)| *due);
            let due = self.held.partition_point(|(due, _)| *due <= now);
            done.extend(self.held.drain(..due).map(|(_, back)| back));
        }
        Ok(())
    }

    /// Waits a little for the first one held, or for the engine when none is.
    fn nap(&self) -> usize {
        let Some((due, _)) = self.held.first() else {
            return 1;
        };
        let left = due.saturating_sub(self.clock.now());
        let nap = if self.inner.in_flight() == 0 { left } else { left.min(NAP_NS) };
        std::thread::sleep(Duration::from_nanos(nap));
        0
    }

    fn push_synchronous(&mut self, io: Io, fate: Fate) -> Push {
        let stalled = self.stalled_until();
        let fate = Fate { stalled: stalled.is_some(), ..fate };
        if let Some(until) = stalled {
            self.clock.wait_until(until);
        }
        if let Some(delay) = fate.delay {
            std::thread::sleep(Duration::from_nanos(delay));
        }
        if let Some(result) = ended(&io, fate) {
            self.count(&io, fate, None);
            return Push::Done(Done { io, result });
        }
        let sent = self.shortened(io, fate);
        match self.inner.push(sent) {
            Push::Done(done) => {
                self.count(&io, fate, Some(&sent));
                Push::Done(Done { io, ..done })
            }
            Push::Full(_) => Push::Full(io),
            Push::Taken => Push::Taken,
        }
    }

    /// Counts what became of an I/O that was taken; `sent` is what the engine got of it.
    fn count(&self, io: &Io, fate: Fate, sent: Option<&Io>) {
        let made = &self.counters.injected;
        let one = |counter| add_single_writer(counter, 1);
        match sent {
            None if fate.eio => one(&made.eio),
            None => one(if fate.enospc { &made.enospc } else { &made.lost }),
            Some(sent) if sent.span.len() != io.span.len() => one(&made.short),
            Some(_) => {}
        }
        if fate.delay.is_some() {
            one(&made.delay);
        }
        if fate.stalled {
            one(&made.stall);
        }
    }

    fn shortened(&self, io: Io, fate: Fate) -> Io {
        match fate.cut {
            Some(place) => Io { span: io.span.first(self.cut(io.span.len(), place)), ..io },
            None => io,
        }
    }

    fn push_asynchronous(&mut self, io: Io, fate: Fate) -> Push {
        let due = fate.delay.map_or(0, |delay| self.clock.now() + delay);
        let stalled = self.stalled_until();
        let due = due.max(stalled.unwrap_or(0));
        let fate = Fate { stalled: stalled.is_some(), ..fate };
        if let Some(result) = ended(&io, fate) {
            self.count(&io, fate, None);
            self.held.push((due, Done { io, result }));
            return Push::Taken;
        }
        let sent = self.shortened(io, fate);
        match self.inner.push(sent) {
            Push::Full(_) => {
                self.drawn = Some(fate);
                Push::Full(io)
            }
            Push::Taken => {
                self.count(&io, fate, Some(&sent));
                if due > 0 || sent.span.len() != io.span.len() {
                    self.marked.push(Marked { io, due });
                }
                Push::Taken
            }
            Push::Done(done) => {
                self.count(&io, fate, Some(&sent));
                self.held.push((due, Done { io, ..done }));
                Push::Taken
            }
        }
    }
}

/// How an I/O ends that never reaches the engine. Reads never run out of space, and none is lost.
fn ended(io: &Io, fate: Fate) -> Option<Result<u32, IoFault>> {
    let write = io.op == Op::Write;
    if fate.eio {
        Some(Err(IoFault::Errno(libc::EIO)))
    } else if fate.enospc && write {
        Some(Err(IoFault::Errno(libc::ENOSPC)))
    } else if fate.lost && write {
        Some(Ok(io.span.len()))
    } else {
        None
    }
}

impl Engine for FaultInjector {
    fn push(&mut self, io: Io) -> Push {
        let synchronous = self.inner.synchronous();
        if !synchronous && self.in_flight() >= self.depth {
            return Push::Full(io);
        }
        let fate = match self.drawn.take() {
            Some(fate) => fate,
            None => self.draw(),
        };
        if synchronous { self.push_synchronous(io, fate) } else { self.push_asynchronous(io, fate) }
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        self.inner.submit()
    }

    fn reap(&mut self, done: &mut Vec<Done>, at_least: usize) -> Result<(), EngineError> {
        let want = at_least.min(self.in_flight());
        let from = done.len();
        // With nothing held the engine may as well do all of the waiting.
        let first = if self.held.is_empty() && self.marked.is_empty() { at_least } else { 0 };
        self.collect(done, first)?;
        while done.len() - from < want {
            let lacking = self.nap();
            self.collect(done, lacking)?;
        }
        Ok(())
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Result<(), EngineError> {
        // I/Os that are held come back by time, which the engine does not know.
        let nap = Duration::from_nanos(NAP_NS);
        let held = !self.held.is_empty() || !self.marked.is_empty();
        self.inner.wait_timeout(if held { timeout.min(nap) } else { timeout })
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.held.len()
    }

    fn synchronous(&self) -> bool {
        self.inner.synchronous()
    }
}
