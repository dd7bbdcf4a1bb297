//! `cargo xtask model`: the lock-free parts of libcufile.so.0 and of rings for kernels in loom.
//!
//! `tools/model/` is one program, which includes the crates' own sources; this builds it and runs
//! its rows, or those whose name contains a word of `--only`. The tests of all crates run the rows
//! that are not slow.

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
    command.current_dir(root).args(["run", "--locked", "--quiet", "-p", "gpuio-model", "--", only]);
    ensure!(command.status()?.success(), "a test of the model failed");
    Ok(())
}
