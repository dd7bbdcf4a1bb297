//! The kernels that this driver can run: one file each, one line in the table.
//!
//! Those of the data rule are written from the rule, not from the CPU's functions or the CUDA
//! source, so that the tests compare independent readings of one rule.

mod busy;
mod check;
mod digest;
mod fill;
mod gather;
mod initiated;
mod resident;
mod resident_copy;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::code::Answer;
use crate::reach::Reach;

/// A kernel's software version. All arguments are `u64`, in the order of the PTX entry.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) args: usize,
    pub(crate) run: fn(&Reach<'_>, &[u64]) -> Answer<()>,
    /// How long the device is at it, for kernels whose time is what they are for. The others take
    /// what they take.
    pub(crate) lasts: Option<fn(&Reach<'_>, &[u64]) -> Duration>,
}

const fn kernel(
    name: &'static str,
    args: usize,
    run: fn(&Reach<'_>, &[u64]) -> Answer<()>,
) -> Kernel {
    Kernel { name, args, run, lasts: None }
}

static KERNELS: [Kernel; 9] = [
    kernel("gpuio_fill", 5, fill::run),
    kernel("gpuio_check", 6, check::run),
    kernel("gpuio_digest", 2, digest::run),
    kernel("gpuio_gather", 2, gather::run),
    kernel("gpuio_resident_copy", 11, resident_copy::run),
    kernel("gpuio_resident", 10, resident::run),
    kernel("gpuio_initiated", 7, initiated::run),
    Kernel { lasts: Some(busy::lasts), ..kernel("gpuio_busy_compute", 3, busy::compute) },
    Kernel { lasts: Some(busy::lasts), ..kernel("gpuio_busy_memory", 6, busy::memory) },
];

/// How many kernels run that occupy the whole device.
static FULL: AtomicU32 = AtomicU32::new(0);

/// Whether other kernels fill the device.
fn others_run() -> bool {
    FULL.load(Ordering::Acquire) > 0
}

/// A kernel that fills the device runs, until this is dropped.
pub(crate) struct Filling(());

impl Filling {
    pub(crate) fn now() -> Self {
        FULL.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        FULL.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The software version of the entry with this name.
pub(crate) fn named(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// The eight bytes of the data rule from byte `8 * number` of a file on: splitmix64's output for
/// the state `key + number * 0x9E3779B97F4A7C15`, with the number of its chunk's first word where
/// `repeats` says that this one repeats it.
fn word(key: u64, repeats: u64, number: u64) -> [u8; 8] {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let chunk = 1 << (repeats & 63);
    let number = match (repeats, number % chunk) {
        (1.., within) if within >= repeats >> 8 => number - within,
        _ => number,
    };
    let a = key.wrapping_add(STEP.wrapping_mul(number));
    let b = (a >> 30 ^ a).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b >> 27 ^ b).wrapping_mul(0x94D0_49BB_1331_11EB);
    (c >> 31 ^ c).to_le_bytes()
}

/// Calls `each` for every word that the `len` bytes from byte `offset` of a file on lie in: with
/// the word's number, the first byte of it that is in the range, how many are, and where in the
/// range they begin.
fn words(offset: u64, len: usize, mut each: impl FnMut(u64, usize, usize, usize)) {
    let mut at = 0;
    // A remainder of 8 fits.
    let mut from = usize::from(offset.to_le_bytes()[0] & 7);
    let mut number = offset >> 3;
    while at < len {
        let count = (8 - from).min(len - at);
        each(number, from, count, at);
        at += count;
        from = 0;
        number += 1;
    }
}
