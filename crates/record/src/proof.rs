//! The data path of a job and the evidence for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{DirectMode, JobPlan};
use crate::result::JobResult;

/// The requested data path, the actual one, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The requested path, and what it means for the bytes.
    #[serde(alias = "asked")]
    pub requested: String,
    /// The choice that ran: path, engines, and the flags that the kernel reports for the
    /// descriptors.
    #[serde(alias = "got")]
    pub actual: String,
    /// The data path that the bytes took.
    pub verdict: Verdict,
    /// Whether the verdict is the requested path.
    #[serde(alias = "as_asked")]
    pub as_requested: bool,
    /// The verdict and its basis in one sentence.
    pub sentence: String,
    /// The evidence with its readings, reads before writes.
    #[serde(alias = "witnesses")]
    pub evidence: Vec<Evidence>,
}

impl Proof {
    /// The choice that ran, in words.
    pub fn actual_path(job: &JobPlan, result: &JobResult) -> String {
        let mut engines: Vec<&str> =
            result.engine.iter().map(|engine| engine.actual.as_str()).collect();
        engines.dedup();
        let held = match result.direct_actual {
            DirectMode::Direct => "every descriptor has O_DIRECT",
            DirectMode::Buffered if result.reads_around_cache() => {
                "descriptors without O_DIRECT, and the core's own with it"
            }
            DirectMode::Buffered => "descriptors without O_DIRECT",
        };
        format!("{}, engine {}, {held}", job.path.choice.actual, engines.join("+"))
    }

    /// Whether the bytes took the requested path; `None` where that is not proved: the evidence is
    /// inconclusive, or a part of it supports what another part contradicts.
    pub fn is_as_requested(&self) -> Option<bool> {
        let Verdict { route, source, .. } = self.verdict;
        let unknown = route == Route::Unknown || source == Source::Unknown;
        let any = |how| self.evidence.iter().any(|one| one.assessment == how);
        let against = any(Assessment::Contradicts) && !any(Assessment::Supports);
        let open = unknown && !self.as_requested && !against;
        (!open).then_some(self.as_requested)
    }

    /// The same of several: one that did not decides, then one that is not proved.
    pub fn are_as_requested<'a>(proofs: impl Iterator<Item = &'a Proof>) -> Option<bool> {
        let all: Vec<Option<bool>> = proofs.map(Proof::is_as_requested).collect();
        [Some(false), None].into_iter().find(|one| all.contains(one)).unwrap_or(Some(true))
    }
}

/// The data path of a job's bytes, as far as the evidence supports one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// As printed: `direct`, `bounce (host)`, `bounce (GPU 1)`, `page cache`, `holes, no device`,
    /// `from page cache, no host copy`, `mixed` or `unknown`, where needed with what served the
    /// bytes: `bounce (host), from page cache`.
    pub words: String,
    /// The route between the stored bytes and the requested memory.
    pub route: Route,
    /// The source or sink of the bytes.
    pub source: Source,
}

impl Verdict {
    /// The verdict on a job that reads, writes or does both, with its words.
    pub fn new(route: Route, source: Source, reads: bool, writes: bool) -> Verdict {
        Verdict { words: printed(route, source, reads, writes), route, source }
    }
}

/// The verdict as it is shown with the number.
fn printed(route: Route, source: Source, reads: bool, writes: bool) -> String {
    let toward = match (reads, writes) {
        (true, false) => "from ",
        (false, true) => "to ",
        _ => "",
    };
    let stop = match route {
        Route::Unknown => return "unknown".to_owned(),
        Route::Direct => return "direct".to_owned(),
        Route::Mixed => return "mixed".to_owned(),
        Route::HostMemory => {
            return match source {
                Source::Mixed => "mixed".to_owned(),
                Source::StorageThroughPageCache => format!("page cache, {toward}storage"),
                Source::PageCache => "page cache".to_owned(),
                Source::Holes => "holes, no device".to_owned(),
                Source::Storage | Source::Unknown => "unknown".to_owned(),
            };
        }
        Route::Mapped => return format!("{toward}page cache, no host copy"),
        Route::BounceHost => "bounce (host)".to_owned(),
        Route::BounceGpu { gpu } => format!("bounce (GPU {gpu})"),
    };
    match source {
        Source::Storage => stop,
        Source::StorageThroughPageCache => format!("{stop}, through page cache"),
        Source::PageCache => format!("{stop}, {toward}page cache"),
        Source::Mixed => format!("{stop}, mixed"),
        Source::Holes => format!("{stop}, from holes"),
        Source::Unknown => format!("{stop}, source unknown"),
    }
}

/// Intermediate memory between a file's bytes and the requested memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Route {
    /// None: the device moved the bytes directly into or out of the requested memory.
    Direct,
    /// The page cache, from which the CPU copied into the requested host memory.
    HostMemory,
    /// A buffer in host memory on the route to or from GPU memory.
    BounceHost,
    /// None but the page cache: the GPU read its pages itself.
    Mapped,
    /// Memory of another GPU on the route.
    BounceGpu {
        /// Driver index of that GPU.
        gpu: u32,
    },
    /// More than one of these: part of the bytes, or a direction, by another than the rest.
    Mixed,
    /// The evidence disagrees, or none is conclusive.
    Unknown,
}

/// The source of the bytes of reads, or the sink of those of writes, while the job ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Storage, around the page cache.
    Storage,
    /// Storage, and through the page cache.
    StorageThroughPageCache,
    /// The page cache: storage moved less than a twentieth of the bytes.
    PageCache,
    /// Part storage, part page cache or holes.
    Mixed,
    /// Nothing: nearly all bytes read lie in holes or in extents that were never written; the
    /// kernel makes their zeros.
    Holes,
    /// The evidence disagrees, or none is conclusive.
    Unknown,
}

/// The evidence of one source for one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Name: `own`, `process_io`, `block`, `nfs`, `nic`, `page_cache`, `cufile_stats`,
    /// `cufile_properties`, `nvidia_fs`, `gpu_pcie`.
    pub name: String,
    /// `read` or `write`.
    pub direction: String,
    /// Where its readings are from.
    pub source: String,
    /// The reading before the clock started; absent when there was none.
    pub before: Option<String>,
    /// The reading after the clock stopped; absent when there was none.
    pub after: Option<String>,
    /// Bytes that the source counted between the two readings.
    #[serde(alias = "moved")]
    pub observed_bytes: Option<u64>,
    /// Bytes that gpuio moved in the same time, to compare with `observed_bytes`: the job's own,
    /// or those of all jobs of the group that the counter covers. The ramp is included.
    #[serde(alias = "of")]
    pub expected_bytes: Option<u64>,
    /// Whether it supports the requested path.
    #[serde(alias = "says")]
    pub assessment: Assessment,
    /// The reason for the assessment.
    pub why: String,
}

/// The meaning of a piece of evidence for the requested path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    /// The reading is the one expected of this path.
    #[serde(alias = "for")]
    Supports,
    /// The reading is not the one expected of this path.
    #[serde(alias = "against")]
    Contradicts,
    /// The reading fits several paths, or there is none.
    #[serde(alias = "cant_tell")]
    Inconclusive,
}
