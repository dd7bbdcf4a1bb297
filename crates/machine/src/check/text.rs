//! Findings as text: gravest first, the reason and the fix below each that needs one.

use std::fmt::Write as _;

use gpuio_base::units::paragraph;

pub use crate::check::verdict::render as verdict;
use crate::check::{Finding, Rule, Severity};

/// Longer lists of locations are cut, and the number of the rest is printed.
const LOCATIONS: usize = 8;

/// The findings grouped by severity in lines of at most `width` characters, where words allow it.
/// Passes and unknowns have one line each: there is nothing to fix. Rules that do not apply have
/// one line together for each reason, or with `all` one each.
#[must_use]
pub fn render(findings: &[Finding], width: usize, all: bool) -> String {
    let mut out = String::new();
    for severity in Severity::ALL {
        let group: Vec<_> = findings.iter().filter(|found| found.severity == severity).collect();
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{} ({})", severity.word().to_uppercase(), group.len());
        if severity == Severity::NotApplicable && !all {
            by_reason(&mut out, &group, width);
        } else {
            group.iter().for_each(|finding| one(&mut out, finding, width));
        }
        out.push('\n');
    }
    let counts = Severity::ALL.map(|severity| {
        let count = findings.iter().filter(|found| found.severity == severity).count();
        format!("{count} {}", severity.word())
    });
    let _ = writeln!(out, "{}", counts.join(", "));
    out
}

/// Names of rules behind the reason that they share.
fn by_reason(out: &mut String, findings: &[&Finding], width: usize) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in findings {
        match reasons.iter_mut().find(|(reason, _)| *reason == finding.observed) {
            Some((_, rules)) => rules.push(finding.rule),
            None => reasons.push((&finding.observed, vec![finding.rule])),
        }
    }
    for (reason, rules) in reasons {
        wrap(out, "  ", &format!("{reason}: {}", rules.join(", ")), width);
    }
}

pub(crate) fn one(out: &mut String, finding: &Finding, width: usize) {
    wrap(out, &format!("  {:<16} ", finding.rule), &finding.observed, width);
    let indent = format!("  {:<16} ", "");
    if !finding.locations.is_empty() {
        let more = finding.locations.len().saturating_sub(LOCATIONS);
        let mut locations = finding.locations[..finding.locations.len().min(LOCATIONS)].join(", ");
        if more > 0 {
            let _ = write!(locations, " and {more} more");
        }
        wrap(out, &format!("{indent}at: "), &locations, width);
    }
    if matches!(finding.severity, Severity::Fail | Severity::Warn) {
        wrap(out, &format!("{indent}why: "), finding.why, width);
    }
    if let Some(fix) = &finding.fix {
        wrap(out, &format!("{indent}fix: "), fix, width);
    }
    if matches!(finding.severity, Severity::Fail | Severity::Warn) {
        wrap(out, &format!("{indent}source: "), finding.source, width);
    }
}

/// `text`, which may be from outside, behind `head`, with the lines after the first indented as
/// far.
pub(crate) fn wrap(out: &mut String, head: &str, text: &str, width: usize) {
    out.push_str(&paragraph(head, head.chars().count(), text, width));
}

/// What a rule is about, for `--explain`.
#[must_use]
pub fn explain(rule: &Rule, width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, &format!("{}: ", rule.name), rule.question, width);
    wrap(&mut out, "  why:    ", rule.why, width);
    wrap(&mut out, "  fix:    ", rule.fix, width);
    wrap(&mut out, "  source: ", rule.source, width);
    out
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
        let text = render(&findings, 80, false);
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
        let text = render(&findings, 80, false);
        assert!(text.starts_with(&together), "{text}");
        assert!(text.ends_with("0 pass, 3 n/a\n"), "{text}");
        let each = render(&findings, 80, true);
        assert_eq!(each.lines().filter(|line| line.ends_with("no GPU")).count(), 2, "{each}");
    }

    #[test]
    fn a_word_longer_than_the_line_stands_alone() {
        let mut out = String::new();
        wrap(&mut out, "  ", "a bbbbbbbbbbbb c", 8);
        assert_eq!(out, "  a\n  bbbbbbbbbbbb\n  c\n");
    }
}
