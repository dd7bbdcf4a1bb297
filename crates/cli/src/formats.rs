//! Formats of verbs: those of every document, and a verb's own.

use std::path::Path;

use gpuio_base::document::{Document, FORMATS, Format};
use gpuio_report::format::FORMATS as RECORDS;
use gpuio_report::set::SET_FORMATS;

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

/// Formats of a verb's own, each with what it is.
pub(crate) type Own = [(&'static str, &'static str)];

/// A job file, and the same as a configuration of gdsio.
pub(crate) const PLAN: &Own = &[("job", "the job file"), ("gdsio", "a gdsio config file")];
pub(crate) const TOPO: &Own = &[
    ("svg", "a picture"),
    ("html", "a page that highlights routes"),
    ("hwloc-xml", "for lstopo -i"),
];
pub(crate) const NETWORK: &Own = &[("spec", "figures for --spec")];

/// Text and JSON, a verb's own formats, then what else every document has.
pub(crate) fn names(own: &Own) -> Vec<&'static str> {
    let is_own = |name: &&'static str| own.iter().any(|(own, _)| own == name);
    let mut all = FORMATS.iter().map(|format| format.name).filter(|name| !is_own(name));
    let mut names: Vec<&'static str> = all.by_ref().take(2).collect();
    names.extend(own.iter().map(|(name, _)| *name));
    names.extend(all);
    names
}

/// The same of records.
pub(crate) fn names_of_records() -> Vec<&'static str> {
    RECORDS.iter().map(|row| row.name).collect()
}

/// The format of a report that a browser makes of the page.
pub(crate) const PDF: &str = "pdf";

/// The same of reports.
pub(crate) fn names_of_reports() -> Vec<&'static str> {
    SET_FORMATS.iter().map(|format| format.name).chain([PDF]).collect()
}

/// The format of this name, text if there is none.
pub(crate) fn find(name: Option<&str>, own: &Own) -> Result<Wanted, Failure> {
    let wanted = own.iter().find(|(own, _)| Some(*own) == name);
    locale::printed_as(name.unwrap_or("text"));
    let document = || of_document(name, own).map(Wanted::Document);
    wanted.map_or_else(document, |(own, _)| Ok(Wanted::Own(own)))
}

/// The same for a verb that has none of its own.
pub(crate) fn document(name: Option<&str>) -> Result<&'static Format, Failure> {
    of_document(name, &[])
}

fn of_document(name: Option<&str>, own: &Own) -> Result<&'static Format, Failure> {
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
        (Some(format), Some(name))
            if format != name && name != "text" && !format.ends_with(&format!("-{name}")) =>
        {
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

/// Help on `--format` of a verb with these formats of its own; `last` is behind the list.
pub(crate) fn help(own: &Own, last: &str) -> String {
    let word = |name: &&'static str| match own.iter().find(|(own, _)| own == name) {
        Some((name, "")) => (*name).to_owned(),
        Some((name, what)) => format!("{name} ({what})"),
        None => (*name).to_owned(),
    };
    sentence(names(own).iter().map(word).collect(), last)
}

/// The same for a record.
pub(crate) fn help_of_records(last: &str) -> String {
    sentence(names_of_records().into_iter().map(str::to_owned).collect(), last)
}

fn sentence(mut names: Vec<String>, last: &str) -> String {
    let end = names.pop().unwrap_or_default();
    format!("Output format: {} or {end} {last}", names.join(", "))
}

/// A verb's document in this format, for the terminal.
pub(crate) fn print(format: &Format, verb: &'static str, page: &Document) -> String {
    (format.render)(page, verb, terminal::width())
}
