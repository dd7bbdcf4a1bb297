//! Why gpuio ends without a result, and with which exit code.

use std::process::ExitCode;

use gpuio_load::run::{DataSetError, RunError};
use gpuio_plan::PlanError;

use crate::journal::Journal;

/// The exit codes: 0 fine, 1 findings, I/O or verification errors, 2 usage, 3 not available here.
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
    /// For results that could not be saved: names the journal that still has them.
    pub(crate) fn with_journal(self, journal: &Journal) -> Failure {
        match (self, journal.kept()) {
            (Failure::Ran(what), Some(kept)) => {
                Failure::Ran(format!("{what}; the results are in {}", kept.display()))
            }
            (failure, _) => failure,
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
        match error {
            PlanError::Usage { .. } => Failure::Usage(error.to_string()),
            PlanError::Unavailable { .. } => Failure::Unavailable(error.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match &error {
            RunError::DataSet(DataSetError::Refused(_)) => Failure::Usage(error.to_string()),
            RunError::NoComputation { .. } => Failure::Unavailable(error.to_string()),
            RunError::InvalidPlan { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Ran(error.to_string()),
        }
    }
}
