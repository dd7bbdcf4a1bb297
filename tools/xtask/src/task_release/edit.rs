//! The texts that carry the version: the workspace's manifest, the lock files and the changelog.
//!
//! All else derives it: crates by `version.workspace`, the program and its objects by cargo's
//! variable, packages by the manifest. Texts come in and go out; nothing here reads a file.

use super::version::Version;

/// A file that a release changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// From the repository root.
    pub(super) path: String,
    pub(super) after: String,
    /// The first line that differs, before and after, and how many do.
    pub(super) first: (String, String),
    pub(super) lines: usize,
}

impl Edit {
    /// None where nothing differs. No edit adds or removes lines.
    pub(super) fn between(path: &str, before: &str, after: String) -> Option<Self> {
        let differ = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
        let lines = differ.clone().count();
        let (old, new) = differ.into_iter().next()?;
        let first = (old.to_owned(), new.to_owned());
        Some(Self { path: path.to_owned(), after, first, lines })
    }
}

impl std::fmt::Display for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (old, new) = &self.first;
        write!(f, "{}: `{old}` becomes `{new}`", self.path)?;
        if self.lines > 1 { write!(f, ", {} times", self.lines) } else { Ok(()) }
    }
}

/// The index of the line with the workspace's version.
fn version_line(manifest: &str) -> Option<usize> {
    let own = manifest.lines().enumerate().skip_while(|(_, line)| *line != "[workspace.package]");
    let mut own = own.skip(1).take_while(|(_, line)| !line.starts_with('['));
    own.find(|(_, line)| line.starts_with("version = \"")).map(|(index, _)| index)
}

/// The workspace's version.
pub(super) fn version_of(manifest: &str) -> Option<&str> {
    let line = manifest.lines().nth(version_line(manifest)?)?;
    line.split('"').nth(1)
}

/// The workspace's manifest with another version.
pub(super) fn manifest(text: &str, version: Version) -> String {
    let line = format!("version = \"{version}\"");
    version_line(text).map_or_else(|| text.to_owned(), |index| with_line(text, index, &line))
}

/// A lock file with another version of the workspace's crates: these have no source.
pub(super) fn lock(text: &str, old: Version, new: Version) -> String {
    let (old, new) = (format!("\nversion = \"{old}\"\n"), format!("\nversion = \"{new}\"\n"));
    let blocks = text.split_inclusive("\n\n").map(|block| {
        let own = block.starts_with("[[package]]") && !block.contains("\nsource = ");
        if own { block.replacen(&old, &new, 1) } else { block.to_owned() }
    });
    blocks.collect()
}

/// The index of the heading of a version's notes: `## 1.2.3 (unreleased)`, or with a date.
fn heading(changelog: &str, version: Version) -> Option<usize> {
    let start = format!("## {version}");
    changelog.lines().position(|line| {
        line.strip_prefix(&start).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    })
}

/// The notes of a version, without blank lines around them; none where nothing is written.
pub(super) fn notes(changelog: &str, version: Version) -> Option<String> {
    let below = changelog.lines().skip(heading(changelog, version)? + 1);
    let lines: Vec<&str> = below.take_while(|line| !line.starts_with("## ")).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The changelog with the day in the heading of this version.
pub(super) fn changelog(text: &str, version: Version, day: &str) -> String {
    let line = format!("## {version} ({day})");
    heading(text, version).map_or_else(|| text.to_owned(), |index| with_line(text, index, &line))
}

/// The text with another line at this index.
fn with_line(text: &str, index: usize, line: &str) -> String {
    let lines = text.split('\n').enumerate();
    let lines: Vec<&str> = lines.map(|(at, old)| if at == index { line } else { old }).collect();
    lines.join("\n")
}
