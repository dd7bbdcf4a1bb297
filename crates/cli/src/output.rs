//! Where text goes: standard output, standard error, and files that must not have been there.
//!
//! Everything that this program prints or saves as text passes [`put`], [`tell`] or [`fit`], which
//! leave nothing in it that a terminal obeys or that nobody sees.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use gpuio_outfile::{Directory, Draft};
use gpuio_record::Record;
use gpuio_report::format::{self, Row};
use gpuio_units::printable_lines;

use crate::args::Out;
use crate::failure::Failure;
use crate::unused;

/// [`tell`] of what `format!` makes of the same words.
macro_rules! tell {
    ($($words:tt)*) => { $crate::output::tell(&format!($($words)*)) };
}

/// Formats and places, checked before the run, so that an hour's result is not lost to a typing
/// error at its end.
#[derive(Debug)]
pub(crate) struct Sink {
    stdout: Option<&'static Row>,
    /// Whether text shows the witnesses of all jobs.
    evidence: bool,
    file: Option<(Output, &'static Row)>,
}

impl Sink {
    /// Opens the output. A file that exists already is always refused: `--overwrite` is about data
    /// files, and one flag must not do two dangerous things.
    pub(crate) fn open(out: &Out) -> Result<Sink, Failure> {
        let named = out.format.as_deref().map(find).transpose()?;
        let Some(path) = &out.output else {
            let text = find("text")?;
            let row = named.unwrap_or(text);
            unused::evidence(out.evidence, row.name == "text")?;
            let stdout = Some(row);
            return Ok(Sink { stdout, evidence: out.evidence, file: None });
        };
        let row = match named {
            Some(row) => row,
            None => find(match path.extension().and_then(|e| e.to_str()) {
                Some("csv") => "csv",
                Some("txt") => "text",
                Some("ini") => "plan",
                _ => "json",
            })?,
        };
        let stdout = if out.quiet { None } else { Some(find("text")?) };
        unused::evidence(out.evidence, stdout.is_some() || row.name == "text")?;
        let file = Some((Output::begin("-o", path)?, row));
        Ok(Sink { stdout, evidence: out.evidence, file })
    }

    /// A JSON file beside the text, in the working directory, by the time of day. Where none can
    /// be written, the run goes on without.
    pub(crate) fn open_quick(evidence: bool) -> Result<Sink, Failure> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let path = PathBuf::from(format!("gpuio-bench-{now}.json"));
        let row = find("json")?;
        let file = match Output::begin("-o", &path) {
            Ok(output) => Some((output, row)),
            Err(failure) => {
                tell!("note: no record is saved: {failure}");
                None
            }
        };
        Ok(Sink { stdout: Some(find("text")?), evidence, file })
    }

    /// Prints and saves.
    pub(crate) fn write(self, record: &Record, width: u16) -> Result<(), Failure> {
        if let Some(row) = self.stdout {
            put(&rendered(row, record, width, self.evidence))?;
        }
        if let Some((output, row)) = self.file {
            let text = rendered(row, record, format::TEXT_WIDTH, self.evidence);
            let path = output.save_text("the record", &text)?;
            if self.stdout.is_some() {
                put(&format!("\nRecord: {} ({})\n", path.display(), row.name))?;
            }
        }
        Ok(())
    }
}

/// The record in this format; `evidence` and `width` concern text alone.
pub(crate) fn rendered(row: &Row, record: &Record, width: u16, evidence: bool) -> String {
    match (row.name, evidence) {
        ("text", false) => format::text::render_text(record, width),
        ("text", true) => format::text::render_text_with_evidence(record, width),
        _ => (row.render)(record),
    }
}

/// Text as it may be printed or saved: line feeds stay, and of all else that a terminal obeys or
/// that nobody sees stands an escape. JSON stays the same JSON.
pub(crate) fn fit(text: &str) -> Cow<'_, str> {
    printable_lines(text)
}

/// Prints to standard output, [`fit`]; a reader that has gone away is no error.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let text = fit(text);
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Ran(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A message on standard error, [`fit`]. Lines after the first are indented, so that a name with a
/// line feed in it can't pass for a message of its own. What can't be written is lost: there is
/// nobody left to tell.
pub(crate) fn tell(text: &str) {
    let _ = std::io::stderr().lock().write_all(message(text).as_bytes());
}

fn message(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for (nth, line) in fit(text).split('\n').enumerate() {
        let indented = nth == 0 || line.is_empty() || line.starts_with(' ');
        out.push_str(if indented { "" } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The format of this name.
pub(crate) fn find(name: &str) -> Result<&'static Row, Failure> {
    format::find(name).ok_or_else(|| {
        let known: Vec<&str> = format::FORMATS.iter().map(|row| row.name).collect();
        Failure::Usage(format!("--format {name}: formats are {}", known.join(", ")))
    })
}

/// Room that is taken for a result when it is begun; most are shorter.
const ROOM: u64 = 1 << 20;

/// A file that somebody asked for by a flag. It has no name until it is whole, so a process that is
/// killed leaves nothing in the way of the next, and it never takes the name of another file.
#[derive(Debug)]
pub(crate) struct Output {
    flag: &'static str,
    path: PathBuf,
    draft: Draft,
}

impl Output {
    /// Checks name, permission and room before the work, so that a long one is not lost at its end.
    pub(crate) fn begin(flag: &'static str, path: &Path) -> Result<Output, Failure> {
        let at = path.display();
        let refused = |error: std::io::Error| Failure::Usage(format!("{flag} {at}: {error}"));
        let (directory, name) = Directory::of(path).map_err(refused)?;
        if directory.look(&name).map_err(refused)?.is_some() {
            return Err(Failure::Usage(format!(
                "{flag} {at}: it exists already; choose another name, or remove it first"
            )));
        }
        clear_drafts(&directory, &name);
        let draft = Draft::begin(directory, &name).map_err(refused)?;
        draft.reserve(ROOM).map_err(|error| Failure::Ran(format!("{flag} {at}: {error}")))?;
        Ok(Output { flag, path: path.to_owned(), draft })
    }

    /// Writes a text, [`fit`], as [`Output::save`] does.
    pub(crate) fn save_text(self, what: &str, text: &str) -> Result<PathBuf, Failure> {
        self.save(what, fit(text).as_bytes())
    }

    /// Writes all of it and gives it its name. Where somebody has put a file there meanwhile, that
    /// one stays and ours gets a name beside it. Where it is in the end.
    pub(crate) fn save(self, what: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let Output { flag, path, mut draft } = self;
        let failed = |error: std::io::Error| {
            Failure::Ran(format!("{}: {what} could not be saved: {error}", path.display()))
        };
        draft.fill(bytes).map_err(failed)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        for number in 2.. {
            let taken = match draft.give_name_as(&name) {
                Ok(_) => break,
                Err(unnamed) => *unnamed,
            };
            if taken.error.kind() != ErrorKind::AlreadyExists {
                return Err(failed(taken.error));
            }
            draft = taken.draft;
            name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
            name.push(format!(".{number}"));
        }
        let made = path.with_file_name(&name);
        if made != path {
            tell!(
                "note: {flag} {}: somebody made a file of this name meanwhile, which stays; {what} \
                 is in {}",
                path.display(),
                made.display()
            );
        }
        Ok(made)
    }
}

/// What killed runs left of this file where the file system knows no files without names: empty
/// ones go, others are told.
fn clear_drafts(directory: &Directory, name: &OsStr) {
    let empty = |file: &File| file.metadata().is_ok_and(|facts| facts.len() == 0);
    for path in directory.clear_drafts(name, empty) {
        let path = path.display();
        tell!("note: {path} is a draft that a killed run left; remove it: rm '{path}'");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_message() {
        assert_eq!(message("error: a"), "error: a\n");
        assert_eq!(message("error: a\nerror: b"), "error: a\n  error: b\n");
        assert_eq!(message("error: \x1b[2J\u{202e}\r"), "error: \\x1b[2J\\u202e\\r\n");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "\u{9b}a": "\x1b\u{202e}\u{7f}\u{e0041}\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let back: serde_json::Value = serde_json::from_str(&fit(&text)).unwrap();
        assert_eq!(back, value);
    }
}
