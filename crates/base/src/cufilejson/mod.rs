//! The configuration of NVIDIA's cuFile library: a parser that keeps the position of every key,
//! and the table of known keys.
//!
//! cuFile reads one JSON file with comments: the one that `CUFILE_ENV_PATH_JSON` names, or
//! `/etc/cufile.json`. It ignores wrong keys without a message, so [`faults`] reports them: keys
//! that no release knows, repeated keys, values of a wrong type or out of range, sizes that are no
//! multiple of 4 KiB, and settings that contradict each other. Everything here is pure and may be
//! called from any thread; nothing opens a file.
//!
//! Sources of the table: NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide,
//! "GPUDirect Storage Parameters" (r1.20); Release Notes (1.5 to 1.20); Troubleshooting Guide,
//! "JSON Config Parameters" and "Dynamic Routing"; ranges as `cuFileGetParameterMinMaxValue` of
//! 1.15 and 1.20 returns them.
//!
//! To add a key: a row of `KEYS` in `table.rs`. The reference has the table
//! (`gpuio generate reference`).

mod combination;
mod fault;
mod read;
mod setting;
mod table;
mod value;

pub use fault::{EntryFault, FaultKind, faults};
pub use read::{Config, Entry, SyntaxError, keys, read};
pub use setting::{SettingError, setting};
pub use table::{KEYS, Key, ValueType, find, markdown_table};

/// The variable that names the file.
pub const VARIABLE: &str = "CUFILE_ENV_PATH_JSON";
/// Where the file lies otherwise.
pub const DEFAULT_PATH: &str = "/etc/cufile.json";

/// Why the key of this path does not take a value, as a clause; `None` where it does, and for keys
/// that are not in the table.
pub fn refused(path: &str, value: &serde_json::Value) -> Option<String> {
    value::wrong(find(path)?, value).map(|(_, message)| message)
}

/// Whether a text looks like cuFile's configuration: an object with a key of its table, or of
/// nothing but its groups, which may be one. A text that can't be parsed is one by two of them.
pub fn looks_like(text: &str) -> bool {
    let is_group = |name: &str| GROUPS.contains(&name);
    let quoted = |name: &&&str| text.contains(&format!("\"{name}\""));
    let begins = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    // Most texts of other tools are known without parsing them.
    let comment = ["//", "/*", "#"].iter().any(|mark| begins.starts_with(mark));
    if !(comment || begins.starts_with('{')) || !GROUPS.iter().any(|name| quoted(&name)) {
        return false;
    }
    if text.len() > MOST_PARSED {
        return GROUPS.iter().filter(quoted).count() > 1;
    }
    match read(text) {
        Ok(config) => {
            let mut paths = config.entries.iter().map(|entry| entry.path.as_str());
            let only_groups = |path: &str| is_group(path.split('.').next().unwrap_or_default());
            let all = !config.entries.is_empty() && paths.clone().all(only_groups);
            all || paths.any(|path| find(path).is_some())
        }
        Err(_) => {
            let leaf = |key: &Key| key.path.rsplit('.').next().unwrap_or_default();
            let keys = KEYS.iter().filter(|key| text.contains(&format!("\"{}\"", leaf(key))));
            let marks = GROUPS.iter().filter(quoted).count() + keys.count().min(1);
            text.contains('{') && marks > 1
        }
    }
}

/// Longer texts, in bytes, are not parsed to tell what they are.
const MOST_PARSED: usize = 1 << 20;
/// Groups at the top of the file.
const GROUPS: [&str; 9] = [
    "properties",
    "logging",
    "profile",
    "execution",
    "fs",
    "block",
    "miscellaneous",
    "denylist",
    "blacklist",
];
