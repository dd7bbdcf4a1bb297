//! OpenMetrics text, version 1.0.0 (the specification of that name, section "Text format"): one
//! family after another, its metadata first, counters and units named as required.

use gpuio_base::stat::Percentile;
use gpuio_record::Metric;
use gpuio_record::metric::{Family, List};

use super::Set;
use super::axes::{Axis, axes};
use super::rows::{Row, rows};
use crate::doubts::{self, Held};

/// How the text begins.
pub(super) const MARK: &str = "# TYPE gpuio_run info";
const RUN_HEAD: &str = "# TYPE gpuio_run info\n# HELP gpuio_run The records of the samples.\n";

pub(super) fn render(set: &Set) -> String {
    let rows = rows(set);
    let labels = labels(set, &rows);
    let mut out = runs(set);
    doubts(&mut out, &rows, &set.not_here());
    for (metric, family) in gauges(List::Families) {
        gauge_head(&mut out, &family);
        for (row, labels) in rows.iter().zip(&labels) {
            if let Some(value) = metric.of(row).map(|value| value / metric.unit().per_base()) {
                sample(&mut out, &family.name, labels, value);
            }
        }
    }
    let name = latency_head(&mut out);
    let percentiles = Percentile::joined(Percentile::ALL.iter().chain(&set.percentiles()));
    for (row, labels) in rows.iter().zip(&labels) {
        let Some(legs) = &row.figures().latency else { continue };
        let total = &legs.total;
        for at in &percentiles {
            let Some(value) = total.percentile(*at) else { continue };
            let (quantile, value) = (at.quantile(), crate::number::float(value) / 1e9);
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
pub fn heads() -> String {
    let mut out = RUN_HEAD.to_owned();
    doubts_head(&mut out);
    gauges(List::Families).for_each(|(_, family)| gauge_head(&mut out, &family));
    latency_head(&mut out);
    ranks_head(&mut out);
    gauges(List::RankFamilies).for_each(|(_, family)| gauge_head(&mut out, &family));
    out
}

fn gauges(list: List) -> impl Iterator<Item = (Metric, Family)> {
    let all = list.metrics(&[]).into_iter();
    all.filter_map(move |metric| Some((metric, metric.family(list)?)))
}

fn gauge_head(out: &mut String, family: &Family) {
    head(out, &family.name, "gauge", family.unit, &family.help);
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
                if let Some(rate) = rate {
                    sample(out, name, &written(&labels), rate.bytes_per_s);
                }
            }
        }
    }
    for (metric, family) in gauges(List::RankFamilies) {
        gauge_head(out, &family);
        for (number, ranks) in all() {
            for row in &ranks.rows {
                let (rank, local) = (row.rank.to_string(), row.local_rank.to_string());
                for job in &row.jobs {
                    let Some(value) = metric.of_rank(job) else { continue };
                    let labels = [
                        ("record_number", &*number),
                        ("job", &job.job),
                        ("rank", &rank),
                        ("host", &row.host),
                        ("local_rank", &local),
                    ];
                    let value = value / metric.unit().per_base();
                    sample(out, &family.name, &written(&labels), value);
                }
            }
        }
    }
}

fn sample(out: &mut String, name: &str, labels: &str, value: f64) {
    if value.is_finite() {
        out.push_str(&format!("{name}{{{labels}}} {value}\n"));
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
        let ended = crate::format::csv::word(record.ended);
        let number = nth.to_string();
        let mut labels = vec![
            ("record", member.name.as_str()),
            ("record_number", &number),
            ("tool", &record.tool.name),
            ("version", &record.tool.version),
            ("started_at", &record.started_at),
            ("ended", &ended),
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

fn doubts_head(out: &mut String) -> &'static str {
    let name = "gpuio_doubt";
    let help = "Why figures of a job are not to be trusted; no sample where nothing speaks \
                against them. Label doubt: ";
    head(out, name, "info", "", &format!("{help}{}.", doubts::words()));
    name
}

/// A sample for each doubt about a job.
fn doubts(out: &mut String, rows: &[Row<'_>], lacks: &[String]) {
    let firsts = || rows.iter().filter(|row| !row.is_second());
    let each = |row: &Row<'_>| {
        let number = row.nth.to_string();
        let one = |(doubt, why): (&str, String)| {
            let labels = [
                ("record", row.member.name.as_str()),
                ("record_number", &number),
                ("job", &row.plan.name),
                ("doubt", doubt),
                ("why", &why),
            ];
            written(&labels)
        };
        let held = Held { recheck: &row.member.recheck, lacks };
        let all = doubts::of(&held, row.record, row.plan, row.result);
        all.into_iter().map(one).collect::<Vec<String>>()
    };
    let all: Vec<String> = firsts().flat_map(each).collect();
    if all.is_empty() {
        return;
    }
    let name = doubts_head(out);
    for labels in all {
        out.push_str(&format!("{name}_info{{{labels}}} 1\n"));
    }
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
    let one = |(name, value): &(&str, &str)| {
        format!("{name}=\"{}\"", gpuio_base::units::label_value(value))
    };
    labels.iter().map(one).collect::<Vec<String>>().join(",")
}
