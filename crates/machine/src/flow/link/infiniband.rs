//! InfiniBand.

use super::{megabits, share};

/// Bytes of data per second of an InfiniBand port by the rate in Mbit/s that the kernel prints
/// (100 000 for EDR, 200 000 for HDR, 400 000 for NDR): that rate has its line code (64b/66b,
/// 8b/10b below FDR) taken off already. Packets carry 4096 bytes with 26 of their own: local
/// header 8, base header 12, checksums 4 and 2 (InfiniBand Architecture Specification 1.4, volume
/// 1, 5.2).
pub fn infiniband(rate_megabits: u64) -> f64 {
    megabits(rate_megabits) * share(4096, 26)
}
