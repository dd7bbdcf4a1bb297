//! `cargo xtask model`: the lock-free parts of libcufile.so.0 and of rings for kernels in loom.
//!
//! `tools/model/` is a package of its own with one program, which includes the crates' own sources;
//! this builds it and runs its tests, or those whose name contains a word of `--only`.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure};

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let only = match arguments {
        [] => "",
        [flag, words] if flag == "--only" => words,
        _ => bail!("model takes --only WORDS, not {arguments:?}"),
    };
    let mut command = Command::new(super::task_ci::cargo_path());
    // Its build files are its own: a crate of the workspace with other features would be built
    // anew.
    command.env("CARGO_TARGET_DIR", super::task_ci::target(root).join("model"));
    command.current_dir(root.join("tools/model")).args(["run", "--locked", "--quiet", "--", only]);
    ensure!(command.status()?.success(), "a test of the model failed");
    Ok(())
}
