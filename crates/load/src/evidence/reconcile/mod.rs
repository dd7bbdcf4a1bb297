//! The bytes that a group's jobs moved by their own counters, compared with those that devices
//! counted.
//!
//! Pure: a rule gets plan, results and counts, and reports where they disagree by more than its
//! tolerance. Where a count is absent, a rule reports nothing: unknown is no disagreement. A new
//! rule is one function and one row in [`RULES`]; docs/proof.md lists them with tolerances.
//!
//! Counters cover devices and the process, never a job: what a rule finds is a job's only where the
//! job was alone in its group.

mod counted;
mod links;
mod processors;
mod storage;

use gpuio_base::units::float;
use gpuio_record::{JobPlan, JobResult, StorageReading, WarningKind};

pub(crate) use counted::Counted;
#[cfg(test)]
pub(crate) use counted::Gpu;

use crate::evidence::group::{Flow, cached};

/// One kind of disagreement: findings with the index of the job they are about, or none of all.
type Rule = fn(&GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)>;

/// All rules, in the order of findings.
const RULES: &[Rule] = &[
    storage::page_cache,
    storage::read_ahead,
    storage::requests,
    storage::others,
    processors::others,
    storage::array,
    storage::paths,
    storage::depth,
    links::gpus,
    links::network,
];

/// A device below this moved too little for a finding: journals, logs and metadata of a machine at
/// rest are a few MiB in a minute.
const NOISE_BYTES: u64 = 4 << 20;
/// Below this, parts of an array or paths of a device may be unequal by chance: that is 64 blocks
/// of 1 MiB, or 512 chunks of 128 KiB.
const FEW_BYTES: f64 = (64_u64 << 20) as f64;

/// The input of the rules: one group.
pub(crate) struct GroupContext<'a> {
    pub(crate) jobs: &'a [JobPlan],
    /// Results in the same order.
    pub(crate) results: &'a [JobResult],
    /// The counts of devices; nothing where nothing was sampled.
    pub(crate) counted: &'a Counted,
}

pub(crate) fn find(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    RULES.iter().flat_map(|rule| rule(group)).collect()
}

impl GroupContext<'_> {
    /// Jobs that move bytes, with their results.
    fn moving(&self) -> impl Iterator<Item = (&JobPlan, &JobResult)> {
        let both = self.jobs.iter().zip(self.results);
        both.filter(|(job, _)| job.engine.actual != "null")
    }

    /// Bytes of all jobs of the group.
    fn bytes(&self, flow: Flow) -> u64 {
        self.moving().map(|(_, result)| flow.of(result).0).sum()
    }

    /// Whether no job goes through the page cache.
    fn all_direct(&self) -> bool {
        !self.moving().any(|(job, result)| cached(job, result))
    }

    /// Bytes that the process caused to be moved at storage; `None` where the kernel does not
    /// report it.
    fn caused(&self, flow: Flow) -> Option<u64> {
        let cache = &self.results.first()?.cache;
        match flow {
            Flow::Read => cache.process_read_bytes,
            Flow::Write => cache.process_write_bytes,
        }
    }

    /// The devices right under the files, as the block layer counted them.
    fn storage(&self) -> &[StorageReading] {
        self.results.first().map_or(&[], |result| &result.cache.storage)
    }
}

fn whole(figure: f64) -> u64 {
    gpuio_base::units::whole(figure.round())
}

#[cfg(test)]
mod tests;
