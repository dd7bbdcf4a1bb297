//! What a group's jobs say they moved, held against what devices counted at the same time.
//!
//! Pure: a rule sees plan, results and counts, and says where they disagree by more than its
//! tolerance. Where a count is absent, a rule says nothing: unknown is no disagreement. A new
//! rule is one file here and one row in [`RULES`]; docs/reconcile.md lists them with tolerances.
//!
//! Counters cover devices and the process, never a job: what a rule finds is a job's only where the
//! job was alone in its group.

mod array;
mod counted;
mod depth;
mod gpu;
mod network;
mod others;
mod page_cache;
mod paths;
mod read_ahead;
mod requests;

use gpuio_record::{DirectMode, JobPlan, JobResult, StorageReading, WarningKind};

pub use counted::Counted;

/// One kind of disagreement: findings with the index of the job they are about, or none of all.
type Rule = fn(&GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)>;

/// All rules, in the order of findings.
const RULES: &[Rule] = &[
    page_cache::find,
    read_ahead::find,
    requests::find,
    others::find,
    array::find,
    paths::find,
    depth::find,
    gpu::find,
    network::find,
];

/// A device below this moved so little that nothing is said of it: journals, logs and metadata of
/// a machine at rest are a few MiB in a minute.
const NOISE_BYTES: u64 = 4 << 20;
/// Below this, parts of an array or paths of a device may be unequal by chance: that is 64 blocks
/// of 1 MiB, or 512 chunks of 128 KiB.
const FEW_BYTES: f64 = (64_u64 << 20) as f64;

/// What rules look at: one group.
#[derive(Debug)]
pub struct GroupContext<'a> {
    /// The plan of each job.
    pub jobs: &'a [JobPlan],
    /// Results in the same order.
    pub results: &'a [JobResult],
    /// What devices counted; nothing where nothing was sampled.
    pub counted: &'a Counted,
}

/// All findings.
pub fn find(seen: &GroupContext<'_>) -> Vec<(Option<usize>, WarningKind)> {
    RULES.iter().flat_map(|rule| rule(seen)).collect()
}

/// A direction of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Read,
    Write,
}

const FLOWS: [Flow; 2] = [Flow::Read, Flow::Write];

impl Flow {
    fn name(self) -> &'static str {
        match self {
            Flow::Read => "read",
            Flow::Write => "write",
        }
    }

    /// Bytes and I/Os of a job's file leg, ramp included, as counters see them.
    fn of(self, result: &JobResult) -> (u64, u64) {
        let leg = &result.file_leg;
        match self {
            Flow::Read => (leg.read_bytes, leg.read_ios),
            Flow::Write => (leg.write_bytes, leg.write_ios),
        }
    }

    /// Bytes and requests of a device.
    fn at(self, device: &StorageReading) -> (u64, u64) {
        match self {
            Flow::Read => (device.read_bytes, device.reads),
            Flow::Write => (device.write_bytes, device.writes),
        }
    }
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

/// Whether a job's bytes pass the page cache.
fn cached(job: &JobPlan, result: &JobResult) -> bool {
    result.direct_actual == DirectMode::Buffered || job.engine.actual == "mmap"
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of bytes, not negative and far below 2^63"
)]
fn whole(figure: f64) -> u64 {
    figure.round().max(0.0) as u64
}

#[expect(clippy::cast_precision_loss, reason = "bytes for a ratio or a rate")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod test;
