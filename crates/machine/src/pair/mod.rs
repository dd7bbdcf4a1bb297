//! Assigns storage and network cards to GPUs, suggests how arrays should be regrouped, and gives
//! start values.
//!
//! [`pair()`] is a pure function of a machine's facts and topology: nothing is read, written or
//! run. [`mod@format`] prints the answer and writes its job file. Unknown facts are reported as
//! unknown; an unknown route counts as farther than any known one.
//!
//! - `store` lists what can be assigned and in which order: data mounts, network mounts, raw
//!   drives, the system's disk.
//! - `distance` is how far each is from each GPU.
//! - `assign` solves the assignment exactly, as a flow of least cost. Costs are compared part by
//!   part (covered GPUs, classes, evenness, hops, order), so no weights had to be invented and
//!   ties are always resolved alike.
//! - `raw` suggests arrays over drives that nothing uses, `mount_lines` writes mounts of NFS.
//! - `regroup` splits arrays, `links` counts who shares a link, `start` gives threads and depth.
//!
//! - `hosts` puts the pairings of several hosts side by side and writes their job file.
//!
//! The `cli` builds streams from the pairs for `flow` and sets its answer here
//! (`Pairing::set_expected`): the two modules do not use each other. docs/plan.md has the
//! reasons.

mod answer;
mod assign;
mod distance;
mod ends;
pub mod format;
mod hosts;
mod links;
mod load;
mod mount_lines;
mod nics;
mod pairing;
mod raw;
mod reason;
mod regroup;
mod start;
mod store;
mod wanted;

pub use answer::{
    By, Given, Group, NearNic, NewArrays, NotUsed, Pair, PairExpected, Pairing, Regroup,
    SharedLink, Start, StoreKind, Unused, When,
};
pub use ends::{Ends, ends};
pub use hosts::{HostPlan, HostsPlan, JobFileRefusal, Mounted, hosts_document, hosts_job_file};
pub use load::{Direction, Load};
pub use pairing::{pair, second_choice};
pub use wanted::{DeviceAbsent, Wanted};
