//! Judging the targets of a group, each held from here on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gpuio_record::{JobPlan, TargetKind, TargetPlan};
use rustix::fs::OFlags;

use super::{DataSet, DataSetError, together, wants};
use gpuio_dataset::MakeError;
use gpuio_dataset::held::{Budget, Held};
use gpuio_dataset::manifest::Lists;
use gpuio_dataset::ownership::{Verdict, Wanted, check_with};

/// One target of one job, checked.
pub(super) struct CheckedTarget<'j> {
    pub(super) job: &'j JobPlan,
    pub(super) target: &'j TargetPlan,
    pub(super) wanted: Wanted,
    pub(super) verdict: Verdict,
}

impl DataSet<'_> {
    /// Judges the targets of a group, and holds each of them, once.
    pub(super) fn check<'j>(
        &self,
        jobs: impl Iterator<Item = &'j JobPlan>,
        budget: &Budget,
    ) -> Result<Vec<CheckedTarget<'j>>, DataSetError> {
        let claimed = self.claims.iter().map(|(device, _)| *device).collect();
        let mut lists = Lists::with(Some(self.looks), claimed);
        let mut refused = Vec::new();
        let mut checked: Vec<CheckedTarget<'j>> = Vec::new();
        let mut held: BTreeMap<PathBuf, Arc<Held>> = BTreeMap::new();
        for job in jobs.filter(|job| !together::is_followed(job)) {
            for (mut wanted, target) in wants(job).zip(&job.targets) {
                wanted.needs_pattern &= !self.is_verified(&wanted, target);
                if !wanted.holes.is_empty() && self.has_its_holes(&wanted) {
                    // Used as it is: all that must hold the pattern does.
                    wanted.holes.clear();
                    (wanted.needs_pattern, wanted.laid_out) = (false, false);
                }
                let mut verdict = match check_with(&mut lists, &wanted, self.permit, self.root) {
                    Err(refusal) => {
                        refused.push(refusal);
                        continue;
                    }
                    Ok(verdict) => verdict,
                };
                match (&verdict.target, held.get(&verdict.path)) {
                    (Some(new), Some(first)) if new.identity() != first.identity() => {
                        return Err(MakeError::Replaced { path: verdict.path }.into());
                    }
                    (Some(_), Some(first)) => verdict.target = Some(Arc::clone(first)),
                    (Some(_), None) => {
                        verdict.within(budget);
                        let first = verdict.target.clone();
                        held.extend(first.map(|first| (verdict.path.clone(), first)));
                    }
                    (None, _) => {}
                }
                checked.push(CheckedTarget { job, target, wanted, verdict });
            }
        }
        if refused.is_empty() { Ok(checked) } else { Err(DataSetError::Refused(refused)) }
    }

    /// Takes the block devices that are to be written, each for the rest of the run.
    pub(super) fn claim(&mut self, checked: &[CheckedTarget<'_>]) -> Result<(), DataSetError> {
        for CheckedTarget { wanted, verdict, .. } in checked {
            let Some(held) = verdict.target.as_ref().filter(|_| wanted.writes) else { continue };
            let device = held.stamp().rdev;
            if verdict.kind != TargetKind::BlockDevice
                || self.claims.iter().any(|(claimed, _)| *claimed == device)
            {
                continue;
            }
            let claim = held.reopen(OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK);
            let claim = claim.map_err(|error| MakeError::reopen(&verdict.path, error))?;
            self.claims.push((device, claim));
        }
        Ok(())
    }
}
