//! One run on many processes (ranks) of one or more hosts.

use gpuio_base::stat::Percentile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::direction::TimeSpan;
use crate::expected::Expected;
use crate::proof::Proof;
use crate::result::EndedHow;
use crate::stop::Stop;

/// Which of several ranks a record is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankOf {
    /// Its rank.
    pub rank: u32,
    /// Ranks of the run.
    pub ranks: u32,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
}

/// The results of the ranks of a run, together and each by itself. In a record with this, `plan`,
/// `host` and `storage` are those of rank 0, and results are of all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RanksResult {
    /// Ranks that were started.
    pub ranks: u32,
    /// The program that started them: `Open MPI`, `MPICH`, `PMIx`, `Slurm`.
    pub launcher: String,
    /// The MPI library with its version.
    pub library: String,
    /// The hosts, in the order of their first ranks.
    pub hosts: Vec<RankHost>,
    /// Every group of jobs that all ranks finished.
    pub groups: Vec<RankGroup>,
    /// One row per rank, in order.
    pub rows: Vec<RankRow>,
    /// The evidence for the data paths of jobs: of one rank for each verdict on a host, at most
    /// [`MOST_PROOFS`](crate::merge::MOST_PROOFS); empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<RankProof>,
}

/// The data path of a job on one rank, with the readings of the rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankProof {
    /// The job's name.
    pub job: String,
    /// The host.
    pub host: String,
    /// The rank.
    pub rank: u32,
    /// Further ranks of the host with the same verdict on the job. Their readings are not kept.
    pub alike: Vec<u32>,
    /// The verdict, its sentence and the readings.
    pub proof: Proof,
}

/// One host with its ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankHost {
    /// Its name (uname(2)).
    pub name: String,
    /// Its ranks.
    pub ranks: Vec<u32>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processor model.
    pub cpu: Option<String>,
    /// Bytes that its ranks moved, both directions, all jobs.
    pub bytes: u64,
    /// Verdicts on the data paths of its ranks' jobs, each once.
    pub verdicts: Vec<String>,
    /// Block devices that its ranks used.
    pub devices: Vec<String>,
    /// Warnings about its ranks' results.
    pub warnings: u32,
    /// The expected rate of each job on this host while all ranks of all hosts run; empty where a
    /// rank was lost, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<HostJobExpected>,
}

/// The expected rate of a job on one host, reads and writes together, compared with the measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostJobExpected {
    /// The job's name.
    pub job: String,
    /// The expected rate of the ranks of this host together.
    #[serde(flatten)]
    pub expected: Expected,
    /// Bytes per second that they reached, each over its own time.
    pub measured_bytes_per_s: f64,
    /// That in per cent of the expected, not rounded; `null` where this is not known.
    pub percent: Option<f64>,
}

/// One group of jobs on all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankGroup {
    /// Group number.
    pub group: u32,
    /// From the first rank's start to the last one's, on one clock: when the last worker of each
    /// rank began.
    pub start_skew_ns: u64,
    /// The skew is known this well: the largest error bound of two clock offsets, added.
    pub skew_bound_ns: u64,
    /// Its jobs.
    pub jobs: Vec<RankJobRates>,
}

/// Rates of one job on all ranks, reads and writes together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankJobRates {
    /// Name.
    pub job: String,
    /// The condition that ended it on the ranks; absent in records made before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<RanksEnd>,
    /// From the first begin until the first rank was done.
    pub until_first: RateOver,
    /// While all ranks ran: from the last begin until the first rank was done; absent where there
    /// was no such time.
    pub while_all: Option<RateOver>,
    /// From the first begin until the last rank was done.
    pub until_last: RateOver,
    /// The ranks that were slowest, where they reached less than nine tenths of the median, at
    /// most eight.
    pub stragglers: Vec<Straggler>,
}

/// The condition that ends a job on several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RanksEnd {
    /// A time: all ranks stop together.
    Stonewall,
    /// Bytes: each rank moves all of its own, and the last one is waited for.
    WearOut,
    /// On each rank, whichever of the two comes first.
    First,
    /// A time, after which all threads go on to the largest number of bytes that one had reached.
    StonewallWearOut,
}

impl RanksEnd {
    /// The condition that ends a job that stops so.
    pub fn of(stop: &Stop) -> RanksEnd {
        match (stop.runtime_ns, stop.bytes_per_thread) {
            (Some(_), None) if stop.wear_out => RanksEnd::StonewallWearOut,
            (Some(_), None) => RanksEnd::Stonewall,
            (None, _) => RanksEnd::WearOut,
            (Some(_), Some(_)) => RanksEnd::First,
        }
    }

    /// In a table.
    pub fn words(self) -> &'static str {
        match self {
            RanksEnd::Stonewall => "stonewall",
            RanksEnd::WearOut => "wear-out",
            RanksEnd::First => "either",
            RanksEnd::StonewallWearOut => "stonewall, wear-out",
        }
    }
}

/// Bytes over a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateOver {
    /// The time, nanoseconds.
    pub time_ns: u64,
    /// Bytes that all ranks moved in it.
    pub bytes: u64,
    /// The bytes are known this well: what was moved between two readings of the counters around
    /// the bounds of the time. 0 where the bounds are those of all ranks.
    pub bytes_bound: u64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

/// A slow rank, and where to look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Straggler {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Its GPUs.
    pub gpus: Vec<String>,
    /// Its block devices, or what its mount is of.
    pub devices: Vec<String>,
    /// Its network cards: those that lead to its servers; empty without one, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
    /// Its rate, over its own time.
    pub bytes_per_s: f64,
    /// That over the median of all ranks.
    pub of_median: f64,
}

/// One rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankRow {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Its number among the ranks of its host.
    pub local_rank: u32,
    /// Its process.
    pub pid: u32,
    /// Nanoseconds that its clock was ahead of rank 0's.
    pub clock_offset_ns: i64,
    /// The offset is at most this wrong.
    pub clock_bound_ns: u64,
    /// Its GPUs: index, name and PCI address.
    pub gpus: Vec<String>,
    /// NUMA nodes of its threads.
    pub numa_nodes: Vec<u32>,
    /// Its directory, or its first file or device.
    pub target: String,
    /// Block devices behind it, or what its mount is of.
    pub devices: Vec<String>,
    /// Network cards that lead to its servers; empty without one, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
    /// How it ended; absent where nothing was received of it.
    pub ended: Option<EndedHow>,
    /// Why it ended early, or why nothing was received of it.
    pub error: Option<String>,
    /// Where it saved its own results, until the merged record was saved.
    pub saved: Option<String>,
    /// Its jobs.
    pub jobs: Vec<RankJob>,
}

/// One job on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankJob {
    /// Name.
    pub job: String,
    /// Bytes, both directions.
    pub bytes: u64,
    /// I/Os that completed.
    pub ios: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes per second over its own time.
    pub bytes_per_s: f64,
    /// Its time on rank 0's clock.
    pub measured: Option<TimeSpan>,
    /// 99th percentile of the latencies of its reads, or of its writes where it only writes.
    pub p99_ns: Option<u64>,
    /// Largest latency of the same.
    pub max_ns: Option<u64>,
    /// CPUs kept busy.
    pub cores_busy: f64,
    /// Microseconds of CPU per MiB.
    pub us_per_mib: Option<f64>,
    /// The verdict on its data path.
    pub verdict: Option<String>,
    /// The verdict and its basis in one sentence; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// Whether verification found nothing wrong; absent where there was none.
    pub verified: Option<bool>,
}

impl RankJob {
    /// A percentile of the latencies, if it is the one that ranks have.
    pub fn percentile(&self, at: Percentile) -> Option<u64> {
        self.p99_ns.filter(|_| at == Percentile::TAIL)
    }
}
