//! The kernel module nvidia-fs: `/proc/driver/nvidia-fs/stats`, all processes and GPUs together.

use gpuio_host::nvidia_fs::NvidiaFsSample;

use crate::metric::{self, Figure, Form, Kind, Metric, bytes, count, figure};
use crate::probe::{Eye, Probe, Reading, both};

const METRICS: [Metric; 15] = [
    count("reads", "Reads done"),
    bytes("read_bytes", "Bytes read, in whole MiB"),
    count("read_errors", "Reads that failed"),
    count("writes", "Writes done"),
    bytes("written_bytes", "Bytes written, in whole MiB"),
    count("write_errors", "Writes that failed"),
    count("sparse_reads", "Reads that met holes of files"),
    count("sparse_holes", "Holes in them, which the driver fills with zeros"),
    count("bar1_maps", "Mappings of GPU memory into BAR1"),
    count("bar1_map_errors", "Mappings into BAR1 that failed"),
    Metric { kind: Kind::Gauge, ..count("bar1_active", "Mappings into BAR1 that are there") },
    count("mixed_page_errors", "Requests that mixed pages of processor and GPU"),
    count("scatter_errors", "Scatter lists that could not be extended"),
    count("dma_map_errors", "Mappings for DMA that failed"),
    count("dma_reference_errors", "References to such mappings that failed"),
];

const FIGURES: [Figure; 9] = [
    metric::READS,
    metric::WRITES,
    metric::READ_BYTES,
    metric::WRITTEN_BYTES,
    figure("errors", "errors", Form::Number, true, |c| {
        Some(c.of("read_errors")? + c.of("write_errors")?)
    }),
    figure("sparse_reads_per_second", "sparse/s", Form::Number, false, |c| c.rate("sparse_reads")),
    figure("bar1_maps_per_second", "BAR1 maps/s", Form::Number, false, |c| c.rate("bar1_maps")),
    figure("bar1_active", "BAR1 maps", Form::Number, false, |c| c.of("bar1_active")),
    figure("mapping_errors", "map errors", Form::Number, true, |c| {
        let kinds = ["bar1_map_errors", "mixed_page_errors", "scatter_errors", "dma_map_errors"];
        let known = kinds.into_iter().chain(["dma_reference_errors"]).filter_map(|key| c.of(key));
        known.reduce(|sum, one| sum + one)
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "nvidia_fs",
    title: "nvidia-fs",
    source: "/proc/driver/nvidia-fs/stats",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(metric::moved),
    most: usize::MAX,
    rank: None,
    read,
};

fn sample(eye: &mut Eye) -> Result<&NvidiaFsSample, String> {
    let sample = eye.counters.nvidia_fs(&eye.root).as_ref().map_err(Clone::clone)?;
    sample.as_ref().ok_or_else(|| "the module is not loaded".to_owned())
}

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let sample = sample(eye)?;
    // Without rw_stats_enabled the counts stay where they are, which is not the same as no traffic.
    let counted = |value| (sample.counts == Some(true)).then_some(value);
    let (reads, writes) = (&sample.reads, &sample.writes);
    let values = [reads.ok, reads.bytes, reads.failed, writes.ok, writes.bytes, writes.failed];
    // These count whether or not reads and writes do.
    let also = &sample.further;
    let further = [
        also.sparse_reads,
        also.sparse_holes,
        also.bar1_maps,
        also.bar1_map_errors,
        also.bar1_active,
        also.mixed_page_errors,
        also.scatter_errors,
        also.dma_map_errors,
        also.dma_reference_errors,
    ];
    let values = values.map(counted).into_iter().chain(further);
    Ok(vec![Reading::new("nvidia-fs", values.collect())])
}

const GPU_METRICS: [Metric; 4] = [
    gauge("registered_bytes", "bytes", "GPU memory registered for I/O"),
    gauge("cache_bytes", "bytes", "GPU memory of bounce buffers"),
    gauge("most_pinned_bytes", "bytes", "The most GPU memory that was pinned at once"),
    gauge("cross_root_port_percent", "percent", "Share of I/O between root ports"),
];

const fn gauge(key: &'static str, unit: &'static str, help: &'static str) -> Metric {
    Metric { key, unit, scale: (1, 1), kind: Kind::Gauge, help }
}

const GPU_FIGURES: [Figure; 4] = [
    figure("registered_bytes", "registered MiB", Form::Mebibytes, true, |c| {
        c.of("registered_bytes")
    }),
    figure("cache_bytes", "cache MiB", Form::Mebibytes, true, |c| c.of("cache_bytes")),
    figure("most_pinned_bytes", "most pinned MiB", Form::Mebibytes, true, |c| {
        c.of("most_pinned_bytes")
    }),
    figure("cross_root_port_percent", "%cross root", Form::Percent, true, |c| {
        c.of("cross_root_port_percent")
    }),
];

/// GPUs as the module sees them, by PCI address.
pub(super) const GPUS: Probe = Probe {
    name: "nvidia_fs_gpu",
    title: "GPUs of nvidia-fs",
    source: "/proc/driver/nvidia-fs/stats",
    metrics: &GPU_METRICS,
    figures: &GPU_FIGURES,
    trend: None,
    most: usize::MAX,
    rank: None,
    read: read_gpus,
};

fn read_gpus(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let sample = sample(eye)?;
    let gpus = sample.gpus.iter().zip(&sample.of_gpus).map(|(address, gpu)| {
        let values = [
            gpu.registered_bytes,
            gpu.cache_bytes,
            gpu.most_pinned_bytes,
            gpu.cross_root_port_percent,
        ];
        Reading::new(address.clone(), values.to_vec())
    });
    Ok(gpus.collect())
}
