//! The checks that any record must pass, whatever was run.

use serde_json::Value;

/// A whole number of the record.
#[track_caller]
pub(crate) fn n(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Entries of a list.
#[track_caller]
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// Plans and results of all jobs that ran.
#[track_caller]
pub(crate) fn jobs(record: &Value) -> Vec<(&Value, &Value)> {
    let plans = list(&record["plan"]["jobs"]);
    list(&record["jobs"])
        .iter()
        .map(|job| {
            let plan = plans.iter().find(|plan| plan["name"] == job["name"]);
            (plan.expect("a result without a plan"), job)
        })
        .collect()
}

/// Kinds of the record's warnings.
pub(crate) fn warnings(record: &Value) -> Vec<&str> {
    list(&record["warnings"]).iter().filter_map(|warning| warning["warning"].as_str()).collect()
}

/// Checks a complete record without failures.
#[track_caller]
pub(crate) fn check_clean(record: &Value) {
    check(record);
    assert_eq!(record["ended"], "complete");
    assert!(record["error"].is_null(), "{}", record["error"]);
    for (plan, job) in jobs(record) {
        let name = &job["name"];
        assert_eq!(job["ended"], "complete", "{name}");
        assert_eq!(n(&job["failed"]), 0, "{name}");
        assert!(list(&job["failures"]).is_empty(), "{name}");
        assert_eq!(n(&job["file_leg"]["faults"]), 0, "{name}");
        assert!(n(&job["read"]["ios"]) + n(&job["write"]["ios"]) > 0, "{name} did nothing");
        check_verified(plan, job);
    }
    assert_eq!(list(&record["jobs"]).len(), list(&record["plan"]["jobs"]).len());
}

fn check_verified(plan: &Value, job: &Value) {
    let name = &job["name"];
    let verify = &job["verify"];
    if plan["verify"] == "off" {
        assert!(verify.is_null(), "{name}");
        return;
    }
    assert_eq!(n(&verify["bad_blocks"]), 0, "{name}: {verify}");
    assert_eq!(n(&verify["failed"]), 0, "{name}: {verify}");
    assert_eq!(verify["complete"], true, "{name}: {verify}");
    if plan["verify"] == "pass" {
        let regions = list(&plan["workers"]).iter().flat_map(|worker| list(&worker["regions"]));
        let mut spans: Vec<(u64, u64, u64)> =
            regions.map(|r| (n(&r["target"]), n(&r["offset"]), n(&r["length"]))).collect();
        spans.sort_unstable();
        spans.dedup();
        let bytes: u64 = spans.iter().map(|(_, _, length)| length).sum();
        let all = n(&verify["pass_bytes"]) + n(&verify["filled_bytes"]);
        let writes = n(&plan["read_percent"]) < 100;
        match verify["sample_of_bytes"].as_u64() {
            Some(of) => assert!(
                n(&verify["pass_bytes"]) > 0 && all <= of && of <= bytes,
                "{name}: {verify}"
            ),
            // In a limited time what the timed writes did not reach is not filled.
            None if writes && !plan["verify_ns"].is_null() => {
                assert!(all > 0 && all <= bytes, "{name}: {verify}")
            }
            None => assert_eq!(all, bytes, "{name}: every byte once: {verify}"),
        }
        assert_eq!(verify["subject"], if writes { "timed_writes" } else { "reads" }, "{name}");
    }
    if plan["verify"] == "inline" {
        assert_eq!(n(&verify["timed_bytes"]), n(&job["file_leg"]["read_bytes"]), "{name}");
    }
}

/// Checks what holds even after errors and interrupts.
#[track_caller]
pub(crate) fn check(record: &Value) {
    let whole = gpuio_report::format::json::parse(&record.to_string()).unwrap();
    let mut wrong = gpuio_report::recheck(&whole).wrong;
    wrong.extend(gpuio_load::run::restated(&whole).into_iter().flatten());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(n(&record["schema_version"]) >= 1);
    assert_eq!(record["tool"]["name"], "gpuio");
    assert_eq!(record["tool"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(list(&record["command"]).len() >= 2);
    assert!(record["started_at"].as_str().is_some_and(|at| at.contains('T')));
    assert!(record["host"]["kernel"]["release"].is_string());
    assert!(!list(&record["storage"]).is_empty());
    for (plan, job) in jobs(record) {
        check_job(plan, job);
        let section = format!("[{}]", job["name"].as_str().unwrap());
        assert!(record["plan_text"].as_str().unwrap().contains(&section), "{section}");
    }
    for total in list(&record["totals"]) {
        for side in ["read", "write"] {
            let of_group =
                list(&record["jobs"]).iter().filter(|job| job["group"] == total["group"]);
            let sum: u64 = of_group.map(|job| n(&job[side]["bytes"])).sum();
            assert_eq!(n(&total[side]["bytes"]), sum, "{side} of group {}", total["group"]);
        }
    }
    let software = |(plan, _): &(&Value, &Value)| {
        list(&plan["gpus"]).iter().any(|gpu| gpu["software"] == true)
    };
    if jobs(record).iter().any(software) {
        assert!(warnings(record).contains(&"software_gpu"), "{:?}", warnings(record));
        assert!(!record["driver_version"].is_null());
    }
}

fn check_job(plan: &Value, job: &Value) {
    let name = &job["name"];
    let blocks = list(&plan["blocks"]);
    for side in ["read", "write"] {
        let (ios, bytes) = (n(&job[side]["ios"]), n(&job[side]["bytes"]));
        if blocks.len() == 1 && blocks[0]["min_bytes"] == blocks[0]["max_bytes"] {
            assert_eq!(bytes, ios * n(&blocks[0]["min_bytes"]), "{name} {side}");
        }
        check_latency(plan, &job[side], name);
        let elapsed = n(&job["last_done_ns"]) as f64 / 1e9;
        let rate = job[side]["bytes_per_s"].as_f64().unwrap();
        assert!((rate * elapsed - bytes as f64).abs() <= 1.0 + bytes as f64 / 1e6, "{name}");
    }
    let ramp = n(&plan["ramp_ns"]);
    let leg = &job["file_leg"];
    for (side, ios, bytes) in
        [("read", "read_ios", "read_bytes"), ("write", "write_ios", "write_bytes")]
    {
        let (of_leg, tallied) = (n(&leg[bytes]), n(&job[side]["bytes"]));
        if ramp == 0 && n(&job["failed"]) == 0 {
            assert_eq!(of_leg, tallied, "{name}: {side} bytes at the engine's interface");
            assert_eq!(n(&leg[ios]), n(&job[side]["ios"]), "{name}: {side} I/Os at the interface");
        } else if n(&job["failed"]) == 0 {
            assert!(of_leg >= tallied, "{name}: the door saw less than landed");
        }
        check_series(job, side, bytes, ramp == 0, tallied);
    }
    assert!(n(&job["first_done_ns"]) <= n(&job["last_done_ns"]), "{name}");
    let all = n(&job["read"]["bytes"]) + n(&job["write"]["bytes"]);
    assert!(n(&job["first_done_bytes"]) <= all, "{name}");
    let workers = list(&job["workers"]);
    assert_eq!(workers.iter().map(|w| n(&w["bytes"])).sum::<u64>(), all, "{name}");
    let slowest = workers.iter().map(|w| n(&w["done_ns"])).max();
    assert_eq!(slowest, Some(n(&job["last_done_ns"])), "{name}");
    let engines: u64 = list(&job["engine"]).iter().map(|engine| n(&engine["workers"])).sum();
    assert_eq!(engines, n(&plan["threads"]), "{name}");
}

fn check_latency(plan: &Value, side: &Value, name: &Value) {
    let latency = &side["latency"];
    if n(&side["ios"]) == 0 {
        assert!(latency.is_null(), "{name}");
        return;
    }
    assert_eq!(n(&latency["total"]["count"]), n(&side["ios"]), "{name}");
    let path = plan["path"]["choice"]["actual"].as_str().unwrap();
    // The GPU itself reads the file.
    assert_eq!(latency["file"].is_null(), path == "mapped", "{name}: file leg");
    if path != "mapped" {
        assert_eq!(n(&latency["file"]["count"]), n(&side["ios"]), "{name}");
    }
    // The two legs of a library can't be distinguished.
    let by_library = ["gds", "library"].iter().any(|name| path.starts_with(name));
    let on_gpu = path != "host" && !by_library;
    assert_eq!(!latency["gpu"].is_null(), on_gpu, "{name}: GPU leg");
    if on_gpu {
        assert_eq!(n(&latency["gpu"]["count"]), n(&side["ios"]), "{name}");
    }
    assert_eq!(!latency["queue"].is_null(), !plan["pacing"].is_null(), "{name}: queue leg");
}

/// The series counts every I/O once: without a ramp its points add up to the result.
fn check_series(job: &Value, side: &str, bytes: &str, exact: bool, tallied: u64) {
    let (name, points) = (&job["name"], list(&job["series"]));
    let sum: u64 = points.iter().map(|point| n(&point[bytes])).sum();
    if exact {
        assert_eq!(sum, tallied, "{name}: {side} of the series");
    } else {
        assert!(sum >= tallied, "{name}: {side} of the series");
    }
    let ends: Vec<i64> = points.iter().map(|point| point["at_ns"].as_i64().unwrap()).collect();
    assert!(ends.is_sorted(), "{name}: {ends:?}");
    for (point, next) in points.iter().zip(&ends) {
        let begin = next - point["span_ns"].as_i64().unwrap();
        let earlier = ends.iter().take_while(|end| *end < next).last();
        assert!(earlier.is_none_or(|end| begin >= end - 1000), "{name}: intervals overlap");
    }
}
