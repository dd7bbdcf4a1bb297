//! The load generator: from what was asked to what happened.
//!
//! [`plan`] resolves a `Spec` against facts into a `Plan` with nothing left to default; [`run`]
//! carries it out on pinned worker threads and returns the results. The only room that spawns
//! workers. Prints nothing.

pub(crate) mod ceiling;
pub mod dataset;
pub mod direct_try;
pub mod live_targets;
pub mod machine;
pub mod pace;
pub mod pattern;
pub mod plan;
mod proof;
mod reconcile;
pub mod run;
