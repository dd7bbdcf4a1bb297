//! Path `mapped`: what of its files is mapped and pinned, and whether it may be.

use std::ops::Range;

use gpuio_base::catalog::PathInfo;
use gpuio_base::units::human_bytes;
use gpuio_record::facts::HostFacts;
use gpuio_record::{Gpu, JobPlan};

use super::Facts;

/// The part of available memory that may be pinned: what is pinned can't be reclaimed, and others
/// need memory too.
const SHARE: u64 = 2;

/// Why a path that has the GPU read a mapping can't run on these GPUs.
pub(super) fn no_register(path: &PathInfo, gpus: &[Gpu]) -> Option<String> {
    let refuses = |gpu: &&Gpu| path.uses_mapping() && gpu.read_only_register == Some(false);
    let gpu = gpus.iter().find(refuses)?;
    Some(format!(
        "path {} registers files that are mapped read-only and relies on their pages being pinned, \
         which GPU {} does not offer (its attribute READ_ONLY_HOST_REGISTER_SUPPORTED is 0, or \
         PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES is 1); use --path=cached or gather",
        path.name, gpu.index
    ))
}

/// The part of each of its targets that a job on such a path maps: from the first byte of the first
/// region to the last byte of the last, so that each is registered once for all threads.
pub fn mapped_parts(job: &JobPlan) -> Vec<(u32, Range<u64>)> {
    let mut parts: Vec<(u32, Range<u64>)> = Vec::new();
    for region in job.workers.iter().flat_map(|worker| &worker.regions) {
        let (from, to) = (region.offset, region.end());
        match parts.iter_mut().find(|(target, _)| *target == region.target) {
            Some((_, part)) => *part = part.start.min(from)..part.end.max(to),
            None => parts.push((region.target, from..to)),
        }
    }
    parts
}

/// Why jobs that run together may not pin what they map. Where no limit is known there is none.
pub(super) fn too_much(jobs: &[JobPlan], facts: &Facts<'_>) -> Option<String> {
    let maps = |job: &&JobPlan| {
        facts.catalog.path(&job.path.choice.actual).is_some_and(PathInfo::uses_mapping)
    };
    let pinned = jobs.iter().filter(maps).flat_map(mapped_parts);
    let bytes = pinned.map(|(_, part)| part.end - part.start).fold(0, u64::saturating_add);
    let (available, whence) = available(facts.host)?;
    if bytes <= available / SHARE {
        return None;
    }
    let [bytes, half, available] = [bytes, available / SHARE, available].map(size);
    Some(format!(
        "path mapped would pin {bytes}; the limit is {half}, half of {available} ({whence}); lower \
         --size or --threads, name fewer files, or use --path=cached"
    ))
}

/// Memory that could be had, and which figure that is.
fn available(host: &HostFacts) -> Option<(u64, &'static str)> {
    let memory = &host.memory;
    let known = [
        (memory.available_bytes, "MemAvailable of /proc/meminfo"),
        (memory.cgroup.as_ref().map(|group| group.limit_bytes), "the control group's limit"),
        (memory.usable_bytes, "the memory of the machine"),
    ];
    known.into_iter().filter_map(|(bytes, whence)| Some((bytes?, whence))).min()
}

fn size(bytes: u64) -> String {
    human_bytes(bytes as f64)
}
