//! Which driver tests use, and tests in processes of their own.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::process::{Command, Output};

use gpuio_gpu::Which;

/// Whether the tests run on the system's driver.
pub(crate) fn on_system() -> bool {
    std::env::var("GPUIO_TEST_GPU").is_ok_and(|value| value == "system")
}

pub(crate) fn which() -> Which {
    if on_system() { Which::System } else { Which::Software }
}

/// True, and said so, if this case cannot run on the system's driver.
#[expect(clippy::print_stdout, reason = "whoever runs the tests on a GPU is to see what was not")]
pub(crate) fn skipped(case: &str) -> bool {
    if on_system() {
        println!("skipped on the system's driver: {case}");
    }
    on_system()
}

/// Runs the ignored test `name` of this program in a process of its own.
pub(crate) fn child(name: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command.envs(environment.iter().copied()).output().unwrap()
}

/// As [`child`], which must run exactly that test and succeed.
pub(crate) fn passes(name: &str, environment: &[(&str, &str)]) {
    let output = child(name, environment);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{name}:\n{said}\n{errors}");
}

/// As [`passes`], of a test that needs the software GPU.
pub(crate) fn child_passes(name: &str, environment: &[(&str, &str)]) {
    if !skipped(name) {
        passes(name, environment);
    }
}
