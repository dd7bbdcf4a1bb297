//! Other programs that tests use.

use std::path::PathBuf;
use std::process::Command;

use crate::skip;

/// The Python for tests: the one that `GPUIO_TEST_PYTHON` names, or that in the path.
pub fn python() -> PathBuf {
    std::env::var_os("GPUIO_TEST_PYTHON").unwrap_or_else(|| "python3".into()).into()
}

/// The Python for tests if it imports this module, or none, and says so.
pub fn python_with(module: &str) -> Option<PathBuf> {
    let python = python();
    let ran = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if ran.is_ok_and(|ran| ran.status.success()) {
        return Some(python);
    }
    skip(&format!(
        "{} has no {module}; `cargo xtask ci` installs it, or set GPUIO_TEST_PYTHON",
        python.display()
    ));
    None
}

/// The C compiler, or none, and says so.
pub fn cc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join("cc")).find(|cc| cc.exists());
    if found.is_none() {
        skip("no C compiler (cc) here");
    }
    found
}

/// Lets a program that a test starts end at SIGHUP, though whoever runs the tests ignores it, as
/// nohup(1) does: an ignored signal stays ignored over execve(2).
#[expect(unsafe_code, reason = "a step between fork and exec")]
pub fn hears_hang_ups(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let reset = || {
        // SAFETY: signal(2) is async-signal-safe, and SIG_DFL is no function of ours.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure calls one async-signal-safe function and touches no memory.
    unsafe { command.pre_exec(reset) };
}
