//! Errors while the machine is read.

use std::io;
use std::path::PathBuf;

use gpuio_record::facts::ReadProblem;
use thiserror::Error;

/// A line that does not have the form its documentation gives.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} reads {text:?}, where {wanted} was expected")]
pub struct LineFault {
    /// Line, counted from 1.
    pub line: u64,
    /// The line, cut to 80 characters.
    pub text: String,
    pub wanted: &'static str,
}

impl LineFault {
    /// Describes the line at `index`, counted from 0.
    pub(crate) fn new(index: usize, text: &str, wanted: &'static str) -> Self {
        Self { line: index as u64 + 1, text: text.chars().take(80).collect(), wanted }
    }
}

/// A fact that could not be read.
#[derive(Debug, Error)]
pub enum HostError {
    /// The file is there and cannot be read.
    #[error("cannot read {}: {source}; this fact stays unknown", path.display())]
    Read {
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file was read and not understood.
    #[error(
        "{}: {source}; the kernel may be newer than this program, please report it",
        path.display()
    )]
    Malformed {
        path: PathBuf,
        /// Which line, and why.
        source: LineFault,
    },
    /// A system call on a file under test failed.
    #[error("{call} failed on {}: {source}; {advice}", path.display())]
    Call {
        call: &'static str,
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
        /// The next step for the user.
        advice: &'static str,
    },
}

impl HostError {
    /// The error as the record keeps it.
    pub fn to_problem(&self) -> ReadProblem {
        match self {
            Self::Read { path, source } => ReadProblem {
                path: path.to_string_lossy().into_owned(),
                line: None,
                message: source.to_string(),
            },
            Self::Malformed { path, source } => ReadProblem {
                path: path.to_string_lossy().into_owned(),
                line: Some(source.line),
                message: source.to_string(),
            },
            Self::Call { path, call, source, .. } => ReadProblem {
                path: path.to_string_lossy().into_owned(),
                line: None,
                message: format!("{call}: {source}"),
            },
        }
    }
}
