//! Faults that `inject` makes.

use gpuio_base::catalog::Inject;
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
    /// I/Os that were requested in the stall; 0 in records of versions that did not count them.
    #[serde(default)]
    pub stall: u64,
}

impl InjectedFaults {
    /// Whether none was made.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn counts(&self) -> [(&'static str, u64); 6] {
        let Self { eio, enospc, lost, short, delay, stall } = *self;
        [
            ("eio", eio),
            ("enospc", enospc),
            ("lost", lost),
            ("short", short),
            ("delay", delay),
            ("stall", stall),
        ]
    }

    /// Each kind that was made, with its count: `short 53, delay 102`; empty where none was.
    pub fn words(&self) -> String {
        let made = self.counts().into_iter().filter(|(_, count)| *count > 0);
        made.map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// The kinds that `inject` asks for and of which none was made.
    pub fn missing(&self, inject: &str) -> Vec<String> {
        let asked = inject.parse::<Inject>().map(|it| it.kinds()).unwrap_or_default();
        let none = self.counts().into_iter().filter(|(kind, n)| *n == 0 && asked.contains(kind));
        none.map(|(kind, _)| kind.to_owned()).collect()
    }
}
