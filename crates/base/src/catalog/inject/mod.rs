//! The faults to inject, and their text form.

use crate::units::{UnitError, parse_bytes, parse_duration_ns, parse_percent};
use std::str::FromStr;

/// Faults to inject. Probabilities are from 0 to 1, for each I/O on its own. Each thread has them
/// by itself: rates and the stall are those of one thread.
///
/// Written as `eio=1%,short=5%,delay=2ms@10%,stall=300ms@5s,enospc=0.1%,lost=1%,rate=100M,
/// iops=5000,seed=7`, any of them in any order. `rate` is in bytes a second (powers of 1024); a
/// delay without `@` hits every I/O.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inject {
    /// The I/O does not happen and fails with `EIO`.
    pub eio: f64,
    /// A write does not happen and fails with `ENOSPC`.
    pub enospc: f64,
    /// A write does not happen and is said to have succeeded, as of a device that lies.
    pub lost: f64,
    /// The transfer is cut short, as a kernel may do.
    pub short: f64,
    /// Probability, and nanoseconds by which the I/O comes back late.
    pub delay: (f64, u64),
    /// One time in which the device does nothing: how long after the engine's first I/O it begins,
    /// and how long it lasts, nanoseconds. I/Os requested then come back at its end.
    pub stall: Option<(u64, u64)>,
    /// Bytes per second at the engine's interface.
    pub rate: Option<u64>,
    /// I/Os per second at the engine's interface.
    pub iops: Option<u64>,
    /// Where the random sequence starts.
    pub seed: u64,
}

/// Where a direct transfer may be cut: the largest logical block size in use, so that the rest is
/// still aligned.
const DIRECT_UNIT: u32 = 4096;

impl Inject {
    /// The units in which an I/O may be cut, and the most of them that leave less than all of it: 0
    /// where it is too small to be cut.
    pub fn cuts(len: u32, direct: bool) -> (u32, u32) {
        let unit = if direct { DIRECT_UNIT } else { 1 };
        (unit, len.saturating_sub(1) / unit)
    }

    /// The kinds of faults that are asked for, of those that are counted.
    pub fn kinds(&self) -> Vec<&'static str> {
        let Inject { eio, enospc, lost, short, delay, stall, .. } = self;
        let asked = [
            ("eio", *eio > 0.0),
            ("enospc", *enospc > 0.0),
            ("lost", *lost > 0.0),
            ("short", *short > 0.0),
            ("delay", delay.0 > 0.0),
            ("stall", stall.is_some()),
        ];
        asked.iter().filter(|(_, asked)| *asked).map(|(kind, _)| *kind).collect()
    }

    /// Whether a limit of the rate is requested.
    pub fn throttles(&self) -> bool {
        self.rate.is_some() || self.iops.is_some()
    }
}

/// A text that does not say what to inject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// A part that is not `name=value`.
    #[error("{0:?} is not a fault: write name=value, such as eio=1% or delay=2ms@10%")]
    Shape(String),
    /// A name that is none.
    #[error(
        "there is no fault {0:?} to inject: use eio, enospc, lost, short, delay, stall, rate, \
             iops or seed"
    )]
    Name(String),
    /// A value that can't be read.
    #[error("fault {name}: {source}")]
    Value { name: String, source: UnitError },
    /// A number that can't be read.
    #[error("fault {name}: {value:?} is not a whole number above 0 (for seed: 0 or above)")]
    Number { name: String, value: String },
}

impl FromStr for Inject {
    type Err = InjectError;

    fn from_str(text: &str) -> Result<Inject, InjectError> {
        let mut inject = Inject::default();
        for part in text.split(',').map(str::trim) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(InjectError::Shape(part.to_owned()));
            };
            inject.set(name.trim(), value.trim())?;
        }
        Ok(inject)
    }
}

impl Inject {
    fn set(&mut self, name: &str, value: &str) -> Result<(), InjectError> {
        let unit = |source| InjectError::Value { name: name.to_owned(), source };
        let not_a_number =
            || InjectError::Number { name: name.to_owned(), value: value.to_owned() };
        let probability =
            |text: &str| parse_percent(text).map(|percent| percent / 100.0).map_err(unit);
        match name {
            "eio" => self.eio = probability(value)?,
            "enospc" => self.enospc = probability(value)?,
            "lost" => self.lost = probability(value)?,
            "short" => self.short = probability(value)?,
            "delay" => {
                let (time, chance) = value.split_once('@').unwrap_or((value, "100%"));
                self.delay = (probability(chance)?, parse_duration_ns(time).map_err(unit)?);
            }
            "stall" => {
                let shape = || InjectError::Shape(format!("{name}={value}"));
                let (length, after) = value.split_once('@').ok_or_else(shape)?;
                let time = |text: &str| parse_duration_ns(text).map_err(unit);
                self.stall = Some((time(after)?, time(length)?));
            }
            "rate" => {
                let rate = parse_bytes(value).map_err(unit)?;
                self.rate = Some(Some(rate).filter(|rate| *rate > 0).ok_or_else(not_a_number)?);
            }
            "iops" => {
                let iops = value.parse().ok().filter(|iops| *iops > 0);
                self.iops = Some(iops.ok_or_else(not_a_number)?);
            }
            "seed" => self.seed = value.parse().map_err(|_| not_a_number())?,
            _ => return Err(InjectError::Name(name.to_owned())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
