//! `cargo xtask tidy`: the rules of this repository that neither compiler nor clippy checks.
//!
//! Reads every file git tracks or would track, prints one `file:line: rule: what, and what to
//! do` per finding, and fails when there is one. Rules work on text alone, so each is tested on
//! a bad and a good sample.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

mod architecture;
mod arrows;
mod calls;
mod circles;
mod commands;
mod dependencies;
mod examples;
mod modules;
mod prose;
mod rust;
mod sentences;
mod text;
mod words;

#[cfg(test)]
mod tests;

/// One text file, named from the repository root with `/` between folders.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    path: String,
    text: String,
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: String,
    /// From 1.
    line: usize,
    rule: &'static str,
    /// The error and its remedy.
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, what: what.into() }
    }
}

/// The task: no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "tidy takes no arguments, not {arguments:?}");
    let files = read_all(root)?;
    let metadata = metadata(root)?;
    let packages = arrows::read(&metadata, &root.display().to_string());
    let mut findings = check(&files, &packages, &|path| root.join(path).exists())?;
    findings.extend(dependencies::check(&metadata, &files));
    for Finding { path, line, rule, what } in &findings {
        println!("{path}:{line}: {rule}: {what}");
    }
    match findings.len() {
        0 => println!("tidy: {} files, nothing to do", files.len()),
        1 => bail!("1 finding"),
        count => bail!("{count} findings"),
    }
    Ok(())
}

/// The output of `cargo metadata` for the machines that gpuio is built for.
fn metadata(root: &Path) -> anyhow::Result<Value> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["metadata", "--locked", "--format-version", "1"]);
    for target in crate::task_release::TARGETS {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.output().context("cannot run `cargo metadata`")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` failed: {complaint}");
    serde_json::from_slice(&output.stdout).context("`cargo metadata`'s output")
}

/// Every finding, by path and line. `exists` takes paths from the repository root.
fn check(
    files: &[File],
    packages: &[arrows::Package],
    exists: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Finding>> {
    let architecture = files.iter().find(|file| file.path == "ARCHITECTURE.md");
    let architecture = architecture.context("ARCHITECTURE.md is missing: it holds the rules")?;
    let rules = architecture::Rules::read(&architecture.text)?;
    let mut findings = arrows::check(&rules, packages);
    findings.extend(examples::check(files));
    findings.extend(commands::check(files));
    findings.extend(circles::check(files));
    for file in files {
        findings.extend(text::check(file, exists));
        findings.extend(sentences::check(file));
        if has_extension(&file.path, "rs") {
            findings.extend(rust::check(&rules, file));
        }
    }
    findings.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    Ok(findings)
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Tracked and new files, without what `.gitignore` names and without binary ones.
fn read_all(root: &Path) -> anyhow::Result<Vec<File>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "-co", "--exclude-standard", "--deduplicate"]);
    let output = git.output().context("cannot run `git ls-files`: is git installed?")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`git ls-files` failed: {complaint}");
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in names.split_terminator('\0') {
        let full = root.join(path);
        // Deleted but still in the index, or a link to a folder: nothing to read.
        if !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(files)
}
