//! Links of the book: pages, headings, and that every page is in the table of contents.

use std::collections::BTreeSet;

use super::Pages;

/// Each wrong link in words. `exists` says whether another file is in the book.
pub(super) fn check(pages: &Pages, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, text) in pages {
        for target in targets(text) {
            let outside = target.contains("://") || target.starts_with("mailto:");
            if outside {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { name.clone() } else { resolve(name, path) };
            match pages.get(&path) {
                None if exists(&path) && anchor.is_empty() => {}
                None => wrong.push(format!("{name}: {target} leads to no page")),
                Some(page) if anchor.is_empty() || headings(page).contains(anchor) => {}
                Some(_) => wrong.push(format!("{name}: {path} has no heading #{anchor}")),
            }
        }
    }
    let contents = pages.get("SUMMARY.md").map(String::as_str).unwrap_or_default();
    let listed: BTreeSet<String> = targets(contents).into_iter().collect();
    let missing = pages.keys().filter(|name| *name != "SUMMARY.md" && !listed.contains(*name));
    wrong.extend(missing.map(|name| format!("SUMMARY.md: {name} is not listed")));
    wrong
}

/// The lines outside of code blocks, without code spans.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push(line.to_owned());
        }
    }
    lines
}

fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // A code span may be the text of a link, and then has no bracket of its own.
        let spans = line.split('`').enumerate();
        let line: String = spans.map(|(nth, part)| if nth % 2 == 0 { part } else { "" }).collect();
        for (at, opening) in line.match_indices("](") {
            let rest = &line[at + opening.len()..];
            found.extend(rest.split([')', ' ']).next().map(str::to_owned));
        }
    }
    found
}

fn resolve(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as GitHub and mdBook form them.
fn headings(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(page).iter().filter(|line| line.starts_with('#')) {
        let text = line.trim_start_matches('#').trim();
        let mut anchor = String::new();
        for c in text.chars().flat_map(char::to_lowercase) {
            match c {
                ' ' => anchor.push('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => anchor.push(c),
                _ => {}
            }
        }
        let mut number = 0;
        let mut unique = anchor.clone();
        while !found.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
    found
}
