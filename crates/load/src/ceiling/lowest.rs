//! Which ceiling a result is held against.

use gpuio_record::{Ceiling, DirectionResult, JobResult, OfCeiling, Towards};

/// Writes into every result how near it came to the lowest of its ceilings.
pub(crate) fn assign_lowest(results: &mut [JobResult], ceilings: &[Ceiling]) {
    for result in results {
        let name = result.name.as_str();
        for (direction, side) in
            [(Towards::Read, &mut result.read), (Towards::Write, &mut result.write)]
        {
            side.of_ceiling = beside(ceilings, name, direction, side);
        }
    }
}

/// The lowest ceiling that bounds this direction of the job, by bytes per second: blocks of the
/// ceilings differ in size, so that their I/Os can't be compared. The first of equal ones.
fn lowest<'a>(
    ceilings: &'a [Ceiling],
    job: &str,
    direction: Towards,
) -> Option<(&'a Ceiling, f64)> {
    let bounds = |ceiling: &&Ceiling| {
        let plan = &ceiling.plan;
        plan.jobs.iter().any(|name| name == job)
            && plan.direction.is_none_or(|bound| bound == direction)
    };
    let known = ceilings.iter().filter(bounds).filter_map(|ceiling| {
        let rate = ceiling.bytes_per_s.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        Some((ceiling, rate))
    });
    known.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn beside(
    ceilings: &[Ceiling],
    job: &str,
    direction: Towards,
    side: &DirectionResult,
) -> Option<OfCeiling> {
    let (ceiling, rate) = lowest(ceilings, job, direction).filter(|_| side.ios > 0)?;
    Some(OfCeiling {
        ceiling: ceiling.plan.name.clone(),
        kind: ceiling.plan.kind,
        percent: side.bytes_per_s / rate * 100.0,
    })
}
