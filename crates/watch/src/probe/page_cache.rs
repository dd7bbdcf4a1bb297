//! Memory and page cache: `/proc/meminfo`.

use crate::metric::{Figure, Form, Kind, Metric};
use crate::probe::{Eye, Probe, Reading};

const fn metric(key: &'static str, help: &'static str) -> Metric {
    Metric { key, unit: "bytes", scale: (1, 1), kind: Kind::Gauge, help }
}

const METRICS: [Metric; 5] = [
    metric("free_bytes", "Memory that is free"),
    metric("available_bytes", "Memory that could be had without swapping"),
    metric("cached_bytes", "Page cache"),
    metric("dirty_bytes", "Page cache that waits to be written"),
    metric("writeback_bytes", "Page cache that is being written"),
];

const FIGURES: [Figure; 5] = [
    Figure {
        key: "free_bytes",
        heading: "free GiB",
        form: Form::Gibibytes,
        narrow: true,
        of: |c| c.of("free_bytes"),
    },
    Figure {
        key: "available_bytes",
        heading: "available GiB",
        form: Form::Gibibytes,
        narrow: true,
        of: |c| c.of("available_bytes"),
    },
    Figure {
        key: "cached_bytes",
        heading: "cached GiB",
        form: Form::Gibibytes,
        narrow: true,
        of: |c| c.of("cached_bytes"),
    },
    Figure {
        key: "dirty_bytes",
        heading: "dirty MiB",
        form: Form::Mebibytes,
        narrow: true,
        of: |c| c.of("dirty_bytes"),
    },
    Figure {
        key: "writeback_bytes",
        heading: "writeback MiB",
        form: Form::Mebibytes,
        narrow: true,
        of: |c| c.of("writeback_bytes"),
    },
];

pub(super) const PROBE: Probe = Probe {
    name: "page_cache",
    title: "Page cache",
    source: "/proc/meminfo",
    metrics: &METRICS,
    figures: &FIGURES,
    most: usize::MAX,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let sample = gpuio_host::page_cache::sample(&eye.root).map_err(|error| error.to_string())?;
    let sample = sample.ok_or("the kernel shows no /proc/meminfo")?;
    let values = vec![sample.free, sample.available, sample.cached, sample.dirty, sample.writeback];
    Ok(vec![Reading::new("memory", values)])
}
