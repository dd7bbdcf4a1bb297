//! Why a list can't be used or changed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The list of a directory cannot be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Not the JSON that gpuio writes.
    #[error(
        "{}: line {line}, column {column}: {what}; gpuio cannot know which files here are its own \
         and touches none; if they may all go, remove this file and pass --overwrite",
        path.display()
    )]
    Malformed {
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        what: String,
    },
    /// JSON, but nothing that gpuio writes.
    #[error(
        "{}: {what}; gpuio cannot know which files here are its own and touches none; \
         if they may all go, remove this file and pass --overwrite",
        path.display()
    )]
    Rejected { path: PathBuf, what: String },
    /// A system call failed.
    #[error("{}: {call}: {source}; {meaning}", path.display())]
    Call {
        call: &'static str,
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
        meaning: String,
    },
    /// Another process keeps the lock.
    #[error(
        "{}: another gpuio has held this lock for {seconds} s; wait for it, or end it if it hangs",
        path.display()
    )]
    Busy {
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// A file that was ours is not any more.
    #[error(
        "{}: replaced or changed since it was checked; nothing was written to it; run again",
        path.display()
    )]
    NotOurs { path: PathBuf },
    /// Its name was given to another file while it was written.
    #[error(
        "{}: another file took this name during the run; what was written is in the file that was \
         checked, which has another name now or none",
        path.display()
    )]
    Moved { path: PathBuf },
    /// A name that the list cannot hold.
    #[error(
        "{}: the name is not UTF-8, so gpuio could not list it as its own; use another name",
        path.display()
    )]
    Name { path: PathBuf },
}
