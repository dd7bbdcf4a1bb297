//! A verdict as text.

use std::fmt::Write as _;

use super::{Answer, Verdict};
use crate::check::text::wrap;

/// More layers and drives than this are cut, and the number of the rest is printed.
const LINES: usize = 12;

/// The pair, what the mount lies on, and each mode with what decides: what is lacking, else what is
/// not known, else what is met. Lines have at most `width` characters, where words allow it.
#[must_use]
pub fn render(verdict: &Verdict, width: usize) -> String {
    let mut out = String::new();
    let head = format!("VERDICT for {}", verdict.pair());
    wrap(&mut out, "", &head, width);
    let shown = verdict.storage.len().min(LINES);
    for (index, line) in verdict.storage[..shown].iter().enumerate() {
        wrap(&mut out, if index == 0 { "  storage: " } else { "           " }, line, width);
    }
    if verdict.storage.len() > shown {
        let _ = writeln!(out, "           and {} more", verdict.storage.len() - shown);
    }
    for mode in &verdict.modes {
        let works = mode.works.word();
        wrap(&mut out, &format!("  {:<10} {works:<8} ", mode.mode), mode.is, width);
        let indent = " ".repeat(22);
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
            wrap(&mut out, &format!("{indent}because: "), &met.join("; "), width);
            continue;
        }
        // A fix helps only where nothing else forbids the mode.
        let fixable = mode.needs.iter().filter(|need| need.met == Answer::No);
        let fixable = fixable.clone().all(|need| need.fix.is_some());
        for need in decides {
            wrap(&mut out, &format!("{indent}because: "), &need.found, width);
            if let Some(fix) = need.fix.as_ref().filter(|_| fixable) {
                wrap(&mut out, &format!("{indent}fix: "), fix, width);
            }
        }
    }
    out
}
