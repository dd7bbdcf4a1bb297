//! Findings as a document: gravest first, the reason and the fix below each that needs one.

use gpuio_base::document::{Document, Item, Layout, List, Section, grouped};

pub use crate::check::verdict::section as verdict;
use crate::check::{Finding, Rule, Severity};

/// Longer lists of locations are cut, and the number of the rest is printed.
const LOCATIONS: usize = 8;
/// A rule, or a blank, and what was found.
pub(crate) const RULE: usize = 16;

/// The findings by severity. Passes and unknowns have one line each: there is nothing to fix. Rules
/// that do not apply have one line together for each reason, or with `all` one each.
#[must_use]
pub fn document(findings: &[Finding], all: bool) -> Document {
    let mut page = Document::new("Check");
    for severity in Severity::ALL {
        let group: Vec<_> = findings.iter().filter(|found| found.severity == severity).collect();
        let mut section = section(severity, group.len());
        if severity == Severity::NotApplicable && !all {
            let reasons = grouped(group.iter().map(|one| (one.observed.as_str(), one.rule)));
            section.list(by_reason(reasons));
        } else {
            let items = group.iter().map(|finding| item(finding));
            section.list(List::new(Layout::columns(RULE, 1), items));
        }
        page.push(section);
    }
    page.begin("", "").paragraph(counts(|severity| {
        findings.iter().filter(|found| found.severity == severity).count()
    }));
    page
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
#[must_use]
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
        let text = document(&findings, false).terminal(80);
        assert!(text.find("FAIL").unwrap() < text.find("PASS").unwrap(), "{text}");
        assert!(text.contains("p7 and 4 more"), "{text}");
        assert!(text.contains("fix: turn it off"), "{text}");
        assert!(text.ends_with("1 fail, 0 warn, 0 unknown, 0 info, 1 pass, 0 n/a\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn rules_that_do_not_apply_share_a_line_by_their_reason() {
        let found = |at: usize, why: &str| Finding::of(&RULES[at], Found::not_applicable(why));
        let findings = [found(0, "no GPU"), found(1, "no NFS"), found(2, "no GPU")];
        let names = [RULES[0].name, RULES[1].name, RULES[2].name];
        let together =
            format!("N/A (3)\n  no GPU: {}, {}\n  no NFS: {}\n", names[0], names[2], names[1]);
        let text = document(&findings, false).terminal(80);
        assert!(text.starts_with(&together), "{text}");
        assert!(text.ends_with("0 pass, 3 n/a\n"), "{text}");
        let each = document(&findings, true).terminal(80);
        assert_eq!(each.lines().filter(|line| line.ends_with("no GPU")).count(), 2, "{each}");
    }
}
