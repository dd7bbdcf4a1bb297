//! Records of several ranks: network cards, expectations of hosts, the stonewall.

use gpuio_record::{RanksResult, Record, Stonewall};
use gpuio_report::format::csv::{render, render_per_rank};
use gpuio_report::format::text::{Show, render_text, render_text_with};
use gpuio_report::set::{Member, Set, find_set_format};
use serde_json::{Value, json};

use crate::records;

fn row(rank: u32, host: &str, nics: &[&str]) -> Value {
    json!({
        "rank": rank, "host": host, "local_rank": 0, "pid": 100 + rank, "clock_offset_ns": 0,
        "clock_bound_ns": 0, "gpus": [], "numa_nodes": [], "target": "/mnt/data",
        "devices": ["server:/data"], "nics": nics, "ended": "complete", "error": null,
        "saved": null, "jobs": [{
            "job": "job", "bytes": 1000, "ios": 10, "failed": 0, "bytes_per_s": 1e9,
            "measured": null, "p99_ns": null, "max_ns": null, "cores_busy": 0.5,
            "us_per_mib": null, "verdict": "direct", "verified": null
        }]
    })
}

fn host(name: &str, rank: u32, expected: Value) -> Value {
    let mut one = expected;
    for (key, null) in [("iops", Value::Null), ("at_most", Value::Null)] {
        one[key] = null;
    }
    one["latency_floor_ns"] = Value::Null;
    one["because"] = json!([]);
    one["job"] = json!("job");
    one["measured_bytes_per_s"] = json!(1.9e9);
    json!({
        "name": name, "ranks": [rank], "kernel": null, "cpu": null, "bytes": 1000,
        "verdicts": ["direct"], "devices": ["server:/data"], "warnings": 0, "expected": [one]
    })
}

/// Two ranks on two hosts, the second of which is slow.
fn record() -> Record {
    let mut record = records::software();
    record.plan.jobs.truncate(1);
    record.plan.jobs[0].name = "job".to_owned();
    record.jobs.truncate(1);
    record.jobs[0].name = "job".to_owned();
    record.jobs[0].stonewall = Some(Stonewall {
        time_ns: 2_000_000_000,
        bytes: 4 << 30,
        bytes_per_s: f64::from(2_u32 << 30),
        bytes_per_thread: 3 << 20,
    });
    let known = json!({
        "bytes_per_s": 2e9, "percent": 95.0, "bottleneck": "mlx5_0: 2 GB/s", "unknown": null
    });
    let open = json!({
        "bytes_per_s": null, "percent": null, "bottleneck": null,
        "unknown": "what server s delivers"
    });
    let rate = json!({ "time_ns": 1, "bytes": 1, "bytes_bound": 0, "bytes_per_s": 1.0 });
    let ranks = json!({
        "ranks": 2, "launcher": "Open MPI", "library": "Open MPI v4", "groups": [{
            "group": 0, "start_skew_ns": 5, "skew_bound_ns": 1, "jobs": [{
                "job": "job", "ends_by": "stonewall_wear_out", "until_first": rate,
                "while_all": null, "until_last": rate, "stragglers": [{
                    "rank": 1, "host": "n2", "gpus": [], "devices": ["server:/data"],
                    "nics": ["mlx5_7"], "bytes_per_s": 1.0, "of_median": 0.5
                }]
            }]
        }],
        "hosts": [host("n1", 0, known), host("n2", 1, open)],
        "rows": [row(0, "n1", &["mlx5_0"]), row(1, "n2", &["mlx5_7", "mlx5_8"])]
    });
    record.ranks = Some(serde_json::from_value::<RanksResult>(ranks).unwrap());
    record
}

#[test]
fn text_has_network_cards_of_slow_ranks_and_of_all_on_demand() {
    let record = record();
    let text = render_text(&record, 200);
    assert!(text.contains("(host n2, server:/data, NIC mlx5_7)"), "{text}");
    assert!(text.contains("stonewall, wear-out"), "{text}");
    let wall = "2.00 GiB/s in 2.00 s until the stonewall; then each thread went on to 3";
    assert!(text.contains(wall), "{text}");
    assert!(!text.contains("mlx5_8"), "{text}");
    let rows = render_text_with(&record, 200, Show { per_rank: true, ..Show::default() });
    assert!(rows.contains("mlx5_7, mlx5_8"), "{rows}");
    let mut local = record;
    local.ranks.as_mut().unwrap().rows.iter_mut().for_each(|row| row.nics.clear());
    let rows = render_text_with(&local, 200, Show { per_rank: true, ..Show::default() });
    assert!(!rows.contains("mlx5_8") && !rows.contains("NIC  "), "{rows}");
}

#[test]
fn csv_has_a_row_for_each_host_with_its_expectation() {
    let record = record();
    let text = render_per_rank(&record, &Default::default());
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let of = |row: usize, name: &str| {
        rows[row].get(names.iter().position(|one| one == name).unwrap()).unwrap().to_owned()
    };
    let all = render(&record, &Default::default()).lines().count() - 1;
    assert_eq!(rows.len(), all + 2 + 2);
    assert_eq!((of(0, "stonewall_ns"), of(0, "host")), ("2000000000".to_owned(), String::new()));
    let host = ["host", "rank", "expected_bytes_per_s", "expected_percent", "expected_bottleneck"];
    assert_eq!(host.map(|name| of(all, name)), ["n1", "", "2000000000", "95", "mlx5_0: 2 GB/s"]);
    assert_eq!(of(all, "throughput_bytes_per_s"), "1900000000");
    let host = ["host", "expected_percent", "expected_unknown"];
    assert_eq!(host.map(|name| of(all + 1, name)), ["n2", "", "what server s delivers"]);
    let rank = ["host", "rank", "nics", "expected_percent"];
    assert_eq!(rank.map(|name| of(all + 3, name)), ["n2", "1", "mlx5_7 mlx5_8", ""]);
}

#[test]
fn the_page_has_the_expectation_of_each_host_and_the_network_cards() {
    let member = Member::new("one", record());
    let set = Set { members: vec![member], ..Set::default() };
    let page = (find_set_format("html").unwrap().render)(&set);
    for part in [
        "<td>95 % of 1.86 GiB/s (mlx5_0)</td>",
        "<td>unknown: what server s delivers</td>",
        "<td>mlx5_7, mlx5_8</td>",
        "2.00 GiB/s in 2.00 s</td>",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
