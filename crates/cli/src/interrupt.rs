//! Signals that end a run: the first ends it with partial results, a second Ctrl-C the program.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. A second SIGINT or SIGTERM exits at once
/// with code 1; a second SIGHUP does not, since a terminal that closes may send one from the kernel
/// and one from each program between (a shell, tmux). If a handler can't be set, the signal keeps
/// its default action, which ends the program. The flag is for all runs of the process: a signal
/// between two runs ends the next.
pub(crate) fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(FLAG.get_or_init(register))
}

fn register() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the exit handler checks the flag before this signal sets it.
        let shutdown =
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&asked));
        if shutdown.is_ok() {
            let _ = signal_hook::flag::register(signal, Arc::clone(&asked));
            let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
        }
    }
    // nohup(1) has it ignored, and so it stays.
    if !is_ignored(SIGHUP) {
        let _ = signal_hook::flag::register(SIGHUP, Arc::clone(&stop));
    }
    stop
}

/// Whether this process was started with the signal ignored (proc_pid_status(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
