//! Formats of verbs: those of every document, and a verb's own.

use gpuio_document::{Document, FORMATS, Format};

use crate::failure::Failure;
use crate::ui::terminal_width;

/// A format of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The format of this name, which every document has.
    Document(&'static str),
    /// The verb's own format of this name.
    Own(&'static str),
}

/// Text and JSON, a verb's own formats, then what else every document has.
fn names(own: &[&'static str]) -> Vec<&'static str> {
    let mut all = FORMATS.iter().map(|format| format.name).filter(|name| !own.contains(name));
    let mut names: Vec<&'static str> = all.by_ref().take(2).collect();
    names.extend(own);
    names.extend(all);
    names
}

/// The format of this name, text if there is none.
pub(crate) fn find(name: Option<&str>, own: &[&'static str]) -> Result<Wanted, Failure> {
    let name = name.unwrap_or("text");
    let names = names(own);
    let Some(found) = names.iter().find(|known| **known == name) else {
        return Err(Failure::Usage(format!("--format {name}: formats are {}", names.join(", "))));
    };
    Ok(if own.contains(found) { Wanted::Own(found) } else { Wanted::Document(found) })
}

/// The same for a verb that has none of its own.
pub(crate) fn document(name: Option<&str>) -> Result<&'static str, Failure> {
    find(name, &[]).map(|(Wanted::Document(name) | Wanted::Own(name))| name)
}

/// Help on `--format` of a verb with these formats of its own, each with what it is; `last` is
/// behind the list.
pub(crate) fn help(own: &[(&'static str, &'static str)], last: &str) -> String {
    let keys: Vec<&'static str> = own.iter().map(|(name, _)| *name).collect();
    let word = |name: &&'static str| match own.iter().find(|(own, _)| own == name) {
        Some((name, "")) => (*name).to_owned(),
        Some((name, what)) => format!("{name} ({what})"),
        None => (*name).to_owned(),
    };
    let mut words: Vec<String> = names(&keys).iter().map(word).collect();
    let end = words.pop().unwrap_or_default();
    format!("Output format: {} or {end} {last}", words.join(", "))
}

/// A verb's document in this format, for the terminal.
pub(crate) fn print(name: &str, verb: &'static str, page: &Document) -> String {
    print_at(name, verb, page, terminal_width())
}

/// The same with lines of text of at most so many characters.
pub(crate) fn print_at(name: &str, verb: &'static str, page: &Document, width: u16) -> String {
    let format: &Format = gpuio_document::find(name).unwrap_or(&FORMATS[0]);
    (format.render)(page, verb, width)
}
