//! A sample as OpenMetrics text (OpenMetrics 1.0, a CNCF standard): raw counters and gauges, since
//! Prometheus makes its own rates.

use std::fmt::Write as _;

use gpuio_units::label_value;

use crate::metric::Kind;
use crate::probe::PROBES;
use crate::sample::Sample;

/// The media type of this text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The whole exposition: one family per metric of each kind of device that is there. What is not
/// known has no sample.
#[must_use]
pub fn text(sample: &Sample) -> String {
    let mut text = String::new();
    for (probe, readings) in PROBES.iter().zip(&sample.probes) {
        let Ok(readings) = readings else { continue };
        // A label per process would make series without end; that is what a screen is for.
        if probe.name == "process" || readings.is_empty() {
            continue;
        }
        for (nth, metric) in probe.metrics.iter().enumerate() {
            let family = format!("gpuio_{}_{}", probe.name, metric.key);
            let counter = metric.kind != Kind::Gauge;
            let kind = if counter { "counter" } else { "gauge" };
            // A string takes every write.
            let _ = writeln!(text, "# TYPE {family} {kind}");
            if !metric.unit.is_empty() {
                let _ = writeln!(text, "# UNIT {family} {}", metric.unit);
            }
            let _ = writeln!(text, "# HELP {family} {}.", metric.help);
            let suffix = if counter { "_total" } else { "" };
            for reading in readings {
                let Some(Some(raw)) = reading.values.get(nth) else { continue };
                let device = label_value(&reading.name);
                let value = metric.base(*raw);
                let _ = writeln!(text, "{family}{suffix}{{device=\"{device}\"}} {value}");
            }
        }
    }
    text.push_str("# EOF\n");
    text
}
