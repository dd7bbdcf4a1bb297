//! How often this process was forked: a child of `fork(2)` has copies of values that are its
//! parent's.
//!
//! CUDA does not survive a fork, which the transfers report. Registrations stay valid, and calls on
//! host memory work.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the first process and this one. Stored values show whether they are from before.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The fork generation of this process.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins the next generation, in a child.
pub(crate) fn advance() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
