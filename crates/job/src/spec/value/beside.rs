//! GPU computation during a job.

use gpuio_base::units::parse_percent;

use super::{Read, ValueError, on_or_off, wrong};
use crate::spec::job::ComputationRequest;

type OfShare = fn(f64) -> ComputationRequest;

pub(crate) const BESIDE: [(&str, OfShare); 2] =
    [("compute", ComputationRequest::Compute), ("memory", ComputationRequest::Memory)];

/// `compute`, `compute:50%`, `memory`, `memory:12.5%`, `off`.
pub(crate) fn beside(value: &str) -> Read<ComputationRequest> {
    if on_or_off(value) == Ok(false) {
        return Ok(ComputationRequest::Off);
    }
    let (word, share) = match value.split_once(':') {
        Some((word, share)) => (word, Some(share)),
        None => (value, None),
    };
    let Some((_, of)) = BESIDE.iter().find(|(known, _)| *known == word) else {
        let what = "expected compute, memory or off, and optionally a share of the \
            multiprocessors: compute:50%";
        return wrong(0, what);
    };
    let at = word.len() + 1;
    let percent = share.map_or(Ok(100.0), parse_percent);
    match percent.map_err(|error| ValueError::from(error).shifted(at))? {
        0.0 => wrong(at, "a share of 0 has no effect; give a share above 0, or off"),
        percent => Ok(of(percent)),
    }
}
