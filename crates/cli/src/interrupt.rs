//! Ctrl-C: the first ends the run with partial results, the second ends the program.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. A second signal exits at once with code 1.
/// If a handler can't be set, the signal keeps its default action, which ends the program. The flag
/// is for all runs of the process: a signal between two runs ends the next.
pub(crate) fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(FLAG.get_or_init(register))
}

fn register() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the exit handler checks the flag before this signal sets it.
        let shutdown =
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop));
        if shutdown.is_ok() {
            let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
        }
    }
    stop
}
