//! The rules on whole machines, made from the tables of crate `host`, and the table of the docs.
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails there fails the test")]

#[path = "../../host/tests/tree/mod.rs"]
mod tree;

use std::time::{Duration, Instant};

use gpuio_check::{Finding, RULES, Rule, Severity, check, text};
use gpuio_host::machine;
use gpuio_record::facts::Machine;

const DGX_2: &str = include_str!("../../host/tests/fixtures/machines/dgx-2.table");
const DGX_A100: &str = include_str!("../../host/tests/fixtures/machines/dgx-a100.table");
const DGX_STATION: &str = include_str!("../../host/tests/fixtures/machines/dgx-station.table");
const VIRTUAL: &str = include_str!("../../host/tests/fixtures/machines/virtual.table");

fn read(table: &str) -> Machine {
    machine::read(&tree::table::build(table).root())
}

fn all(machine: &Machine) -> Vec<Finding> {
    let rules: Vec<&Rule> = RULES.iter().collect();
    check(machine, &rules)
}

fn of<'f>(findings: &'f [Finding], rule: &str, severity: Severity) -> Vec<&'f Finding> {
    findings.iter().filter(|f| f.rule == rule && f.severity == severity).collect()
}

#[test]
fn dgx_2() {
    insta::assert_snapshot!("dgx-2", text::render(&all(&read(DGX_2)), 100));
}

#[test]
fn dgx_a100() {
    insta::assert_snapshot!("dgx-a100", text::render(&all(&read(DGX_A100)), 100));
}

#[test]
fn dgx_station() {
    let findings = all(&read(DGX_STATION));
    let slow = of(&findings, "sata-link", Severity::Warn).len()
        + of(&findings, "sata-link", Severity::Fail).len();
    assert_eq!(slow, 1, "the post's eSATA box: {findings:#?}");
    let narrow = of(&findings, "pcie-link", Severity::Fail);
    assert_eq!(narrow.len(), 1);
    assert_eq!(narrow[0].places, ["0000:08:00.0"]);
    insta::assert_snapshot!("dgx-station", text::render(&findings, 100));
}

#[test]
fn virtual_machine() {
    insta::assert_snapshot!("virtual", text::render(&all(&read(VIRTUAL)), 100));
}

#[test]
fn a_server_of_16_gpus_is_judged_in_no_time() {
    let machine = read(DGX_2);
    // 50 ms are for facts, topology and checks together, in a release build. The best of many:
    // tests share cores.
    let best = (0..20).map(|_| {
        let start = Instant::now();
        assert!(!all(&machine).is_empty());
        start.elapsed()
    });
    let best = best.min().unwrap();
    assert!(best < Duration::from_millis(200), "{best:?}");
}

#[test]
fn the_docs_list_every_rule_with_its_question() {
    let table: String = RULES
        .iter()
        .map(|rule| format!("| `{}` | {} | {} |\n", rule.name, rule.asks, rule.source))
        .collect();
    let docs = include_str!("../../../docs/check.md");
    if !docs.contains(&table) {
        panic!("docs/check.md: its table is not that of RULES, which is:\n{table}");
    }
}
