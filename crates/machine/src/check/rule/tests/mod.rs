//! Rules as a whole.

mod outcomes;

use super::*;
use crate::check::{Severity, sample};

#[test]
fn names_are_plain_and_unique() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert!(names.iter().all(|name| {
        name.len() <= 16 && name.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric())
    }));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn without_facts_no_rule_reports_pass() {
    for rule in RULES {
        let found = (rule.evaluate)(&Machine::default());
        assert!(!found.is_empty(), "{} returned no finding", rule.name);
        let open = [Severity::Unknown, Severity::NotApplicable];
        let all_open = found.iter().all(|found| open.contains(&found.severity));
        assert!(all_open, "{}: {found:?}", rule.name);
    }
}

/// A table of what is mounted at boot proves nothing, whatever the rule.
#[test]
fn nothing_passes_by_fstab_alone() {
    let mut machine =
        Machine { mounts: vec![sample::nfs("/n", "rdma", "ib0")], ..Machine::default() };
    let all: Vec<&Rule> = RULES.iter().collect();
    let at = |machine: &Machine, severity| {
        let found = check(machine, &all).into_iter();
        found.filter(|one| one.severity == severity && one.locations == ["/n"]).count()
    };
    let passed = at(&machine, Severity::Pass);
    assert!(passed >= 1);
    machine.at_boot = vec!["/n".to_owned()];
    assert_eq!(at(&machine, Severity::Pass), 0);
    assert!(at(&machine, Severity::Unknown) >= passed);
}

#[test]
fn the_same_finding_at_two_locations_is_reported_once() {
    let one = |location: &str| Found::pass("good").at([location]);
    let found = joined(vec![one("a"), Found::pass("better"), one("b")]);
    assert_eq!(found, [one("a").at(["b"]), Found::pass("better")]);
}

#[test]
fn every_failure_and_warning_has_a_fix() {
    let machine = sample::gpu_and_drive_below_a_switch();
    for rule in RULES {
        for found in (rule.evaluate)(&machine) {
            assert!(found.severity > Severity::Warn || found.fix.is_some(), "{found:?}");
        }
    }
}
