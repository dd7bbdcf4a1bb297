//! Texts about ceilings, shared by several formats.

use gpuio_base::units::format_duration_ns;
use gpuio_record::metric::percent;
use gpuio_record::{CeilingKind, CeilingPlan, CeilingSource, OfCeiling, Towards};

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
