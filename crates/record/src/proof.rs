//! Which way the bytes took, and who says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked, what was got, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The path that was asked for, and what it means for the bytes.
    pub asked: String,
    /// What came up: path, engines, and how the kernel holds the descriptors.
    pub got: String,
    /// The way that the bytes took.
    pub verdict: Verdict,
    /// Whether the verdict is the way that was asked for.
    pub as_asked: bool,
    /// The verdict and what it rests on, in one plain sentence.
    pub sentence: String,
    /// The witnesses, reads before writes, each with its readings.
    pub witnesses: Vec<Witness>,
}

/// The way that a job's bytes took, as far as its witnesses support one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// As printed: `direct`, `bounce (host)`, `bounce (GPU 1)`, `page cache`, `holes, no device`,
    /// `mixed` or `unknown`, where needed with what served the bytes: `bounce (host), from page
    /// cache`.
    pub words: String,
    /// Between where the bytes were kept and the memory that was asked for.
    pub route: Route,
    /// What delivered or took the bytes.
    pub source: Source,
}

/// Stops between a file's bytes and the memory that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Route {
    /// None: the device moved the bytes into or out of the memory that was asked for.
    Direct,
    /// The page cache, from which the CPU copied into the host memory that was asked for.
    HostMemory,
    /// A buffer in host memory on the way to or from GPU memory.
    BounceHost,
    /// Memory of another GPU on the way.
    BounceGpu {
        /// Driver index of that GPU.
        gpu: u32,
    },
    /// More than one of these: part of the bytes, or a direction, by another than the rest.
    Mixed,
    /// The witnesses disagree, or none could tell.
    Unknown,
}

/// What delivered the bytes of reads, or took those of writes, while the job ran.
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
    /// Nothing: nearly all of what was read are holes or extents that were never written, whose
    /// zeros the kernel makes.
    Holes,
    /// The witnesses disagree, or none could tell.
    Unknown,
}

/// One witness of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
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
    /// Bytes that it saw move between the two.
    pub moved: Option<u64>,
    /// Bytes that gpuio moved meanwhile and that `moved` is compared with: the job's own, or
    /// those of all jobs of the group that the counter covers. Ramp included.
    pub of: Option<u64>,
    /// Whether it speaks for the path that was asked for.
    pub says: Says,
    /// Why it says so.
    pub why: String,
}

/// What a witness says of the path that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// Its reading is that of the path.
    For,
    /// Its reading is not that of the path.
    Against,
    /// Its reading fits either, or there is none.
    CantTell,
}
