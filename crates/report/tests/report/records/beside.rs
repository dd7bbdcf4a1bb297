//! A run with what devices did beside it, and with what its parts should have delivered.

use gpuio_record::{
    DeviceSeries, Expected, FigureSeries, JobExpected, Point, Record, Towards, Watched,
    WatchedGroup,
};

use super::build::{SECOND, gpu, job, path, record};

/// Intervals of the run, the ramp's two included.
const INTERVALS: u32 = 40;
/// Bytes that the job read in its first interval.
const FIRST: f64 = 3.0e9;

/// The job's reads in an interval, in bytes per second: up and down around [`FIRST`].
fn rate(nth: u32) -> f64 {
    FIRST + 4.0e8 * (f64::from(nth) / 5.0).sin()
}

fn figure(key: &str, of: impl Fn(u32) -> Option<f64>) -> FigureSeries {
    let values: Vec<Option<f64>> = (0..INTERVALS).map(of).collect();
    let known = values.iter().flatten();
    let whole = known.clone().sum::<f64>() / known.count() as f64;
    FigureSeries { key: key.to_owned(), whole: whole.is_finite().then_some(whole), values }
}

fn device(probe: &str, device: &str, figures: Vec<FigureSeries>) -> DeviceSeries {
    DeviceSeries { probe: probe.to_owned(), device: device.to_owned(), figures }
}

fn devices() -> Vec<DeviceSeries> {
    let none = |key| figure(key, |_| Some(0.0));
    // The drive's work in the eleventh interval is unknown.
    let known = |nth: u32, value: f64| (nth != 10).then_some(value);
    vec![
        device(
            "block",
            "nvme0n1",
            vec![
                figure("reads_per_second", |n| known(n, rate(n) / 131_072.0)),
                figure("read_bytes_per_second", |n| known(n, rate(n) * 1.02)),
                none("written_bytes_per_second"),
                figure("read_await_seconds", |n| known(n, 0.000_35)),
                figure("queue", |n| known(n, 8.25)),
                figure("busy_percent", |n| known(n, 97.5)),
            ],
        ),
        device("block", "nvme1n1", vec![none("read_bytes_per_second"), none("busy_percent")]),
        device(
            "gpu",
            "GPU0",
            vec![
                figure("pcie_received_bytes_per_second", |n| Some(rate(n) * 1.1)),
                figure("pcie_sent_bytes_per_second", |_| Some(2.0e7)),
                figure("pcie_sampled", |_| Some(1.0)),
                figure("kernels_percent", |n| Some(f64::from(n % 7))),
                figure("memory_used_bytes", |_| Some(3.5e9)),
            ],
        ),
        device(
            "cpu",
            "all (32 CPUs)",
            vec![
                figure("user_percent", |_| Some(0.6)),
                figure("system_percent", |n| Some(4.0 + f64::from(n % 3))),
                figure("idle_percent", |_| Some(95.0)),
            ],
        ),
    ]
}

fn points() -> Vec<Point> {
    let point = |nth: u32| Point {
        at_ns: (i64::from(nth) - 1) * SECOND as i64,
        span_ns: SECOND,
        read_bytes: rate(nth) as u64,
        read_ios: rate(nth) as u64 >> 20,
        p50_ns: Some(310_000),
        p99_ns: Some(520_000 + u64::from(nth) * 1000),
        max_ns: Some(2_000_000),
        ..Point::default()
    };
    (0..INTERVALS).map(point).collect()
}

/// Reads for 38 seconds behind a ramp of two, on a GPU, beside four devices. The sampler's ends are
/// a hundredth of a second later than the job's.
pub(crate) fn beside() -> Record {
    let mut plan = job("staged-read");
    plan.path = path("staged", 2, "storage->cpu->gpu");
    plan.gpus = vec![gpu(0, false)];
    plan.ramp_ns = 2 * SECOND;
    let mut record = record(vec![plan]);
    record.jobs[0].series = points();
    let ends = (0..u64::from(INTERVALS)).map(|nth| (nth + 1) * SECOND + SECOND / 100);
    record.watched = Some(Watched {
        interval_ns: SECOND,
        samples: u64::from(INTERVALS) + 1,
        cpu_ns: Some(12_000_000),
        groups: vec![WatchedGroup {
            ends_ns: ends.collect(),
            devices: devices(),
            ..WatchedGroup::default()
        }],
    });
    record.expected = vec![JobExpected {
        job: "staged-read".to_owned(),
        direction: Towards::Read,
        expected: Expected {
            bytes_per_s: Some(3.5e9),
            bottleneck: Some("nvme0n1: 3.50 GB/s read (a data sheet)".to_owned()),
            ..Expected::default()
        },
        percent: Some(record.jobs[0].read.bytes_per_s / 3.5e9 * 100.0),
    }];
    record
}
