//! An answer as text, made to fit one screen.

use super::{Change, Why};
use crate::check::text::wrap;
use crate::check::verdict::Answer;

/// More layers of storage than this are cut, and the number of the rest is printed.
const STORAGE: usize = 4;
/// Longer findings are cut after their first clause, in characters.
const LONGEST: usize = 200;
/// Width of the words before a line.
const HEAD: usize = 20;

/// The conclusion, the ways, what would change it, the evidence, and the next command, in lines of
/// at most `width` characters, where words allow it. `next` are commands to run.
#[must_use]
pub fn render(why: &Why, next: &[String], width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &format!("{}.", why.conclusion), width);
    out.push_str("\nBytes go\n");
    for way in &why.ways {
        line(&mut out, way.with, &way.words, width);
    }
    changes(&mut out, &why.changes, width);
    evidence(&mut out, why, width);
    for (at, command) in next.iter().enumerate() {
        wrap(&mut out, if at == 0 { "\nNext: " } else { "      " }, command, width);
    }
    out
}

/// A line behind a word of its own column.
pub(super) fn line(out: &mut String, head: &str, words: &str, width: usize) {
    wrap(out, &format!("  {head:<HEAD$} "), words, width);
}

pub(super) fn changes(out: &mut String, changes: &[Change], width: usize) {
    if changes.is_empty() {
        return;
    }
    let reasons: Vec<&String> = changes.iter().filter_map(|one| one.impossible.as_ref()).collect();
    if let (Some(first), true) = (reasons.first(), reasons.len() == changes.len())
        && reasons.iter().all(|reason| reason == first)
    {
        wrap(out, "\nWhat would turn GDS on: ", &format!("nothing here, as {first}"), width);
        return;
    }
    out.push_str("\nWhat would turn GDS on (one of)\n");
    for change in changes {
        if let Some(why) = &change.impossible {
            line(out, change.mode, &format!("nothing here: {why}"), width);
            continue;
        }
        for (at, step) in change.steps.iter().enumerate() {
            let head = if at == 0 { change.mode } else { "" };
            line(out, head, &format!("{}. {step}", at + 1), width);
        }
    }
}

fn evidence(out: &mut String, why: &Why, width: usize) {
    out.push_str("\nEvidence\n");
    let shown = why.storage.len().min(STORAGE);
    for (at, layer) in why.storage[..shown].iter().enumerate() {
        line(out, if at == 0 { "below the mount" } else { "" }, layer, width);
    }
    if why.storage.len() > shown {
        line(out, "", &format!("and {} more", why.storage.len() - shown), width);
    }
    if !why.mount_options.is_empty() {
        line(out, "mount options", &why.mount_options, width);
    }
    if let Some(link) = &why.coherent {
        line(out, "GPU's own link", &crate::check::coherent::words(link), width);
    }
    // What is as it should be shares a line for each subject.
    let mut rest = why.evidence.as_slice();
    while let Some(first) = rest.first() {
        let same = |one: &&super::Evidence| (one.about, one.met) == (first.about, first.met);
        let count = rest.iter().take_while(same).count();
        let (group, after) = rest.split_at(count);
        rest = after;
        let mark = match first.met {
            Answer::Yes => "ok",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        let head = format!("{:<12} {mark}", first.about.word());
        let found: Vec<String> = group.iter().map(|one| shortened(&one.found)).collect();
        line(out, &head, &found.join("; "), width);
    }
}

/// The first clauses of a long finding. JSON has all of it.
fn shortened(found: &str) -> String {
    if found.chars().count() <= LONGEST {
        return found.to_owned();
    }
    let cut = found.match_indices("; ").map(|(at, _)| at).next();
    cut.map_or_else(|| found.to_owned(), |at| format!("{} …", &found[..at]))
}
