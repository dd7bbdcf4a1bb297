//! An answer as a document, made to fit one screen.

use gpuio_base::document::{Document, Item, Layout, List, first, unique};

use super::{Change, Why};
use crate::check::verdict::Answer;

/// More layers of storage than this are cut, and the number of the rest is printed.
const STORAGE: usize = 4;
/// Longer findings are cut after their first clause, in characters.
const LONGEST: usize = 200;
/// Width of the words before a line.
const HEAD: usize = 20;

/// The conclusion, the ways, what would change it, the evidence, and the next commands to run.
pub fn document(why: &Why, next: &[String]) -> Document {
    let mut page = Document::new("Is GDS on?");
    page.begin("", "").paragraph(format!("{}.", why.conclusion));
    page.begin("ways", "Bytes go")
        .list(list(why.ways.iter().map(|way| Item::new(way.with, way.words.as_str()))));
    changes(&mut page, &why.changes);
    evidence(&mut page, why);
    self::next(&mut page, next);
    page
}

/// Lines behind words of their own column.
pub(super) fn list(items: impl IntoIterator<Item = Item>) -> List {
    List::new(Layout::columns(HEAD, 1), items)
}

pub(super) fn next(page: &mut Document, commands: &[String]) {
    page.begin("", "").list(List::behind(
        "Next",
        Layout::labels(5),
        commands.iter().map(String::as_str),
    ));
}

pub(super) fn changes(page: &mut Document, changes: &[Change]) {
    const TITLE: &str = "Changes that would turn GDS on";
    let reasons: Vec<&String> = changes.iter().filter_map(|one| one.impossible.as_ref()).collect();
    if let (Some(first), true) = (reasons.first(), reasons.len() == changes.len())
        && reasons.iter().all(|reason| reason == first)
    {
        page.begin("", "")
            .item(Layout::labels(0), Item::new(TITLE, format!("nothing here, as {first}")));
        return;
    }
    let section = page.begin("changes", format!("{TITLE} (one of)"));
    for change in changes {
        let steps = match &change.impossible {
            Some(why) => vec![format!("nothing here: {why}")],
            None => {
                let steps = change.steps.iter().enumerate();
                steps.map(|(at, step)| format!("{}. {step}", at + 1)).collect()
            }
        };
        section.list(List::behind(change.mode, Layout::columns(HEAD, 1), steps));
    }
}

fn evidence(page: &mut Document, why: &Why) {
    let section = page.begin("evidence", "Evidence");
    let layers = first(why.storage.clone(), STORAGE);
    section.list(List::behind("below the mount", Layout::columns(HEAD, 1), layers));
    let options = (!why.mount_options.is_empty()).then_some(why.mount_options.as_str());
    let options = options.map(|options| Item::new("mount options", options));
    let link = why.coherent.as_ref();
    let link = link.map(|link| Item::new("GPU's own link", crate::check::coherent::words(link)));
    // Evidence in good order shares one line for each subject.
    let same = |a: &super::Evidence, b: &super::Evidence| (a.about, a.met) == (b.about, b.met);
    let found = why.evidence.chunk_by(same).map(|group| {
        let mark = match group[0].met {
            Answer::Yes => "ok",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        let found: Vec<String> = group.iter().map(words).collect();
        // Several findings may have a reason in common.
        let found = unique(found.join("; ").split("; ")).join("; ");
        Item::new(format!("{:<12} {mark}", group[0].about.word()), found)
    });
    section.list(list(options.into_iter().chain(link).chain(found)));
}

/// The finding; one that keeps no direct mode from working says so.
fn words(one: &super::Evidence) -> String {
    let of_compat = one.met == Answer::No && one.modes == ["compat"];
    let of_compat = if of_compat { "; it matters to compatibility mode alone" } else { "" };
    shortened(&one.found) + of_compat
}

/// The first clauses of a long finding. JSON has all of it.
fn shortened(found: &str) -> String {
    if found.chars().count() <= LONGEST {
        return found.to_owned();
    }
    let cut = found.match_indices("; ").map(|(at, _)| at).next();
    cut.map_or_else(|| found.to_owned(), |at| format!("{} …", &found[..at]))
}
