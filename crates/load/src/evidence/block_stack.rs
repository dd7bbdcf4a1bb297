//! The block devices under files, members of arrays and volumes included, and their counts.

use gpuio_host::block::BlockSample;
use gpuio_record::facts::{BlockCounters, BlockFacts, BlockKind, TargetStorage};
use gpuio_watch::{Counters, way_to};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// The kernel's name.
    pub(crate) name: String,
    pub(crate) kind: BlockKind,
    /// Whether it has a cache that loses data without power, where that is known.
    pub(crate) volatile_cache: Option<bool>,
}

/// The devices under a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Those that file systems or the job itself sit on, each once.
    pub(crate) tops: Vec<Device>,
    /// Those at the bottom, each once: the same devices where nothing is stacked.
    pub(crate) leaves: Vec<Device>,
}

/// The devices under a job's files; a reason where some file has none.
pub(crate) fn stack(storages: &[TargetStorage]) -> Result<Stack, String> {
    let mut stack = Stack::default();
    for storage in storages {
        let Some(device) = &storage.device else {
            let mount = storage.mount.as_ref();
            let kind = mount.map_or("a file system", |mount| mount.fs_type.as_str());
            return Err(format!("{kind} has no block device under it"));
        };
        add(&mut stack.tops, device);
        add_leaves(&mut stack.leaves, device);
    }
    if stack.tops.is_empty() { Err("the job has no files".to_owned()) } else { Ok(stack) }
}

/// Adds a device that is not there yet.
pub(crate) fn add(devices: &mut Vec<Device>, facts: &BlockFacts) {
    if devices.iter().all(|device| device.name != facts.name) {
        let (name, kind) = (facts.name.clone(), facts.kind);
        devices.push(Device { name, kind, volatile_cache: facts.volatile_cache() });
    }
}

/// Adds a device and all below it.
pub(crate) fn add_all(devices: &mut Vec<Device>, facts: &BlockFacts) {
    add(devices, facts);
    facts.members.iter().for_each(|member| add_all(devices, member));
}

pub(crate) fn add_leaves(devices: &mut Vec<Device>, facts: &BlockFacts) {
    if facts.members.is_empty() {
        add(devices, facts);
    }
    facts.members.iter().for_each(|member| add_leaves(devices, member));
}

/// The work of a device between two readings; `None` when it is gone or was reset.
///
/// Older kernels count NVMe's own multipath, which drives over TCP and RDMA use too, at its paths
/// only (`nvme0c0n1`; seen with Linux 6.1): there the paths' sum is the namespace's traffic.
pub(crate) fn change(before: &Counters, after: &Counters, name: &str) -> Option<BlockCounters> {
    let of = |name: &str| before.block(name)?.delta(after.block(name)?);
    let mut head = of(name)?;
    let ways: Vec<BlockCounters> = ways(after, name).filter_map(|(way, _)| of(way)).collect();
    let sum = |field: fn(&BlockCounters) -> u64| ways.iter().map(field).sum::<u64>();
    head.reads = head.reads.max(sum(|way| way.reads));
    head.read_bytes = head.read_bytes.max(sum(|way| way.read_bytes));
    head.writes = head.writes.max(sum(|way| way.writes));
    head.write_bytes = head.write_bytes.max(sum(|way| way.write_bytes));
    Some(head)
}

/// The paths of an NVMe namespace with several, where they are counted.
pub(crate) fn ways<'a>(
    counters: &'a Counters,
    name: &'a str,
) -> impl Iterator<Item = &'a (String, BlockSample)> {
    counters.block.iter().filter(move |(way, _)| way_to(way).is_some_and(|of| of == name))
}
