//! One file per verb.

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod gds_stats;
pub(crate) mod gdscheck;
pub(crate) mod gdsio;
pub(crate) mod generate;
pub(crate) mod list;
pub(crate) mod network;
pub(crate) mod plan;
mod plan_expect;
mod plan_hosts;
pub(crate) mod prefetch;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod topo;
pub(crate) mod why;
pub(crate) mod workload;
