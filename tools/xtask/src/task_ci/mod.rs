//! `cargo xtask ci`: every check a change must pass, in order, stopping at the first that fails.
//!
//! Standard output ends with one plain line, `N passed, N failed, N skipped`, the sum over all test
//! programs. Tests that left something out because the machine lacks it are skipped, and passed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::{task_deny, task_lab, task_site, task_tidy};

pub(crate) mod packages;
mod programs;
#[cfg(test)]
mod tests;

/// The task. `--no-install` leaves the machine as it is.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let install = may_install(arguments)?;
    let mut counts = Counts::default();
    let result = steps(root, install, &mut counts);
    if let Err(error) = &result {
        println!("\nci: stopped: {error:#}");
    }
    println!("{counts}");
    result
}

/// The task of the step "packages" alone, for `cargo test` of one crate.
pub(crate) fn packages(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    if let Some(python) = packages_step(root, may_install(arguments)?)? {
        println!("for cargo test: export {}={}", packages::PYTHON, python.display());
    }
    Ok(())
}

fn packages_step(root: &Path, install: bool) -> anyhow::Result<Option<PathBuf>> {
    let mut python = None;
    step_with_outcome("packages", || {
        let (outcome, found) = packages::prepare(&target(root), install);
        python = found;
        Ok(outcome)
    })?;
    Ok(python)
}

fn may_install(arguments: &[String]) -> anyhow::Result<bool> {
    match arguments {
        [] => Ok(true),
        [one] if one == "--no-install" => Ok(false),
        other => bail!("--no-install may be given and nothing else, not {other:?}"),
    }
}

fn steps(root: &Path, install: bool, counts: &mut Counts) -> anyhow::Result<()> {
    step("format", || cargo(root, &["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let (python, ()) = side_by_side(
        || packages_step(root, install),
        || {
            step("lints", || cargo(root, &lints))?;
            step("tidy", || task_tidy::run(root, &[]))
        },
    )?;
    step("tests", || test(root, python.as_deref(), counts))?;
    // The program is the one that the tests have built.
    let program = target(root).join("debug/gpuio");
    side_by_side(
        || step_with_outcome("laboratory", || task_lab::smoke(root, &program, install)),
        || {
            step("documentation", || document(root))?;
            step("links of the site", || task_site::check(root, &program))?;
            step_with_outcome("advisories", || task_deny::advisories_if_installed(root))
        },
    )?;
    Ok(())
}

/// Both at once: the first mostly waits, for a network or for an emulated machine's one processor.
/// Both end before the answer; where both fail it is the second one's failure.
fn side_by_side<A: Send, B>(
    first: impl FnOnce() -> anyhow::Result<A> + Send,
    second: impl FnOnce() -> anyhow::Result<B>,
) -> anyhow::Result<(A, B)> {
    std::thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let second = second?;
        Ok((first?, second))
    })
}

/// Runs one step between its name and its time. It is ok or it fails.
fn step(name: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    step_with_outcome(name, || work().map(|()| "ok"))
}

/// Runs one step that has its own word for how it went.
fn step_with_outcome(
    name: &str,
    work: impl FnOnce() -> anyhow::Result<&'static str>,
) -> anyhow::Result<()> {
    println!("== {name}");
    let (start, before) = (Instant::now(), processor_seconds());
    let result = work().with_context(|| format!("step \"{name}\" failed"));
    let outcome = *result.as_ref().unwrap_or(&"FAILED");
    let (wall, busy) = (start.elapsed().as_secs_f64(), processor_seconds() - before);
    println!("== {name}: {outcome}, {wall:.1} s, {busy:.0} s of processors meanwhile\n");
    result.map(drop)
}

/// Processor time of this process and of its children that are over (proc_pid_stat(5), fields 14
/// to 17); 0 where that can't be read.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after_name.split(' ').skip(12).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// The cargo that runs us, so that a toolchain chosen with `cargo +NAME` is kept.
pub(crate) fn cargo_path() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where cargo builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(cargo_path());
    command.current_dir(root).args(arguments);
    succeed(&mut command)
}

pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn document(root: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(cargo_path());
    command.current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
    command.args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
    succeed(&mut command)
}

/// Tests over all test binaries and documentation examples.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl Counts {
    /// Adds one line of test output, if it is the result line of a test program,
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; …`, or says what was left out.
    fn add(&mut self, line: &str) {
        self.skipped += u64::from(programs::is_skipped(line));
        let Some(result) = line.strip_prefix("test result:") else {
            return;
        };
        let count = |word: &str| -> Option<u64> {
            result.split(word).next()?.split_whitespace().next_back()?.parse().ok()
        };
        if let (Some(passed), Some(failed)) = (count(" passed;"), count(" failed;")) {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// Where trees of thousands of small files are made quickly: in memory, if there is a GiB of it.
fn trees_in_memory() -> Option<&'static str> {
    const AT: &str = "/dev/shm";
    let space = rustix::fs::statvfs(AT).ok()?;
    (space.f_bavail.saturating_mul(space.f_frsize) >= 1 << 30).then_some(AT)
}

/// The environment that test programs get.
fn test_envs(python: Option<&Path>) -> Vec<(&'static str, OsString)> {
    let mut envs = Vec::new();
    envs.extend(python.map(|python| (packages::PYTHON, python.as_os_str().to_owned())));
    envs.extend(trees_in_memory().map(|at| ("GPUIO_TEST_TREES", OsString::from(at))));
    envs
}

/// Tests at once in each program unless the environment says it. Many wait most of the time, and
/// the longest program must not be the last one for long.
const THREADS: usize = 4;

/// Runs all tests, showing what each program printed when it has ended. As many programs at a time
/// as there are processors.
fn test(root: &Path, python: Option<&Path>, counts: &mut Counts) -> anyhow::Result<()> {
    let envs = test_envs(python);
    let given = std::env::var("RUST_TEST_THREADS").ok().and_then(|text| text.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (at_a_time, threads) = (processors, given.unwrap_or(THREADS));
    let mut line = |line: &str| {
        println!("{line}");
        counts.add(line);
    };
    let how = programs::How { at_a_time, threads, seed: None, envs: &envs };
    let failed = programs::Programs::build(root)?.run(&how, &mut line)?;
    programs::examples(root, &envs, &mut line)?;
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    ensure!(counts.passed > 0, "no test ran: has the form of the result lines changed?");
    Ok(())
}

/// `cargo xtask rounds N [SEED]`: all tests N times, in an order drawn anew, with 3 and 12 at once
/// in turn. Tests that depend on each other, or on a quiet machine, fail here.
pub(crate) fn rounds(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let numbers: Vec<u64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    let (count, first) = match numbers[..] {
        [count] if arguments.len() == 1 => (count, 1),
        [count, first] if arguments.len() == 2 => (count, first),
        _ => bail!("rounds takes how many, and the first one's seed if it is not 1"),
    };
    let python = packages_step(root, true)?;
    let (envs, programs) = (test_envs(python.as_deref()), programs::Programs::build(root)?);
    let mut wrong = 0;
    for seed in first..first + count {
        let (begin, mut counts) = (Instant::now(), Counts::default());
        let threads = if seed % 2 == 1 { 3 } else { 12 };
        let how = programs::How { at_a_time: 1, threads, seed: Some(seed), envs: &envs };
        let failed = programs.run(&how, |line| {
            if !line.ends_with("... ok") {
                println!("{line}");
            }
            counts.add(line);
        })?;
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
        println!(
            "== round {seed}: {threads} at once, {:.0} s, load {load}: {counts}{}{}",
            begin.elapsed().as_secs_f64(),
            if failed.is_empty() { "" } else { ", in " },
            failed.join(", "),
        );
        wrong += counts.failed.max(failed.len() as u64);
    }
    ensure!(wrong == 0, "{wrong} tests failed in {count} rounds");
    Ok(())
}
