//! `cargo xtask release VERSION`: all of a release but its publication.
//!
//! `request` reads the repository and says why it is not ready; `edit` has the texts that carry
//! the version; [`STEPS`] is the list that a dry run prints and a run does.
//!
//! The version is committed first: checks, packages and site are of the commit that the tag names,
//! and nothing is left half written when one of them fails. The tag comes last: only a commit that
//! went through everything has one. So the same command can be given again after a failure.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

pub(crate) use self::request::TARGETS;
use self::request::{ReleaseOptions, Request, changes, git, head};
use crate::{task_ci, task_deny, task_dist, task_site};

mod edit;
mod request;
mod sums;
#[cfg(test)]
mod tests;
mod version;

/// The name of the list of check sums.
const SUMS: &str = "SHA256SUMS";

/// One step: what a dry run prints of it, a line each, and the work.
struct Step {
    name: &'static str,
    says: fn(&Request) -> Vec<String>,
    does: fn(&mut Request) -> anyhow::Result<()>,
}

const STEPS: [Step; 7] = [
    Step { name: "version", says: says_version, does: set_version },
    Step {
        name: "checks",
        says: |_| vec!["cargo xtask ci".to_owned(), "cargo xtask deny".to_owned()],
        does: |request| {
            task_ci::run(&request.root, &[])?;
            task_deny::run(&request.root, &[])
        },
    },
    Step {
        name: "packages",
        says: |_| {
            TARGETS.map(|target| format!("cargo xtask dist {}", pack(target).join(" "))).to_vec()
        },
        does: |request| {
            TARGETS.iter().try_for_each(|target| task_dist::run(&request.root, &pack(target)))
        },
    },
    Step {
        name: "check sums",
        says: |request| {
            let place = request.shown(&request.place());
            vec![format!("{place}: the files of both machines, and {SUMS} over them")]
        },
        does: |request| collect(request),
    },
    Step { name: "signature", says: says_signature, does: sign },
    Step {
        name: "site",
        says: |_| vec!["cargo xtask site".to_owned()],
        does: |request| task_site::run(&request.root, &[]),
    },
    Step {
        name: "tag",
        says: |request| {
            vec![format!("git tag --annotate {}, with the notes; it is not pushed", request.tag())]
        },
        does: set_tag,
    },
];

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let options = ReleaseOptions::parse(arguments)?;
    let mut request = Request::read(root, task_ci::target(root), &options, request::day()?)?;
    request.find_lacking();
    let refused: Vec<String> = request.conditions().into_iter().filter_map(Result::err).collect();
    if options.dry_run {
        print!("{}", dry_run(&request));
        ensure!(refused.is_empty(), "the lines with `no` would stop a release");
        return Ok(());
    }
    ensure!(refused.is_empty(), "{} is not ready\n  {}", request.version, refused.join("\n  "));
    for (step, number) in STEPS.iter().zip(1..) {
        println!("== release, {number} of {}: {}", STEPS.len(), step.name);
        (step.says)(&request).iter().for_each(|line| println!("   {line}"));
        (step.does)(&mut request).with_context(|| {
            format!(
                "step \"{}\" failed. There is no tag yet: correct it, commit, and give the same \
                 command again",
                step.name
            )
        })?;
    }
    print!("\n{}", publication(&request));
    Ok(())
}

/// The conditions, and every step with what it would do.
fn dry_run(request: &Request) -> String {
    let mut text = format!("release {}, a dry run: nothing is changed\n\n", request.version);
    for condition in request.conditions() {
        let line = condition.map_or_else(|no| format!("no  {no}\n"), |yes| format!("ok  {yes}\n"));
        text.push_str(&line);
    }
    text.push('\n');
    for (step, number) in STEPS.iter().zip(1..) {
        text.push_str(&format!("{number}. {}\n", step.name));
        (step.says)(request).iter().for_each(|line| text.push_str(&format!("   {line}\n")));
    }
    text.push_str(&format!("\n{}", publication(request)));
    text
}

/// The commands that publish what was made.
fn publication(request: &Request) -> String {
    let (tag, place) = (request.tag(), request.shown(&request.place()));
    let site = request.shown(&request.target.join("site/book"));
    format!(
        "Nothing is pushed or published by this task. Commands that do it:\n  \
         git push --atomic REMOTE HEAD {tag}\n  \
         gh release create {tag} --notes-from-tag {place}/*\n  \
         python3 -m twine upload {place}/*.whl\n  \
         and copy {site} to the server of the site\n\
         No crate is published (`publish = false`). Then say in docs/install.md and docs/python.md \
         where the files are.\n"
    )
}

/// The arguments of the task `dist` for a target.
fn pack(target: &str) -> [String; 3] {
    ["--target", target, "--check"].map(str::to_owned)
}

fn says_version(request: &Request) -> Vec<String> {
    let mut lines: Vec<String> = request.edits().iter().map(ToString::to_string).collect();
    let last = if lines.is_empty() {
        format!("is {} already, dated today: nothing to commit", request.version)
    } else {
        format!("git commit: Release {}", request.version)
    };
    lines.push(last);
    lines
}

/// Writes and commits the edits. If that fails, the files are as they were.
fn set_version(request: &mut Request) -> anyhow::Result<()> {
    let edits = request.edits();
    let paths: Vec<&str> = edits.iter().map(|edit| edit.path.as_str()).collect();
    let commit = || -> anyhow::Result<()> {
        for edit in &edits {
            let path = request.root.join(&edit.path);
            std::fs::write(path, &edit.after).with_context(|| edit.path.clone())?;
        }
        let title = format!("Release {}", request.version);
        let arguments = ["commit", "--quiet", "-m", title.as_str(), "--"];
        git(&request.root, &[arguments.as_slice(), &paths].concat()).map(drop)
    };
    if !edits.is_empty()
        && let Err(error) = commit()
    {
        let undo = ["checkout", "--quiet", "HEAD", "--"];
        git(&request.root, &[undo.as_slice(), &paths].concat())
            .with_context(|| format!("{error:#}; and the files are not as they were"))?;
        return Err(error);
    }
    request.head = head(&request.root)?;
    Ok(())
}

/// Copies the packages of all machines into a new directory, with one list of check sums, and
/// compares the copies with it.
fn collect(request: &Request) -> anyhow::Result<()> {
    let place = request.place();
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    let mut lists = Vec::new();
    for target in TARGETS {
        let from = request.target.join("dist").join(target);
        let list = from.join(SUMS);
        let text = std::fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        for name in sums::names(&text)? {
            std::fs::copy(from.join(name), place.join(name)).with_context(|| name.to_owned())?;
        }
        lists.push(text);
    }
    std::fs::write(place.join(SUMS), sums::merged(&lists)?)?;
    let mut check = Command::new("sha256sum");
    check.args(["--quiet", "--strict", "--check", SUMS]).current_dir(&place);
    let ran = check.output().context("cannot start sha256sum")?;
    ensure!(ran.status.success(), "damaged: {}", String::from_utf8_lossy(&ran.stdout).trim());
    Ok(())
}

fn says_signature(request: &Request) -> Vec<String> {
    vec![match &request.key {
        None => {
            format!("none: --key KEY signs {SUMS} (a file of OpenSSH, or a key of gpg by name)")
        }
        Some(key) => {
            let command = key.command();
            let words: Vec<String> = std::iter::once(command.get_program())
                .chain(command.get_args())
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.join(" ")
        }
    }]
}

fn sign(request: &mut Request) -> anyhow::Result<()> {
    let Some(key) = &request.key else { return Ok(()) };
    let status = key.command().current_dir(request.place()).status()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Tags the commit that was checked and packed.
fn set_tag(request: &mut Request) -> anyhow::Result<()> {
    let root = &request.root;
    if let Some(change) = changes(root)?.first() {
        bail!("a step changed the tree ({change} …): see `git status`");
    }
    let now = head(root)?;
    ensure!(now == request.head, "there are new commits: {} was checked, not {now}", request.head);
    let (tag, title) = (request.tag(), format!("gpuio {}", request.version));
    let notes = request.notes().context("the notes are gone")?;
    // Headings in the notes begin with `#`, which git else takes for comments.
    let words =
        ["tag", "--annotate", "--cleanup=whitespace", "-m", &title, "-m", &notes, &tag, &now];
    git(root, &words).map(drop)
}
