//! Several hosts as text.

use std::fmt::Write as _;

use gpuio_base::units::{host_list, hosts_of};

use super::{Difference, HostFacts, HostsFinding, Value};
use crate::check::text::{one, wrap};
use crate::check::{Finding, Severity};

/// Findings of one rule and severity that are printed one by one: where the figures differ from
/// host to host, the others are counted.
const EACH: usize = 3;
/// Parts that differ alike, by name.
const PARTS: usize = 8;

/// Differences first, then the findings by severity, each with its hosts.
#[must_use]
pub fn render(
    hosts: &[HostFacts<'_>],
    differences: &[Difference],
    findings: &[HostsFinding],
    width: usize,
    all: bool,
) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
    let mut out = String::new();
    wrap(&mut out, &format!("HOSTS ({}) ", hosts.len()), &host_list(&names), width);
    let _ = writeln!(out, "\nDIFFERENCES ({})", differences.len());
    for difference in differences {
        let head = format!("  {:<20} ", difference.aspect);
        wrap(&mut out, &head, &words(difference, hosts.len()), width);
    }
    if differences.is_empty() {
        out.push_str("  none in what was compared\n");
    }
    out.push('\n');
    for severity in Severity::ALL {
        let group: Vec<&HostsFinding> =
            findings.iter().filter(|one| one.finding.severity == severity).collect();
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{} ({})", severity.word().to_uppercase(), group.len());
        if severity == Severity::NotApplicable && !all {
            not_applicable(&mut out, &group, hosts.len(), width);
        } else {
            by_rule(&mut out, &group, hosts.len(), width);
        }
        out.push('\n');
    }
    let counts = Severity::ALL.map(|severity| {
        let of = findings.iter().filter(|one| one.finding.severity == severity);
        format!("{} {}", of.count(), severity.word())
    });
    let _ = writeln!(out, "{}; equal ones of several hosts count once", counts.join(", "));
    out
}

/// `GPU0, GPU1: 63 hosts: x16; host7: x8`.
fn words(difference: &Difference, all: usize) -> String {
    let parts = &difference.parts;
    let mut text = parts.iter().take(PARTS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if parts.len() > PARTS {
        let _ = write!(text, " and {} more", parts.len() - PARTS);
    }
    if !parts.is_empty() {
        text.push_str(": ");
    }
    let value = |(at, value): (usize, &Value)| {
        let names: Vec<&str> = value.hosts.iter().map(String::as_str).collect();
        let what = value.value.as_deref().unwrap_or("absent or not known");
        format!("{}: {what}", hosts_of(&names, all, at == 0))
    };
    let shown = difference.values.iter().enumerate().take(PARTS).map(value);
    let mut shown: Vec<String> = shown.collect();
    if difference.values.len() > PARTS {
        shown.push(format!("and {} more values", difference.values.len() - PARTS));
    }
    text + &shown.join("; ")
}

/// The findings of each rule; of many only the first few, which most hosts have.
fn by_rule(out: &mut String, group: &[&HostsFinding], all: usize, width: usize) {
    for of_rule in group.chunk_by(|a, b| a.finding.rule == b.finding.rule) {
        let many = of_rule.len() > EACH + 1;
        let shown = if many { &of_rule[..EACH] } else { of_rule };
        for (at, hosts_finding) in shown.iter().enumerate() {
            let mut finding = hosts_finding.finding.clone();
            let names = names(hosts_finding);
            finding.observed = format!("{}: {}", hosts_of(&names, all, at == 0), finding.observed);
            match at {
                0 => one(out, &finding, width),
                _ => again(out, &finding, &shown[0].finding, width),
            }
        }
        if many {
            let more = of_rule.len() - EACH;
            let head = format!("  {:<16} ", of_rule[0].finding.rule);
            let text = format!("and {more} more with other figures: --format json lists them");
            wrap(out, &head, &text, width);
        }
    }
}

/// Another finding of the same rule: its reason and source are above.
fn again(out: &mut String, finding: &Finding, first: &Finding, width: usize) {
    let head = format!("  {:<16} ", "");
    wrap(out, &head, &finding.observed, width);
    if !finding.locations.is_empty() && finding.locations != first.locations {
        wrap(out, &format!("{head}at: "), &finding.locations.join(", "), width);
    }
    if let Some(fix) = finding.fix.as_ref().filter(|fix| Some(*fix) != first.fix.as_ref()) {
        wrap(out, &format!("{head}fix: "), fix, width);
    }
}

fn names(finding: &HostsFinding) -> Vec<&str> {
    finding.hosts.iter().map(String::as_str).collect()
}

/// Rules behind the reason and the hosts that they share.
fn not_applicable(out: &mut String, group: &[&HostsFinding], all: usize, width: usize) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for finding in group {
        let why = &finding.finding.observed;
        let reason = format!("{}: {why}", hosts_of(&names(finding), all, true));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rules)) => rules.push(finding.finding.rule),
            None => reasons.push((reason, vec![finding.finding.rule])),
        }
    }
    for (reason, rules) in reasons {
        wrap(out, "  ", &format!("{reason}: {}", rules.join(", ")), width);
    }
}
