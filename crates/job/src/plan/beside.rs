//! Jobs that run together run with the same computation.

use gpuio_record::JobPlan;

use super::PlanError;

/// Refuses jobs of one group that ask for different computations.
///
/// # Errors
/// The two jobs, and what to do.
pub(super) fn of_groups(jobs: &[JobPlan]) -> Result<(), PlanError> {
    for group in jobs.chunk_by(|a, b| a.group == b.group) {
        let differs = |pair: &[JobPlan]| pair[0].beside != pair[1].beside;
        if let Some([one, other]) = group.windows(2).find(|pair| differs(pair)) {
            let says = |job: &JobPlan| job.beside.map_or("off".to_owned(), |beside| beside.key());
            let what = format!(
                "it runs at the same time as job '{}', which has beside={} (here: {}). Use the \
                 same value, or put a stonewall between them",
                one.name,
                says(one),
                says(other)
            );
            return Err(PlanError::Usage { at: Some(format!("job '{}'", other.name)), what });
        }
    }
    Ok(())
}
