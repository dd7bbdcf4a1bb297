//! The rows of the model that end within seconds. `cargo xtask model` runs all of them.

#[test]
fn rows_that_are_not_slow_hold() {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_gpuio-model")).arg("--smoke").output();
    let ran = ran.expect("the program can be started");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.trim_end().ends_with(", 0 failed"), "{said}");
}
