//! A verdict as a section.

use gpuio_base::document::{Item, Layout, List, Section, first};

use super::{Answer, ModeVerdict, Verdict};

/// More layers and drives than this are cut, and the number of the rest is printed.
const LINES: usize = 12;

/// The pair, the storage below the mount, and each mode with the needs that decide: those lacking,
/// else those unknown, else those met.
pub fn section(verdict: &Verdict) -> Section {
    let mut section = Section::default();
    section.paragraph(format!("VERDICT for {}", verdict.pair()));
    let lines = first(verdict.storage.clone(), LINES);
    section.list(List::behind("storage", Layout { indent: 2, ..Layout::labels(8) }, lines));
    section.list(List::new(Layout::columns(0, 1), verdict.modes.iter().map(mode)));
    section
}

/// A mode or path, whether it works, and what is said of it.
pub(crate) fn answer(what: &str, works: &str, text: &str) -> Item {
    Item::new(format!("{what:<10} {works:<8}"), text)
}

fn mode(mode: &ModeVerdict) -> Item {
    let item = answer(mode.mode, mode.works.word(), mode.is);
    let mut decides: Vec<_> = mode.needs.iter().filter(|need| need.met == mode.works).collect();
    // Several needs may lack the same fact.
    let mut shown: Vec<&str> = Vec::new();
    decides.retain(|need| {
        let new = !shown.contains(&need.found.as_str());
        shown.push(&need.found);
        new
    });
    if mode.works == Answer::Yes {
        let met: Vec<&str> = decides.iter().map(|need| need.found.as_str()).collect();
        return item.and("because", Some(met.join("; ")));
    }
    // A fix helps only where nothing else forbids the mode.
    let mut no = mode.needs.iter().filter(|need| need.met == Answer::No);
    let fixable = no.all(|need| need.fix.is_some());
    decides.into_iter().fold(item, |item, need| {
        item.and("because", Some(need.found.as_str()))
            .and("fix", need.fix.as_deref().filter(|_| fixable))
    })
}
