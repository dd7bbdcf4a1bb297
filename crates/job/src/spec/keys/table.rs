//! The key table as documentation.

use std::fmt::Write as _;

use super::{Key, Status, keys};

/// Every key as three Markdown tables, for the reference: supported, without effect, refused.
pub fn markdown_table() -> String {
    let mut text = String::from("### Keys that work\n\n| Key | Tool | Sets |\n");
    text.push_str("| --- | --- | --- |\n");
    // Writing to a String cannot fail.
    let mut all: Vec<&Key> = keys().collect();
    all.sort_by_key(|key| key.name);
    for key in all {
        if let Status::Supported(setter) = key.status {
            let bare = if setter.bare().is_some() { "; a bare flag" } else { "" };
            let (spelled, of, about) = (spellings(key), key.dialect.name(), key.about());
            let _ = writeln!(text, "| {spelled} | {of} | {about}{bare} |");
        }
    }
    text.push_str("\n### Keys without effect\n\n| Key | Tool | Why this loses nothing |\n");
    text.push_str("| --- | --- | --- |\n");
    for key in keys() {
        if let Status::NoEffect { why } = key.status {
            let _ = writeln!(text, "| {} | {} | {why} |", spellings(key), key.dialect.name());
        }
    }
    text.push_str("\n### Keys that are refused\n\n| Key | Tool | Why | Instead |\n");
    text.push_str("| --- | --- | --- | --- |\n");
    for key in keys() {
        if let Status::Known { why, instead, .. } = key.status {
            let (spelled, of) = (spellings(key), key.dialect.name());
            let _ = writeln!(text, "| {spelled} | {of} | {why} | {instead} |");
        }
    }
    text
}

fn spellings(key: &Key) -> String {
    key.spellings().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
