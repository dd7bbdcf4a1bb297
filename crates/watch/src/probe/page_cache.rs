//! Memory and page cache: `/proc/meminfo`.

use crate::metric::{Figure, Form, Kind, Metric, bytes, figure};
use crate::probe::{Eye, Probe, Reading, Trend};

const fn metric(key: &'static str, help: &'static str) -> Metric {
    Metric { kind: Kind::Gauge, ..bytes(key, help) }
}

const METRICS: [Metric; 5] = [
    metric("free_bytes", "Memory that is free"),
    metric("available_bytes", "Memory that could be had without swapping"),
    metric("cached_bytes", "Page cache"),
    metric("dirty_bytes", "Page cache that waits to be written"),
    metric("writeback_bytes", "Page cache that is being written"),
];

const FIGURES: [Figure; 5] = [
    figure("free_bytes", "free GiB", Form::Gibibytes, true, |c| c.of("free_bytes")),
    figure("available_bytes", "available GiB", Form::Gibibytes, true, |c| c.of("available_bytes")),
    figure("cached_bytes", "cached GiB", Form::Gibibytes, true, |c| c.of("cached_bytes")),
    figure("dirty_bytes", "dirty MiB", Form::Mebibytes, true, |c| c.of("dirty_bytes")),
    figure("writeback_bytes", "writeback MiB", Form::Mebibytes, true, |c| c.of("writeback_bytes")),
];

pub(super) const PROBE: Probe = Probe {
    name: "page_cache",
    title: "Page cache",
    source: "/proc/meminfo",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: Some(Trend { heading: "dirty MiB", form: Form::Mebibytes, of: |c| c.of("dirty_bytes") }),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let sample = gpuio_host::page_cache::sample(&eye.root).map_err(|error| error.to_string())?;
    let sample = sample.ok_or("the kernel shows no /proc/meminfo")?;
    let values = vec![sample.free, sample.available, sample.cached, sample.dirty, sample.writeback];
    Ok(vec![Reading::new("memory", values)])
}
