//! Observations put together. Proofs of real jobs are in `load/tests/run/proof.rs`.

use super::page_cache::growth;
use super::*;
use crate::evidence::verdict::Growth;

fn observation(observed: Observed, moved: u64) -> Observation {
    Observation { moved: Some(moved), of: Some(1000), observed, ..Observation::none("") }
}

fn row(name: &str) -> &'static Source {
    SOURCES.iter().find(|row| row.name == name).expect("a row of SOURCES")
}

fn device_after(process: Observation, device: Observation) -> Observed {
    let mut observations = vec![(row("process_io"), process), (row("block"), device)];
    leave_out_others(&mut observations);
    observations[1].1.observed
}

#[test]
fn traffic_of_others_makes_a_device_silent_and_too_little_does_not() {
    let [all, part, little] = [Share::All, Share::Part, Share::Little].map(Observed::Storage);
    assert_eq!(device_after(observation(little, 0), observation(part, 500)), Observed::Nothing);
    // Less than a tenth of what the page cache served, and all of it others'.
    assert_eq!(device_after(observation(little, 0), observation(part, 71)), Observed::Nothing);
    assert_eq!(device_after(observation(part, 500), observation(all, 1000)), Observed::Nothing);
    assert_eq!(device_after(observation(all, 1000), observation(all, 1050)), all, "within a tenth");
    assert_eq!(
        device_after(observation(all, 1000), observation(little, 0)),
        little,
        "a contradiction"
    );
    assert_eq!(device_after(observation(Observed::Nothing, 0), observation(all, 1000)), all);
}

#[test]
fn growth_is_measured_against_what_could_have_come_in() {
    let grew = |before, after, all, bytes| growth(before, after, all, bytes).0;
    assert_eq!(
        grew(0.0, 1.0, 100, 10_000),
        Growth::Grew { bytes: 100 },
        "read a hundred times over"
    );
    assert_eq!(grew(0.0, 0.01, 1000, 100), Growth::Grew { bytes: 10 }, "a tenth of what was read");
    assert_eq!(grew(0.0, 0.01, 1000, 1000), Growth::Still { resident: false });
    assert_eq!(grew(0.5, 0.1, 1000, 1000), Growth::Still { resident: true });
    assert_eq!(growth(0.25, 0.75, 1000, 1000).1, 500);
}

#[test]
fn every_evidence_source_has_a_name_of_its_own() {
    for (nth, row) in SOURCES.iter().enumerate() {
        assert!(SOURCES[..nth].iter().all(|other| other.name != row.name), "{}", row.name);
    }
}
