//! Needs that a rule of `check` answers.

use gpuio_record::facts::Machine;

use super::{About, Answer, Need};
use crate::check::finding::Severity;
use crate::check::gdscheck::interpret::printed;
use crate::check::rule::find;

/// The answer of a rule that rests on gdscheck's lines: the rule and the needs say the same.
pub(super) fn of_rule(about: About, machine: &Machine, rule: &str) -> Option<Need> {
    let (_, printed) = printed(machine)?;
    let mut found = (find(rule)?.evaluate)(machine).into_iter();
    let found = found.find(|one| one.observed.starts_with(printed))?;
    let met = match found.severity {
        Severity::Pass => Answer::Yes,
        Severity::Fail | Severity::Warn => Answer::No,
        Severity::Unknown | Severity::Info | Severity::NotApplicable => Answer::Unknown,
    };
    Some(Need { about, met, found: found.observed, fix: found.fix })
}
