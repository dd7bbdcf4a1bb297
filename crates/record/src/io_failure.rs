//! Failed I/Os, by kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A failed I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoFailure {
    /// File or device.
    pub path: String,
    /// Byte offset.
    pub offset: u64,
    /// Bytes requested.
    pub length: u64,
    /// `read` or `write`.
    pub op: String,
    /// `file` or `gpu`.
    pub leg: String,
    /// The error, with its meaning.
    pub what: String,
    /// Failures of this kind on this file, this one included.
    pub times: u64,
}
