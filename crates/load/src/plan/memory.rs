//! The memory in which a job's bytes end.

use gpuio_gpu::MemKind;
use gpuio_io::path;
use gpuio_record::{Gpu, MemoryKind};
use gpuio_spec::{JobSpec, MemoryAsk};

use super::PlanError;

fn kind_of(ask: MemoryAsk) -> MemKind {
    match ask {
        MemoryAsk::Device => MemKind::Device,
        MemoryAsk::Vmm => MemKind::Vmm,
        MemoryAsk::Pinned => MemKind::Pinned,
        MemoryAsk::Malloc => MemKind::Malloc,
        MemoryAsk::Mmap => MemKind::Mmap,
        MemoryAsk::Managed => MemKind::Managed,
    }
}

/// What was requested, else the path's own.
pub(super) fn resolve(
    requested: &JobSpec,
    path: &path::PathEntry,
) -> Result<MemoryKind, PlanError> {
    if let Some(why) = lacks(requested, path) {
        return Err(PlanError::usage(requested, "memory", why));
    }
    let requested = requested.memory.map(kind_of);
    Ok(recorded(requested.or(path.memory.first().copied()).unwrap_or_default()))
}

/// Why a path's bytes can't end in the requested memory.
pub(super) fn lacks(requested: &JobSpec, path: &path::PathEntry) -> Option<String> {
    let kind = kind_of(requested.memory?);
    if path.memory.contains(&kind) {
        return None;
    }
    let names: Vec<String> = path.memory.iter().map(ToString::to_string).collect();
    let (last, others) = names.split_last()?;
    let or = if others.is_empty() { "" } else { " or " };
    let names = format!("{}{or}{last}", others.join(", "));
    let name = path.name;
    let batches = path.backend == path::Backend::Cufile(path::Calls::Batch);
    if batches && matches!(kind, MemKind::Pinned | MemKind::Malloc | MemKind::Mmap) {
        return Some(format!(
            "path {name} ends in {names} memory, not in {kind}: NVIDIA's library takes batches on \
             host memory and fails them, or ends the process (seen with cuFile 1.15); take \
             transfer type 0, 5 or 7 for that memory, or leave out --memory"
        ));
    }
    Some(if path.needs_gpu {
        format!("path {name} ends in {names} memory, not in {kind}; leave out --memory")
    } else {
        format!("the {name} path ends in host memory: --memory {names}")
    })
}

/// Why a job of managed memory can't run on these GPUs.
pub(super) fn no_hints(path: &path::PathEntry, gpus: &[Gpu]) -> Option<String> {
    let managed = path.memory == [MemKind::Managed];
    let gpu = gpus.iter().find(|gpu| managed && gpu.managed_hints == Some(false))?;
    Some(format!(
        "path {} moves managed memory by hints, and GPU {} takes none (its attribute \
         CONCURRENT_MANAGED_ACCESS is 0, as under WSL and in some virtual machines)",
        path.name, gpu.index
    ))
}

fn recorded(kind: MemKind) -> MemoryKind {
    match kind {
        MemKind::Device => MemoryKind::Device,
        MemKind::Vmm => MemoryKind::Vmm,
        MemKind::Pinned => MemoryKind::Pinned,
        MemKind::Malloc => MemoryKind::Malloc,
        MemKind::Mmap => MemoryKind::Mmap,
        MemKind::Managed => MemoryKind::Managed,
    }
}
