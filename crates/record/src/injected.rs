//! Faults that `inject` makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Faults that were made on purpose, by the words of `inject`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InjectedFaults {
    /// I/Os that ended with EIO.
    pub eio: u64,
    /// Writes that ended with ENOSPC.
    pub enospc: u64,
    /// Writes that were reported as done and not made.
    pub lost: u64,
    /// Transfers that were cut.
    pub short: u64,
    /// I/Os that came back late.
    pub delay: u64,
}

impl InjectedFaults {
    /// Whether none was made.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Each kind that was made, with its count: `short 53, delay 102`; empty where none was.
    pub fn words(&self) -> String {
        let Self { eio, enospc, lost, short, delay } = *self;
        let all =
            [("eio", eio), ("enospc", enospc), ("lost", lost), ("short", short), ("delay", delay)];
        let made = all.iter().filter(|(_, count)| *count > 0);
        made.map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    }
}
