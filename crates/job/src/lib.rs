//! A job, from what was requested to what each thread does next.
//!
//! - [`spec`]: the request: job files, keys, gdsio's command line.
//! - [`plan`]: the request on a machine, resolved.
//! - [`workload`]: which block is next, and when; replays.
//! - [`sweep`]: points of a sweep, and when a point needs no more runs.
//!
//! Pure: no file, no clock and no environment; the caller passes values in.

pub mod plan;
pub mod spec;
pub mod sweep;
pub mod workload;
