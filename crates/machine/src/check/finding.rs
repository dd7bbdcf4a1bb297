//! Rules and their findings.

use gpuio_record::facts::Machine;
use serde::Serialize;

/// A rule: a question about the machine, and the function that answers it.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Name, as `--only` and `--skip` take it.
    pub name: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Why the answer matters for I/O between storage and GPUs.
    pub why: &'static str,
    /// The general fix; a finding has the one for the device itself.
    pub fix: &'static str,
    pub source: &'static str,
    /// The text that shows its facts to `--from`: a command of `gpuio_capture::KINDS`.
    pub shown_by: &'static str,
    /// Evaluates the machine. Returns at least one finding, also when all is well.
    pub evaluate: fn(&Machine) -> Vec<Found>,
}

/// How much a finding matters, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something can't work, or the hardware gives less than it was bought for. `gpuio check` ends
    /// with exit code 1.
    Fail,
    /// It works, and costs throughput, latency or processor time.
    Warn,
    /// The facts that the rule needs are absent.
    Unknown,
    /// Worth knowing; nothing to fix.
    Info,
    /// As it should be, by facts that were read.
    Pass,
    /// Nothing here that the rule is about, by facts that were read.
    #[serde(rename = "n/a")]
    NotApplicable,
}

impl Severity {
    /// All of them, gravest first.
    pub const ALL: [Severity; 6] = [
        Severity::Fail,
        Severity::Warn,
        Severity::Unknown,
        Severity::Info,
        Severity::Pass,
        Severity::NotApplicable,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Severity::Fail => "fail",
            Severity::Warn => "warn",
            Severity::Unknown => "unknown",
            Severity::Info => "info",
            Severity::Pass => "pass",
            Severity::NotApplicable => "n/a",
        }
    }
}

/// The result of a rule's function; the [`Rule`] has the parts that are the same on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// How much it matters.
    pub severity: Severity,
    /// The observation; for an unknown, the reason; for a rule that does not apply, why not.
    pub observed: String,
    /// Where: PCI addresses, kernel names, mount points, settings. Empty for the whole machine.
    pub locations: Vec<String>,
    /// The command or setting that fixes it, or that answers an unknown.
    pub fix: Option<String>,
}

impl Found {
    fn new(severity: Severity, observed: impl Into<String>) -> Self {
        Found { severity, observed: observed.into(), locations: Vec::new(), fix: None }
    }

    pub(crate) fn fail(observed: impl Into<String>, fix: impl Into<String>) -> Self {
        Found::new(Severity::Fail, observed).fix(fix)
    }

    pub(crate) fn warn(observed: impl Into<String>, fix: impl Into<String>) -> Self {
        Found::new(Severity::Warn, observed).fix(fix)
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Found::new(Severity::Unknown, why)
    }

    pub(crate) fn info(observed: impl Into<String>) -> Self {
        Found::new(Severity::Info, observed)
    }

    pub(crate) fn pass(observed: impl Into<String>) -> Self {
        Found::new(Severity::Pass, observed)
    }

    /// Nothing here that the rule is about. Rules give the same reason in the same words, since
    /// they are printed together by it.
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Found::new(Severity::NotApplicable, why)
    }

    pub(crate) fn at(mut self, locations: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.locations.extend(locations.into_iter().map(Into::into));
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// A finding as it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The observation; for an unknown, the reason.
    pub observed: String,
    /// Where: PCI addresses, kernel names, mount points, settings.
    pub locations: Vec<String>,
    /// Why it matters for I/O between storage and GPUs.
    pub why: &'static str,
    /// The command or setting that fixes it, or that answers an unknown; `null` where there is
    /// nothing to do.
    pub fix: Option<String>,
    /// Where the rule is from: a document, a file of the kernel, a manual page.
    pub source: &'static str,
}

impl Finding {
    pub(crate) fn of(rule: &Rule, found: Found) -> Self {
        Finding {
            rule: rule.name,
            severity: found.severity,
            observed: found.observed,
            locations: found.locations,
            why: rule.why,
            fix: found.fix,
            source: rule.source,
        }
    }
}
