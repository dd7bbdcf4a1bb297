//! Which ceiling a result is held against.

use gpuio_record::{Ceiling, JobResult, OfCeiling, Towards};

/// Writes into every result how near it came to the lowest of its ceilings.
pub(crate) fn assign_lowest(results: &mut [JobResult], ceilings: &[Ceiling]) {
    for result in results {
        let name = result.name.as_str();
        for (direction, side) in
            [(Towards::Read, &mut result.read), (Towards::Write, &mut result.write)]
        {
            side.of_ceiling = OfCeiling::lowest(ceilings, name, direction, side);
        }
    }
}
