//! One file per verb.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod gdsio;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod show;
pub(crate) mod topo;
