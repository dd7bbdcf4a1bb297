//! Testimonies put together, and proofs of real jobs are in `tests/run/proof.rs`.

use super::page_cache::growth;
use super::verdict::Growth;
use super::*;

fn said(saw: Saw, moved: u64) -> Testimony {
    Testimony { moved: Some(moved), of: Some(1000), saw, ..Testimony::none("") }
}

fn row(name: &str) -> &'static Row {
    WITNESSES.iter().find(|row| row.name == name).expect("a row of WITNESSES")
}

fn device_after(process: Testimony, device: Testimony) -> Saw {
    let mut heard = vec![(row("process_io"), process), (row("block"), device)];
    reconcile(&mut heard);
    heard[1].1.saw
}

#[test]
fn traffic_of_others_makes_a_device_silent_and_too_little_does_not() {
    let [all, part, little] = [Share::All, Share::Part, Share::Little].map(Saw::Storage);
    assert_eq!(device_after(said(little, 0), said(part, 500)), Saw::Nothing);
    assert_eq!(device_after(said(part, 500), said(all, 1000)), Saw::Nothing);
    assert_eq!(device_after(said(all, 1000), said(all, 1050)), all, "within a tenth");
    assert_eq!(device_after(said(all, 1000), said(little, 0)), little, "a contradiction");
    assert_eq!(device_after(said(Saw::Nothing, 0), said(all, 1000)), all);
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
fn every_witness_has_a_name_of_its_own() {
    for (nth, row) in WITNESSES.iter().enumerate() {
        assert!(WITNESSES[..nth].iter().all(|other| other.name != row.name), "{}", row.name);
    }
}
