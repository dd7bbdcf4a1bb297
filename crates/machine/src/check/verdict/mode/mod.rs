//! Data paths between storage and a GPU: one per file, one row each in [`MODES`].

mod compat;
mod host;
mod initiated;
mod nvidia_fs;
mod own;
mod p2pdma;
mod rdma;
mod shared;

use super::{Need, Pair};

/// A data path between storage and a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    pub name: &'static str,
    pub is: &'static str,
    /// Where its needs are from.
    pub source: &'static str,
    /// The needs for a pair; the mode works where all of them are met.
    pub needs: fn(&Pair<'_>) -> Vec<Need>,
}

/// All modes: direct ones first.
pub static MODES: &[Mode] = &[
    nvidia_fs::MODE,
    p2pdma::MODE,
    rdma::MODE,
    compat::MODE,
    own::MODE,
    initiated::MODE,
    host::MODE,
];
