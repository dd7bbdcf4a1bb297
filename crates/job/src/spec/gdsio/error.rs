//! Errors of a gdsio command line.

use crate::spec::keys::KeyError;

/// The first error of a gdsio command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GdsioError {
    /// Unknown flag.
    #[error("unknown flag {flag}; gdsio's flags are {}; -h explains them", super::flags::letters())]
    UnknownFlag {
        /// The flag, with its dash.
        flag: String,
    },
    /// A flag that needs a value is last, or another flag follows it.
    #[error("{flag} needs a value: {what}")]
    MissingValue {
        /// The flag.
        flag: &'static str,
        /// The value that it takes.
        what: &'static str,
    },
    /// A flag was given twice.
    #[error(
        "{flag} is given twice, but a command line is one job. For several jobs, write a \
         configuration file with one section for each and give it as the only argument"
    )]
    Twice {
        /// The flag.
        flag: &'static str,
    },
    /// `-f` and `-D` together.
    #[error(
        "-f and -D exclude each other; give -f FILE for one file shared by all threads, or \
             -D DIRECTORY for one file gdsio.N for each thread"
    )]
    FileAndDirectory,
    /// Neither `-f` nor `-D` nor a configuration file.
    #[error(
        "no file to read or write; give -f FILE, -D DIRECTORY, or a configuration file as the \
         only argument"
    )]
    NoTarget,
    /// An argument where none is expected.
    #[error(
        "unexpected argument '{argument}'{after}; flags begin with '-', those without value \
             take none, and a configuration file is the only argument"
    )]
    Unexpected {
        /// The argument, cut to a line.
        argument: String,
        /// The flag before it, in words; empty when there is none.
        after: String,
    },
    /// A dash that is not ASCII, as web pages make of `-`.
    #[error("'{argument}' begins with '{found}' (U+{:04X}), which only looks like '{plain}'; type \
             the ASCII sign", u32::from(*.found))]
    LookAlike {
        /// The argument, cut to a line.
        argument: String,
        /// The sign.
        found: char,
        /// The plain character that it looks like.
        plain: char,
    },
    /// A configuration file and flags.
    #[error(
        "{flag} can't be combined with configuration file '{config}'; put the setting into the \
         file"
    )]
    ConfigAndFlag {
        /// The file, cut to a line.
        config: String,
        /// The flag.
        flag: &'static str,
    },
    /// The value of a flag.
    #[error("{flag}: {source}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// The error in it.
        source: KeyError,
    },
}
