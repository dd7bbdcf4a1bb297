//! Pages as OpenMetrics text (OpenMetrics 1.0): raw counters and histograms of each process, GPU,
//! path, engine and direction, since Prometheus makes its own rates.

use std::fmt::Write as _;

use gpuio_base::units::label_value;

use crate::page::bucket::Latencies;
use crate::page::snapshot::{Counts, PathCounters, Snapshot};

/// Bounds of the latency histogram are the last nanosecond below these powers of two: 1 µs to 17 s,
/// where buckets of the page end, so that no count is estimated.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=34;

/// A family of counters: name, unit, help, and what each direction has of it.
type Family = (&'static str, &'static str, &'static str, fn(&Counts) -> u64);

const COUNTERS: [Family; 4] = [
    ("gpuio_io_bytes", "bytes", "Bytes of I/Os that completed in full", |counts| counts.bytes),
    ("gpuio_io_operations", "", "I/Os that completed in full", Counts::ios),
    ("gpuio_io_errors", "", "I/Os that failed", |counts| counts.failed),
    ("gpuio_io_unaligned", "", "I/Os whose offset or length is no multiple of 4 KiB", |counts| {
        counts.unaligned
    }),
];

/// A family of gauges of a way of the bytes: name, help, value.
type Gauge = (&'static str, &'static str, fn(&PathCounters) -> u64);

const GAUGES: [Gauge; 4] = [
    ("gpuio_io_in_flight", "I/Os in flight, each thread at its last report", |way| way.in_flight),
    ("gpuio_io_slots", "I/O slots of running threads", |way| way.slots),
    ("gpuio_io_threads", "Threads that run now", |way| way.threads),
    ("gpuio_io_files", "Files opened", |way| way.files),
];

/// The whole exposition for these pages. Latencies count from when an I/O was due until its bytes
/// had arrived, the ramp included. Without a page it has the metadata lines of all families.
/// `unread` is the number of pages and directories that may have more and were not read.
pub fn text(pages: &[&Snapshot], unread: u64) -> String {
    let mut out = String::new();
    let ways: Vec<(String, &PathCounters)> = pages
        .iter()
        .flat_map(|page| page.paths.iter().map(|way| (labels(page, way), way)))
        .collect();
    let sides = || {
        ways.iter().flat_map(|(labels, way)| {
            let with = |word: &str| format!("{labels},direction=\"{word}\"");
            [(with("read"), &way.read), (with("write"), &way.write)]
        })
    };
    for (name, unit, help, of) in COUNTERS {
        head(&mut out, name, "counter", unit, help);
        for (labels, counts) in sides() {
            // A string takes every write, here and below.
            let _ = writeln!(out, "{name}_total{{{labels}}} {}", of(counts));
        }
    }
    let name = "gpuio_io_latency_seconds";
    head(&mut out, name, "histogram", "seconds", "Time from when an I/O was due to its completion");
    for (labels, counts) in sides() {
        latencies(&mut out, name, &labels, counts);
    }
    for (name, help, of) in GAUGES {
        head(&mut out, name, "gauge", "", help);
        for (labels, way) in &ways {
            let _ = writeln!(out, "{name}{{{labels}}} {}", of(way));
        }
    }
    let name = "gpuio_live_pages_unread";
    head(&mut out, name, "gauge", "", "Pages of processes, and directories of such, not read");
    let _ = writeln!(out, "{name} {unread}");
    out.push_str("# EOF\n");
    out
}

fn head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}.");
}

fn labels(page: &Snapshot, way: &PathCounters) -> String {
    let gpu = way.gpu.map_or_else(|| "none".to_owned(), |gpu| gpu.to_string());
    format!(
        "pid=\"{}\",program=\"{}\",gpu=\"{gpu}\",pci=\"{}\",path=\"{}\",engine=\"{}\"",
        page.pid,
        label_value(&page.program),
        label_value(&way.pci),
        label_value(&way.path),
        label_value(&way.engine)
    )
}

fn latencies(out: &mut String, name: &str, labels: &str, counts: &Counts) {
    let up_to = |index: usize| {
        let below = counts.latencies.iter().take(index);
        below.fold(0_u64, |sum, &count| sum.saturating_add(count))
    };
    for power in BOUNDS {
        let le = ((1_u64 << power) - 1) as f64 / 1e9;
        let count = up_to(Latencies::of(1 << power));
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{le}\"}} {count}");
    }
    let all = up_to(usize::MAX);
    let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {all}");
    let _ = writeln!(out, "{name}_count{{{labels}}} {all}");
    let _ = writeln!(out, "{name}_sum{{{labels}}} {}", counts.latency_ns as f64 / 1e9);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Snapshot {
        let mut read = Counts { bytes: 12_288, failed: 1, latency_ns: 5_500, ..Counts::default() };
        read.sizes[1] = 3;
        read.latencies = vec![0; Latencies::COUNT];
        for ns in [1_023, 1_024, 3_453] {
            read.latencies[Latencies::of(ns)] += 1;
        }
        let way = PathCounters {
            gpu: Some(1),
            path: "staged".into(),
            engine: "a\"b".into(),
            read,
            ..PathCounters::default()
        };
        Snapshot {
            pid: 7,
            uid: 0,
            start_ticks: 0,
            namespace: 0,
            boot: String::new(),
            program: "gpuio".into(),
            release: String::new(),
            began_ns: 0,
            paths: vec![way],
            library: None,
            saves: None,
        }
    }

    #[test]
    fn counters_histogram_and_labels() {
        let text = text(&[&page()], 3);
        let way =
            "pid=\"7\",program=\"gpuio\",gpu=\"1\",pci=\"\",path=\"staged\",engine=\"a\\\"b\"";
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            format!("gpuio_io_bytes_total{{{way},direction=\"read\"}} 12288"),
            format!("gpuio_io_operations_total{{{way},direction=\"read\"}} 3"),
            format!("gpuio_io_errors_total{{{way},direction=\"read\"}} 1"),
            // Exactly the latencies up to that many nanoseconds.
            format!(
                "gpuio_io_latency_seconds_bucket{{{way},direction=\"read\",le=\"0.000001023\"}} 1"
            ),
            format!(
                "gpuio_io_latency_seconds_bucket{{{way},direction=\"read\",le=\"0.000002047\"}} 2"
            ),
            format!("gpuio_io_latency_seconds_count{{{way},direction=\"read\"}} 3"),
            format!("gpuio_io_latency_seconds_sum{{{way},direction=\"read\"}} 0.0000055"),
            format!("gpuio_io_in_flight{{{way}}} 0"),
            "gpuio_live_pages_unread 3".to_owned(),
        ] {
            assert!(lines.contains(&line.as_str()), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn no_process_is_no_sample() {
        let text = text(&[], 0);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, ["gpuio_live_pages_unread 0"]);
    }
}
