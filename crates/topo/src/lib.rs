//! Topology: which GPU, drive, array, network card and mount belong together.
//!
//! [`Topology::of`] is a pure function of a machine's facts, live or captured: devices, the route
//! between any two of them, who is near to whom, and the tree from NUMA nodes down to devices.
//! [`explain()`] follows one pair hop by hop. [`mod@format`] prints. What facts do not tell is
//! unknown with its reason, never a guess.

mod affinity;
mod branch;
mod class;
mod climb;
mod device;
mod explain;
pub mod format;
mod graph;
mod link;
mod route;
mod topology;

pub use affinity::{Affinity, Near, NearStorage};
pub use branch::{Branch, HostBridge, Knot, KnotKind};
pub use class::Class;
pub use climb::{Climb, Crossed, climb, slot};
pub use device::{Device, DeviceKind};
pub use explain::{Explanation, Hop, explain};
pub use link::Link;
pub use route::{Evidence, Route};
pub use topology::{Printed, Topology};
