//! Pages as text for people.

use std::fmt::Write as _;

use gpuio_base::stat::Percentile;
use gpuio_base::units::{human_bytes, human_count, human_ns, human_rate, printable_short};
use gpuio_table::in_columns;

use super::{PERCENTILES, Shown, class_name, per_second};
use crate::bucket::SIZES;
use crate::layout::REGISTERED;
use crate::snapshot::{Counts, PathCounters, Snapshot};

/// Shown where there is no value.
const NONE: &str = "-";

/// One page at this level: 1 totals, 2 also sizes, 3 also GPUs and paths.
#[must_use]
pub fn page(shown: &Shown<'_>, level: u8) -> String {
    let snapshot = shown.snapshot;
    let mut out = String::new();
    // Writing to a string can't fail, here and below.
    let _ = writeln!(
        out,
        "process {} ({} {}) of {}, since {}: {}",
        snapshot.pid,
        printable_short(&snapshot.program),
        printable_short(&snapshot.release),
        printable_short(shown.user),
        shown.since,
        shown.state()
    );
    if let Some(command) = shown.command {
        let _ = writeln!(out, "command: {}", printable_short(command));
    }
    let total = snapshot.total();
    let _ = writeln!(
        out,
        "threads {}, I/Os in flight {} of {}, files opened {}\n",
        total.threads, total.in_flight, total.slots, total.files
    );
    out.push_str(&totals(shown, &total));
    if level >= 2 {
        out.push_str(&sizes(&total));
    }
    if level >= 3 {
        out.push_str(&paths(snapshot));
    }
    out
}

/// A column: its heading, counts, and the time that they took in seconds.
type Column = (String, Counts, Option<f64>);

fn totals(shown: &Shown<'_>, total: &PathCounters) -> String {
    let seconds = total.seconds();
    let mut columns: Vec<Column> = vec![
        ("read".to_owned(), total.read.clone(), seconds),
        ("write".to_owned(), total.write.clone(), seconds),
    ];
    if let Some(earlier) = shown.earlier {
        let (then, took) = (earlier.snapshot.total(), earlier.seconds);
        let last = |name: &str| format!("{name}, last {took:.1} s");
        columns.push((last("read"), total.read.since(&then.read), Some(took)));
        columns.push((last("write"), total.write.since(&then.write), Some(took)));
    }
    let mut rows = vec![row("", &columns, |(name, ..)| name.clone())];
    let mut add = |name: &str, cell: &dyn Fn(&Column) -> String| {
        rows.push(row(name, &columns, cell));
    };
    add("I/Os", &|(_, side, _)| side.ios().to_string());
    add("bytes", &|(_, side, _)| bytes(side.bytes));
    add("throughput", &|(_, side, took)| {
        per_second(side.bytes, *took).filter(|_| side.ios() > 0).map_or(NONE.into(), human_rate)
    });
    add("IOPS", &|(_, side, took)| {
        per_second(side.ios(), *took).filter(|_| side.ios() > 0).map_or(NONE.into(), human_count)
    });
    add("latency, mean", &|(_, side, _)| side.mean_ns().map_or(NONE.into(), human_ns));
    for at in PERCENTILES {
        add(&at.label(), &|(_, side, _)| percentile(side, *at));
    }
    add("unaligned", &|(_, side, _)| side.unaligned.to_string());
    add("failed", &|(_, side, _)| side.failed.to_string());
    in_columns(&rows, 1)
}

fn row(name: &str, columns: &[Column], cell: impl Fn(&Column) -> String) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(columns.iter().map(cell)).collect()
}

fn sizes(total: &PathCounters) -> String {
    let mut rows = vec![vec!["size".to_owned(), "reads".to_owned(), "writes".to_owned()]];
    for class in 0..SIZES {
        let (reads, writes) = (total.read.sizes[class], total.write.sizes[class]);
        if reads > 0 || writes > 0 {
            rows.push(vec![class_name(class), reads.to_string(), writes.to_string()]);
        }
    }
    format!("\n{}", in_columns(&rows, 1))
}

fn paths(snapshot: &Snapshot) -> String {
    let [median, tail] = Percentile::SHORT.map(|at| at.label());
    let head = [
        "GPU",
        "PCI",
        "path",
        "engine",
        "",
        "I/Os",
        "bytes",
        "throughput",
        &median,
        &tail,
        "unaligned",
        "failed",
        "threads",
        "ring",
        "registered",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for counters in &snapshot.paths {
        let sides = [("read", &counters.read), ("write", &counters.write)];
        let counts = |side: &Counts| side.ios() > 0 || side.failed > 0;
        for (name, side) in sides.into_iter().filter(|(_, side)| counts(side)) {
            rows.push(vec![
                counters.gpu.map_or(NONE.to_owned(), |gpu| gpu.to_string()),
                if counters.pci.is_empty() { NONE.to_owned() } else { counters.pci.clone() },
                path_shown(&counters.path).to_owned(),
                engine_shown(&counters.engine).to_owned(),
                name.to_owned(),
                side.ios().to_string(),
                bytes(side.bytes),
                per_second(side.bytes, counters.seconds()).map_or(NONE.to_owned(), human_rate),
                percentile(side, Percentile::MEDIAN),
                percentile(side, Percentile::TAIL),
                side.unaligned.to_string(),
                side.failed.to_string(),
                counters.threads.to_string(),
                format!("{}/{}", counters.in_flight, counters.slots),
                snapshot
                    .registered_on(counters.gpu)
                    .map_or("n/a".to_owned(), |count| count.to_string()),
            ]);
        }
    }
    format!("\n{}", in_columns(&rows, 5))
}

/// A path as people read it: who moved the bytes, for a program on gpuio's libcufile.
fn path_shown(path: &str) -> &str {
    match path {
        "kernel" => "GPU kernel",
        "copy" => "copy engine",
        other => other,
    }
}

/// An engine as people read it: where the bytes came from, for a program on gpuio's libcufile.
fn engine_shown(engine: &str) -> &str {
    match engine {
        "" => NONE,
        "cached" => "page cache",
        "mapped" => "page cache, mapped",
        "direct" => "storage",
        other => other,
    }
}

/// All processes, one line each.
#[must_use]
pub fn list(all: &[Shown<'_>]) -> String {
    let head = ["PID", "user", "program", "since", "GPUs", "path", "now", "state", "command"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shown in all {
        let snapshot = shown.snapshot;
        let gpus: Vec<String> = snapshot
            .gpus()
            .iter()
            .filter_map(|counters| counters.gpu)
            .map(|gpu| gpu.to_string())
            .collect();
        let mut paths: Vec<&str> = Vec::new();
        for counters in &snapshot.paths {
            let path = path_shown(&counters.path);
            if counters.path != REGISTERED && !paths.contains(&path) {
                paths.push(path);
            }
        }
        let or_none = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        rows.push(vec![
            snapshot.pid.to_string(),
            shown.user.to_owned(),
            snapshot.program.clone(),
            shown.since.to_owned(),
            or_none(gpus.join(",")),
            or_none(paths.join(",")),
            shown.rate_now().map_or(NONE.to_owned(), human_rate),
            shown.state().to_owned(),
            shown.command.unwrap_or(NONE).chars().take(60).collect(),
        ]);
    }
    in_columns(&rows, rows.first().map_or(0, Vec::len))
}

#[expect(clippy::cast_precision_loss, reason = "rounded for people")]
fn bytes(bytes: u64) -> String {
    human_bytes(bytes as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded for people")]
fn percentile(side: &Counts, at: Percentile) -> String {
    side.percentile_ns(at.quantile()).map_or(NONE.to_owned(), |ns| human_ns(ns as f64))
}
