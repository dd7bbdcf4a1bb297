//! Findings as a document: gravest first, the reason and the fix below each that needs one.

use gpuio_base::document::{Document, Item, Layout, List, Section, grouped};
use gpuio_base::units::many;

pub use crate::check::verdict::section as verdict;
use crate::check::{Finding, Rule, Severity, find};

/// Longer lists of locations are cut, and the number of the rest is printed.
const LOCATIONS: usize = 8;
/// A rule, or a blank, and what was found.
pub(crate) const RULE: usize = 16;

/// The findings by severity. Passes and unknowns have one line each: there is nothing to fix. Rules
/// that do not apply have one line together for each reason, or with `all` one each. `read` has the
/// commands whose output was read, where the machine is from texts: then rules that are unknown
/// come last, with one line for the texts that are missing.
pub fn document(findings: &[Finding], all: bool, read: Option<&[&str]>) -> Document {
    let mut page = Document::new("Check");
    let read = read.filter(|_| !all);
    let (last, first): (Vec<Severity>, Vec<Severity>) = Severity::ALL
        .into_iter()
        .partition(|severity| read.is_some() && *severity == Severity::Unknown);
    for severity in first.into_iter().chain(last) {
        let group: Vec<_> = findings.iter().filter(|found| found.severity == severity).collect();
        let mut section = section(severity, group.len());
        match read {
            _ if severity == Severity::NotApplicable && !all => {
                let reasons = grouped(group.iter().map(|one| (one.observed.as_str(), one.rule)));
                section.list(by_reason(reasons));
            }
            Some(read) if severity == Severity::Unknown => {
                section.list(missing(&group, read));
            }
            _ => {
                let items = group.iter().map(|finding| item(finding));
                section.list(List::new(Layout::columns(RULE, 1), items));
            }
        }
        page.push(section);
    }
    let counts =
        counts(|severity| findings.iter().filter(|found| found.severity == severity).count());
    let rules = gpuio_base::document::unique(findings.iter().map(|found| found.rule)).len();
    // A rule may have several, so that there are more than rules.
    let of_rules =
        if rules < findings.len() { format!("Findings of {rules} rules: ") } else { String::new() };
    page.begin("", "").paragraph(of_rules + &counts);
    page
}

/// The number of rules by the text that shows what they need, in one line, most rules first; where
/// that text was read, rules by their reason.
fn missing(unknown: &[&Finding], read: &[&str]) -> List {
    let text = |found: &Finding| find(found.rule).map(|rule| rule.shown_by);
    // Something is known of devices that are named, and another text than the rule's has more.
    let other = |found: &Finding| {
        let fix = found.fix.as_deref().filter(|_| !found.locations.is_empty());
        fix.filter(|fix| text(found).is_some_and(|text| !fix.contains(text))).map(str::to_owned)
    };
    let (open, without): (Vec<&Finding>, Vec<&Finding>) = unknown.iter().partition(|found| {
        other(found).is_some() || text(found).is_none_or(|text| read.contains(&text))
    });
    let mut groups =
        grouped(without.iter().map(|found| (text(found).unwrap_or_default(), found.rule)));
    groups.iter_mut().for_each(|(_, rules)| rules.dedup());
    groups.sort_by_key(|(_, rules)| std::cmp::Reverse(rules.len()));
    let rules: usize = groups.iter().map(|(_, rules)| rules.len()).sum();
    let texts = groups.iter().map(|(text, rules)| format!("`{text}` ({})", rules.len()));
    let texts = texts.collect::<Vec<_>>().join(", ");
    let needs = (rules > 0).then(|| {
        let count = |number: usize, noun: &str| many(number as u64, noun);
        let of = match without.len() {
            findings if findings == rules => String::new(),
            findings => format!("{} of ", count(findings, "finding")),
        };
        let need = if of.is_empty() { "rule needs|rules need" } else { "rule need|rules need" };
        format!("{of}{} what is not here: {texts}", count(rules, need))
    });
    let reason = |found: &Finding| match other(found) {
        Some(fix) => format!("{}; {fix}", found.observed),
        None => found.observed.clone(),
    };
    let reasons = grouped(open.iter().map(|found| (reason(found), found.rule)));
    let reasons =
        reasons.into_iter().map(|(reason, rules)| format!("{}: {reason}", rules.join(", ")));
    let each = (!unknown.is_empty()).then(|| "--all shows the reason of each.".to_owned());
    List::of(2, needs.into_iter().chain(reasons).chain(each))
}

/// The section of a severity with so many findings.
pub(crate) fn section(severity: Severity, count: usize) -> Section {
    Section::new("", format!("{} ({count})", severity.word().to_uppercase()))
}

pub(crate) fn counts(of: impl Fn(Severity) -> usize) -> String {
    Severity::ALL.map(|severity| format!("{} {}", of(severity), severity.word())).join(", ")
}

/// Names of rules behind the reason that they share.
pub(crate) fn by_reason<R: std::fmt::Display>(reasons: Vec<(R, Vec<&str>)>) -> List {
    let lines =
        reasons.into_iter().map(|(reason, rules)| format!("{reason}: {}", rules.join(", ")));
    List::of(2, lines)
}

pub(crate) fn item(finding: &Finding) -> Item {
    let grave = matches!(finding.severity, Severity::Fail | Severity::Warn);
    let shown = finding.locations.len().min(LOCATIONS);
    let more = match finding.locations.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let locations = finding.locations[..shown].join(", ") + &more;
    Item::new(finding.rule, finding.observed.as_str())
        .and("at", (shown > 0).then_some(locations))
        .and("why", grave.then_some(finding.why))
        .and("fix", finding.fix.as_deref())
        .and("source", grave.then_some(finding.source))
}

/// The text about a rule, for `--explain`.
pub fn explain(rule: &Rule) -> Document {
    let mut section = Section::default();
    section.item(Layout::labels(0), Item::new(rule.name, rule.question));
    let facts = [("why", rule.why), ("fix", rule.fix), ("source", rule.source)];
    let items = facts.map(|(what, text)| Item::new(what, text));
    section.list(List::new(Layout { indent: 2, ..Layout::labels(7) }, items));
    let mut page = Document::new(rule.name);
    page.push(section);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Found, RULES};

    #[test]
    fn gravest_first_and_long_lists_are_cut() {
        let rule = &RULES[0];
        let locations: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
        let findings = [
            Finding::of(rule, Found::pass("good")),
            Finding::of(rule, Found::fail("bad", "turn it off").at(locations)),
        ];
        let text = document(&findings, false, None).terminal(80);
        assert!(text.find("FAIL").unwrap() < text.find("PASS").unwrap(), "{text}");
        assert!(text.contains("p7 and 4 more"), "{text}");
        assert!(text.contains("fix: turn it off"), "{text}");
        assert!(text.ends_with("1 fail, 0 warn, 0 unknown, 0 info, 1 pass, 0 n/a\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn unknown_rules_of_texts_come_last_by_the_text_that_is_missing() {
        let found = |name: &str| {
            let rule = find(name).unwrap();
            Finding::of(rule, Found::unknown(format!("{name} was not read")).at(["a"]))
        };
        let names = ["acs", "acs", "shared-uplink", "mtu"];
        let mut findings = names.map(found).to_vec();
        findings.push(Finding::of(find("bar1").unwrap(), Found::pass("good")));
        let text = document(&findings, false, Some(&["ip addr"])).terminal(80);
        assert!(
            text.contains("3 findings of 2 rules need what is not here: `lspci -vv` (2)\n"),
            "{text}"
        );
        assert!(text.contains("mtu: mtu was not read") && !text.contains("acs was"), "{text}");
        assert!(text.find("PASS").unwrap() < text.find("UNKNOWN").unwrap(), "{text}");
        let whole = document(&findings, true, Some(&["ip addr"])).terminal(80);
        assert_eq!(whole.matches("was not read").count(), 4, "{whole}");
        assert_eq!(document(&findings, false, None).terminal(80), whole);
        let seen = Found::unknown("an IOMMU is on").fix("read `dmesg`").at(["0000:01:00.0"]);
        let seen = [Finding::of(find("iommu").unwrap(), seen)];
        let text = document(&seen, false, Some(&["lspci -vv"])).terminal(80);
        assert!(text.contains("iommu: an IOMMU is on; read `dmesg`\n"), "{text}");
    }

    #[test]
    fn rules_that_do_not_apply_share_a_line_by_their_reason() {
        let found = |at: usize, why: &str| Finding::of(&RULES[at], Found::not_applicable(why));
        let findings = [found(0, "no GPU"), found(1, "no NFS"), found(2, "no GPU")];
        let names = [RULES[0].name, RULES[1].name, RULES[2].name];
        let together =
            format!("N/A (3)\n  no GPU: {}, {}\n  no NFS: {}\n", names[0], names[2], names[1]);
        let text = document(&findings, false, None).terminal(80);
        assert!(text.starts_with(&together), "{text}");
        assert!(text.ends_with("0 pass, 3 n/a\n"), "{text}");
        let each = document(&findings, true, None).terminal(80);
        assert_eq!(each.lines().filter(|line| line.ends_with("no GPU")).count(), 2, "{each}");
    }
}
