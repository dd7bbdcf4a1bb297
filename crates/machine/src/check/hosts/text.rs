//! Several hosts as text.

use gpuio_base::document::{Document, Item, Layout, List, Section, grouped};
use gpuio_base::units::{host_list, hosts_of, many};

use super::{Difference, HostFacts, HostsFinding, Value};
use crate::check::text::{RULE, by_reason, counts, item, section as of_severity};
use crate::check::{Finding, Severity};

/// Findings of one rule and severity that are printed one by one: where the figures differ from
/// host to host, the others are counted.
const EACH: usize = 3;
/// Parts that differ alike, by name.
const PARTS: usize = 8;

/// Differences first, then the findings by severity, each with its hosts.
pub fn document(
    hosts: &[HostFacts<'_>],
    differences: &[Difference],
    findings: &[HostsFinding],
    all: bool,
) -> Document {
    let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
    let count = hosts.len();
    let mut page = Document::new("Check of several hosts");
    let first = page.begin("", "");
    let title = format!("HOSTS ({count})");
    first.item(Layout { gap: 1, ..Layout::default() }, Item::new(title, host_list(&names)));
    page.push(section(differences, count));
    for severity in Severity::ALL {
        let group: Vec<&HostsFinding> =
            findings.iter().filter(|one| one.finding.severity == severity).collect();
        let mut section = of_severity(severity, group.len());
        if severity == Severity::NotApplicable && !all {
            let reason = |one: &HostsFinding| {
                format!("{}: {}", hosts_of(&self::names(one), count, true), one.finding.observed)
            };
            section
                .list(by_reason(grouped(group.iter().map(|one| (reason(one), one.finding.rule)))));
        } else {
            section.list(List::new(Layout::columns(RULE, 1), by_rule(&group, count)));
        }
        page.push(section);
    }
    let last = page.begin("", "");
    let counts =
        counts(|severity| findings.iter().filter(|one| one.finding.severity == severity).count());
    last.paragraph(format!("{counts}; equal ones of several hosts count once"));
    page
}

/// The differences between so many hosts.
pub fn section(differences: &[Difference], count: usize) -> Section {
    let mut apart = Section::new("differences", format!("DIFFERENCES ({})", differences.len()));
    let items = differences.iter().map(|one| Item::new(one.aspect, words(one, count)));
    apart.list(List::new(Layout::columns(20, 1), items));
    if differences.is_empty() {
        apart.list(List::of(2, ["none in what was compared"]));
    }
    apart
}

/// `GPU0, GPU1: 63 hosts: x16; host7: x8`.
fn words(difference: &Difference, all: usize) -> String {
    let parts = &difference.parts;
    let mut text = parts.iter().take(PARTS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if parts.len() > PARTS {
        text.push_str(&format!(" and {} more", parts.len() - PARTS));
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
        let more = (difference.values.len() - PARTS) as u64;
        shown.push(format!("and {}", many(more, "more value")));
    }
    text + &shown.join("; ")
}

/// The findings of each rule; of many only the first few, which most hosts have.
fn by_rule(group: &[&HostsFinding], all: usize) -> Vec<Item> {
    let mut items = Vec::new();
    for of_rule in group.chunk_by(|a, b| a.finding.rule == b.finding.rule) {
        let many = of_rule.len() > EACH + 1;
        let shown = if many { &of_rule[..EACH] } else { of_rule };
        for (at, hosts_finding) in shown.iter().enumerate() {
            let mut finding = hosts_finding.finding.clone();
            let names = names(hosts_finding);
            finding.observed = format!("{}: {}", hosts_of(&names, all, at == 0), finding.observed);
            items.push(match at {
                0 => item(&finding),
                _ => again(&finding, &shown[0].finding),
            });
        }
        if many {
            let more = of_rule.len() - EACH;
            let text = format!("and {more} more with other figures: --format json lists them");
            items.push(Item::new(of_rule[0].finding.rule, text));
        }
    }
    items
}

/// Another finding of the same rule: its reason and source are above.
fn again(finding: &Finding, first: &Finding) -> Item {
    let elsewhere = !finding.locations.is_empty() && finding.locations != first.locations;
    Item::new("", finding.observed.as_str())
        .and("at", elsewhere.then(|| finding.locations.join(", ")))
        .and("fix", finding.fix.as_deref().filter(|fix| Some(*fix) != first.fix.as_deref()))
}

fn names(finding: &HostsFinding) -> Vec<&str> {
    finding.hosts.iter().map(String::as_str).collect()
}
