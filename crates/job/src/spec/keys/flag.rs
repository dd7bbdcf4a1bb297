//! Flags of verbs that set keys.

/// Verbs whose help has the flags of a load.
const LOADS: &[&str] = &["bench", "sweep"];
/// Every verb with flags that set keys.
pub(in crate::spec) const ALL: &[&str] = &["bench", "sweep", "workload", "replay"];

/// A flag that sets a key, in the help of some verbs.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The spelling without dashes; empty for the key's name with hyphens.
    pub(super) long: &'static str,
    /// Other spellings that the help shows.
    pub aliases: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// The heading in their help.
    pub heading: &'static str,
    /// The name of the value in the help; empty for a switch.
    pub value: &'static str,
    /// Whether the value may be left out; else it stands behind an equals sign.
    pub optional: bool,
    /// The value of the key for a flag that takes no value at all.
    pub means: Option<&'static str>,
    /// A flag beside which it is refused: its spelling without dashes.
    pub conflict: Option<&'static str>,
    /// The argument that it stands behind in the help, where that is not its place in the table.
    pub behind: Option<&'static str>,
    /// The help. `{paths}` and `{engines}` stand for the names of all of them.
    pub help: &'static str,
}

impl Flag {
    /// Whether the key can be written without a value: `--direct`, and `--direct=0`.
    pub fn is_switch(&self) -> bool {
        self.value.is_empty() && self.means.is_none()
    }

    /// Whether the value is one name, in which no sign separates it from another.
    pub fn is_name(&self) -> bool {
        matches!(self.value, "DIR" | "FILE")
    }

    /// Whether the value is a number, so that several of them are no single value.
    pub fn is_number(&self) -> bool {
        matches!(self.value, "N" | "FACTOR" | "SIZE" | "TIME")
    }
}

const fn flag(
    verbs: &'static [&'static str],
    heading: &'static str,
    value: &'static str,
    help: &'static str,
) -> Flag {
    Flag {
        long: "",
        aliases: &[],
        verbs,
        heading,
        value,
        optional: false,
        means: None,
        conflict: None,
        behind: None,
        help,
    }
}

pub(super) const fn load(value: &'static str, help: &'static str) -> Flag {
    flag(LOADS, "Load", value, help)
}

pub(super) const fn machine(value: &'static str, help: &'static str) -> Flag {
    flag(ALL, "Machine", value, help)
}

pub(super) const fn data(value: &'static str, help: &'static str) -> Flag {
    flag(LOADS, "Data", value, help)
}

pub(super) const fn files(value: &'static str, help: &'static str) -> Flag {
    flag(&["workload", "replay"], "Data", value, help)
}

pub(super) const fn workload(value: &'static str, help: &'static str) -> Flag {
    flag(&["workload"], "Workload", value, help)
}

pub(super) const fn replay(value: &'static str, help: &'static str) -> Flag {
    flag(&["replay"], "Replay", value, help)
}
