//! Uses that the manual leaves undefined, and that hardware's driver often dies of.
//!
//! A handle of its is a pointer, which it follows: one of a thing that was destroyed leads anywhere
//! (CUDA driver API manual, `cuCtxDestroy`). An answer here, however stern, would let programs pass
//! that crash on hardware, now or one day.

use std::fmt;
use std::io::Write as _;

/// Prints what the program did wrong and ends the process (SIGABRT).
pub(crate) fn ends(what: fmt::Arguments<'_>) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "gpuio software GPU: {what}; that is undefined, hardware may crash, and this process ends"
    );
    std::process::abort()
}
