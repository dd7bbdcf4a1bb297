//! Keys that are known and refused, because the run would measure something else without them. Each
//! has a reason, and the nearest alternative.

mod data;
mod load;
mod others;
mod process;

use super::{Dialect, Key, Status};

/// Every refused key, in groups.
pub(super) const KEYS: [&[Key]; 20] = [
    load::PACE,
    load::REGION,
    load::QUEUE,
    data::WRITES,
    data::CHECKS,
    data::LOGS,
    process::PROCESS,
    process::GDSIO,
    others::ZONES,
    others::TRIM,
    others::FLOWS,
    others::REPLAY,
    others::PRIORITIES,
    others::NETWORK,
    others::HTTP,
    others::CLIENTS,
    others::PASSTHROUGH,
    others::NO_DATA,
    others::CONTENTS,
    others::MACHINE,
];

const fn refused(
    name: &'static str,
    aliases: &'static [&'static str],
    dialect: Dialect,
    why: &'static str,
    instead: &'static str,
) -> Key {
    Key { name, aliases, dialect, summary: "", status: Status::Known { why, instead } }
}
