//! GPUs' profiling fields: DCGM's host engine, where one runs. It reads them once a second, so that
//! a shorter interval shows some values twice.

use gpuio_drivers::dcgm::{FIELDS, Profile};

use crate::metric::{Figure, Form, Kind, Metric, figure};
use crate::probe::{Eye, Probe, Reading, Trend};

/// A share of time, in millionths.
const fn share(key: &'static str, help: &'static str) -> Metric {
    Metric { key, unit: "percent", scale: (1, 10_000), kind: Kind::Gauge, help }
}

/// Bytes per second.
const fn rate(key: &'static str, help: &'static str) -> Metric {
    Metric { key, unit: "", scale: (1, 1), kind: Kind::Gauge, help }
}

/// In the order of DCGM's fields.
const METRICS: [Metric; FIELDS.len()] = [
    share("graphics_percent", "Share of time in which a graphics or compute engine was busy"),
    share("sm_percent", "Share of cycles in which a multiprocessor had work, over all of them"),
    share("occupancy_percent", "Share of the multiprocessors' places for warps that were taken"),
    share("tensor_percent", "Share of cycles in which tensor cores were busy"),
    share("dram_percent", "Share of cycles in which memory moved data"),
    share("fp64_percent", "Share of cycles in which units for FP64 were busy"),
    share("fp32_percent", "Share of cycles in which units for FP32 were busy"),
    share("fp16_percent", "Share of cycles in which units for FP16 were busy"),
    rate("pcie_send_rate", "Bytes per second sent over PCIe, packets' headers included"),
    rate("pcie_receive_rate", "Bytes per second received over PCIe, packets' headers included"),
    rate("nvlink_send_rate", "Bytes per second sent over NVLink, headers included"),
    rate("nvlink_receive_rate", "Bytes per second received over NVLink, headers included"),
];

const FIGURES: [Figure; FIELDS.len()] = [
    figure("sm_percent", "%SM", Form::Percent, true, |c| c.of("sm_percent")),
    figure("occupancy_percent", "%occ", Form::Percent, true, |c| c.of("occupancy_percent")),
    figure("tensor_percent", "%tensor", Form::Percent, true, |c| c.of("tensor_percent")),
    figure("dram_percent", "%DRAM", Form::Percent, true, |c| c.of("dram_percent")),
    figure("pcie_received_bytes_per_second", "rx MiB/s", Form::Mebibytes, true, |c| {
        c.of("pcie_receive_rate")
    }),
    figure("pcie_sent_bytes_per_second", "tx MiB/s", Form::Mebibytes, true, |c| {
        c.of("pcie_send_rate")
    }),
    figure("nvlink_received_bytes_per_second", "nv rx MiB/s", Form::Mebibytes, false, |c| {
        c.of("nvlink_receive_rate")
    }),
    figure("nvlink_sent_bytes_per_second", "nv tx MiB/s", Form::Mebibytes, false, |c| {
        c.of("nvlink_send_rate")
    }),
    figure("graphics_percent", "%engine", Form::Percent, false, |c| c.of("graphics_percent")),
    figure("fp64_percent", "%FP64", Form::Percent, false, |c| c.of("fp64_percent")),
    figure("fp32_percent", "%FP32", Form::Percent, false, |c| c.of("fp32_percent")),
    figure("fp16_percent", "%FP16", Form::Percent, false, |c| c.of("fp16_percent")),
];

pub(super) const PROBE: Probe = Probe {
    name: "gpu_profile",
    title: "GPU profiles",
    source: "DCGM",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: Some(Trend { heading: "%SM", form: Form::Percent, of: |c| c.of("sm_percent") }),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let uuids = eye.gpus.as_ref().ok().and_then(|library| library.uuids().ok());
    let Some(engine) = &mut eye.profiles else { return Ok(Vec::new()) };
    let engine = engine.as_mut().map_err(|why| why.clone())?;
    let gpus = engine.latest().map_err(|absent| absent.to_string())?;
    Ok(gpus.iter().map(|gpu| reading(gpu, uuids.as_deref().unwrap_or_default())).collect())
}

/// GPUs are numbered as NVML lists them; without it as DCGM does.
fn reading(gpu: &Profile, uuids: &[String]) -> Reading {
    let nth = uuids.iter().position(|uuid| *uuid == gpu.uuid);
    let name = nth.map_or_else(|| format!("GPU{}", gpu.id), |nth| format!("GPU{nth}"));
    let raw = METRICS.iter().zip(gpu.values).map(|(metric, value)| {
        let raw = value? * f64::from(if metric.unit == "percent" { 1_000_000 } else { 1 });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 and above")]
        Some(raw.round() as u64)
    });
    Reading::new(name, raw.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_rates_keep_their_units_and_gpus_their_numbers() {
        let mut values = [None; FIELDS.len()];
        values[1] = Some(0.125);
        values[9] = Some(7e9);
        let gpu = Profile { id: 5, uuid: "GPU-b".to_owned(), values };
        let found = reading(&gpu, &["GPU-a".to_owned(), "GPU-b".to_owned()]);
        assert_eq!(found.name, "GPU1");
        let base = |nth: usize| found.values[nth].map(|raw| METRICS[nth].base(raw));
        assert_eq!((base(1), base(9), base(0)), (Some(12.5), Some(7e9), None));
        assert_eq!(reading(&gpu, &[]).name, "GPU5");
    }
}
