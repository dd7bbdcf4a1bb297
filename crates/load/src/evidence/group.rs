//! The facts about the jobs of a group that evidence and rules need.

use gpuio_record::{JobPlan, JobResult, LibraryBytes, MemoryKind, StorageReading};

use crate::evidence::verdict::PathKind;

/// A direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Read,
    Write,
}

pub(crate) const FLOWS: [Flow; 2] = [Flow::Read, Flow::Write];

impl Flow {
    /// `read` or `write`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Flow::Read => "read",
            Flow::Write => "write",
        }
    }

    /// Bytes and I/Os of a job's file leg, ramp included, as counters have them.
    pub(crate) fn of(self, result: &JobResult) -> (u64, u64) {
        let leg = &result.file_leg;
        match self {
            Flow::Read => (leg.read_bytes, leg.read_ios),
            Flow::Write => (leg.write_bytes, leg.write_ios),
        }
    }

    /// Bytes and requests of a device.
    pub(crate) fn at(self, device: &StorageReading) -> (u64, u64) {
        match self {
            Flow::Read => (device.read_bytes, device.reads),
            Flow::Write => (device.write_bytes, device.writes),
        }
    }
}

/// Whether GPU memory is no memory of the CPU's: on machines with 64-bit Arm CPUs it may be
/// (NVLink-C2C), where a POSIX call can reach it without a buffer between.
pub(crate) const APART: bool = cfg!(target_arch = "x86_64");
pub(crate) const NOT_APART: &str =
    "on this kind of machine POSIX calls may reach GPU memory by themselves";

/// Whether a foreign library moves the job's bytes.
pub(crate) fn by_foreign_library(job: &JobPlan) -> bool {
    PathKind::of(&job.path.choice.actual) == PathKind::Foreign
}

/// Whether the bytes were requested in GPU memory.
pub(crate) fn on_gpu(job: &JobPlan) -> bool {
    let host = matches!(job.memory, MemoryKind::Pinned | MemoryKind::Malloc | MemoryKind::Mmap);
    !job.gpus.is_empty() && !host
}

/// The counts of gpuio's library core for one direction of a job, where it moved the bytes.
pub(crate) fn by_core(result: &JobResult, flow: Flow) -> Option<LibraryBytes> {
    result.library.map(|library| match flow {
        Flow::Read => library.read,
        Flow::Write => library.write,
    })
}

/// Whether O_DIRECT was in force. gpuio's library core reads what the page cache holds from there,
/// and large blocks that it does not hold past it, whichever way the file is open: it counts both.
pub(crate) fn direct_in_force(job: &JobPlan, result: &JobResult, flow: Flow) -> bool {
    match by_core(result, flow) {
        Some(core) => core.direct_bytes > 0 && core.cached_bytes <= core.direct_bytes / 20,
        None => !result.passes_page_cache(job),
    }
}
