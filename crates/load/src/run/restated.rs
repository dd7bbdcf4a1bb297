//! The conclusions of a record, made again from its plan and counts: its proofs, its warnings, the
//! rules of its feeds. Pure.

use std::collections::BTreeSet;

use gpuio_base::units::human_bytes;
use gpuio_job::spec::TakenKeys;
use gpuio_record::{DeviceTraffic, EndedHow, FeedRule, JobPlan, JobResult, Record, Warning};

use super::{feed, warn};
use crate::evidence;

/// Why conclusions of a record can't be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrestated {
    /// Another version made it, whose words may differ.
    Version,
    /// Sizes are printed in other units than records have.
    Units,
}

/// The hindrance to making the conclusions of this record again.
#[must_use]
pub fn unrestated(record: &Record) -> Option<Unrestated> {
    match record.tool.version == env!("CARGO_PKG_VERSION") {
        false => Some(Unrestated::Version),
        true => (human_bytes(1024.0) != "1.00 KiB").then_some(Unrestated::Units),
    }
}

/// Each conclusion, with a sentence where it does not follow. None of a record of several ranks,
/// nor of one with a [hindrance](unrestated).
#[must_use]
pub fn restated(record: &Record) -> Vec<Option<String>> {
    if record.ranks.is_some() || unrestated(record).is_some() {
        return Vec::new();
    }
    let groups: BTreeSet<u32> = record.plan.jobs.iter().map(|job| job.group).collect();
    let of_group = |group: u32| {
        let (jobs, results): (Vec<JobPlan>, Vec<JobResult>) = (record.plan.jobs.iter())
            .zip(&record.jobs)
            .filter(|(job, _)| job.group == group)
            .map(|(job, result)| (job.clone(), result.clone()))
            .unzip();
        if record.plan.jobs.iter().filter(|job| job.group == group).count() > jobs.len() {
            return Vec::new();
        }
        let mut said = evidence::restated(record, &jobs, &results);
        if record.ended == EndedHow::Complete {
            said.extend(warnings(record, &jobs, &results));
            said.extend(results.iter().map(|result| others(&jobs, &results, result)));
        }
        said.extend((0..jobs.len()).filter_map(|at| rules(record, (&jobs, at), &results[at])));
        said
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// Warnings that are due, by their kind and job. Others follow from samples of devices.
fn warnings(record: &Record, jobs: &[JobPlan], results: &[JobResult]) -> Vec<Option<String>> {
    let found = evidence::warn::recorded(jobs, results);
    let keys = TakenKeys::of(&record.command, jobs);
    let due = warn::group(jobs, results, (&record.host, &keys), found);
    let same = |all: &[Warning], one: &Warning| {
        // One without a job is about all.
        let is_about = |other: &Warning| other.job.is_none() || other.job == one.job;
        let is_same = |other: &&Warning| is_about(other) && other.kind.id() == one.kind.id();
        all.iter().filter(is_same).count()
    };
    let missing = |(at, one): (usize, &Warning)| {
        (same(&record.warnings, one) <= same(&due[..at], one)).then(|| {
            let job = one.job.as_ref().map(|job| format!(" of job '{job}'")).unwrap_or_default();
            format!("warnings: {}{job} is missing: {}", one.kind.id(), one.text)
        })
    };
    due.iter().enumerate().map(missing).collect()
}

/// The counts of what others did.
fn others(jobs: &[JobPlan], results: &[JobResult], result: &JobResult) -> Option<String> {
    let wrong = |why: &str| Some(format!("job '{}', others: {why}", result.name));
    let Some(counts) = &result.others else {
        return wrong("no counts, which each record of this version has");
    };
    if result.others_cpu_unknown != counts.processors_unknown() {
        return wrong("whether their use of the CPUs is known is not as the CPUs' time has it");
    }
    // Storage was counted from the first I/O on, others where a job counts from later on.
    if jobs.iter().any(|job| job.ramp_ns > 0 || job.start_delay_ns > 0) {
        return None;
    }
    evidence::warn::recorded_traffic(jobs, results).into_iter().find_map(|least| {
        let same = |one: &&DeviceTraffic| one.direction == least.direction;
        // Others beside a partition are counted on its disk.
        let recorded = counts.traffic.iter().find(same).filter(|one| {
            one.ours_bytes == least.ours_bytes && one.device_bytes >= least.device_bytes
        });
        let of =
            |one: &DeviceTraffic| format!("{} bytes, gpuio's {}", one.device_bytes, one.ours_bytes);
        let words = || counts.traffic.iter().find(same).map_or("nothing".to_owned(), of);
        recorded.is_none().then(|| {
            wrong(&format!(
                "{}: {} recorded, {} by the counts of storage",
                least.direction,
                words(),
                of(&least)
            ))
        })?
    })
}

/// The rules of a feed; `None` of another job.
fn rules(
    record: &Record,
    (jobs, at): (&[JobPlan], usize),
    result: &JobResult,
) -> Option<Option<String>> {
    let whole = feed::rules_of((jobs, at), result, &record.host)?;
    let own = &result.feed.as_ref()?.rules;
    // Without any, a record of a key-value cache may be of a build that has none for it.
    if own.is_empty() && jobs[at].feed.as_ref()?.is_cache() {
        return None;
    }
    let words = |rule: Option<&FeedRule>| match rule {
        None => "none".to_owned(),
        Some(FeedRule { rule, found, kept }) => {
            let kept = match kept {
                Some(true) => "kept",
                Some(false) => "not kept",
                None => "unknown",
            };
            format!("'{rule}: {found}', {kept},")
        }
    };
    // They may say the same with other words, but not with other numbers.
    let bare = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
    let differ = |own: &FeedRule, whole: &FeedRule| {
        let number = own.found != whole.found && bare(&own.found) == bare(&whole.found);
        (&own.rule, own.kept) != (&whole.rule, whole.kept) || number
    };
    let is_other = |nth: &usize| match (own.get(*nth), whole.get(*nth)) {
        (Some(own), Some(whole)) => differ(own, whole),
        _ => true,
    };
    let other = (0..own.len().max(whole.len())).find(is_other);
    Some(other.map(|nth| {
        let [own, whole] = [own, &whole].map(|rules| words(rules.get(nth)));
        format!("job '{}', MLPerf's rules: {own} recorded, {whole} by its counts", result.name)
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The sentences about warnings and others of a record of a run on a disk, of which `change` is
    /// made.
    fn of_warnings(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let text = include_str!(
            "../../../report/tests/report/compare/fixtures/staged_on_software_gpu.json"
        );
        let mut record: Value = serde_json::from_str(text).unwrap();
        let cache = &record["jobs"][0]["cache"];
        let [ours, device] =
            [&cache["process_read_bytes"], &cache["storage"][0]["read_bytes"]].map(Value::clone);
        let read = json!({
            "device": "vda", "direction": "read", "ours_bytes": ours, "device_bytes": device,
        });
        let write = json!({
            "device": "vda", "direction": "write", "ours_bytes": 0, "device_bytes": 57_344,
        });
        let s = 1_000_000_000_u64;
        let processors = json!({
            "cpus": 2, "all_ns": 20 * s, "idle_ns": 15 * s, "ours_ns": 3 * s,
            "programs_ns": s, "kernel_ns": s, "stolen_ns": 0,
        });
        record["jobs"][0]["others"] = json!({"processors": processors, "traffic": [read, write]});
        change(&mut record);
        let said = restated(&serde_json::from_value(record).unwrap()).into_iter().flatten();
        said.filter(|one| one.starts_with("warnings: ") || one.contains(", others: ")).collect()
    }

    #[test]
    fn warnings_that_are_due_are_there() {
        assert_eq!(of_warnings(|_| ()), [""; 0]);
        let missing = |record: &mut Value| record["warnings"] = json!([]);
        let said = of_warnings(missing);
        let words = "warnings: software_gpu of job 'read-64K' is missing: ";
        assert!(said[0].starts_with(words), "{said:?}");
    }

    /// Others who worked beside a job show by its counts without any warning.
    #[test]
    fn the_counts_of_others_demand_their_warnings() {
        let one = |change: &dyn Fn(&mut Value)| {
            let said = of_warnings(|record| change(&mut record["jobs"][0]));
            let [one] = said.as_slice() else { panic!("{said:?}") };
            one.clone()
        };
        let said = one(&|job| job["others"]["traffic"][0]["device_bytes"] = json!(1_u64 << 31));
        let missing = "warnings: other_traffic of job 'read-64K' is missing: vda read 2.00 GiB";
        assert!(said.contains(missing), "{said}");
        let said = one(&|job| {
            let time = &mut job["others"]["processors"];
            (time["idle_ns"], time["programs_ns"]) = (json!(0), json!(16_000_000_000_u64));
        });
        let missing = "warnings: other_cpu_time of job 'read-64K' is missing: gpuio had 15 %";
        assert!(said.contains(missing), "{said}");
        let said = one(&|job| job["others"]["processors"] = Value::Null);
        assert!(said.contains("not as the CPUs' time has it"), "{said}");
        let said = one(&|job| job["others"] = Value::Null);
        assert!(said.contains("no counts"), "{said}");
        // The counts of storage bound those of others.
        let storage = |job: &mut Value| {
            job["cache"]["storage"][0]["read_bytes"] = json!(1_u64 << 31);
        };
        let said = one(&storage);
        assert!(said.contains("read: 831967232 bytes, gpuio's 829620224 recorded"), "{said}");
        // Those of a ramp are none of the time that counts.
        let ramp = |record: &mut Value| {
            storage(&mut record["jobs"][0]);
            record["plan"]["jobs"][0]["ramp_ns"] = json!(1_000_000);
        };
        assert_eq!(of_warnings(ramp), [""; 0]);
    }
}
