//! Ethernet.

use super::{megabits, share};

/// The protocol that carries file data over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP over IPv4 with time stamps.
    Tcp,
    /// RDMA: RoCE version 2 on Ethernet.
    Rdma,
}

/// Bytes of data per second of an Ethernet port of this rate in Mbit/s (as named: 10 000 for
/// 10GBASE, line code taken off already) at this MTU.
///
/// On the wire each frame brings 38 bytes: preamble 8, header 14, checksum 4, gap 12 (IEEE 802.3,
/// 3.1.1 and 4.4.2). In the frame TCP takes 52 of the MTU: IPv4 20 (RFC 791), TCP 20 (RFC 9293)
/// and time stamps 12 (RFC 7323). RoCE version 2 sends payloads of 256 to 4096 bytes, the largest
/// that fits the MTU, with 44 bytes in the frame: IPv4 20, UDP 8, base header 12, checksum 4
/// (InfiniBand Architecture Specification, annex A17); the 16 bytes that only the first packet of
/// a message has are not counted, nor are the requests of NFS.
pub fn ethernet(rate_megabits: u64, mtu_bytes: u64, transport: Transport) -> f64 {
    const FRAME: u64 = 38;
    const TCP: u64 = 52;
    const ROCE: u64 = 44;
    let raw = megabits(rate_megabits);
    match transport {
        Transport::Tcp => {
            let payload = mtu_bytes.saturating_sub(TCP);
            raw * share(payload, TCP + FRAME)
        }
        Transport::Rdma => {
            let fits = |payload: &&u64| **payload + ROCE <= mtu_bytes;
            let payload = [4096, 2048, 1024, 512].iter().find(fits).copied().unwrap_or(256);
            raw * share(payload, ROCE + FRAME)
        }
    }
}
