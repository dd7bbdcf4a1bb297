//! When the next I/O is due.

use gpuio_base::units::whole;
use gpuio_record::{Arrivals, Pacing};
use thiserror::Error;

use crate::workload::sequence::stream::{Stream, Use};

#[cfg(test)]
mod tests;

const NANOS_PER_S: u128 = 1_000_000_000;

/// A rate that cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PaceError {
    /// Neither bytes nor I/Os per second.
    #[error("a rate without bytes per second and without I/Os per second; give one of them")]
    Nothing,
    /// A rate of 0.
    #[error("a rate of 0 {what} per second would never start; give at least 1")]
    Zero {
        /// `bytes` or `I/Os`.
        what: &'static str,
    },
    /// A job without threads.
    #[error("a rate kept by 0 threads; a job has at least 1")]
    NoThreads,
}

/// Due times of one thread's I/Os at a rate, on the run's clock.
///
/// Due times depend on the rate and on the lengths alone, never on when an I/O really began: after
/// a stall they lie in the past, the thread issues without waiting until it has caught up, and the
/// distance between due time and start is time that the I/O spent queueing. Hiding it would make
/// a system that stalls look fast ("coordinated omission").
///
/// With both limits each I/O is followed by the longer of its two gaps, so that neither rate is
/// exceeded over any span of due times. Fractions of a nanosecond are carried over: there is no
/// drift.
#[derive(Debug, Clone)]
pub struct Pacer {
    due: u64,
    bytes: Option<Meter>,
    ios: Option<Meter>,
    poisson: Option<Poisson>,
}

/// A thread's turn among those of its job: they keep its rate each, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPhase {
    /// Number of the thread within its job.
    pub thread: u32,
    pub threads: u32,
    /// Bytes of an I/O on average, by which a gap at a rate in bytes is known before the first.
    pub mean_bytes: u32,
}

/// A rate as a fraction: `units * NANOS_PER_S / rate` nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Meter {
    rate: u128,
    /// The remainder of the division for the gaps used so far.
    rest: u128,
}

#[derive(Debug, Clone)]
struct Poisson {
    stream: Stream,
    /// Part of a nanosecond that is still to be added, below 1.
    rest: f64,
}

impl Pacer {
    /// Due times of one thread from `start` on, at the whole rate: it is each thread's own. Steady
    /// arrivals of thread i of N begin i Nths of a gap later, so that those of the job are even;
    /// begun together, all N would come at once, and wait for each other, at each beat. Random
    /// arrivals begin with a gap of their own.
    ///
    /// # Errors
    /// [`PaceError`] when there is no rate or it is 0.
    pub fn new(
        pacing: &Pacing,
        phase: ThreadPhase,
        seed: u64,
        start: u64,
    ) -> Result<Pacer, PaceError> {
        if phase.threads == 0 {
            return Err(PaceError::NoThreads);
        }
        let meter = |rate: Option<u64>, what| match rate {
            Some(0) => Err(PaceError::Zero { what }),
            Some(rate) => Ok(Some(Meter { rate: rate.into(), rest: 0 })),
            None => Ok(None),
        };
        let (bytes, ios) = (meter(pacing.bytes_per_s, "bytes")?, meter(pacing.iops, "I/Os")?);
        if bytes.is_none() && ios.is_none() {
            return Err(PaceError::Nothing);
        }
        let poisson = match pacing.arrivals {
            Arrivals::Steady => None,
            Arrivals::Poisson => {
                Some(Poisson { stream: Stream::new(seed, Use::Arrivals), rest: 0.0 })
            }
        };
        let mut pacer = Pacer { due: start, bytes, ios, poisson };
        if pacer.poisson.is_some() {
            pacer.took(phase.mean_bytes);
        } else {
            let by_bytes = pacer.bytes.map_or(0, |meter| meter.gap(phase.mean_bytes).0);
            let gap = pacer.ios.map_or(0, |meter| meter.gap(1).0).max(by_bytes);
            let later = gap * u128::from(phase.thread) / u128::from(phase.threads);
            pacer.due = start.saturating_add(u64::try_from(later).unwrap_or(u64::MAX));
        }
        Ok(pacer)
    }

    /// When the next I/O is due. Never earlier than the one before.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Says that the I/O that was due has `len` bytes; the next one is due one gap later. The gap
    /// of random arrivals is exponential, with the gap of steady ones as its mean.
    pub fn took(&mut self, len: u32) {
        let gap = match &mut self.poisson {
            None => steady_gap(&mut self.bytes, &mut self.ios, len),
            Some(poisson) => {
                let mean = [self.bytes.map(|meter| meter.exact(len)), self.ios.map(|m| m.exact(1))];
                poisson.gap(mean.into_iter().flatten().fold(0.0, f64::max))
            }
        };
        self.due = self.due.saturating_add(gap);
    }
}

impl Meter {
    /// The gap after `units`, in nanoseconds, and the meter as it is if this gap is used.
    fn gap(self, units: u32) -> (u128, Meter) {
        // Below 2^32 * 2^30 plus a remainder below 2^64: far from 2^128.
        let parts = u128::from(units) * NANOS_PER_S + self.rest;
        (parts / self.rate, Meter { rest: parts % self.rate, ..self })
    }

    /// The gap after `units` with its fraction.
    fn exact(self, units: u32) -> f64 {
        f64::from(units) * NANOS_PER_S as f64 / self.rate as f64
    }
}

/// The longer gap. Only the meter that set it carries its remainder on.
fn steady_gap(bytes: &mut Option<Meter>, ios: &mut Option<Meter>, len: u32) -> u64 {
    let by_bytes = bytes.map(|meter| meter.gap(len));
    let by_ios = ios.map(|meter| meter.gap(1));
    let gap = match (by_bytes, by_ios) {
        (Some((gap, after)), None) => {
            *bytes = Some(after);
            gap
        }
        (Some((gap, after)), Some((other, _))) if gap > other => {
            *bytes = Some(after);
            gap
        }
        (_, Some((gap, after))) => {
            *ios = Some(after);
            gap
        }
        (None, None) => 0,
    };
    u64::try_from(gap).unwrap_or(u64::MAX)
}

impl Poisson {
    fn gap(&mut self, mean: f64) -> u64 {
        let exact = self.rest - mean * libm::log(self.stream.share());
        let gap = libm::floor(exact);
        self.rest = exact - gap;
        // Never negative: shares are at most 1.
        whole(gap)
    }
}
