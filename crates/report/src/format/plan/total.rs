//! Files, bytes and time of a whole plan.

use std::collections::BTreeMap;

use gpuio_record::{GuardNote, JobPlan, Plan};

use super::comment;
use crate::number::{bytes, many, time};

/// A rate that makes a time of bytes easy to work out for another.
const EXAMPLE: u64 = 1 << 30;

/// Two comments: the files and what is written before the clock starts; and how long it runs.
pub(super) fn write(out: &mut String, plan: &Plan) {
    let jobs = || plan.jobs.iter();
    // Jobs that follow each other use the same files; one that makes them does so once.
    let mut files: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for target in jobs().flat_map(|job| &job.targets) {
        let made = matches!(target.guard, GuardNote::Make | GuardNote::Remake);
        let (length, is_made) = files.entry(&target.path).or_default();
        *length = target.length_bytes.max(*length);
        *is_made |= made;
    }
    let sum = |only_made: bool| {
        let of = files.values().filter(|(_, is_made)| *is_made || !only_made);
        of.map(|(length, _)| *length).fold(0, u64::saturating_add)
    };
    if !files.is_empty() {
        out.push('\n');
        let made = match sum(true) {
            0 => "none is written before the clock starts".to_owned(),
            made => format!("{} are written before the clock starts", bytes(made)),
        };
        let count = many(files.len() as u64, "file");
        comment(out, &format!("in all: {count}, {}; {made}", bytes(sum(false))));
    }
    comment(out, &format!("time: {}", duration(plan)));
}

/// The time of the groups, one after the other.
fn duration(plan: &Plan) -> String {
    let mut groups: BTreeMap<u32, u64> = BTreeMap::new();
    for job in &plan.jobs {
        let before = job.start_delay_ns.saturating_add(job.ramp_ns);
        let own = before.saturating_add(job.stop.runtime_ns.unwrap_or(0));
        let longest = groups.entry(job.group).or_default();
        *longest = own.max(*longest);
    }
    let known = groups.values().copied().fold(0, u64::saturating_add);
    let open: Vec<&JobPlan> =
        plan.jobs.iter().filter(|job| job.stop.runtime_ns.is_none()).collect();
    if open.is_empty() {
        return format!("the clocks of the jobs run for {} at most", time(known));
    }
    let least = if known == 0 { String::new() } else { format!("{} and ", time(known)) };
    let data = |job: &&JobPlan| {
        job.stop.bytes_per_thread?.checked_mul(u64::from(job.threads)).filter(|bytes| *bytes > 0)
    };
    let all: Option<Vec<u64>> = open.iter().map(data).collect();
    match all.map(|all| all.into_iter().fold(0, u64::saturating_add)) {
        Some(moved) => {
            let at = u128::from(moved) * 1_000_000_000 / u128::from(EXAMPLE);
            let at = u64::try_from(at).unwrap_or(u64::MAX);
            format!(
                "{least}as long as {} take, {} at {}/s; runtime= sets a limit",
                bytes(moved),
                time(at),
                bytes(EXAMPLE)
            )
        }
        None => format!("{least}as long as the data takes; runtime= sets a limit"),
    }
}
