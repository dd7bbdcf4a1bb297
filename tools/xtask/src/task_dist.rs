//! `cargo xtask dist`: makes what is shipped, below `target/dist`; with `--check` also uses it.
//!
//! The work is done by `tools/dist/`, a package of its own: building and testing gpuio needs none
//! of the crates that write packages.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let target = super::task_ci::target(root);
    let mut command = Command::new(super::task_ci::cargo_path());
    command.env("CARGO_TARGET_DIR", target.join("dist-writer")).env("GPUIO_DIST_TARGET", &target);
    command.current_dir(root.join("tools/dist")).args(["run", "--locked", "--quiet", "--"]);
    ensure!(command.args(arguments).status()?.success(), "dist failed");
    Ok(())
}
