//! PCI Express.

use super::share;

/// The payload that is taken for granted where `MaxPayload` is not known, in bytes: what server
/// processors and GPUs agree on as a rule.
pub const PAYLOAD_TAKEN: u64 = 256;

/// Bytes of data per second that packets of `payload_bytes` carry over a link of this speed
/// (millions of transfers per second and lane) and width; `None` where
/// [`gpuio_base::units::pcie_bytes_per_second`] knows none.
///
/// Each packet with data brings 24 bytes of its own: 4 of framing and sequence number, a header of
/// 16 with an address of 64 bits, a checksum of 4 (PCI Express Base Specification 5.0, 2.2.1 and
/// 3.6; an optional end-to-end checksum would be 4 more). In flits framing and checksum belong to
/// the flit and 16 remain (6.0, 2.2.1.2). Acknowledgements and flow control, a few per cent by the
/// traffic of the other direction, are not counted.
pub fn pcie(mega_transfers: u64, lanes: u64, payload_bytes: u64) -> Option<f64> {
    let raw = gpuio_base::units::pcie_bytes_per_second(mega_transfers, lanes)?;
    let overhead = if mega_transfers > 32_000 { 16 } else { 24 };
    let raw = raw as f64;
    Some(raw * share(payload_bytes, overhead))
}
