//! Which device's context may reach which other device's memory.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::code::{Answer, INVALID_DEVICE, PEER_ACCESS_ALREADY_ENABLED, PEER_ACCESS_UNSUPPORTED};

/// The rights that were granted.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Whether devices can reach one another at all (`GPUIO_SOFT_PEER`).
    possible: bool,
    /// (who reaches, whose memory).
    granted: Mutex<BTreeSet<(u32, u32)>>,
}

impl Peers {
    pub(crate) fn new(possible: bool) -> Self {
        Self { possible, granted: Mutex::default() }
    }

    /// Whether one device can be given access to another's memory. None is its own peer.
    pub(crate) fn possible(&self, from: u32, to: u32) -> bool {
        self.possible && from != to
    }

    /// Gives `from` access to the memory of `to`.
    pub(crate) fn grant(&self, from: u32, to: u32) -> Answer<()> {
        if from == to {
            return Err(INVALID_DEVICE);
        }
        if !self.possible {
            return Err(PEER_ACCESS_UNSUPPORTED);
        }
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.insert((from, to)) { Ok(()) } else { Err(PEER_ACCESS_ALREADY_ENABLED) }
    }

    /// Whether `from` was given access to the memory of `to`.
    pub(crate) fn granted(&self, from: u32, to: u32) -> bool {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).contains(&(from, to))
    }
}
