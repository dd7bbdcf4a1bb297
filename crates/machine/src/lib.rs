//! Conclusions about a machine from its facts. Pure: facts come in, values and text go out; nothing
//! here reads the system, and all functions may be called from any thread.
//!
//! - [`topo`]: which devices are near to which, and by which route.
//! - [`pair`]: which storage and network card each GPU should use.
//! - [`flow`]: rates that the hardware should deliver, and the part that limits them.
//! - [`check`]: faults, their fixes, and the verdict on the paths of one mount and one GPU.
//!
//! Each uses only those before it, and `check` uses `topo` alone. An unknown fact stays unknown
//! with its reason.

pub mod check;
pub mod flow;
pub mod pair;
pub mod topo;
