//! Texts about ceilings, shared by several formats.

use gpuio_record::{CeilingKind, CeilingPlan, CeilingSource, OfCeiling, Record, Towards};
use gpuio_units::format_duration_ns;

use crate::number::NONE;

/// A kind in one word.
pub(crate) fn word(kind: CeilingKind) -> &'static str {
    match kind {
        CeilingKind::Storage => "storage",
        CeilingKind::GpuLink => "link",
        CeilingKind::Gather => "gather",
        CeilingKind::CpuCopy => "copy",
        CeilingKind::PcieGpu | CeilingKind::PcieNvme => "pcie",
    }
}

/// `87 storage`, or `-` where there is no ceiling.
pub(crate) fn cell(of: Option<&OfCeiling>) -> String {
    let Some(of) = of else { return NONE.to_owned() };
    format!("{} {}", percent(of.percent), word(of.kind))
}

/// A whole per cent, or one decimal below 10 and near 100. Never shows 100 for another value:
/// rounds down below it and up above it.
pub(crate) fn percent(percent: f64) -> String {
    if percent < 10.0 {
        return format!("{percent:.1}");
    }
    if !(99.0..101.0).contains(&percent) {
        return format!("{percent:.0}");
    }
    let tenths = percent * 10.0;
    let tenths = if percent < 100.0 { tenths.floor() } else { tenths.ceil() };
    if tenths == 1000.0 { "100".to_owned() } else { format!("{:.1}", tenths / 10.0) }
}

/// Bytes per second of the ceiling that a result is compared with.
pub(crate) fn rate(record: &Record, of: &OfCeiling) -> Option<f64> {
    let named = record.ceilings.iter().find(|ceiling| ceiling.plan.name == of.ceiling);
    named.and_then(|ceiling| ceiling.bytes_per_s)
}

/// Where the figure comes from.
pub(crate) fn source(source: &CeilingSource) -> String {
    match source {
        CeilingSource::Measured { runtime_ns } => {
            format!("measured {}", format_duration_ns(*runtime_ns))
        }
        CeilingSource::Result { job } => format!("result of {job}"),
        CeilingSource::Theory => "theory".to_owned(),
        CeilingSource::Absent { .. } => "absent".to_owned(),
    }
}

/// Read or write.
pub(crate) fn direction(plan: &CeilingPlan) -> &'static str {
    match plan.direction {
        Some(Towards::Read) => "read",
        Some(Towards::Write) => "write",
        None => "both",
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn only_a_hundred_is_a_hundred() {
        for (figure, text) in [
            (0.0, "0.0"),
            (4.26, "4.3"),
            (87.4, "87"),
            (98.96, "99"),
            (99.0, "99.0"),
            (99.99, "99.9"),
            (100.0, "100"),
            (100.01, "100.1"),
            (103.6, "104"),
            (2500.0, "2500"),
        ] {
            assert_eq!(percent(figure), text, "{figure}");
        }
    }
}
