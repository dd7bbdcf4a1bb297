//! GPUs: NVML. PCIe bytes are counters where the driver keeps them in 64 bits; those of 32 bits
//! turn over in 68 ms, so that a sample of the driver's (the last 20 ms) is shown instead.
//! NVML does not report how busy copy engines are.

use gpuio_drivers::nvml::{Gpu, Width};

use crate::metric::{Figure, Form, Kind, Metric, figure};
use crate::probe::{Eye, Probe, Reading, both};

const fn metric(key: &'static str, unit: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric { key, unit, scale: (1, 1), kind, help }
}

const METRICS: [Metric; 16] = [
    metric("pcie_received_bytes", "bytes", Kind::Counter64, "Bytes received over PCIe"),
    metric("pcie_sent_bytes", "bytes", Kind::Counter64, "Bytes sent over PCIe"),
    metric("pcie_receive_rate", "", Kind::Gauge, "Bytes per second received, over the last 20 ms"),
    metric("pcie_send_rate", "", Kind::Gauge, "Bytes per second sent, over the last 20 ms"),
    metric("kernels_percent", "percent", Kind::Gauge, "Share of time in which kernels ran"),
    metric("memory_percent", "percent", Kind::Gauge, "Share of time in which memory was used"),
    metric("memory_used_bytes", "bytes", Kind::Gauge, "GPU memory in use"),
    metric("bar1_used_bytes", "bytes", Kind::Gauge, "BAR1 in use"),
    metric("bar1_size_bytes", "bytes", Kind::Gauge, "All of BAR1"),
    Metric { scale: (1, 1000), ..metric("power_watts", "watts", Kind::Gauge, "Power drawn") },
    metric("temperature_celsius", "celsius", Kind::Gauge, "Temperature of the chip"),
    metric("memory_celsius", "celsius", Kind::Gauge, "Temperature of the memory"),
    metric("clock_hertz", "hertz", Kind::Gauge, "Clock of the multiprocessors"),
    metric("memory_clock_hertz", "hertz", Kind::Gauge, "Clock of memory"),
    metric("encoder_percent", "percent", Kind::Gauge, "Share of time of the video encoder"),
    metric("decoder_percent", "percent", Kind::Gauge, "Share of time of the video decoder"),
];

const FIGURES: [Figure; 15] = [
    figure("pcie_received_bytes_per_second", "rx MiB/s", Form::Mebibytes, true, |c| {
        c.rate("pcie_received_bytes").or_else(|| c.of("pcie_receive_rate"))
    }),
    figure("pcie_sent_bytes_per_second", "tx MiB/s", Form::Mebibytes, true, |c| {
        c.rate("pcie_sent_bytes").or_else(|| c.of("pcie_send_rate"))
    }),
    Figure {
        key: "pcie_sampled",
        heading: "sampled",
        form: Form::Number,
        narrow: false,
        // 1 where the rate is of the last 20 ms and not of the interval.
        of: |c| c.of("pcie_receive_rate").map(|_| f64::from(c.of("pcie_received_bytes").is_none())),
    },
    figure("kernels_percent", "%kernels", Form::Percent, true, |c| c.of("kernels_percent")),
    figure("memory_percent", "%memory", Form::Percent, true, |c| c.of("memory_percent")),
    figure("memory_used_bytes", "used GiB", Form::Gibibytes, true, |c| c.of("memory_used_bytes")),
    figure("bar1_used_bytes", "BAR1 MiB", Form::Mebibytes, true, |c| c.of("bar1_used_bytes")),
    figure("bar1_size_bytes", "of MiB", Form::Mebibytes, false, |c| c.of("bar1_size_bytes")),
    figure("power_watts", "W", Form::Number, false, |c| c.of("power_watts")),
    figure("temperature_celsius", "°C", Form::Number, false, |c| c.of("temperature_celsius")),
    figure("memory_celsius", "mem °C", Form::Number, false, |c| c.of("memory_celsius")),
    figure("clock_hertz", "MHz", Form::Megahertz, false, |c| c.of("clock_hertz")),
    figure("memory_clock_hertz", "mem MHz", Form::Megahertz, false, |c| c.of("memory_clock_hertz")),
    figure("encoder_percent", "%enc", Form::Percent, false, |c| c.of("encoder_percent")),
    figure("decoder_percent", "%dec", Form::Percent, false, |c| c.of("decoder_percent")),
];

pub(super) const PROBE: Probe = Probe {
    name: "gpu",
    title: "GPUs",
    source: "NVML",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(|c| {
        let either = |counter, rate| c.rate(counter).or_else(|| c.of(rate));
        let received = either("pcie_received_bytes", "pcie_receive_rate")?;
        Some(received + either("pcie_sent_bytes", "pcie_send_rate")?)
    }),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let library = eye.gpus.as_ref().map_err(Clone::clone)?;
    let uuids = library.uuids().map_err(|unread| unread.to_string())?;
    let gpus = uuids.iter().enumerate().filter_map(|(nth, uuid)| {
        let gpu = library.gpu(uuid).ok()?;
        Some(Reading::new(format!("GPU{nth}"), values(&gpu)))
    });
    Ok(gpus.collect())
}

fn values(gpu: &Gpu<'_>) -> Vec<Option<u64>> {
    let counters = gpu.pcie_bytes().ok();
    let wide = counters.filter(|both| both.iter().all(|one| one.width == Width::Bits64));
    let sampled = if wide.is_some() { None } else { gpu.pcie_rates().ok() };
    let activity = gpu.activity();
    let busy = activity.busy_percent.ok();
    let bar1 = activity.bar1.ok();
    let (clocks, video) = (activity.clocks_hz.ok(), activity.video_percent.ok());
    vec![
        wide.map(|[_, received]| received.value),
        wide.map(|[sent, _]| sent.value),
        sampled.map(|[_, received]| received),
        sampled.map(|[sent, _]| sent),
        busy.map(|[kernels, _]| u64::from(kernels)),
        busy.map(|[_, memory]| u64::from(memory)),
        activity.memory_used.ok(),
        bar1.map(|bar1| bar1.used),
        bar1.map(|bar1| bar1.total),
        activity.power_milliwatts.ok().map(u64::from),
        activity.celsius.ok().map(u64::from),
        gpu.memory_celsius().ok(),
        clocks.map(|[chip, _]| chip),
        clocks.map(|[_, memory]| memory),
        video.map(|[encoder, _]| u64::from(encoder)),
        video.map(|[_, decoder]| u64::from(decoder)),
    ]
}
