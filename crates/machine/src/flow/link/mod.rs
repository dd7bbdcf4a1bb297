//! The rates of links: line code and the packets' own bytes are taken off the wire's bits. All
//! rates are bytes per second in one direction.

mod ethernet;
mod infiniband;
mod pcie;
mod serial;

pub use ethernet::{Transport, ethernet};
pub use infiniband::infiniband;
pub use pcie::{PAYLOAD_TAKEN, pcie};
pub use serial::{sas, sata};

/// Bytes of packets that are data: `payload` of `payload + overhead`.
pub(crate) fn share(payload: u64, overhead: u64) -> f64 {
    let (payload, overhead) = (payload as f64, overhead as f64);
    payload / (payload + overhead)
}

/// Signalling in Mbit/s as bytes per second, 8 bits to a byte.
pub(crate) fn megabits(megabits: u64) -> f64 {
    megabits as f64 * 125_000.0
}
