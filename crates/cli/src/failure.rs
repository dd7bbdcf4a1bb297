//! Why gpuio ends without a result, and with which exit code.

use std::path::Path;
use std::process::ExitCode;

use gpuio_dataset::Refusal;
use gpuio_host::answers::Silent;
use gpuio_job::plan::PlanError;
use gpuio_load::run::{DataSetError, RunError};

/// The exit codes and what they mean, for the reference.
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "fine"),
    (
        1,
        "a finding: a rule of `check` failed, figures in its texts contradict each other, a result \
         is worse than `--threshold`, an I/O error (no permission and no space are such), a \
         verification error, a path that `--require-path` requires and that is not proven, or a \
         `--latency-target` that not even the lowest load of a sweep meets; a run that Ctrl-C or \
         another signal ended: its results until then are printed and saved",
    ),
    (2, "wrong usage, or results that cannot be compared or do not decide over `--threshold`"),
    (
        3,
        "not available on this machine; `show --check`: a record of another version or with \
         unknown fields, of which not all can be checked here",
    ),
];

/// A failure by its exit code: one of [`EXIT_CODES`].
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something failed during the run: 1.
    Ran(String),
    /// The request is invalid, or needs a flag that permits it: 2.
    Usage(String),
    /// This machine can't do it: 3.
    Unavailable(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Failure::Ran(what) | Failure::Usage(what) | Failure::Unavailable(what)) = self;
        f.write_str(what)
    }
}

impl Failure {
    /// For results that could not be saved: names the journal that still has them, if one has.
    pub(crate) fn with_journal(self, kept: Option<&Path>) -> Failure {
        match (self, kept) {
            (Failure::Ran(what), Some(kept)) => {
                Failure::Ran(format!("{what}; the results are in {}", kept.display()))
            }
            (failure, _) => failure,
        }
    }

    /// With the flags of a verb, whichever verb's words it was made of: pairs of a flag of `gpuio
    /// bench` and the verb's own, longer ones first.
    pub(crate) fn in_flags(self, spelled: &[(&str, &str)]) -> Failure {
        let words = |text: String| {
            spelled.iter().fold(text, |text, (ours, theirs)| {
                let mut parts = text.split(ours);
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |all, rest| {
                    // A longer flag that begins alike is another one.
                    let longer = rest.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric());
                    all + if longer { ours } else { theirs } + rest
                })
            })
        };
        match self {
            Failure::Ran(text) => Failure::Ran(words(text)),
            Failure::Usage(text) => Failure::Usage(words(text)),
            Failure::Unavailable(text) => Failure::Unavailable(words(text)),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Ran(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unavailable(_) => 3,
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        match error.is_usage() {
            true => Failure::Usage(error.to_string()),
            false => Failure::Unavailable(error.to_string()),
        }
    }
}

impl From<Silent> for Failure {
    fn from(silent: Silent) -> Failure {
        Failure::Unavailable(silent.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match &error {
            RunError::DataSet(DataSetError::Refused(all))
                if !all.iter().all(Refusal::is_denied) =>
            {
                Failure::Usage(error.to_string())
            }
            RunError::NoComputation { .. } => Failure::Unavailable(error.to_string()),
            RunError::InvalidPlan { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Ran(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_exit_codes() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (code, meaning) in EXIT_CODES {
            let row = format!("| {code} | {meaning} |");
            assert!(page.contains(&row), "docs/settings.md has no line {row}");
        }
        let failures = [Failure::Ran, Failure::Usage, Failure::Unavailable];
        let codes = failures.map(|failure| failure(String::new()).code());
        assert_eq!(codes, [EXIT_CODES[1].0, EXIT_CODES[2].0, EXIT_CODES[3].0]);
    }
}
