//! Which release is wanted, and whether the repository and the machine are ready for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use super::edit::{self, Edit};
use super::version::Version;

/// The machines that packages are made for.
pub(crate) const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";
const USAGE: &str = "release takes VERSION, --dry-run and --key KEY";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReleaseOptions {
    pub(super) version: Version,
    pub(super) dry_run: bool,
    pub(super) key: Option<Key>,
}

/// The key that signs the check sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// A file with a key of OpenSSH.
    Ssh(PathBuf),
    /// The name of one of gpg's.
    Gpg(String),
}

impl ReleaseOptions {
    pub(super) fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let (mut version, mut dry_run, mut key) = (None, false, None);
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--dry-run" => dry_run = true,
                "--key" => key = Some(Key::named(words.next().context("--key needs a key")?)?),
                flag if flag.starts_with('-') => bail!("{USAGE}, not {flag:?}"),
                text => {
                    let before = version.replace(text.parse()?);
                    ensure!(before.is_none(), "{USAGE}: one version, not two");
                }
            }
        }
        Ok(Self { version: version.context(USAGE)?, dry_run, key })
    }
}

impl Key {
    /// A file is OpenSSH's; another name is gpg's.
    fn named(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        Ok(if path.is_file() {
            Self::Ssh(std::path::absolute(path)?)
        } else {
            Self::Gpg(text.to_owned())
        })
    }

    /// The command that signs `SHA256SUMS` in the directory where it runs.
    pub(super) fn command(&self) -> Command {
        match self {
            Self::Ssh(path) => {
                let mut command = Command::new("ssh-keygen");
                command.args(["-Y", "sign", "-n", "file", "-f"]).arg(path).arg("SHA256SUMS");
                command
            }
            Self::Gpg(name) => {
                let mut command = Command::new("gpg");
                command.args(["--local-user", name, "--armor", "--detach-sign", "SHA256SUMS"]);
                command
            }
        }
    }

    /// Says so where this machine can't sign with it.
    fn lacking(&self) -> Option<String> {
        let mut command = match self {
            Self::Ssh(path) => {
                let mut command = Command::new("ssh-keygen");
                command.args(["-l", "-f"]).arg(path);
                command
            }
            Self::Gpg(name) => {
                let mut command = Command::new("gpg");
                command.args(["--list-secret-keys", name]);
                command
            }
        };
        let why = match command.stdin(Stdio::null()).output() {
            Ok(ran) if ran.status.success() => return None,
            // Above it are gpg's words about files that it made.
            Ok(ran) => {
                let said = String::from_utf8_lossy(&ran.stderr);
                said.lines().last().unwrap_or_default().to_owned()
            }
            Err(error) => format!("{} can't be started: {error}", command.get_program().display()),
        };
        Some(format!(
            "--key takes a file with a key of OpenSSH, or the name of one of gpg's: {why}"
        ))
    }
}

/// A release, with what was found when it was asked for.
pub(super) struct Request {
    pub(super) root: PathBuf,
    /// Where cargo builds.
    pub(super) target: PathBuf,
    pub(super) version: Version,
    pub(super) key: Option<Key>,
    /// The commit that is checked, packed and tagged.
    pub(super) head: String,
    /// The day that the changelog gets.
    day: String,
    current: Version,
    /// Lines of `git status`.
    changes: Vec<String>,
    tagged: bool,
    /// Each file that a release may change, with its text.
    manifest: String,
    changelog: String,
    locks: Vec<(String, String)>,
    /// Programs and libraries that this machine lacks, with the remedy.
    pub(super) lacking: Vec<String>,
}

impl Request {
    /// Reads the repository. Nothing is changed.
    pub(super) fn read(
        root: &Path,
        target: PathBuf,
        options: &ReleaseOptions,
        day: String,
    ) -> anyhow::Result<Self> {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).context(path.to_owned());
        let manifest = read(MANIFEST)?;
        let current = edit::version_of(&manifest);
        let current = current.context("Cargo.toml: no version in [workspace.package]")?.parse()?;
        let locks = git(root, &["ls-files", "--", ":(glob)**/Cargo.lock"])?;
        let locks = locks.lines().map(|path| Ok((path.to_owned(), read(path)?)));
        let locks = locks.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            head: head(root)?,
            changes: changes(root)?,
            tagged: !git(root, &["tag", "--list", &tag(options.version)])?.is_empty(),
            changelog: read(CHANGELOG)?,
            root: root.to_path_buf(),
            version: options.version,
            key: options.key.clone(),
            lacking: Vec::new(),
            target,
            day,
            current,
            manifest,
            locks,
        })
    }

    /// Finds what the steps need and this machine lacks.
    pub(super) fn find_lacking(&mut self) {
        self.lacking = TARGETS.iter().filter_map(|target| lacks_library(target)).collect();
        self.lacking.extend(self.key.as_ref().and_then(Key::lacking));
    }

    /// Each condition: how it is met, or why it is not and the remedy.
    pub(super) fn conditions(&self) -> Vec<Result<String, String>> {
        let (version, current, tag) = (self.version, self.current, self.tag());
        let clean = if let Some(first) = self.changes.first() {
            let more = match self.changes.len() {
                1 => String::new(),
                count => format!(", and {} more", count - 1),
            };
            let first = first.trim();
            Err(format!("the tree has changes ({first}{more}): commit, stash or undo them"))
        } else {
            Ok("the tree has no changes".to_owned())
        };
        let order = if version < current {
            Err(format!(
                "{version} is below {current}, the version in Cargo.toml: give a higher one"
            ))
        } else {
            Ok(format!("{version} is not below {current}, the version in Cargo.toml"))
        };
        let untagged = if self.tagged {
            Err(format!(
                "the tag {tag} exists: give a higher version; if it was never pushed, remove it: \
                 git tag -d {tag}"
            ))
        } else {
            Ok(format!("there is no tag {tag}"))
        };
        let notes = match self.notes() {
            Some(notes) => Ok(format!("{CHANGELOG} has {} lines of notes", notes.lines().count())),
            None => Err(format!(
                "{CHANGELOG} has no notes for {version}: write them below a heading \
                 `## {version} (unreleased)`"
            )),
        };
        let mut all = vec![clean, order, untagged, notes];
        all.extend(self.lacking.iter().cloned().map(Err));
        all
    }

    /// The files that carry the version or its day, and change.
    pub(super) fn edits(&self) -> Vec<Edit> {
        let version = self.version;
        let locks = self
            .locks
            .iter()
            .map(|(path, text)| Edit::between(path, text, edit::lock(text, self.current, version)));
        let manifest = edit::manifest(&self.manifest, version);
        let changelog = edit::changelog(&self.changelog, version, &self.day);
        let own = [
            Edit::between(MANIFEST, &self.manifest, manifest),
            Edit::between(CHANGELOG, &self.changelog, changelog),
        ];
        own.into_iter().chain(locks).flatten().collect()
    }

    pub(super) fn notes(&self) -> Option<String> {
        edit::notes(&self.changelog, self.version)
    }

    pub(super) fn tag(&self) -> String {
        tag(self.version)
    }

    /// Where the files lie that are published.
    pub(super) fn place(&self) -> PathBuf {
        self.target.join("dist").join(format!("gpuio-{}", self.version))
    }

    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

fn tag(version: Version) -> String {
    format!("v{version}")
}

/// The current commit.
pub(super) fn head(root: &Path) -> anyhow::Result<String> {
    Ok(git(root, &["rev-parse", "HEAD"])?.trim().to_owned())
}

/// Changed and new files, as `git status` lists them.
pub(super) fn changes(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(git(root, &["status", "--porcelain"])?.lines().map(str::to_owned).collect())
}

/// Runs git in this repository, whatever repository the environment names (hooks have it so), and
/// gives its standard output.
pub(super) fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(variable);
    }
    let ran = command.current_dir(root).args(arguments).output().context("cannot start git")?;
    let error = String::from_utf8_lossy(&ran.stderr);
    let first = arguments.first().copied().unwrap_or_default();
    ensure!(ran.status.success(), "git {first} ended with {}: {}", ran.status, error.trim());
    String::from_utf8(ran.stdout).context("git printed no UTF-8")
}

/// Says so where rustc can't build for a target.
fn lacks_library(target: &str) -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed =
        Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let there = printed.is_ok_and(|ran| {
        let path = String::from_utf8_lossy(&ran.stdout).into_owned();
        ran.status.success() && Path::new(path.trim()).is_dir()
    });
    (!there)
        .then(|| format!("rustc has no standard library for {target}: rustup target add {target}"))
}

/// Today in UTC, as `2026-01-31`.
pub(super) fn day() -> anyhow::Result<String> {
    let ran = Command::new("date").args(["-u", "+%F"]).output().context("cannot start date")?;
    ensure!(ran.status.success(), "date ended with {}", ran.status);
    Ok(String::from_utf8(ran.stdout)?.trim().to_owned())
}
