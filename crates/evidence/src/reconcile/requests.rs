//! Requests at the device of another size than the tool's I/Os.

use gpuio_record::{JobPlan, JobResult, Order, WarningKind};

use super::{FLOWS, Flow, GroupContext, cached};

/// Sizes are compared where the device's traffic is the tool's own, which within a tenth it is:
/// metadata and the ends of a run are less. A quarter of difference in mean size is a finding: the
/// last request of a file, or a chunk's end now and then, stays below. Through the page cache,
/// sequential reads are compared too, whose requests are those of read-ahead; what write-back
/// gathers is never the size of a write.
pub(super) fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let ([job], [result], [device]) = (seen.jobs, seen.results, seen.storage()) else {
        return Vec::new();
    };
    if job.engine.actual == "null" {
        return Vec::new();
    }
    let of = |flow: Flow| {
        let ((bytes, ios), (moved, requests)) = (flow.of(result), flow.at(device));
        if ios == 0 || requests == 0 || !comparable(job, result, flow) {
            return None;
        }
        let same_bytes = moved.abs_diff(bytes) <= bytes / 10;
        let (mean_io_bytes, mean_request_bytes) = (bytes / ios, moved / requests);
        let alike = mean_io_bytes.abs_diff(mean_request_bytes) <= mean_io_bytes / 4;
        let device = device.device.clone();
        (same_bytes && !alike).then_some((
            Some(0),
            WarningKind::SplitByBlockLayer { mean_io_bytes, mean_request_bytes, device },
        ))
    };
    // Where both directions are cut, it is for one reason.
    FLOWS.into_iter().find_map(of).into_iter().collect()
}

fn comparable(job: &JobPlan, result: &JobResult, flow: Flow) -> bool {
    !cached(job, result) || (flow == Flow::Read && job.order == Order::Sequential)
}
