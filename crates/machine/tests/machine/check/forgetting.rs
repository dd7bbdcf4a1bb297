//! Facts that are forgotten make no rule pass or fail.

use crate::check::worst;
use gpuio_machine::check::Severity;
use gpuio_record::facts::{Listed, Machine};
use gpuio_testkit::machines::{self, DGX_STATION, R7525, VIRTUAL};
use proptest::prelude::*;
use serde_json::Value;

/// Fields whose `null` is itself knowledge (no IOMMU, no bridge above, no further layer), or names
/// that join the lists.
const NOT_FORGOTTEN: [&str; 14] = [
    "address",
    "name",
    "parent",
    "iommu_group",
    "link",
    "nfs",
    "array",
    "nvme",
    "mapper",
    "gdscheck",
    "diagnoses",
    "pci_address",
    "disk",
    "cgroup",
];

/// Each fact of a machine with its position, as JSON pointers to what can be unknown.
fn facts(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) if map.len() == 1 && map.contains_key("known") => {
            out.push(at.to_owned())
        }
        Value::Object(map) => {
            for (key, below) in map.iter().filter(|(key, _)| !NOT_FORGOTTEN.contains(&key.as_str()))
            {
                let key = key.replace('~', "~0").replace('/', "~1");
                facts(below, &format!("{at}/{key}"), out);
            }
        }
        Value::Array(all) => {
            for (index, below) in all.iter().enumerate() {
                facts(below, &format!("{at}/{index}"), out);
            }
        }
        Value::Null => {}
        _ => out.push(at.to_owned()),
    }
}

fn forget(value: &mut Value, at: &str) {
    let fact = value.pointer_mut(at).unwrap();
    let old = fact.clone();
    *fact = match old.get("known") {
        Some(_) => serde_json::json!({ "unknown": "forgotten" }),
        None => Value::Null,
    };
    // A field that has to be there, such as a number of connections, stays.
    if serde_json::from_value::<Machine>(value.clone()).is_err() {
        *value.pointer_mut(at).unwrap() = old;
    }
}

fn machines() -> &'static [(Machine, Value, Vec<String>)] {
    static ALL: std::sync::OnceLock<Vec<(Machine, Value, Vec<String>)>> =
        std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let tables = [DGX_STATION, VIRTUAL, R7525];
        let all = tables.map(|text| {
            let machine = machines::read(text);
            let value = serde_json::to_value(&machine).unwrap();
            let mut positions = Vec::new();
            facts(&value, "", &mut positions);
            // Without mounts nobody knows which drives hold data: they are all counted then.
            positions.retain(|at| !at.starts_with("/mounts") && !at.starts_with("/host/problems"));
            (machine, value, positions)
        });
        all.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        // The same machines are forgotten alike on each run.
        rng_seed: proptest::test_runner::RngSeed::Fixed(13),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_forgotten_never_makes_a_rule_pass_or_fail(
        which in 0_usize..3,
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (machine, value, positions) = &machines()[which];
        let before = worst(machine);
        let mut value = value.clone();
        let mut forgotten = Vec::new();
        for index in chosen {
            let at = &positions[index.index(positions.len())];
            forget(&mut value, at);
            forgotten.push(at);
        }
        let after = worst(&serde_json::from_value(value).unwrap());
        for (rule, severity) in after {
            let was = before[rule];
            match severity {
                Severity::Fail => prop_assert_eq!(was, Severity::Fail, "{}: {:?}", rule, forgotten),
                Severity::Pass => prop_assert!(
                    matches!(was, Severity::Pass | Severity::NotApplicable),
                    "{rule} was {was:?}: {forgotten:?}"
                ),
                _ => {}
            }
        }
    }
}

/// All of a kind at once: a machine of which only a part was read.
#[test]
fn whole_lists_that_are_forgotten_leave_it_unknown() {
    for (machine, ..) in machines() {
        let before = worst(machine);
        for part in 0..4 {
            let mut machine = machine.clone();
            match part {
                0 => {
                    machine.pci.clear();
                    machine.gpus.clear();
                    machine.listed.pci = false;
                }
                1 => {
                    machine.block.clear();
                    machine.listed.block = false;
                }
                2 => {
                    machine.nics.clear();
                    machine.listed.nics = false;
                }
                _ => machine.listed = Listed::default(),
            }
            for (rule, severity) in worst(&machine) {
                let was = before[rule];
                let made = severity == Severity::Pass
                    && !matches!(was, Severity::Pass | Severity::NotApplicable)
                    || severity == Severity::Fail && was != Severity::Fail;
                assert!(!made, "{rule}: {was:?} became {severity:?} without part {part}");
            }
        }
    }
}
