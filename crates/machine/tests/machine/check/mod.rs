//! Rules, verdicts and gdscheck's sections on whole machines.

use std::collections::BTreeMap;

use gpuio_machine::check::{Finding, RULES, Rule, Severity, check};
use gpuio_record::facts::Machine;

mod forgetting;
mod gdscheck;
mod machines;
mod unread;

fn all(machine: &Machine) -> Vec<Finding> {
    let rules: Vec<&Rule> = RULES.iter().collect();
    check(machine, &rules)
}

/// The gravest that each rule says.
fn worst(machine: &Machine) -> BTreeMap<&'static str, Severity> {
    let mut worst = BTreeMap::new();
    for finding in all(machine) {
        let known = worst.entry(finding.rule).or_insert(finding.severity);
        *known = (*known).min(finding.severity);
    }
    worst
}
