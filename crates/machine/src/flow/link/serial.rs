//! SATA and SAS.

use super::megabits;

/// Bytes per second of a SATA link of this signalling rate in Mbit/s (1500, 3000, 6000): 8 of 10
/// bits (Serial ATA specification 3.x, 7.1, 8b/10b). Frames carry up to 8192 bytes with a header
/// and checksum of 8, which is not counted. Half duplex: data goes in one direction at a time.
pub fn sata(signalling_megabits: u64) -> f64 {
    megabits(signalling_megabits) * 0.8
}

/// Bytes per second of one SAS lane of this signalling rate in Mbit/s: 8 of 10 bits up to 12 Gb/s
/// (SAS-3), 128 of 150 for 22.5 Gb/s (SAS-4, Serial Attached SCSI SPL-4). Full duplex.
pub fn sas(signalling_megabits: u64) -> f64 {
    let code = if signalling_megabits > 12_000 { 128.0 / 150.0 } else { 0.8 };
    megabits(signalling_megabits) * code
}
