//! The block layer under the files: `stat` of each device, members of arrays and volumes included.

use gpuio_host::block::BlockSample;
use gpuio_record::facts::{BlockCounters, BlockFacts, BlockKind, TargetStorage};
use gpuio_watch::{Counters, way_to};

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::Flow;
use crate::evidence::verdict::{Observed, Share};

pub(super) const SOURCE: Source =
    Source { name: "block", source: "/sys/dev/block/*/stat, all processes together", observe };

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// The kernel's name.
    pub(crate) name: String,
    kind: BlockKind,
    /// Whether it has a cache that loses data without power, where that is known.
    pub(crate) volatile_cache: Option<bool>,
}

/// The devices under a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Those that file systems or the job itself sit on, each once.
    tops: Vec<Device>,
    /// Those at the bottom, each once: the same devices where nothing is stacked.
    leaves: Vec<Device>,
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

fn add_leaves(devices: &mut Vec<Device>, facts: &BlockFacts) {
    if facts.members.is_empty() {
        add(devices, facts);
    }
    facts.members.iter().for_each(|member| add_leaves(devices, member));
}

fn names(devices: &[Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.join("+")
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
fn ways<'a>(
    counters: &'a Counters,
    name: &'a str,
) -> impl Iterator<Item = &'a (String, BlockSample)> {
    counters.block.iter().filter(move |(way, _)| way_to(way).is_some_and(|of| of == name))
}

/// Bytes that these devices moved together; `None` when one is gone or was reset.
fn moved(before: &Counters, after: &Counters, devices: &[Device], flow: Flow) -> Option<u64> {
    let of = |device: &Device| {
        let moved = change(before, after, &device.name)?;
        Some(if flow == Flow::Read { moved.read_bytes } else { moved.write_bytes })
    };
    devices.iter().map(of).sum()
}

/// The devices' sectors as counted, summed.
fn reading(counters: &Counters, devices: &[Device], flow: Flow) -> Option<String> {
    let of = |device: &Device| {
        let at = |sample: &BlockSample| {
            if flow == Flow::Read { sample.read_sectors } else { sample.write_sectors }
        };
        let by_ways: u64 = ways(counters, &device.name).map(|(_, sample)| at(sample)).sum();
        Some(at(counters.block(&device.name)?).max(by_ways))
    };
    let sectors: u64 = devices.iter().map(of).sum::<Option<u64>>()?;
    Some(format!("{sectors} sectors of 512 B ({})", names(devices)))
}

fn shares_a_device(stack: &Stack, other: &Result<Stack, String>) -> bool {
    let Ok(other) = other else { return false };
    other.leaves.iter().any(|device| stack.leaves.contains(device))
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let stack = match &one.layout().stack {
        Ok(stack) => stack,
        Err(why) => return Observation::none(why),
    };
    let flow = one.flow;
    let (before, after) = (&one.readings.before.devices, &one.readings.after.devices);
    let leaves = moved(before, after, &stack.leaves, flow);
    let tops = moved(before, after, &stack.tops, flow);
    let Some(moved) = leaves else {
        return Observation::none(format!("{}: counts gone or reset", names(&stack.leaves)));
    };
    let covers = |at: usize| shares_a_device(stack, &one.readings.layout.jobs[at].stack);
    let (of, at_leaves) = one.share(moved, covers);
    let at_top = tops.and_then(|moved| one.share(moved, covers).1);
    let stacked = stack.leaves != stack.tops;
    let share = at_leaves.or_else(|| {
        // Members of an array move more than the array: copies and parity. A loop device's
        // disk is anybody's, and its file may sit in the page cache.
        let array =
            |device: &Device| matches!(device.kind, BlockKind::Md | BlockKind::DeviceMapper);
        let whole = stacked && moved > of && stack.tops.iter().all(array);
        at_top.filter(|share| whole && *share == Share::All)
    });
    Observation {
        before: reading(before, &stack.leaves, flow),
        after: reading(after, &stack.leaves, flow),
        moved: Some(moved),
        of: Some(of),
        observed: share.map_or(Observed::Nothing, Observed::Storage),
        why: why(stack, moved, tops.filter(|_| stacked), of, share),
    }
}

fn why(stack: &Stack, moved: u64, top: Option<u64>, of: u64, share: Option<Share>) -> String {
    let mut text = format!("{} moved {}, gpuio {}", names(&stack.leaves), size(moved), size(of));
    if let Some(top) = top {
        text.push_str(&format!("; {} above it {}", names(&stack.tops), size(top)));
    }
    if share.is_none() && moved > of {
        text.push_str("; what is over is read-ahead, journals, or other processes");
    } else if share.is_none() {
        text.push_str("; that leaves this job's part open");
    }
    if stack.leaves.iter().any(|device| device.kind == BlockKind::Virtual) {
        text.push_str("; a virtual device: its storage may be memory or a network");
    }
    text
}

#[cfg(test)]
mod tests;
