//! The memory in which a job's bytes end.

use gpuio_base::catalog::{Backend, Calls, PathInfo};
use gpuio_base::units::human_bytes;
use gpuio_record::{Gpu, JobPlan, MemoryKind};

use super::{Facts, PlanError, feed};
use crate::spec::JobSpec;

/// The requested memory, else the path's own.
pub(super) fn resolve(requested: &JobSpec, path: &PathInfo) -> Result<MemoryKind, PlanError> {
    if let Some(why) = lacks(requested, path) {
        return Err(PlanError::usage(requested, "memory", why));
    }
    Ok(wanted(requested, path).or(path.memory.first().copied()).unwrap_or_default())
}

/// The kind of memory that was requested. gdsio's `-m 0` is its default, and says nothing of a type
/// that ends in host memory.
fn wanted(requested: &JobSpec, path: &PathInfo) -> Option<MemoryKind> {
    requested.memory.filter(|_| !is_gdsios_default(requested, path))
}

pub(super) fn is_gdsios_default(requested: &JobSpec, path: &PathInfo) -> bool {
    requested.is_gdsio() && !path.needs_gpu && requested.memory == Some(MemoryKind::Device)
}

/// Why a path's bytes can't end in the requested memory.
pub(super) fn lacks(requested: &JobSpec, path: &PathInfo) -> Option<String> {
    let kind = wanted(requested, path)?;
    if path.memory.contains(&kind) {
        return None;
    }
    let names: Vec<String> = path.memory.iter().map(ToString::to_string).collect();
    let (last, others) = names.split_last()?;
    let or = if others.is_empty() { "" } else { " or " };
    let names = format!("{}{or}{last}", others.join(", "));
    let name = path.name;
    let batches = path.backend == Backend::Cufile(Calls::Batch);
    if batches && matches!(kind, MemoryKind::Pinned | MemoryKind::Malloc | MemoryKind::Mmap) {
        return Some(format!(
            "path {name} ends in {names} memory, not in {kind}: NVIDIA's library takes batches on \
             host memory and fails them, or ends the process (seen with cuFile 1.15); take \
             transfer type 0, 5 or 7 for that memory, or leave out --memory"
        ));
    }
    Some(if path.needs_gpu {
        format!("path {name} ends in {names} memory, not in {kind}; leave out --memory")
    } else {
        format!("the {name} path ends in host memory: --memory={names}")
    })
}

/// Why a job of managed memory can't run on these GPUs.
pub(super) fn no_hints(path: &PathInfo, gpus: &[Gpu]) -> Option<String> {
    let managed = path.memory == [MemoryKind::Managed];
    let gpu = gpus.iter().find(|gpu| managed && gpu.managed_hints == Some(false))?;
    Some(format!(
        "path {} moves managed memory by hints, and GPU {} takes none (its attribute \
         CONCURRENT_MANAGED_ACCESS is 0, as under WSL and in some virtual machines)",
        path.name, gpu.index
    ))
}

/// Why jobs that run together can't have their buffers in this machine's memory: the kernel gives
/// out addresses for all of it, and ends the process when it touches them. Where no limit is known
/// there is none.
pub(super) fn too_much(jobs: &[JobPlan], facts: &Facts<'_>) -> Option<String> {
    let usable = facts.host.memory.usable_bytes?;
    let bytes = jobs.iter().map(buffers).fold(0, u64::saturating_add);
    if bytes <= usable {
        return None;
    }
    let group = facts.host.memory.cgroup.as_ref().filter(|group| group.limit_bytes == usable);
    let whence = group.map_or("the memory of this machine".to_owned(), |group| {
        format!("the limit of the control group, {}", group.path)
    });
    let keys = match jobs.iter().any(|job| feed::tier_bytes(job) > 0) {
        true => format!("{}, --readers", feed::TIER_KEY),
        false => "--threads".to_owned(),
    };
    Some(format!(
        "the buffers take {}, more than {}: {whence}; lower {keys}, --depth or --bs",
        human_bytes(bytes as f64),
        human_bytes(usable as f64)
    ))
}

/// Bytes of host memory that a job reads into or writes from, or keeps samples in.
fn buffers(job: &JobPlan) -> u64 {
    feed::tier_bytes(job).saturating_add(blocks(job))
}

fn blocks(job: &JobPlan) -> u64 {
    if !job.memory.is_host() || matches!(job.engine.actual.as_str(), "mmap") {
        return 0;
    }
    let block = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    block.saturating_mul(u64::from(job.depth)).saturating_mul(u64::from(job.threads))
}
