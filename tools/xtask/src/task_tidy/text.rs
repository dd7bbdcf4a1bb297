//! Rules for every text file: layout, unfinished work, links, a developer's own paths.

use super::rust::has_word;
use super::{File, Finding, has_extension};

/// Kinds of file that people write. Others (captured `/proc` files, snapshots) keep the bytes
/// they were captured with.
const WRITTEN: [&str; 13] =
    ["rs", "md", "toml", "sh", "yml", "yaml", "py", "c", "h", "cu", "ptx", "ini", "fio"];

/// Markers of unfinished work. Clippy finds the macros. Split so that this file passes.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Where a path that only exists on one machine starts. Split so that this file passes.
const WORK: &str = concat!("/", "work/");
const ROOT: &str = concat!("/", "root/");
const HOME: &str = concat!("/", "home/");
const SHARED: &str = concat!("..", "/shared/");

pub(super) fn check(file: &File, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let written = is_written(&file.path);
    for (index, line) in file.text.lines().enumerate() {
        let mut found = |rule, what: String| {
            findings.push(Finding::new(&file.path, index + 1, rule, what));
        };
        if let Some(path) = machine_path(line) {
            let what =
                format!("`{path}` exists on one machine only, use a path from the root here");
            found("machine path", what);
        }
        if written && line.trim_end() != line {
            found("blank", "blanks at the end of the line, remove them".to_owned());
        }
        let word = UNFINISHED.into_iter().find(|word| has_word(line, word));
        if written && let Some(word) = word {
            found("unfinished", format!("`{word}`: finish it now or leave it out"));
        }
    }
    if written && !file.text.is_empty() && !file.text.ends_with('\n') {
        let line = file.text.lines().count();
        let what = "no newline at the end of the file, add one";
        findings.push(Finding::new(&file.path, line, "blank", what));
    }
    if has_extension(&file.path, "md") {
        findings.extend(links(file, exists));
    }
    if let Some(folder) = file.path.strip_suffix("lib.rs") {
        let page = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("//!"));
        findings.extend(page.flat_map(|(at, line)| gone(file, at + 1, line, folder, exists)));
    }
    findings
}

fn is_written(path: &str) -> bool {
    let captured = path.split('/').any(|part| part == "tests" || part == "fixtures");
    let kind = WRITTEN.iter().any(|kind| has_extension(path, kind)) || path.starts_with(".ci/");
    kind && (!captured || has_extension(path, "rs"))
}

/// The first path in a line that names a developer's machine.
fn machine_path(line: &str) -> Option<String> {
    if line.contains(SHARED) {
        return Some(SHARED.to_owned());
    }
    for start in [WORK, ROOT, HOME] {
        for (at, _) in line.match_indices(start) {
            // `docs` + WORK and `{root}` + ROOT are relative: they have text before the slash.
            let relative =
                line[..at].ends_with(|c: char| c.is_alphanumeric() || "_.-~}>)".contains(c));
            let rest = &line[at + start.len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || "_.-".contains(*c)).collect();
            let user = !name.is_empty() && rest[name.len()..].starts_with('/');
            if !relative && (start != HOME || user) {
                return Some(format!("{start}{name}"));
            }
        }
    }
    None
}

/// Relative links of a Markdown page that lead nowhere.
fn links(page: &File, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        if page.path == "ARCHITECTURE.md" {
            findings.extend(gone(page, index + 1, line, "", exists));
        }
        for target in targets(line) {
            let Some(path) = resolve(&page.path, &target) else {
                continue;
            };
            if !exists(&path) {
                let what =
                    format!("`{target}` leads to `{path}`, which does not exist, correct it");
                findings.push(Finding::new(&page.path, index + 1, "link", what));
            }
        }
    }
    findings
}

/// Source files that a line of a page names and that are neither at the root, below `crates/`
/// nor below `folder`.
fn gone(
    page: &File,
    number: usize,
    line: &str,
    folder: &str,
    exists: &dyn Fn(&str) -> bool,
) -> Vec<Finding> {
    let is_there = |file: &str| {
        exists(file) || exists(&format!("crates/{file}")) || exists(&format!("{folder}{file}"))
    };
    let files = files_named(line).filter(|file| !is_there(file));
    files
        .map(|file| {
            let what = format!("there is no file `{file}`, here or below crates/, correct it");
            Finding::new(&page.path, number, "link", what)
        })
        .collect()
}

/// Source files that a line names in code spans, with a folder and without a placeholder.
fn files_named(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2);
    let plain = |span: &&str| {
        span.bytes().all(|b| b.is_ascii_lowercase() || b"0123456789_/.-".contains(&b))
    };
    spans.filter(|span| span.contains('/') && span.ends_with(".rs")).filter(plain)
}

/// Link targets of one line, inline (`[text](target "title")`) and by reference
/// (`[name]: target`), outside code spans.
fn targets(line: &str) -> Vec<String> {
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let prose = prose.join("`");
    let mut found = Vec::new();
    for (at, opening) in prose.match_indices("](") {
        let rest = &prose[at + opening.len()..];
        found.extend(rest.split([')', ' ']).next().map(str::to_owned));
    }
    if prose.starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        found.extend(target.split_whitespace().next().map(str::to_owned));
    }
    found
}

/// The path from the root that a link in `page` names; none for other sites and for anchors in
/// the page itself.
fn resolve(page: &str, target: &str) -> Option<String> {
    let target = target.trim_matches(['<', '>']);
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    if !path.starts_with('/') {
        parts.extend(page.split('/'));
        parts.pop();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // Above the root: keep it, so that it is reported as missing by its name.
            ".." if parts.last().is_none_or(|last| *last == "..") => parts.push(".."),
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
