//! Runs of other tools.

use std::collections::BTreeMap;

use crate::foreign::{Number, Reading};

use crate::compare::ASPECTS;
use crate::compare::keys;
use crate::compare::run::{Figure, Run, rates};
use crate::copies::Content;
use crate::post::contradictions;

/// The run of a reading. `from` is the file's name, `text` what it holds.
#[must_use]
pub fn run(reading: &Reading, from: &str, text: &str) -> Run {
    let figure = |number: Number| Figure {
        value: number.value,
        off: (number.off / number.value).min(1.0),
        spread: None,
    };
    let properties =
        |aspect: &crate::compare::Aspect| Some((aspect.key, (aspect.of_reading)(reading)?));
    let contradictions = contradictions(reading);
    let doubts = contradictions.iter().map(|why| {
        let why = why.trim_end_matches('.');
        format!("figures of {from} contradict each other, so nothing is concluded from them: {why}")
    });
    Run {
        from: from.to_owned(),
        content: Content::of(text.as_bytes()),
        tool: reading.tool.clone(),
        job: reading.job.clone(),
        direction: reading.direction,
        at: Vec::new(),
        properties: ASPECTS.iter().filter_map(properties).collect(),
        keys: keys::of_reading(reading),
        unread: reading
            .unread
            .iter()
            .map(|option| format!("{option} of {}", reading.tool))
            .collect(),
        facts: BTreeMap::new(),
        figures: reading
            .figures
            .iter()
            .filter(|(_, number)| number.value > 0.0)
            .map(|(name, number)| (name.clone(), figure(*number)))
            .collect(),
        rates: match (&reading.pacing, reading.threads) {
            (Some(pacing), Some(threads)) => rates(pacing, reading.block_bytes, threads),
            _ => BTreeMap::new(),
        },
        latency: None,
        since_submission: None,
        percentiles: Vec::new(),
        others: None,
        others_unknown: false,
        doubts: doubts.collect(),
        standing: Vec::new(),
        notes: reading.notes.clone(),
    }
}
