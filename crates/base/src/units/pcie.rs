//! The rate of a PCIe link, by its speed and width.

/// Bytes per second in one direction that a PCIe link carries for packets, headers of the packets
/// included: what its line code, or its flits' own bytes, leave of the bits on the wire. Rounded
/// down. `mega_transfers` are millions of transfers per second of one lane (8000 for 8 GT/s).
/// `None` for a speed of 0 or above the fastest known here (128 GT/s), and where the product does
/// not fit.
///
/// Up to 5 GT/s 8 of 10 bits (8b/10b), up to 32 GT/s 128 of 130 (PCI Express Base Specification
/// 5.0, 4.2). From 64 GT/s on links carry flits of 256 bytes, of which 236 are packets: 6 are the
/// link's own (DLP), 8 a checksum, 6 for correction (PCI Express Base Specification 6.0, 4.2.3).
/// Tables that say 242 of 256 include the link's own bytes.
///
/// ```
/// assert_eq!(gpuio_base::units::pcie_bytes_per_second(8_000, 16), Some(15_753_846_153));
/// assert_eq!(gpuio_base::units::pcie_bytes_per_second(64_000, 1), Some(7_375_000_000));
/// ```
pub fn pcie_bytes_per_second(mega_transfers: u64, lanes: u64) -> Option<u64> {
    let (useful, of) = match mega_transfers {
        1..=5_000 => (8, 10),
        5_001..=32_000 => (128, 130),
        32_001..=128_000 => (236, 256),
        _ => return None,
    };
    let bits = u128::from(mega_transfers) * 1_000_000 * u128::from(lanes);
    u64::try_from(bits * useful / of / 8).ok()
}

/// The generation whose speed this is, or the next below: 3 for 8 GT/s. `None` below 2.5 GT/s.
pub fn pcie_generation(mega_transfers: u64) -> Option<u32> {
    let speeds = [(128_000, 7), (64_000, 6), (32_000, 5), (16_000, 4), (8_000, 3), (5_000, 2)];
    let first = [(2_500, 1)];
    let mut all = speeds.iter().chain(&first);
    all.find(|(speed, _)| *speed <= mega_transfers).map(|(_, generation)| *generation)
}

/// Millions of transfers per second of one lane of a generation: 8000 for 3. `None` for those not
/// known here.
pub fn pcie_mega_transfers(generation: u32) -> Option<u64> {
    let speeds = [2_500, 5_000, 8_000, 16_000, 32_000, 64_000, 128_000];
    speeds.get(usize::try_from(generation.checked_sub(1)?).ok()?).copied()
}

/// A lane's speed in millions of transfers per second, by its figure in GT/s: `2.5`, `32`. `None`
/// where it is none, or has more than three decimals.
pub fn parse_transfers(figure: &str) -> Option<u64> {
    let (whole, part) = figure.trim().split_once('.').unwrap_or((figure.trim(), "0"));
    let whole: u64 = whole.parse().ok()?;
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(thousandths)
}
