//! Errors of a job file.

use std::sync::Arc;

use crate::spec::keys::KeyError;

/// One error of a job file, printed as `file:line:column: what is wrong; what to do`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {fault}")]
pub struct JobFileError {
    /// The file, as it was named to the parser.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters; one past the last where a line ends too early. A byte order
    /// mark is not counted.
    pub column: u32,
    /// The error.
    pub fault: JobFileFault,
}

/// The error itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobFileFault {
    /// A key or its value.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file is not UTF-8.
    #[error("this byte is not UTF-8 text{}", if *.utf16 {
        "; the file looks like UTF-16: save it as UTF-8"
    } else {
        "; save the file as UTF-8, and check that it is a job file"
    })]
    NotUtf8 {
        /// It begins as UTF-16 files do.
        utf16: bool,
    },
    /// A NUL character.
    #[error("a NUL character; this is not a text file, or it is damaged: write it again")]
    Nul,
    /// `[` without `]`.
    #[error("the section header has no ']'; write [name] on a line of its own")]
    SectionUnclosed,
    /// `[]`.
    #[error("the section has no name; write [global] or [name]")]
    SectionUnnamed,
    /// Something after `]`.
    #[error("'{text}' after the section header; put it on the next line")]
    SectionTrailing {
        /// The text that follows, cut to a line.
        text: String,
    },
    /// A file that can't be included.
    #[error("'{name}' can't be included: {why}")]
    NotIncluded {
        /// The name, as it stands in the line.
        name: String,
        /// The reason, and what to do.
        why: String,
    },
    /// A key before the first header.
    #[error("key '{key}' is before any section; {}", put_above(.key))]
    OutsideSection {
        /// The key.
        key: String,
    },
    /// A line that begins with `=`.
    #[error("no key before '='; write key=value")]
    KeyMissing,
    /// `key=` without a value, or with a variable that is set but empty.
    #[error("key '{key}' has an empty value{}; give one, or remove the line", if *.variable {
        ": its environment variable is set and empty"
    } else {
        ""
    })]
    EmptyValue {
        /// The key.
        key: String,
        /// The value is a variable, so the line itself is not empty.
        variable: bool,
    },
    /// `key value`.
    #[error("no '=' after key '{key}'; write {key}=VALUE")]
    NoEquals {
        /// The key.
        key: &'static str,
    },
    /// `${NAME}` that is not in the environment.
    #[error(
        "environment variable '{name}' is not set; set it, or write $${{{name}}} if the \
             text ${{{name}}} itself is meant"
    )]
    UnsetVariable {
        /// The variable.
        name: String,
    },
    /// A word of fio's for a number of the machine, which is not known.
    #[error("{word} is not known here; write the number itself")]
    UnknownNumber {
        /// The word.
        word: &'static str,
    },
    /// `${` without a name and `}` after it.
    #[error(
        "'${{' needs a variable name of letters, digits and '_', and then '}}'; write $${{ \
             if the text ${{ itself is meant"
    )]
    BadVariable,
    /// A setting of `[global]` with no job after it.
    #[error(
        "'{key}' has no effect here: [global] applies to the jobs after it, and there are none; \
         move it above them, or into a job"
    )]
    GlobalUnread {
        /// The key.
        key: String,
    },
    /// A `[place …]` without a valid place.
    #[error(
        "write [place HOSTS/NUMBER] or [place HOSTS/NUMBER JOB]; commas separate hosts, and ranks \
         count from 0 on each host"
    )]
    BadPlace,
    /// A job of `[place …]` that is not there.
    #[error("no job is called '{job}'; a [place] is for all jobs, or for one by its name")]
    PlaceOfNoJob {
        /// The name.
        job: String,
    },
    /// A key in `[place …]` that is not of placement.
    #[error(
        "'{key}' does not belong into [place]: all ranks run the same load; here are {keys}",
        keys = super::place::KEYS.join(", ")
    )]
    NoPlacement {
        /// The key.
        key: String,
    },
    /// No `[place …]` fits this process.
    #[error(
        "no [place] is for host {host}, rank {local_rank} there; start as many ranks on each host \
         as it has places, or add [place {host}/{local_rank}]"
    )]
    NoPlace {
        /// The host.
        host: String,
        /// The number of the rank on its host.
        local_rank: u32,
    },
    /// No section other than `[global]`.
    #[error("the file has no job; add a section such as [job1], which may be empty")]
    NoJob,
}

/// Advice on a key that is before any section.
fn put_above(key: &str) -> &'static str {
    match key {
        // Storage, file system, workload, file workload and run definitions.
        "sd" | "fsd" | "wd" | "fwd" | "rd" => {
            "it is one of Vdbench's run files, which gpuio does not read: give the load by flags, \
             or as a job file of gdsio or fio"
        }
        _ => "put [global] or [name] above it",
    }
}
