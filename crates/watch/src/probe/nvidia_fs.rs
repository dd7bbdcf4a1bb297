//! The kernel module nvidia-fs: `/proc/driver/nvidia-fs/stats`, all processes and GPUs together.

use crate::metric::{Figure, Form, Metric, bytes, count, figure};
use crate::probe::{Eye, Probe, Reading};

const METRICS: [Metric; 6] = [
    count("reads", "Reads done"),
    bytes("read_bytes", "Bytes read, in whole MiB"),
    count("read_errors", "Reads that failed"),
    count("writes", "Writes done"),
    bytes("written_bytes", "Bytes written, in whole MiB"),
    count("write_errors", "Writes that failed"),
];

const FIGURES: [Figure; 5] = [
    figure("reads_per_second", "r/s", Form::Number, true, |c| c.rate("reads")),
    figure("writes_per_second", "w/s", Form::Number, true, |c| c.rate("writes")),
    figure("read_bytes_per_second", "rMiB/s", Form::Mebibytes, true, |c| c.rate("read_bytes")),
    figure("written_bytes_per_second", "wMiB/s", Form::Mebibytes, true, |c| {
        c.rate("written_bytes")
    }),
    figure("errors", "errors", Form::Number, true, |c| {
        Some(c.of("read_errors")? + c.of("write_errors")?)
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "nvidia_fs",
    title: "nvidia-fs",
    source: "/proc/driver/nvidia-fs/stats",
    metrics: &METRICS,
    figures: &FIGURES,
    most: usize::MAX,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let sample = gpuio_host::nvidia_fs::sample(&eye.root).map_err(|error| error.to_string())?;
    let sample = sample.ok_or("the module is not loaded")?;
    // Without rw_stats_enabled the counts stay where they are, which is not the same as no traffic.
    let counted = |value| (sample.counts == Some(true)).then_some(value);
    let (reads, writes) = (&sample.reads, &sample.writes);
    let values = [reads.ok, reads.bytes, reads.failed, writes.ok, writes.bytes, writes.failed];
    Ok(vec![Reading::new("nvidia-fs", values.map(counted).to_vec())])
}
