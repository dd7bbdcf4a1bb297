//! Which ceiling a result is held against.

use gpuio_record::{Ceiling, JobResult, OfCeiling, Towards};

/// Writes into every result how near it came to the lowest of its ceilings.
pub(crate) fn assign_lowest(results: &mut [JobResult], ceilings: &[Ceiling]) {
    for result in results {
        result.read.of_ceiling = OfCeiling::lowest(ceilings, result, Towards::Read);
        result.write.of_ceiling = OfCeiling::lowest(ceilings, result, Towards::Write);
    }
}
