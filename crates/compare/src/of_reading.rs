//! Runs of other tools.

use std::collections::BTreeMap;

use gpuio_foreign::{Number, Reading};

use crate::ASPECTS;
use crate::run::{Figure, Run};

/// The run of a reading. `from` is the file's name.
#[must_use]
pub fn run(reading: &Reading, from: &str) -> Run {
    let figures: [(&'static str, Option<Number>); 7] = [
        ("throughput", reading.bytes_per_s),
        ("iops", reading.iops),
        ("mean", reading.mean_ns),
        ("p50", reading.p50_ns),
        ("p99", reading.p99_ns),
        ("p99.9", reading.p99_9_ns),
        ("cpu", reading.cpu_us_per_mib),
    ];
    let figure = |number: Number| Figure {
        value: number.value,
        off: (number.off / number.value).min(1.0),
        spread: None,
    };
    let properties = |aspect: &crate::Aspect| Some((aspect.key, (aspect.of_reading)(reading)?));
    Run {
        from: from.to_owned(),
        tool: reading.tool.clone(),
        job: reading.job.clone(),
        direction: reading.direction,
        at: Vec::new(),
        properties: ASPECTS.iter().filter_map(properties).collect(),
        facts: BTreeMap::new(),
        figures: figures
            .into_iter()
            .filter_map(|(key, number)| Some((key, number.filter(|n| n.value > 0.0)?)))
            .map(|(key, number)| (key, figure(number)))
            .collect(),
        notes: reading.notes.clone(),
    }
}
