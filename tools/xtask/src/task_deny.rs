//! `cargo xtask deny`: cargo-deny on licences, bans, sources, and known vulnerabilities.
//!
//! It takes minutes to build where it is not installed. So the checks of every change look for
//! licences and sources themselves (`task_tidy/dependencies.rs`), and a release runs this.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::task_ci::{cargo, cargo_path, succeed};

/// The release that `deny.toml` is written for.
const DENY_VERSION: &str = "0.20.2";
/// Seconds for fetching the advisory database. It takes a few where the network works; a
/// firewall that drops packets would otherwise hold the whole run for minutes.
const ADVISORY_SECONDS: &str = "60";

/// The task: no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "deny takes no arguments, not {arguments:?}");
    if !is_installed() {
        install(root)?;
    }
    cargo(root, &["deny", "check", "licenses", "bans", "sources"])?;
    println!("advisories: {}", advisories(root)?);
    Ok(())
}

/// [`advisories`], for the checks of a change.
pub(crate) fn advisories_if_installed(root: &Path) -> anyhow::Result<&'static str> {
    if is_installed() {
        return advisories(root);
    }
    println!("advisories: not checked (cargo-deny is not installed: `cargo xtask deny`)");
    Ok("not checked")
}

fn is_installed() -> bool {
    let mut version = Command::new(cargo_path());
    version.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Its own release profile optimises across all crates, which takes three times as long as this
/// and saves less than a second a run.
fn install(root: &Path) -> anyhow::Result<()> {
    println!("cargo-deny is not installed: building {DENY_VERSION}, about a minute on two cores");
    let mut command = Command::new(cargo_path());
    command.current_dir(root).args([
        "install",
        "cargo-deny",
        "--locked",
        "--version",
        DENY_VERSION,
    ]);
    for (setting, value) in
        [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "16"), ("DEBUG", "0")]
    {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    succeed(&mut command)
}

/// Whether known vulnerabilities are in the tree. The list is fetched, and a machine that cannot
/// reach it must still be able to run every other check: it prints that and continues.
fn advisories(root: &Path) -> anyhow::Result<&'static str> {
    let mut command = Command::new("timeout");
    command.current_dir(root).arg(ADVISORY_SECONDS).arg(cargo_path());
    command.args(["deny", "--color", "never", "check", "advisories"]);
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    match verdict(output.status.code(), &text) {
        Verdict::Clean => {
            print!("{text}");
            Ok("ok")
        }
        Verdict::NotChecked(why) => {
            println!("advisories: not checked ({why})");
            Ok("not checked")
        }
        Verdict::Wrong => bail!("{command:?} ended with {}\n{text}", output.status),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Clean,
    NotChecked(String),
    Wrong,
}

/// Reads how cargo-deny (or `timeout`, which exits 124) ended. It exits 1 both for a
/// vulnerability and for a list it could not fetch; only its messages distinguish them.
fn verdict(code: Option<i32>, text: &str) -> Verdict {
    if code == Some(0) {
        return Verdict::Clean;
    }
    if text.contains("advisories FAILED") {
        return Verdict::Wrong;
    }
    if code == Some(124) {
        return Verdict::NotChecked(format!("no answer in {ADVISORY_SECONDS} s"));
    }
    let fetch = "failed to fetch advisory database";
    let Some((_, rest)) = text.split_once(fetch) else {
        return Verdict::Wrong;
    };
    // The last line that is not empty is git's own reason.
    let reason = rest.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no reason");
    Verdict::NotChecked(format!("{fetch}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::Verdict::NotChecked;
    use super::*;

    #[test]
    fn a_database_out_of_reach_is_not_a_vulnerability() {
        let offline = "[ERROR] failed to fetch advisory database URL with cli: failed to clone\n\
                       Cloning into 'x'...\nfatal: Could not resolve host\n\n";
        let NotChecked(why) = verdict(Some(1), offline) else { panic!("must not fail") };
        assert!(why.ends_with("Could not resolve host"), "{why}");
        assert!(matches!(verdict(Some(124), ""), NotChecked(_)));
    }

    #[test]
    fn a_vulnerability_or_an_unknown_end_fails() {
        assert_eq!(
            verdict(Some(1), "error[vulnerability]: …\nadvisories FAILED\n"),
            Verdict::Wrong
        );
        assert_eq!(verdict(Some(1), "error: no such command"), Verdict::Wrong);
        assert_eq!(verdict(None, ""), Verdict::Wrong);
        assert_eq!(verdict(Some(0), "advisories ok"), Verdict::Clean);
    }
}
