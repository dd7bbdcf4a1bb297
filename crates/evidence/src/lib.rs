//! Evidence for the path that a job's bytes took: counters before and after a group, and what
//! follows from them.
//!
//! - [`proof`]: evidence entries and the verdict.
//! - [`around`]: page cache, holes and devices of each job ([`gpuio_record::CacheReading`]).
//! - [`sampler`], [`series`]: the devices below the jobs, sampled while they run.
//! - [`reconcile`]: disagreements between the counters of devices and those of gpuio.
//!
//! What may not live here: moving bytes, starting workers, printing.

pub mod around;
pub mod proof;
pub mod reconcile;
pub mod sampler;
pub mod series;

/// Opens the target of this name for reading, as it was checked; a reason where that fails.
pub type OpenFile<'a> = &'a dyn Fn(&str) -> Result<std::os::fd::OwnedFd, String>;

#[cfg(test)]
#[path = "../../load/src/fixture_test.rs"]
mod fixture_test;
