//! The block layer under the files: `stat` of each device, members of arrays and volumes included.

use std::collections::BTreeMap;

use gpuio_host::Root;
use gpuio_host::block::{self, BlockSample};
use gpuio_record::JobPlan;
use gpuio_record::facts::{BlockFacts, BlockKind, DeviceNumber};

use super::mounts;
use super::verdict::{Flow, Observed};
use super::{EvidenceSource, EvidenceSourceEntry, Observation, Share, Subject, size};

pub(super) const ENTRY: EvidenceSourceEntry = EvidenceSourceEntry {
    name: "block",
    source: "/sys/dev/block/*/stat, all processes together",
    first: |context| {
        let (root, jobs) = (context.root, context.jobs);
        let stacks: Vec<Result<Stack, String>> = jobs.iter().map(|job| stack(root, job)).collect();
        let numbers =
            stacks.iter().flatten().flat_map(|stack| stack.tops.iter().chain(&stack.leaves));
        let before = numbers.map(|device| (device.number, sample(root, device.number))).collect();
        Box::new(Block { stacks, before, after: BTreeMap::new() })
    },
};

type Samples = BTreeMap<DeviceNumber, Option<BlockSample>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Device {
    name: String,
    number: DeviceNumber,
    kind: BlockKind,
}

/// The devices under a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stack {
    /// Those that file systems or the job itself sit on, each once.
    tops: Vec<Device>,
    /// Those at the bottom, each once: the same devices where nothing is stacked.
    leaves: Vec<Device>,
}

struct Block {
    /// Per job; a reason where some file has no block device.
    stacks: Vec<Result<Stack, String>>,
    before: Samples,
    after: Samples,
}

fn sample(root: &Root, number: DeviceNumber) -> Option<BlockSample> {
    block::sample(root, number).ok().flatten()
}

fn stack(root: &Root, job: &JobPlan) -> Result<Stack, String> {
    let mut stack = Stack::default();
    for storage in mounts::storages(root, job) {
        let Some(device) = &storage.device else {
            let kind = storage.mount.map_or_else(|| "a file system".to_owned(), |m| m.fs_type);
            return Err(format!("{kind} has no block device under it"));
        };
        add(&mut stack.tops, device);
        leaves(&mut stack.leaves, device);
    }
    if stack.tops.is_empty() { Err("the job has no files".to_owned()) } else { Ok(stack) }
}

fn add(devices: &mut Vec<Device>, facts: &BlockFacts) {
    let device = Device { name: facts.name.clone(), number: facts.device, kind: facts.kind };
    if !devices.contains(&device) {
        devices.push(device);
    }
}

fn leaves(devices: &mut Vec<Device>, facts: &BlockFacts) {
    if facts.members.is_empty() {
        add(devices, facts);
    }
    for member in &facts.members {
        leaves(devices, member);
    }
}

fn names(devices: &[Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    names.join("+")
}

impl Block {
    /// Bytes that these devices moved together; `None` when one is gone or was reset.
    fn moved(&self, devices: &[Device], flow: Flow) -> Option<u64> {
        let of = |device: &Device| {
            let before = self.before.get(&device.number)?.as_ref()?;
            let moved = before.delta(self.after.get(&device.number)?.as_ref()?)?;
            Some(if flow == Flow::Read { moved.read_bytes } else { moved.write_bytes })
        };
        devices.iter().map(of).sum()
    }

    /// The devices' sectors as counted, summed.
    fn reading(samples: &Samples, devices: &[Device], flow: Flow) -> Option<String> {
        let of = |device: &Device| {
            let sample = samples.get(&device.number)?.as_ref()?;
            Some(if flow == Flow::Read { sample.read_sectors } else { sample.write_sectors })
        };
        let sectors: u64 = devices.iter().map(of).sum::<Option<u64>>()?;
        Some(format!("{sectors} sectors of 512 B ({})", names(devices)))
    }

    fn shares_a_device(&self, stack: &Stack, other: usize) -> bool {
        let Ok(other) = &self.stacks[other] else { return false };
        other.leaves.iter().any(|device| stack.leaves.contains(device))
    }
}

impl EvidenceSource for Block {
    fn again(&mut self, root: &Root) {
        self.after = self.before.keys().map(|number| (*number, sample(root, *number))).collect();
    }

    fn observe(&self, subject: &Subject<'_>) -> Observation {
        let stack = match &self.stacks[subject.at] {
            Ok(stack) => stack,
            Err(why) => return Observation::none(why),
        };
        let flow = subject.flow;
        let (leaves, tops) = (self.moved(&stack.leaves, flow), self.moved(&stack.tops, flow));
        let Some(moved) = leaves else {
            return Observation::none(format!("{}: counts gone or reset", names(&stack.leaves)));
        };
        let covers = |at| self.shares_a_device(stack, at);
        let (of, at_leaves) = subject.share(moved, covers);
        let at_top = tops.and_then(|moved| subject.share(moved, covers).1);
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
            before: Self::reading(&self.before, &stack.leaves, flow),
            after: Self::reading(&self.after, &stack.leaves, flow),
            moved: Some(moved),
            of: Some(of),
            observed: share.map_or(Observed::Nothing, Observed::Storage),
            why: why(stack, moved, tops.filter(|_| stacked), of, share),
        }
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
        text.push_str("; a virtual device: memory or a network may lie behind it");
    }
    text
}

#[cfg(test)]
#[path = "block_test.rs"]
mod test;
