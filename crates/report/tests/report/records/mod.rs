//! Hand-made records: a quick run on the host path, a staged run where much went wrong, and one
//! on the software GPU.

mod beside;
mod build;
mod ceilings;
mod hand_made;

pub(crate) use beside::beside;
pub(crate) use build::{block, job, path, record, result};
pub(crate) use ceilings::ceilings;
pub(crate) use hand_made::{host_quick, many_jobs, software, staged_in_trouble};
