//! Words for what runs have and request.

use gpuio_base::units::{format_bytes, human_count, human_ns, human_rate};

use crate::foreign::Direction;
use crate::post::seen::{Sight, bytes_of};
use crate::post::{Got, Run};

/// Per cent by which a value is off another, with one decimal.
pub(super) fn apart(value: f64, from: f64) -> String {
    format!("{:.1} %", (value / from - 1.0).abs() * 100.0)
}

pub(super) fn rate(value: f64) -> String {
    human_rate(value)
}

pub(super) fn time(ns: f64) -> String {
    human_ns(ns)
}

pub(super) fn count(value: f64) -> String {
    human_count(value)
}

pub(super) fn bytes(value: u64) -> String {
    format_bytes(value)
}

/// The GPUs that a run requests: `GPU 2`, `GPUs 0, 2`.
pub(super) fn gpus(list: &[u32]) -> String {
    let names: Vec<String> = list.iter().map(u32::to_string).collect();
    let word = if list.len() == 1 { "GPU" } else { "GPUs" };
    format!("{word} {}", names.join(", "))
}

/// Names with `and` before the last one.
pub(super) fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// The figures of a result in few words.
pub(super) fn figures(got: &Got) -> String {
    let mut parts: Vec<String> = got.rate.map(rate).into_iter().collect();
    parts.extend(got.iops.map(|iops| format!("{} IOPS", count(iops))));
    parts.extend(got.latency.map(time));
    parts.join(", ")
}

/// `reads` or `writes`.
pub(super) fn moves(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "writes",
        Direction::Read | Direction::Both => "reads",
    }
}

/// The rate of a run: of its result, in words, or of gds_stats.
pub(crate) fn rate_of(run: &Run) -> Option<f64> {
    // MB of iostat are 1024 x 1024 bytes.
    let of_disks = run.beside.iter().find_map(|seen| match &seen.sight {
        Sight::Disks(disks) => Some(bytes_of(disks)),
        _ => None,
    });
    let in_words = || {
        let (figure, _) = run.in_words.as_ref()?;
        of_disks.filter(|_| figure.rate().is_some()).map(|sum| figure.near(sum)).or(figure.rate())
    };
    run.got.as_ref().and_then(|got| got.rate).or_else(in_words)
}
