//! Block devices: `/proc/diskstats` (Documentation/admin-guide/iostats.rst). Figures are those of
//! `iostat -x` (iostat(1) of sysstat 12).

use crate::metric::{self, Figure, Form, Kind, Metric, bytes, count, figure, milliseconds};
use crate::probe::{Eye, Probe, Reading, both};

const fn sectors(key: &'static str, help: &'static str) -> Metric {
    Metric { scale: (512, 1), ..bytes(key, help) }
}

/// The kernel prints times of disks as 32-bit numbers of milliseconds.
const fn ms(key: &'static str, help: &'static str) -> Metric {
    Metric { kind: Kind::Counter32, ..milliseconds(key, help) }
}

/// Requests that took less than a millisecond together took some time all the same.
fn above_resolution(mean: Option<f64>) -> Option<f64> {
    mean.filter(|seconds| *seconds > 0.0)
}

const METRICS: [Metric; 11] = [
    count("reads", "Reads completed"),
    count("reads_merged", "Reads merged into a neighbour before they reached the device"),
    sectors("read_bytes", "Bytes read"),
    ms("read_wait_seconds", "Time that reads took, summed, their wait in the queue included"),
    count("writes", "Writes completed"),
    count("writes_merged", "Writes merged into a neighbour before they reached the device"),
    sectors("written_bytes", "Bytes written"),
    ms("write_wait_seconds", "Time that writes took, summed, their wait in the queue included"),
    Metric { kind: Kind::Gauge, ..count("in_flight", "Requests in flight") },
    ms("busy_seconds", "Time with at least one request in flight"),
    ms("queue_seconds", "Time times requests in flight"),
];

const FIGURES: [Figure; 12] = [
    metric::READS,
    metric::WRITES,
    metric::READ_BYTES,
    metric::WRITTEN_BYTES,
    figure("reads_merged_per_second", "rrqm/s", Form::Number, false, |c| c.rate("reads_merged")),
    figure("writes_merged_per_second", "wrqm/s", Form::Number, false, |c| c.rate("writes_merged")),
    figure("read_await_seconds", "r_await ms", Form::Milliseconds, false, |c| {
        above_resolution(c.per("read_wait_seconds", "reads"))
    }),
    figure("write_await_seconds", "w_await ms", Form::Milliseconds, false, |c| {
        above_resolution(c.per("write_wait_seconds", "writes"))
    }),
    figure("read_request_bytes", "rareq KiB", Form::Kibibytes, false, |c| {
        c.per("read_bytes", "reads")
    }),
    figure("write_request_bytes", "wareq KiB", Form::Kibibytes, false, |c| {
        c.per("written_bytes", "writes")
    }),
    figure("queue", "aqu-sz", Form::Number, true, |c| c.rate("queue_seconds")),
    // The counter is read a moment after the clock: a device that is always busy has some per cent
    // more than the interval.
    figure("busy_percent", "%util", Form::Percent, true, |c| {
        Some((c.rate("busy_seconds")? * 100.0).min(100.0))
    }),
];

pub(super) const PROBE: Probe = Probe {
    name: "block",
    title: "Block devices",
    source: "/proc/diskstats",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(metric::moved),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let devices = match &eye.stat_files {
        Some(names) => {
            let one = |name: &String| {
                let sample = gpuio_host::block::sample_named(&eye.root, name).ok().flatten()?;
                Some((name.clone(), sample))
            };
            names.iter().filter_map(one).collect()
        }
        None => gpuio_host::block::samples(&eye.root).map_err(|error| error.to_string())?,
    };
    eye.counters.block.clone_from(&devices);
    if devices.is_empty() {
        return Err("the kernel lists no block device".to_owned());
    }
    let reading = |(name, s): (String, gpuio_host::block::BlockSample)| {
        let values = [
            s.reads,
            s.reads_merged,
            s.read_sectors,
            s.read_ms,
            s.writes,
            s.writes_merged,
            s.write_sectors,
            s.write_ms,
            s.in_flight,
            s.busy_ms,
            s.queue_ms,
        ];
        Reading::new(name, values.map(Some).to_vec())
    };
    Ok(devices.into_iter().map(reading).collect())
}
