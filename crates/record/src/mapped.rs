//! Files that a GPU reads or writes in the page cache by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory mapped and page-locked for a job, the cost of that outside the clock, and the bytes
/// of it that the GPU read and wrote, ramp included. One registration of each file serves all
/// threads of the job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MappedResult {
    /// Files that were mapped.
    pub files: u32,
    /// Bytes of them that the job may read or write.
    pub mapped_bytes: u64,
    /// Bytes of page cache that were pinned while the job ran: whole pages.
    pub pinned_bytes: u64,
    /// Share of the mapped bytes that the page cache held before; what it did not hold was read
    /// from storage in `map_ns`. Absent where that could not be queried.
    pub resident_before: Option<f64>,
    /// Time to map the files and to bring every page into the page cache and the page table,
    /// nanoseconds; of a job that writes, to allocate the pages.
    pub map_ns: u64,
    /// Time to register them with the driver, nanoseconds.
    pub register_ns: u64,
    /// Time to unregister and unmap them, nanoseconds; absent where that was refused.
    pub unregister_ns: Option<u64>,
    /// Why they could not be unregistered; absent where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unregister_failed: Option<String>,
    /// CPU time of all that, nanoseconds.
    pub cpu_ns: u64,
    /// Bytes that the GPU read out of the page cache by a kernel of gpuio.
    pub by_kernel_bytes: u64,
    /// Bytes that it read there by copies of the driver.
    pub by_copy_bytes: u64,
    /// Bytes that the GPU wrote into the page cache by a kernel of gpuio.
    #[serde(default)]
    pub written_by_kernel_bytes: u64,
    /// Bytes that it wrote there by copies of the driver.
    #[serde(default)]
    pub written_by_copy_bytes: u64,
    /// Mapped bytes of a job that writes whose pages the files may have lost before its end
    /// (truncation, holes), so that the files lack what the GPU wrote there; absent where that
    /// could not be queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// After how many reads of each byte all that has paid, against another job of the run; absent
    /// where it is not known.
    #[serde(default)]
    pub break_even: Option<BreakEven>,
    /// Why it is not known; absent where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_even_unknown: Option<String>,
}

/// Reads (writes) of each mapped byte after which mapping and registering has cost no more than
/// reading (writing) by another path: the cost per mapped byte over what each byte takes less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEven {
    /// The job that moves the same blocks of the same files by another path through the page
    /// cache; of several the fastest.
    pub against: String,
    /// By time; absent where that job is not slower.
    pub reads_by_time: Option<f64>,
    /// By CPU time; absent where that job takes no more, or where either CPU time is not known.
    pub reads_by_cpu: Option<f64>,
}
