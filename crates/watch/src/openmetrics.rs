//! A sample as OpenMetrics text (OpenMetrics 1.0, a CNCF standard): raw counters and gauges, since
//! Prometheus makes its own rates.

use std::fmt::Write as _;

use gpuio_base::units::label_value;

use crate::metric::{Kind, Metric};
use crate::probe::{PROBES, Probe};
use crate::sample::Sample;

pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The whole exposition: one family per metric of each kind of device that is there. An unknown
/// value has no sample.
pub fn text(sample: &Sample) -> String {
    let mut text = String::new();
    for (probe, readings) in PROBES.iter().zip(&sample.probes) {
        let Ok(readings) = readings else { continue };
        if !is_exposed(probe) || readings.is_empty() {
            continue;
        }
        for (nth, metric) in probe.metrics.iter().enumerate() {
            let family = head(&mut text, probe, metric);
            let suffix = if metric.kind == Kind::Gauge { "" } else { "_total" };
            for reading in readings {
                let Some(Some(raw)) = reading.values.get(nth) else { continue };
                let device = label_value(&reading.name);
                let value = metric.base(*raw);
                // A string takes every write, here and below.
                let _ = writeln!(text, "{family}{suffix}{{device=\"{device}\"}} {value}");
            }
        }
    }
    text.push_str("# EOF\n");
    text
}

/// The metadata lines of every family that [`text`] can have, for the reference.
pub fn heads() -> String {
    let mut text = String::new();
    for probe in PROBES.iter().filter(|probe| is_exposed(probe)) {
        for metric in probe.metrics {
            head(&mut text, probe, metric);
        }
    }
    text
}

/// A label per process would make series without end; that is what a screen is for.
fn is_exposed(probe: &Probe) -> bool {
    probe.name != "process"
}

/// Type, unit and help of a family, whose name is returned.
fn head(text: &mut String, probe: &Probe, metric: &Metric) -> String {
    let family = format!("gpuio_{}_{}", probe.name, metric.key);
    let kind = if metric.kind == Kind::Gauge { "gauge" } else { "counter" };
    let _ = writeln!(text, "# TYPE {family} {kind}");
    if !metric.unit.is_empty() {
        let _ = writeln!(text, "# UNIT {family} {}", metric.unit);
    }
    let _ = writeln!(text, "# HELP {family} {}.", metric.help);
    family
}
