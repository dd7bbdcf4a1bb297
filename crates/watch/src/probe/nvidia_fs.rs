//! The kernel module nvidia-fs: `/proc/driver/nvidia-fs/stats`, all processes and GPUs together.

use crate::metric::{Figure, Form, Kind, Metric};
use crate::probe::{Eye, Probe, Reading};

const fn metric(key: &'static str, unit: &'static str, help: &'static str) -> Metric {
    Metric { key, unit, scale: (1, 1), kind: Kind::Counter64, help }
}

const METRICS: [Metric; 6] = [
    metric("reads", "", "Reads done"),
    metric("read_bytes", "bytes", "Bytes read, in whole MiB"),
    metric("read_errors", "", "Reads that failed"),
    metric("writes", "", "Writes done"),
    metric("written_bytes", "bytes", "Bytes written, in whole MiB"),
    metric("write_errors", "", "Writes that failed"),
];

const FIGURES: [Figure; 5] = [
    Figure {
        key: "reads_per_second",
        heading: "r/s",
        form: Form::Number,
        narrow: true,
        of: |c| c.rate("reads"),
    },
    Figure {
        key: "writes_per_second",
        heading: "w/s",
        form: Form::Number,
        narrow: true,
        of: |c| c.rate("writes"),
    },
    Figure {
        key: "read_bytes_per_second",
        heading: "rMiB/s",
        form: Form::Mebibytes,
        narrow: true,
        of: |c| c.rate("read_bytes"),
    },
    Figure {
        key: "written_bytes_per_second",
        heading: "wMiB/s",
        form: Form::Mebibytes,
        narrow: true,
        of: |c| c.rate("written_bytes"),
    },
    Figure {
        key: "errors",
        heading: "errors",
        form: Form::Number,
        narrow: true,
        of: |c| Some(c.of("read_errors")? + c.of("write_errors")?),
    },
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
