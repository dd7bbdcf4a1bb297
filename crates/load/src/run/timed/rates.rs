//! The rates that a worker keeps: none, one of all I/Os, or one of reads and one of writes.

use gpuio_io::clock::Nanos;
use gpuio_io::engine::Op;
use gpuio_job::workload::pace::{PaceError, Pacer, ThreadPhase};
use gpuio_record::{JobPlan, Pacing};

use super::super::task::side;
use super::{Blocks, Loop};

/// When the next I/O is due.
#[derive(Debug, Default)]
pub(super) enum Paced {
    /// At once.
    #[default]
    Free,
    /// By this.
    One(Pacer),
    /// By that of its direction.
    Two(Box<Two>),
}

/// Rates of both directions. The mix draws which one is next; where that one is not due yet and the
/// other is, the other takes its turn, as in fio: the mix that comes of it follows from the rates.
#[derive(Debug)]
pub(super) struct Two {
    /// Those of reads and of writes; `None` without a rate.
    pacers: [Option<Pacer>; 2],
    /// The direction of the next I/O.
    next: Option<Op>,
}

impl Paced {
    pub(super) fn new(
        job: &JobPlan,
        phase: ThreadPhase,
        seed: u64,
        began: Nanos,
    ) -> Result<Paced, PaceError> {
        let some = |pacing: &Pacing| pacing.bytes_per_s.is_some() || pacing.iops.is_some();
        let pacer = |pacing: Option<&Pacing>, seed| {
            let pacing = pacing.filter(|pacing| some(pacing));
            pacing.map(|pacing| Pacer::new(pacing, phase, seed, began)).transpose()
        };
        let reads = pacer(job.pacing.as_ref(), seed)?;
        match &job.write_pacing {
            None => Ok(reads.map_or(Paced::Free, Paced::One)),
            Some(writes) => {
                let pacers = [reads, pacer(Some(writes), !seed)?];
                Ok(Paced::Two(Box::new(Two { pacers, next: None })))
            }
        }
    }

    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Paced::Free)
    }

    /// The direction that the next block is to have, where rates choose it.
    #[inline]
    pub(super) fn direction(&self) -> Option<Op> {
        match self {
            Paced::Two(two) => two.next,
            Paced::Free | Paced::One(_) => None,
        }
    }

    /// An I/O was started.
    #[inline]
    pub(super) fn took(&mut self, op: Op, len: u32) {
        match self {
            Paced::Free => {}
            Paced::One(pacer) => pacer.took(len),
            Paced::Two(two) => {
                two.next = None;
                if let Some(pacer) = &mut two.pacers[side(op)] {
                    pacer.took(len);
                }
            }
        }
    }
}

impl Two {
    /// When an I/O of a direction is due; at once without a rate.
    fn due(&self, op: Op, now: Nanos) -> Nanos {
        self.pacers[side(op)].as_ref().map_or(now, Pacer::due)
    }

    /// When the next one is due, of the direction that was drawn or of the other.
    fn choose(&mut self, drawn: Op, now: Nanos) -> Nanos {
        let other = match drawn {
            Op::Read => Op::Write,
            Op::Write => Op::Read,
        };
        let (first, second) = (self.due(drawn, now), self.due(other, now));
        let op = if first > now && second < first { other } else { drawn };
        self.next = Some(op);
        self.due(op, now)
    }
}

impl Loop<'_> {
    /// When the next I/O is due, where there is a rate.
    #[inline]
    pub(super) fn due(&mut self, now: Nanos) -> Option<Nanos> {
        match &mut self.paced {
            Paced::Free => None,
            Paced::One(pacer) => Some(pacer.due()),
            Paced::Two(two) => {
                let held = self.pending.map(|block| block.op).or(two.next);
                let drawn = match (held, &mut self.blocks) {
                    (Some(op), _) => op,
                    (None, Blocks::Sequence(sequence)) => sequence.direction(),
                    (None, Blocks::Feed(_) | Blocks::Replay(_)) => Op::Read,
                };
                if self.pending.is_some() {
                    return Some(two.due(drawn, now));
                }
                Some(two.choose(drawn, now))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::Arrivals;

    use super::*;

    #[test]
    fn the_direction_that_is_due_takes_the_turn_of_one_that_is_not() {
        let pacing = |iops| Pacing { bytes_per_s: None, iops, arrivals: Arrivals::Steady };
        let phase = ThreadPhase { thread: 0, threads: 1, mean_bytes: 4096 };
        let mut job = gpuio_testkit::jobs::job("rw=randrw");
        (job.pacing, job.write_pacing) = (Some(pacing(Some(1000))), Some(pacing(Some(10))));
        let Ok(Paced::Two(mut two)) = Paced::new(&job, phase, 1, 0) else { panic!("two rates") };
        let mut counts = [0; 2];
        for nth in 0..1000 {
            let now = 0;
            let drawn = if nth % 2 == 0 { Op::Read } else { Op::Write };
            two.choose(drawn, now);
            let op = two.next.take().unwrap();
            counts[side(op)] += 1;
            two.pacers[side(op)].as_mut().unwrap().took(4096);
        }
        assert_eq!(counts, [990, 10], "100 to 1, the first of each at once");
        job.write_pacing = Some(pacing(None));
        let Ok(Paced::Two(mut two)) = Paced::new(&job, phase, 1, 5) else { panic!("two rates") };
        assert_eq!((two.choose(Op::Read, 4), two.next), (4, Some(Op::Write)), "no rate: at once");
    }
}
