//! The whole answer: values alone, as JSON has them.

use crate::topo::{Class, Link, node_text};
use gpuio_record::Expected;
use serde::Serialize;

use crate::pair::Load;

/// Which storage each GPU should use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pairing {
    /// Version of this form.
    pub gpuio_plan: u32,
    pub load: Load,
    /// One for each GPU, in the driver's order; without GPUs one for each store, to host memory.
    pub pairs: Vec<Pair>,
    /// The expected rate of all pairs together while all run; `null` until it was computed.
    pub total: Option<Expected>,
    /// Links above switches or cards that several pairs use.
    pub shared_links: Vec<SharedLink>,
    /// Arrays that would better be several.
    pub regroup: Vec<Regroup>,
    /// Arrays that would suit drives on which nothing was found; `null` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_arrays: Option<NewArrays>,
    /// Commands that mount the network storage of the pairs, for a person to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mount_commands: Vec<String>,
    /// Cards near to GPUs whose network mounts use another route.
    pub unused_nics: Vec<Unused>,
    /// Storage that no pair uses.
    pub not_used: Vec<NotUsed>,
    /// The same with the next kind of storage; `null` unless only that has an expected figure.
    pub second_choice: Option<Box<Pairing>>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
    /// Processors of the machine that may be used.
    #[serde(skip)]
    pub(crate) all_cpus: Option<usize>,
}

/// A GPU and its storage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The GPU; `null` for host memory.
    pub gpu: Option<String>,
    /// Its PCI address; `null` where not known.
    pub pci: Option<String>,
    /// NUMA node of the GPU, or without one of the storage; `null` where not known.
    pub node: Option<u32>,
    /// NUMA nodes that the driver calls near to the GPU, where those are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near_nodes: Vec<u32>,
    /// Processors of that node or those nodes, ascending; `null` where not known.
    pub cpus: Option<Vec<u32>>,
    /// The stores that its job opens.
    pub stores: Vec<Given>,
    /// Where its job opens local storage: the network mounts that it should use otherwise.
    pub network: Vec<Given>,
    /// Network cards near to it.
    pub nics: Vec<NearNic>,
    /// Why this storage, in one sentence.
    pub why: String,
    /// Threads and depth to start with.
    pub start: Start,
    /// Its expected rate while all pairs run; `null` until it was computed.
    pub expected: Option<PairExpected>,
}

/// The expected rates of a pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairExpected {
    /// The data path that was assumed.
    pub by: By,
    pub expected: Expected,
}

/// How bytes get from storage to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Straight between drive or card and GPU.
    Direct,
    /// To host memory, and for a GPU on from there.
    HostMemory,
}

/// Storage of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Given {
    /// Mount point, or `/dev/NAME`.
    pub name: String,
    pub kind: StoreKind,
    /// Where data files go; `null` for what is opened raw.
    pub directory: Option<String>,
    /// Block devices right below, or the kind of file system.
    pub on: Vec<String>,
    /// Drives below, by name.
    pub drives: Vec<String>,
    /// The card that leads to it.
    pub nic: Option<String>,
    /// Rate of that card's fastest port, in Mbit/s; `null` where it is not known.
    pub nic_megabits: Option<u64>,
    /// Class of the nearest drive, or of the card; `null` where it is not known.
    pub class: Option<Class>,
    pub farthest: Option<Class>,
    /// Drives of the nearest class.
    pub near: usize,
    /// Drives, or cards. A drive with several ways to it counts once.
    pub of: usize,
    /// Other GPUs that have it too.
    pub shared_with: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// A file system on block devices of this machine.
    Mount,
    /// A file system that is reached over a network card.
    NetworkMount,
    /// An array without a file system.
    Array,
    /// A drive without a file system.
    Drive,
}

/// Storage that no pair uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotUsed {
    pub name: String,
    pub why: String,
}

impl Pair {
    /// Its NUMA node or nodes in words: `0`, `0-1`, or `?` where not known.
    pub(crate) fn node_text(&self) -> String {
        node_text(self.node, &self.near_nodes)
    }
}

/// Threads and depth to start with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Start {
    /// Threads of the pair, over all of its storage.
    pub threads: u32,
    /// I/Os in flight per thread, on paths that take a depth (`host`, `staged`). Path `gather`
    /// keeps batches of its own in flight, `gds` one I/O per thread.
    pub depth: u32,
    /// Threads where each has one I/O in flight and no more, as in `gdsio` (`num_threads`) and on
    /// path `gds`: so many that all of `in_flight` are used, up to the 128 of NVIDIA's guide.
    /// Such threads wait in their call, so that there may be more of them than processors.
    pub sync_threads: u32,
    /// I/Os in flight that the storage wants of this pair.
    pub in_flight: u64,
    /// Where these are from.
    pub why: String,
}

/// A link that several pairs use at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedLink {
    /// Function at its lower end: a switch or a card.
    pub above: String,
    /// As it is now; `null` where not known.
    pub link: Option<Link>,
    /// The GPUs.
    pub gpus: Vec<String>,
    /// On which path bytes meet there.
    pub when: When,
    /// The most that could go through it in one direction while all pairs run, in bytes per second:
    /// as fast as the links of drives and cards allow, each shared evenly by the pairs that have
    /// it; `null` where one is not known.
    pub need_bytes_per_second: Option<u64>,
    /// Whether it carries all of that; `null` where one of the two is not known.
    pub enough: Option<bool>,
}

/// On which path bytes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// On every path, also directly from drive to GPU.
    Always,
    /// Only when bytes go through host memory.
    ByHostMemory,
}

/// A network card near to a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearNic {
    /// Name: `mlx5_0`, or the interface.
    pub name: String,
    /// Interfaces of the network stack: `ib0`.
    pub interfaces: Vec<String>,
    pub class: Class,
    /// Whether its link is up; `null` where not known.
    pub up: Option<bool>,
}

/// A card near to GPUs over which nothing is mounted, while these GPUs have no network mount that
/// is as near.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unused {
    /// Name of the card.
    pub nic: String,
    pub interfaces: Vec<String>,
    /// The GPUs.
    pub gpus: Vec<String>,
}

/// An array that would better be several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Regroup {
    /// Its kernel name.
    pub array: String,
    pub mount: Option<String>,
    /// Its level, as the kernel names it; `null` where not known.
    pub level: Option<String>,
    /// The arrays that should replace it, in the order of their GPUs.
    pub groups: Vec<Group>,
    /// Why it should stay as it is all the same.
    pub hindrance: Option<String>,
    /// The expected rate of all GPUs together after the change; `null` until it was computed, and
    /// with a hindrance.
    pub expected: Option<PairExpected>,
    /// Commands for a person to run. gpuio never runs any of them. Empty with a hindrance.
    pub commands: Vec<String>,
}

/// Arrays over drives on which nothing was found, one for each group of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewArrays {
    /// The arrays, in the order of their GPUs.
    pub groups: Vec<Group>,
    /// Commands for a person to run, which gpuio never runs; none where it is not known whether a
    /// drive holds data.
    pub commands: Vec<String>,
}

/// An array for one group of GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Its kernel name; of one drive alone, that drive's.
    pub device: String,
    pub mount: Option<String>,
    /// Block devices that it is made of.
    pub members: Vec<String>,
    /// GPUs that should use it.
    pub gpus: Vec<String>,
    /// Class of the farthest pair of the two; `null` where one is not known.
    pub class: Option<Class>,
}
