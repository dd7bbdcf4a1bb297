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
mod storage;

use gpuio_base::units::float;
use gpuio_record::facts::IoLimit;
use gpuio_record::{JobPlan, JobResult, OthersCounted, StorageReading, Towards, WarningKind};

#[cfg(test)]
pub(crate) use counted::Gpu;
pub(crate) use counted::{Counted, InWindow};

use crate::evidence::group::Flow;

/// One kind of disagreement: findings with the index of the job they are about, or none of all.
type Rule = fn(&GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)>;

/// All rules, in the order of findings.
const RULES: &[Rule] = &[
    storage::page_cache,
    storage::read_ahead,
    storage::requests,
    others,
    storage::array,
    storage::paths,
    storage::limits,
    storage::depth,
    links::gpus,
    links::network,
];

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

/// Work of others on the drives and on the processors that this process may use.
fn others(group: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    let recorded = group.results.first().and_then(|result| result.others.clone());
    let counts = recorded.unwrap_or_else(|| group.others());
    counts.warnings().map(|kind| (None, kind)).collect()
}

impl GroupContext<'_> {
    /// The counts of what others did.
    pub(crate) fn others(&self) -> OthersCounted {
        OthersCounted { processors: self.counted.cpu, traffic: storage::traffic(self) }
    }

    /// Jobs that move bytes, with their results.
    fn moving(&self) -> impl Iterator<Item = (&JobPlan, &JobResult)> {
        let both = self.jobs.iter().zip(self.results);
        both.filter(|(job, _)| job.engine.actual != "null")
    }

    /// Bytes of all jobs of the group.
    fn bytes(&self, flow: Flow) -> u64 {
        self.moving().map(|(_, result)| flow.of(result).0).sum()
    }

    /// Bytes in the window, of the jobs that are chosen.
    fn bytes_in_window(&self, flow: Flow, is_chosen: impl Fn(&JobPlan, &JobResult) -> bool) -> u64 {
        let window = self.counted.in_window.as_ref();
        let each = self.jobs.iter().zip(self.results).enumerate();
        let of = |(at, (job, result)): (usize, (&JobPlan, &JobResult))| {
            let moved = window.and_then(|window| window.moved_before.get(at));
            let before = moved.map_or(0, |moved| match flow {
                Flow::Read => moved.read_bytes,
                Flow::Write => moved.write_bytes,
            });
            let counts = job.engine.actual != "null" && is_chosen(job, result);
            if counts { flow.of(result).0.saturating_sub(before) } else { 0 }
        };
        each.map(of).sum()
    }

    /// Bytes that the process caused to be moved at storage in the window.
    fn caused_in_window(&self, flow: Flow) -> Option<u64> {
        match &self.counted.in_window {
            Some(window) => window.process.map(|[read, write]| match flow {
                Flow::Read => read,
                Flow::Write => write,
            }),
            None => self.caused(flow),
        }
    }

    /// The devices right under the files in the window.
    fn storage_in_window(&self) -> &[StorageReading] {
        self.counted.in_window.as_ref().map_or(self.storage(), |window| &window.storage)
    }

    /// The limits on directions in which the jobs move bytes.
    fn limits(&self) -> impl Iterator<Item = &IoLimit> {
        let moves = |limit: &&IoLimit| match limit.towards {
            Towards::Read => self.bytes(Flow::Read) > 0,
            Towards::Write => self.bytes(Flow::Write) > 0,
        };
        self.counted.limits.iter().filter(moves)
    }

    /// Whether no job goes through the page cache.
    fn all_direct(&self) -> bool {
        !self.moving().any(|(job, result)| result.passes_page_cache(job))
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
