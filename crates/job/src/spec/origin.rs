//! Where a setting was made.

use std::fmt;
use std::sync::Arc;

/// The origin of a value: a line of a job file or a flag.
///
/// Printed as `file:line:column`, `preset NAME` or the flag itself, so that it can start an error
/// message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A job file.
    File {
        /// The name the file was opened by.
        file: Arc<str>,
        /// Line, from 1.
        line: u32,
        /// Column of the key, from 1, in characters (not bytes).
        column: u32,
    },
    /// A preset, whose file the user does not have.
    Preset(&'static str),
    /// A command line flag as the user typed it: `--bs`, `-x`.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One key as it was written, so that a later stage can refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The key's name in the key table (never an alias).
    pub key: &'static str,
    /// The value as written, after `${…}` was replaced. Empty for a bare flag.
    pub value: String,
    /// Its origin.
    pub origin: Origin,
}

impl fmt::Display for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{} ({})", self.key, self.origin)
        } else {
            write!(f, "{}={} ({})", self.key, self.value, self.origin)
        }
    }
}
