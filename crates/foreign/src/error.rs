//! Why a text can't be read.

use thiserror::Error;

/// What is wrong with a text, and what to do about it.
#[derive(Debug, Error)]
pub enum ForeignError {
    /// No tool prints such a text.
    #[error(
        "neither a record of gpuio's nor a result of another tool that can be read: gdsio's result \
         lines (IoType: … total_time … secs), fio --output-format=json, elbencho --csvfile"
    )]
    Strange,
    /// It begins like a tool's result, and there is none in it.
    #[error(
        "no whole result of {tool} is in it{why}; save the output from its first line to its last"
    )]
    Empty {
        /// The tool.
        tool: &'static str,
        /// What was found in place of one, with a colon before it; may be empty.
        why: String,
    },
    /// It is no JSON, or JSON of another form.
    #[error(
        "fio's JSON is broken: {0}; save it with --output=FILE, so that no message gets into it"
    )]
    Json(#[from] serde_json::Error),
    /// A value is not what the tool prints there.
    #[error("{tool}, {place}: {what}; give the file as the tool wrote it")]
    Value {
        /// The tool.
        tool: &'static str,
        /// Line or job.
        place: String,
        /// What is wrong.
        what: String,
    },
}
