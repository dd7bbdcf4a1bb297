//! The block layer under the files: `stat` of each device, members of arrays and volumes included.

use gpuio_host::block::BlockSample;
use gpuio_record::facts::BlockKind;
use gpuio_watch::Counters;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::block_stack::{Device, Stack, change, ways};
use crate::evidence::group::Flow;
use crate::evidence::verdict::{Observed, Share};

pub(super) const SOURCE: Source =
    Source { name: "block", source: "/sys/dev/block/*/stat, all processes together", observe };

fn names(devices: &[Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.join("+")
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
