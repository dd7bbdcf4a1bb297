//! Evidence for the path that a job's bytes took: counters before, during and after a group of
//! jobs, and what follows from them.
//!
//! ```text
//!  Collector::begin    layout    what lies below the jobs' files; no counter
//!                      before    Snapshot
//!  Collector::look     before    again, where a start delay is over; then the device sampler's
//!                                thread begins, after a ramp with a Snapshot of its own
//!  Collector::end      after     Snapshot
//!                 ↓
//!             Readings { layout, before, counts, after, links, counted, series }
//!                 ↓ pure functions
//!  caches              page cache, holes and storage of each job
//!  prove               evidence entries and the verdict of each job
//!  restated            the same of a saved record, out of the readings in its evidence
//!  disagreements       reconciliation: where counters disagree with what the jobs moved
//!  add_series          the devices over time
//! ```
//!
//! A counter is read once per moment. The evidence entries, the verdict, `cache.storage`, the
//! warnings and the totals of the device table all get that value, so two tables of a record can
//! not contradict each other. A test counts how often each file is opened.
//!
//! | Counter | Read by | Consumers |
//! | --- | --- | --- |
//! | `/proc/self/io` | `snapshot` | `process_io`, `caches`, rules on storage |
//! | `/sys/dev/block/*/stat` | `gpuio-watch` | `block`, `caches`, rules on storage, series |
//! | `/proc/self/mountstats` | `gpuio-watch` | `nfs`, rule on the network, series |
//! | `/proc/net/dev`, RDMA ports | `gpuio-watch` | `nic`, rule on the network, series |
//! | nvidia-fs | `gpuio-watch` | `nvidia_fs`, series |
//! | cuFile's statistics | `snapshot` | `cufile_stats` |
//! | residency of the files | `snapshot` | `page_cache`, `caches` |
//! | PCIe of the jobs' GPUs | `pcie_meter` | `gpu_pcie`, rules on links, series |
//!
//! The first and the last sample of the series are those of the snapshots: the snapshot has
//! `gpuio-watch` read the devices, and hands the watcher to the sampler's thread in between. So the
//! sums over a series and those of the snapshots are one figure, and no counter of a device has a
//! second reader. The alternative, sums from the snapshot beside a series with ends of its own,
//! would leave the device table at other moments than the evidence.
//!
//! Order, and why:
//!
//! 1. `layout` finds holes, for which dirty pages are written back. It comes before every counter:
//!    that traffic is not the group's.
//! 2. Slow starts come next (NVML, threads, cuFile's statistics), so that the counters are read
//!    close to the clock. Residency costs a system call or a mapping per file: before the counters
//!    at the start, after them at the end.
//! 3. The counters, in one function (`snapshot`), on the run's thread.
//! 4. Verification begins after the second snapshot: its reads are in no counter.
//!
//! Two readers are apart. The PCIe meter is a thread: counters of 32 bits wrap in 68 ms, so two
//! readings can't do. Where its figure is known, it is the link's figure everywhere. The GPU that
//! `gpuio-watch` samples has clocks, power and memory in addition, and the PCIe rates of GPUs that
//! no job uses. gpuio's own counters (`own`) begin at 0 with each job and need no snapshot.
//!
//! Modules: `collector` (what is stateful), `window` (which times readings cover), `layout` (of
//! `block_stack`, `net_devices` and `content`),
//! `snapshot`, `sampler` and `series` (the devices during the run), `pcie_meter`; pure: `source`
//! (an evidence source is one file and one row), `verdict`, `reconcile` (a rule is one function and
//! one row), [`warn`]. Counters cover the process or a device, never a job.
//!
//! It moves no bytes, starts no workers, judges no speed and prints nothing.
//!
//! Threads: the run's thread calls everything and may block on kernel files, NVML, write-back and,
//! in [`Collector::end`], on a sample that is being taken. `gpuio-watch` and `gpuio-pcie` end with
//! the [`Collector`].

mod block_stack;
mod collector;
mod content;
mod group;
mod layout;
mod net_devices;
mod pcie_meter;
mod processors;
mod reconcile;
mod sampler;
mod series;
mod snapshot;
mod source;
mod verdict;
pub mod warn;
mod window;

pub use collector::{Collector, Setup};
pub use sampler::{DeviceSampler, hardware};
pub use snapshot::Readings;
pub(crate) use source::restated;

use group::by_foreign_library;

/// Opens the target of this name for reading, as it was checked; a reason where that fails.
pub type OpenFile<'a> = &'a dyn Fn(&str) -> Result<std::os::fd::OwnedFd, String>;

#[cfg(test)]
mod tests;
