//! OpenMetrics text, version 1.0.0 (the specification of that name, section "Text format"): one
//! family after another, its metadata first, counters and units named as required.

use gpuio_record::RankJob;
use gpuio_stat::Summary;

use super::Set;
use super::axes::{Axis, axes};
use super::rows::{Row, rows};

/// How the text begins.
pub(super) const MARK: &str = "# TYPE gpuio_run info";
const RUN_HEAD: &str = "# TYPE gpuio_run info\n# HELP gpuio_run The records of the samples.\n";

/// A family of gauges.
struct Gauge {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&Row<'_>) -> Option<f64>,
}

const GAUGES: &[Gauge] = &[
    Gauge {
        name: "gpuio_throughput_bytes_per_second",
        unit: "bytes_per_second",
        help: "Bytes per second until the last worker finished.",
        value: |row| Some(row.side().bytes_per_s),
    },
    Gauge {
        name: "gpuio_operations_per_second",
        unit: "per_second",
        help: "I/Os per second over the same time.",
        value: |row| Some(row.side().iops),
    },
    Gauge {
        name: "gpuio_moved_bytes",
        unit: "bytes",
        help: "Bytes of the completed I/Os.",
        value: |row| Some(crate::number::float(row.side().bytes)),
    },
    Gauge {
        name: "gpuio_failed_operations",
        unit: "operations",
        help: "I/Os that failed.",
        value: |row| Some(crate::number::float(row.side().failed)),
    },
    Gauge {
        name: "gpuio_of_ceiling_ratio",
        unit: "ratio",
        help: "Throughput divided by the lowest ceiling.",
        value: |row| row.side().of_ceiling.as_ref().map(|of| of.percent / 100.0),
    },
    Gauge {
        name: "gpuio_of_expected_ratio",
        unit: "ratio",
        help: "Throughput divided by the expected throughput; label bottleneck.",
        value: |row| row.expected()?.percent.map(|percent| percent / 100.0),
    },
    Gauge {
        name: "gpuio_expected_bytes_per_second",
        unit: "bytes_per_second",
        help: "Expected throughput by the figures of the hardware.",
        value: |row| row.expected()?.expected.bytes_per_s,
    },
    Gauge {
        name: "gpuio_cpu_seconds_per_mebibyte",
        unit: "seconds_per_mebibyte",
        help: "CPU time of the job per MiB moved, both directions together.",
        value: |row| {
            let cpu = &row.result.cpu;
            cpu.us_per_mib.filter(|_| !cpu.scope.is_at_least()).map(|cost| cost / 1e6)
        },
    },
    Gauge {
        name: "gpuio_path_as_requested",
        unit: "",
        help: "1 if the evidence shows that the bytes took the requested path, else 0.",
        value: |row| row.result.proof.as_ref().map(|proof| f64::from(u8::from(proof.as_requested))),
    },
];

/// Its label, and how to get its value.
type Quantile = (&'static str, fn(&Summary) -> Option<u64>);

/// The quantiles of the latency summaries.
const QUANTILES: &[Quantile] = &[
    ("0.5", |s| Some(s.p50_ns)),
    ("0.9", |s| s.p90_ns),
    ("0.99", |s| s.p99_ns),
    ("0.999", |s| s.p99_9_ns),
    ("0.9999", |s| s.p99_99_ns),
];

pub(super) fn render(set: &Set) -> String {
    let rows = rows(set);
    let labels = labels(set, &rows);
    let mut out = runs(set);
    for gauge in GAUGES {
        head(&mut out, gauge.name, "gauge", gauge.unit, gauge.help);
        for (row, labels) in rows.iter().zip(&labels) {
            if let Some(value) = (gauge.value)(row).filter(|value| value.is_finite()) {
                out.push_str(&format!("{}{{{labels}}} {value}\n", gauge.name));
            }
        }
    }
    let name = latency_head(&mut out);
    for (row, labels) in rows.iter().zip(&labels) {
        let Some(legs) = &row.side().latency else { continue };
        let total = &legs.total;
        for (quantile, value) in QUANTILES {
            let Some(value) = value(total) else { continue };
            let value = crate::number::float(value) / 1e9;
            out.push_str(&format!("{name}{{{labels},quantile=\"{quantile}\"}} {value}\n"));
        }
        let sum = total.mean_ns * crate::number::float(total.count) / 1e9;
        out.push_str(&format!("{name}_count{{{labels}}} {}\n", total.count));
        out.push_str(&format!("{name}_sum{{{labels}}} {sum}\n"));
    }
    ranks(&mut out, set);
    out.push_str("# EOF\n");
    out
}

/// The metadata lines of every family that a report can have, for the reference.
#[must_use]
pub fn heads() -> String {
    let mut out = RUN_HEAD.to_owned();
    for gauge in GAUGES {
        head(&mut out, gauge.name, "gauge", gauge.unit, gauge.help);
    }
    latency_head(&mut out);
    ranks_head(&mut out);
    for gauge in RANK_GAUGES {
        head(&mut out, gauge.name, "gauge", gauge.unit, gauge.help);
    }
    out
}

fn latency_head(out: &mut String) -> &'static str {
    let name = "gpuio_latency_seconds";
    head(out, name, "summary", "seconds", "Latency of the I/Os, from due to completed.");
    name
}

fn ranks_head(out: &mut String) -> &'static str {
    let name = "gpuio_ranks_throughput_bytes_per_second";
    let help = "Bytes per second of all ranks, both directions, over a window.";
    head(out, name, "gauge", "bytes_per_second", help);
    name
}

/// A family of gauges of single ranks.
struct RankGauge {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&RankJob) -> Option<f64>,
}

const RANK_GAUGES: &[RankGauge] = &[
    RankGauge {
        name: "gpuio_rank_throughput_bytes_per_second",
        unit: "bytes_per_second",
        help: "Bytes per second of one rank over its own time, both directions.",
        value: |job| Some(job.bytes_per_s),
    },
    RankGauge {
        name: "gpuio_rank_moved_bytes",
        unit: "bytes",
        help: "Bytes that one rank moved, both directions.",
        value: |job| Some(crate::number::float(job.bytes)),
    },
    RankGauge {
        name: "gpuio_rank_failed_operations",
        unit: "operations",
        help: "I/Os of one rank that failed.",
        value: |job| Some(crate::number::float(job.failed)),
    },
    RankGauge {
        name: "gpuio_rank_latency_p99_seconds",
        unit: "seconds",
        help: "99th percentile of the latencies of one rank.",
        value: |job| job.p99_ns.map(|ns| crate::number::float(ns) / 1e9),
    },
    RankGauge {
        name: "gpuio_rank_latency_max_seconds",
        unit: "seconds",
        help: "Largest latency of one rank.",
        value: |job| job.max_ns.map(|ns| crate::number::float(ns) / 1e9),
    },
    RankGauge {
        name: "gpuio_rank_busy_cpus",
        unit: "cpus",
        help: "CPUs that one rank kept busy.",
        value: |job| Some(job.cores_busy),
    },
];

/// Runs on several ranks: their rates together, and a sample for each rank.
fn ranks(out: &mut String, set: &Set) {
    let all = || {
        let each = set.members.iter().enumerate();
        each.filter_map(|(nth, member)| Some((nth.to_string(), member.record.ranks.as_ref()?)))
    };
    if all().next().is_none() {
        return;
    }
    let name = ranks_head(out);
    for (number, ranks) in all() {
        for job in ranks.groups.iter().flat_map(|group| &group.jobs) {
            let windows = [
                ("until_first", Some(job.until_first)),
                ("while_all", job.while_all),
                ("until_last", Some(job.until_last)),
            ];
            for (window, rate) in windows {
                let labels = [("record_number", &*number), ("job", &job.job), ("window", window)];
                let value = rate.map(|rate| rate.bytes_per_s);
                sample(out, name, &labels, value);
            }
        }
    }
    for gauge in RANK_GAUGES {
        head(out, gauge.name, "gauge", gauge.unit, gauge.help);
        for (number, ranks) in all() {
            for row in &ranks.rows {
                let (rank, local) = (row.rank.to_string(), row.local_rank.to_string());
                for job in &row.jobs {
                    let labels = [
                        ("record_number", &*number),
                        ("job", &job.job),
                        ("rank", &rank),
                        ("host", &row.host),
                        ("local_rank", &local),
                    ];
                    sample(out, gauge.name, &labels, (gauge.value)(job));
                }
            }
        }
    }
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: Option<f64>) {
    if let Some(value) = value.filter(|value| value.is_finite()) {
        out.push_str(&format!("{name}{{{}}} {value}\n", written(labels)));
    }
}

fn head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    out.push_str(&format!("# TYPE {name} {kind}\n"));
    if !unit.is_empty() {
        out.push_str(&format!("# UNIT {name} {unit}\n"));
    }
    out.push_str(&format!("# HELP {name} {help}\n"));
}

/// One sample per record: the tool, the time, and how it ended.
fn runs(set: &Set) -> String {
    let mut out = RUN_HEAD.to_owned();
    for (nth, member) in set.members.iter().enumerate() {
        let record = &member.record;
        let software = if record.plan.software_gpu { "1" } else { "0" };
        let ended = crate::format::csv::ended_word(record.ended);
        let number = nth.to_string();
        let mut labels = vec![
            ("record", member.name.as_str()),
            ("record_number", &number),
            ("tool", &record.tool.name),
            ("version", &record.tool.version),
            ("started_at", &record.started_at),
            ("ended", ended),
            ("software_gpu", software),
        ];
        let ranks = record.ranks.as_ref();
        let ranks = ranks.map(|all| (all.ranks.to_string(), all.hosts.len().to_string()));
        if let Some((ranks, hosts)) = &ranks {
            labels.extend([("ranks", ranks.as_str()), ("hosts", hosts.as_str())]);
        }
        out.push_str(&format!("gpuio_run_info{{{}}} 1\n", written(&labels)));
    }
    out
}

/// The labels of each row: its values on all axes, and the numbers that make it unique.
fn labels(set: &Set, rows: &[Row<'_>]) -> Vec<String> {
    let axes = axes(set);
    let keys: Vec<String> = axes.iter().map(|axis| label_name(&axis.key)).collect();
    let of = |row: &Row<'_>| {
        let place = |axis: &Axis| match axis.key.as_str() {
            // Monitoring needs the number, whoever chose it.
            "depth" => row.plan.depth.to_string(),
            _ => axis.place(row).0,
        };
        let places: Vec<String> = axes.iter().map(place).collect();
        let number = row.nth.to_string();
        let mut labels: Vec<(&str, &str)> =
            keys.iter().map(String::as_str).zip(places.iter().map(String::as_str)).collect();
        labels.push(("record_number", &number));
        written(&labels)
    };
    rows.iter().map(of).collect()
}

/// A name of letters, digits and underscores that begins with a letter. A sweep's own keys get a
/// prefix, so that none can equal a key of gpuio's.
fn label_name(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = key.chars().map(plain).collect();
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name,
        false => format!("axis_{name}"),
    }
}

fn written(labels: &[(&str, &str)]) -> String {
    let one =
        |(name, value): &(&str, &str)| format!("{name}=\"{}\"", gpuio_units::label_value(value));
    labels.iter().map(one).collect::<Vec<String>>().join(",")
}
