//! Who chose a value: the user or gpuio.
//!
//! A value that was not set followed from a path or a block size. It is no load of its own, and its
//! values are no series.

use gpuio_record::Record;

use super::rows::Row;

/// Whether gpuio chose the depth of a row's job. A record that does not tell counts as one whose
/// depth was set, so that two different loads are never combined. So does a point of a sweep that
/// varied it: where its value has no effect, the run did not get it, and its load is that of the
/// depth that ran.
pub(super) fn depth_is_ours(row: &Row<'_>) -> bool {
    let varied = |(key, _): &(String, String)| ["depth", "iodepth"].contains(&key.as_str());
    if row.member.at.iter().any(varied) {
        return false;
    }
    match &row.plan.defaulted {
        Some(keys) => keys.iter().any(|key| key == "depth"),
        None => by_command(row.record).unwrap_or(false),
    }
}

/// The same from the command of an older record, if all its settings are in `--set KEY=VALUE`, as
/// in the runs of a sweep. `None` if a job file or a flag could have set more.
fn by_command(record: &Record) -> Option<bool> {
    let mut words = record.command.iter().map(String::as_str).skip(1);
    if words.next() != Some("bench") {
        return None;
    }
    let mut unset = true;
    while let Some(word) = words.next() {
        match word {
            "--quiet" | "-q" => {}
            "-o" => drop(words.next()),
            "--set" => {
                let key = words.next()?.split('=').next()?;
                unset &= !matches!(key, "depth" | "iodepth");
            }
            _ => return None,
        }
    }
    Some(unset)
}
