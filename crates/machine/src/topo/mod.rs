//! Topology: which GPU, drive, array, network card and mount are near to each other.
//!
//! [`Topology::of`] is a pure function of a machine's facts, live or captured: devices, the route
//! between any two of them, which are near to which, and the tree from NUMA nodes down to devices.
//! [`explain()`] follows one route hop by hop. [`mod@format`] prints. An unknown fact stays
//! unknown with its reason, never a guess.
//!
//! - `graph` follows PCI functions up to their host bridge. If the kind of a port is not reported,
//!   its position decides, since upstream and downstream ports of switches alternate.
//! - `route` joins two such lists. The switches passed give the class by `nvidia-smi`'s names;
//!   ports missing in a cut listing make it unknown.
//! - The output of `nvidia-smi topo` fills in facts that are missing, is marked as printed, and is
//!   compared with the facts.

mod across;
mod affinity;
mod branch;
mod class;
mod climb;
mod coherent;
mod device;
mod explain;
pub mod format;
mod graph;
mod link;
mod route;
pub mod storage;
mod topology;

pub(crate) use affinity::node_text;
pub use affinity::{Affinity, Near, NearStorage};
pub use branch::{Branch, HostBridge, Knot, KnotKind};
pub use class::Class;
pub use climb::{Climb, Crossed, climb, slot};
pub use coherent::{Coherent, coherent};
pub use device::{Device, DeviceKind};
pub use explain::{Explanation, Hop, explain};
pub use link::Link;
pub(crate) use link::rate_text;
pub use route::{Evidence, Route};
pub use topology::{Printed, Topology};
