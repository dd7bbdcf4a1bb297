//! Makes what is shipped: `cargo xtask dist [--target TRIPLE] [--check]`.
//!
//! 1. `build`: the shared objects, then the program, which carries them, for glibc 2.28, by
//!    cargo-zigbuild (zig has the symbols of old releases of glibc).
//! 2. `stage`: the tree of an installation: program, objects, headers, manual pages, completions,
//!    unit, dashboard.
//! 3. `tarball`, `deb`, `wheel`, `package` (rpm): that tree in each form; `bill`: what is in the
//!    program; `main`: check sums.
//! 4. `check`, with `--check`: unpacks each and uses it, by the `runner` that this machine has for
//!    programs of the target; `system`: in a Debian of its own and in a container.
//!
//! Everything goes below `target/dist/TRIPLE`. Times in the files are those of the last commit.

mod bill;
mod build;
mod check;
mod deb;
mod package;
mod runner;
mod stage;
mod system;
mod tarball;
mod wheel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use sha2::{Digest as _, Sha256};

/// The files that one run makes, and where.
pub(crate) struct Job {
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target_dir: PathBuf,
    /// The machine, as rustc names it.
    pub(crate) triple: String,
    pub(crate) version: String,
    /// Seconds since 1970 of the last commit.
    pub(crate) time: u64,
    /// Where the artefacts go.
    pub(crate) out: PathBuf,
}

impl Job {
    /// `x86_64` or `aarch64`, as rpm and wheels name it.
    pub(crate) fn machine(&self) -> &str {
        self.triple.split('-').next().unwrap_or("unknown")
    }

    /// As Debian names it.
    pub(crate) fn debian_machine(&self) -> &str {
        match self.machine() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
    }

    /// The tree of an installation below `/usr`.
    pub(crate) fn tree(&self) -> PathBuf {
        self.out.join("tree")
    }
}

/// One file of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Below `/usr`, with `/` between folders.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
    /// The target of a symbolic link. A link has no bytes.
    pub(crate) link: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let (triple, checks) = arguments(std::env::args().skip(1))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("no repository")?;
    let target_dir =
        std::env::var_os("GPUIO_DIST_TARGET").map_or_else(|| root.join("target"), PathBuf::from);
    let job = Job {
        out: target_dir.join("dist").join(&triple),
        version: version(root)?,
        time: commit_time(root),
        root: root.to_path_buf(),
        target_dir,
        triple,
    };
    std::fs::create_dir_all(&job.out)?;
    build::run(&job)?;
    let entries = stage::run(&job)?;
    let mut made = vec![
        tarball::write(&job, &entries)?,
        deb::write(&job, &entries)?,
        package::write(&job, &entries)?,
        wheel::write(&job, &entries)?,
        bill::write(&job)?,
    ];
    let containerfile = job.out.join("Containerfile");
    std::fs::copy(job.root.join("packaging/Containerfile"), &containerfile)?;
    made.push(containerfile);
    sums(&job, &made)?;
    for path in &made {
        let bytes = std::fs::metadata(path)?.len();
        println!("{:>9} KiB  {}", bytes.div_ceil(1024), path.display());
    }
    if checks { check::run(&job) } else { Ok(()) }
}

fn arguments(mut words: impl Iterator<Item = String>) -> anyhow::Result<(String, bool)> {
    let (mut triple, mut checks) = ("x86_64-unknown-linux-gnu".to_owned(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => checks = true,
            "--target" => triple = words.next().context("--target needs a triple")?,
            other => bail!("dist takes --target TRIPLE and --check, not {other:?}"),
        }
    }
    ensure!(triple.ends_with("-linux-gnu"), "gpuio runs on Linux with glibc, not on {triple}");
    Ok((triple, checks))
}

/// The workspace's version.
fn version(root: &Path) -> anyhow::Result<String> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    Ok(line.context("Cargo.toml has no version")?.trim_end_matches('"').to_owned())
}

/// 0 outside a repository.
fn commit_time(root: &Path) -> u64 {
    let git = Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]).output();
    let text = git.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The cargo that runs us, so that a toolchain chosen with `cargo +NAME` is kept.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command to its end.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs a command and gives its standard output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let ran = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let error = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{command:?} ended with {}: {error}", ran.status);
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn sums(job: &Job, made: &[PathBuf]) -> anyhow::Result<()> {
    let mut text = String::new();
    for path in made {
        let digest = Sha256::digest(std::fs::read(path)?);
        let name = path.file_name().context("an artefact has a name")?.display();
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{hex}  {name}\n"));
    }
    std::fs::write(job.out.join("SHA256SUMS"), text).context("SHA256SUMS")
}
