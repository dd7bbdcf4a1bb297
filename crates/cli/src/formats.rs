//! Formats of verbs: those of every document, and a verb's own.

use std::path::Path;

use gpuio_base::document::{Document, FORMATS, Format};
use gpuio_report::format::FORMATS as RECORDS;

use crate::args::Save;
use crate::failure::Failure;
use crate::{locale, terminal};

/// A format of a verb.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// Every document has it.
    Document(&'static Format),
    /// The verb's own format of this name.
    Own(&'static str),
}

impl Wanted {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wanted::Document(format) => format.name,
            Wanted::Own(name) => name,
        }
    }
}

/// Text and JSON, a verb's own formats, then what else every document has.
pub(crate) fn names(own: &[&'static str]) -> Vec<&'static str> {
    let mut all = FORMATS.iter().map(|format| format.name).filter(|name| !own.contains(name));
    let mut names: Vec<&'static str> = all.by_ref().take(2).collect();
    names.extend(own);
    names.extend(all);
    names
}

/// The format of this name, text if there is none.
pub(crate) fn find(name: Option<&str>, own: &[&'static str]) -> Result<Wanted, Failure> {
    let wanted = name.and_then(|name| own.iter().find(|own| **own == name));
    locale::printed_as(name.unwrap_or("text"));
    wanted.map_or_else(|| of_document(name, own).map(Wanted::Document), |own| Ok(Wanted::Own(own)))
}

/// The same for a verb that has none of its own.
pub(crate) fn document(name: Option<&str>) -> Result<&'static Format, Failure> {
    of_document(name, &[])
}

fn of_document(name: Option<&str>, own: &[&'static str]) -> Result<&'static Format, Failure> {
    let name = name.unwrap_or("text");
    locale::printed_as(name);
    gpuio_base::document::find(name).ok_or_else(|| unknown(name, &names(own)))
}

/// The same for a verb's output, which may be a file.
pub(crate) fn saved(name: Option<&str>, save: &Save) -> Result<&'static Format, Failure> {
    document(of_file(name, save.output.as_deref(), &[])?)
}

/// Endings of files and formats that documents do not have: of records, whose plan is a job file.
pub(crate) const RECORD_FILES: &[(&str, &str)] = &[("ini", "plan")];

/// The name of the format of an output: the one that was requested, else what the ending of the
/// file's name says, of `own` endings first. Both must agree, but a text file may hold any format.
pub(crate) fn of_file<'n>(
    requested: Option<&'n str>,
    path: Option<&Path>,
    own: &[(&str, &'n str)],
) -> Result<Option<&'n str>, Failure> {
    let Some(path) = path else { return Ok(requested) };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let said = match own.iter().find(|(own, _)| *own == ending) {
        Some((_, name)) => Some(*name),
        None => gpuio_base::document::by_extension(ending).map(|format| format.name),
    };
    match (requested, said) {
        (Some(format), Some(name)) if format != name && name != "text" => {
            Err(Failure::Usage(format!(
                "--format {format} -o {}: the file's name says {name}; give it another ending, or \
                 leave --format out",
                path.display()
            )))
        }
        _ => Ok(requested.or(said)),
    }
}

/// No format has this name.
pub(crate) fn unknown(name: &str, known: &[&str]) -> Failure {
    Failure::Usage(format!("--format {name}: formats are {}", known.join(", ")))
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
    sentence(names(&keys).iter().map(word).collect(), last)
}

/// The same for a record.
pub(crate) fn help_of_records(last: &str) -> String {
    sentence(RECORDS.iter().map(|row| row.name.to_owned()).collect(), last)
}

fn sentence(mut names: Vec<String>, last: &str) -> String {
    let end = names.pop().unwrap_or_default();
    format!("Output format: {} or {end} {last}", names.join(", "))
}

/// A verb's document in this format, for the terminal.
pub(crate) fn print(format: &Format, verb: &'static str, page: &Document) -> String {
    (format.render)(page, verb, terminal::width())
}
