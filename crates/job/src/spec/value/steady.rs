//! fio's `steadystate`: the figure that must be steady, and its limit.

use gpuio_base::units::{parse_bytes, parse_duration_ns, parse_percent};
use gpuio_record::SteadyFigure;

use super::{Read, ValueError, wrong};
use crate::spec::job::SteadyCriterion;

pub(crate) const STEADY: [(&str, (SteadyFigure, bool)); 6] = [
    ("iops", (SteadyFigure::Iops, false)),
    ("iops_slope", (SteadyFigure::Iops, true)),
    ("bw", (SteadyFigure::Bandwidth, false)),
    ("bw_slope", (SteadyFigure::Bandwidth, true)),
    ("lat", (SteadyFigure::Latency, false)),
    ("lat_slope", (SteadyFigure::Latency, true)),
];

/// `iops:2%`, `bw_slope:10m`, `lat:50us`.
pub(crate) fn steady(value: &str) -> Read<SteadyCriterion> {
    let (word, limit) = value.split_once(':').unwrap_or((value, ""));
    let Some((_, (of, slope))) = STEADY.iter().find(|(name, _)| *name == word) else {
        let names = STEADY.map(|(name, _)| name).join(", ");
        return wrong(0, format!("expected one of {names}, and :LIMIT"));
    };
    let at = (word.len() + 1).min(value.len());
    if limit.is_empty() {
        return wrong(
            at,
            "give the limit below which it counts as steady, such as iops:2% or bw_slope:1%",
        );
    }
    let percent = limit.ends_with('%');
    let read = if percent {
        parse_percent(limit).map_err(|error| ValueError::from(error).shifted(at))?
    } else {
        absolute(*of, limit, at)?
    };
    if read <= 0.0 {
        return wrong(at, "no value is below a limit of 0; give one above 0");
    }
    Ok(SteadyCriterion { words: value.to_owned(), of: *of, slope: *slope, limit: read, percent })
}

/// In I/Os per second, bytes per second, or nanoseconds.
fn absolute(of: SteadyFigure, limit: &str, at: usize) -> Read<f64> {
    let limit = match of {
        SteadyFigure::Iops => {
            let plain = |c: char| c.is_ascii_digit() || c == '.';
            let read = limit.parse::<f64>().ok().filter(|_| limit.chars().all(plain));
            return read.ok_or_else(|| {
                ValueError::new(at, "expected I/Os per second, such as 500, or per cent: 2%")
            });
        }
        SteadyFigure::Bandwidth => parse_bytes(limit.strip_suffix("/s").unwrap_or(limit)),
        // fio takes a bare number for microseconds and times here are seconds: neither is guessed.
        SteadyFigure::Latency if limit.bytes().all(|c| c.is_ascii_digit() || c == b'.') => {
            return wrong(
                at,
                "give the unit of the latency: 50us, or per cent: \
                2%",
            );
        }
        SteadyFigure::Latency => parse_duration_ns(limit),
    };
    let limit = limit.map_err(|error| ValueError::from(error).shifted(at))?;
    Ok(limit as f64)
}
