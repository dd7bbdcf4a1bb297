//! Rules: one per file, one row each in [`RULES`].

pub(crate) mod acs;
mod aio;
mod array_span;
mod bar1;
mod compat_mode;
mod cross_root;
mod cufile_json;
mod cufile_logs;
mod dio_align;
mod direct_io;
mod gdscheck;
mod governor;
mod gpu_diag;
mod huge_pages;
mod io_limit;
mod io_uring;
pub(crate) mod iommu;
mod lnet;
pub(crate) mod memlock;
mod mtu;
mod nfs_size;
mod nfs_transport;
mod numa_balancing;
mod nvidia_fs;
mod p2pdma;
mod pcie_link;
mod peermem;
mod persistence;
mod ports;
mod relaxed_ordering;
mod rings;
mod sata_link;
mod scheduler;
mod shared_nic;
mod shared_uplink;
mod socket;
#[cfg(test)]
mod tests;
mod udev;

use gpuio_record::facts::Machine;

pub use nvidia_fs::all_through_host;
pub(crate) use nvidia_fs::nothing_direct;

use crate::check::finding::{Finding, Found, Rule, Severity};

/// The text that shows settings of the kernel.
const COLLECTED: &str = "gpuio collect";

/// All rules, in the order in which they run: the hardware's first.
pub static RULES: &[Rule] = &[
    pcie_link::RULE,
    sata_link::RULE,
    acs::RULE,
    iommu::RULE,
    socket::RULE,
    array_span::RULE,
    shared_uplink::RULE,
    cross_root::RULE,
    relaxed_ordering::RULE,
    nvidia_fs::RULE,
    peermem::RULE,
    udev::RULE,
    cufile_json::RULE,
    compat_mode::RULE,
    cufile_logs::RULE,
    direct_io::RULE,
    dio_align::RULE,
    io_uring::RULE,
    memlock::RULE,
    aio::RULE,
    io_limit::RULE,
    scheduler::RULE,
    numa_balancing::RULE,
    huge_pages::RULE,
    governor::RULE,
    nfs_transport::RULE,
    nfs_size::RULE,
    ports::RULE,
    mtu::RULE,
    shared_nic::RULE,
    lnet::RULE,
    bar1::RULE,
    persistence::RULE,
    p2pdma::RULE,
    rings::RULE,
    gdscheck::RULE,
    gpu_diag::RULE,
];

pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Findings in rule order, worst first. Findings of one rule at several locations are one finding.
/// If the machine's lists are incomplete, a pass covers only what was read, and says so.
pub fn check(machine: &Machine, rules: &[&Rule]) -> Vec<Finding> {
    let listed = machine.listed;
    let whole = listed.pci && listed.block && listed.nics && listed.mounts;
    let mut findings = Vec::new();
    for rule in rules {
        let mut found = by_what_is_mounted(machine, (rule.evaluate)(machine));
        // A result that a tool printed names the tool as its source.
        let rests_on_a_part =
            |one: &&mut Found| !whole && one.severity == Severity::Pass && !printed(&one.observed);
        for pass in found.iter_mut().filter(rests_on_a_part) {
            pass.observed.push_str(", of what was read");
        }
        found.sort_by_key(|found| found.severity);
        let found = joined(found);
        findings.extend(found.into_iter().map(|found| Finding::of(rule, found)));
    }
    findings
}

/// Nothing passes by `/etc/fstab` alone.
fn by_what_is_mounted(machine: &Machine, all: Vec<Found>) -> Vec<Found> {
    let is_planned = |at: &String| machine.at_boot.contains(at);
    let apart = |found: Found| {
        let (planned, others): (Vec<String>, Vec<String>) =
            found.locations.iter().cloned().partition(is_planned);
        if planned.is_empty() || !matches!(found.severity, Severity::Pass | Severity::Info) {
            return vec![found];
        }
        let why = "if it is mounted as /etc/fstab says, which does not show that";
        let unknown = Found {
            severity: Severity::Unknown,
            observed: format!("{}: {why}", found.observed),
            locations: planned,
            fix: Some("findmnt".to_owned()),
        };
        let rest = (!others.is_empty()).then_some(Found { locations: others, ..found });
        rest.into_iter().chain([unknown]).collect()
    };
    all.into_iter().flat_map(apart).collect()
}

/// Whether a tool is the source.
fn printed(observed: &str) -> bool {
    ["gdscheck ", "dcgmi diag "].iter().any(|tool| observed.starts_with(tool))
}

/// Findings that differ only in their locations become one, at the position of the first.
fn joined(found: Vec<Found>) -> Vec<Found> {
    let mut joined: Vec<Found> = Vec::new();
    for next in found {
        let same = |other: &&mut Found| {
            (other.severity, &other.observed, &other.fix)
                == (next.severity, &next.observed, &next.fix)
        };
        match joined.iter_mut().find(same) {
            Some(other) => other.locations.extend(next.locations),
            None => joined.push(next),
        }
    }
    joined
}
