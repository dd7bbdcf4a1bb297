//! Our own checks and generated files: `cargo xtask <task>`.
//!
//! A task is a function from the repository root and its arguments to a result, in a file of
//! its own, and one line in [`TASKS`].

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal tool, not shipped")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

mod task_attack;
mod task_ci;
mod task_deny;
mod task_dist;
mod task_fuzz;
mod task_lab;
mod task_model;
mod task_release;
mod task_site;
mod task_tidy;

type Task = fn(root: &Path, arguments: &[String]) -> anyhow::Result<()>;

/// Name, what it does, and the function that does it.
const TASKS: &[(&str, &str, Task)] = &[
    (
        "attack",
        "tries to make gpuio harm files of others (--time 60s, --seed N, --only NAME)",
        task_attack::run,
    ),
    ("ci", "all checks, then the count of tests (--no-install: no packages)", task_ci::run),
    ("deny", "cargo-deny, which it installs: licences and vulnerabilities", task_deny::run),
    ("dist", "what is shipped, below target/dist (--target TRIPLE, --check)", task_dist::run),
    ("fuzz", "readers of foreign bytes (--time 60s, --only NAME, --build)", task_fuzz::run),
    (
        "lab",
        "gpuio on machines under QEMU (--list, --scene NAME, --smoke, --plants)",
        task_lab::run,
    ),
    ("model", "lock-free parts in every order of threads (--only WORDS)", task_model::run),
    ("packages", "installs what tests need, or names it (--no-install)", task_ci::packages),
    (
        "release",
        "all of a release but its publication (VERSION, --dry-run, --key KEY)",
        task_release::run,
    ),
    ("rounds", "all tests so often, each time in another order (N [SEED])", task_ci::rounds),
    ("site", "documentation as a site, below target/site (--check: links only)", task_site::run),
    ("tidy", "rules no compiler checks", task_tidy::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let Some((_, _, task)) = TASKS.iter().find(|(task, _, _)| *task == name) else {
        eprintln!("usage: cargo xtask <task>");
        for (task, purpose, _) in TASKS {
            eprintln!("  {task:<10}{purpose}");
        }
        return ExitCode::from(2);
    };
    match root().and_then(|root| task(&root, &arguments[1..])) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository root: two folders above this package, which cargo names when it runs us.
fn root() -> anyhow::Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: start this as `cargo xtask <task>`")?;
    let root = Path::new(&package).ancestors().nth(2).context("no two folders above this one")?;
    Ok(root.to_path_buf())
}
