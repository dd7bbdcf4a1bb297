//! Why a text can't be read.

use thiserror::Error;

/// The error in a text, and the remedy.
#[derive(Debug, Error)]
pub enum ForeignError {
    /// No supported tool prints such a text.
    #[error(
        "neither a gpuio record nor a readable result of another tool: gdsio's result lines \
         (IoType: … total_time … secs), fio's text or JSON, elbencho's text or CSV"
    )]
    Strange,
    /// It begins like a tool's result, but contains none.
    #[error(
        "no complete result of {tool} was found{why}; save the output from its first line to its \
         last"
    )]
    Empty {
        tool: &'static str,
        /// The text that was found instead, with a colon before it; may be empty.
        why: String,
    },
    /// It is no JSON, or JSON of another form.
    #[error(
        "fio's JSON can't be parsed: {0}; save it with --output=FILE, so that no message gets \
         into it"
    )]
    Json(#[from] serde_json::Error),
}
