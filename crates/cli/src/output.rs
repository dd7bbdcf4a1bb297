//! Output: standard output, standard error, and new files.
//!
//! All text that this program prints or saves goes through [`put`], [`print_message`] or [`fit`],
//! which escape terminal control characters and invisible characters. A reader or a terminal that
//! has gone is no error of theirs: the run goes on to its orderly end ([`is_closed`]).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_base::units::{ShellLine, printable_lines};
use gpuio_guard::outfile::{Directory, Draft};
use gpuio_record::{Record, WarningKind};
use gpuio_report::format::text::Show;
use gpuio_report::format::{self, Row};

use crate::args::{Out, Save};
use crate::colour;
use crate::failure::Failure;
use crate::formats;
use crate::last;
use crate::locale;
use crate::made;
use crate::unused;

/// [`print_message`] with the arguments of `format!`.
macro_rules! message {
    ($($words:tt)*) => { $crate::output::print_message(&format!($($words)*)) };
}

/// Formats and output files, checked before the run, so that a typing error does not lose the
/// result of a long run.
pub(crate) struct Sink {
    stdout: Option<&'static Row>,
    /// Whether standard output has only what a run's user needs first.
    screen: bool,
    /// Whether text shows the evidence of all jobs.
    evidence: bool,
    /// Whether text has a row for each rank.
    per_rank: bool,
    file: Option<(Output, &'static Row)>,
}

impl Sink {
    /// Opens the output. An existing file is refused; `--force` replaces one that gpuio wrote and
    /// that has not changed since. `--overwrite` is about data files: one flag must not permit two
    /// dangerous things.
    ///
    /// Without a named format, and unless details are requested, standard output has the short
    /// text of a run, or, of a `quick` one, the summary.
    pub(crate) fn open(out: &Out, quick: bool) -> Result<Sink, Failure> {
        let named = out.format.as_deref().map(find).transpose()?;
        let evidence = out.evidence || out.details;
        let screen = find(if quick && !evidence { "summary" } else { "text" })?;
        let Some(path) = &out.output else {
            let row = named.unwrap_or(screen);
            unused::evidence(out, row.on_demand)?;
            let screen = named.is_none() && !evidence;
            return Ok(Sink { stdout: Some(row), screen, evidence, per_rank: false, file: None });
        };
        let requested = named.map(|row| row.name);
        let name = formats::of_file(requested, Some(path), formats::RECORD_FILES)?;
        let row = find(name.unwrap_or("json"))?;
        let stdout = if out.quiet { None } else { Some(screen) };
        if out.quiet {
            unused::quiet(out, row.on_demand);
        }
        let file = Some((Output::begin("-o", path, Replace::forced(out.force))?, row));
        Ok(Sink { stdout, screen: !evidence, evidence, per_rank: false, file })
    }

    /// Whether it prints text, which says what did not run.
    pub(crate) fn is_text(&self) -> bool {
        self.stdout.is_some_and(|row| locale::FOR_PEOPLE.contains(&row.name))
    }

    /// A JSON file in the working directory, named by the time of day, in addition to the text. If
    /// it can't be written, the run goes on without it.
    pub(crate) fn open_quick(out: &Out) -> Result<Sink, Failure> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let path = PathBuf::from(format!("gpuio-bench-{now}.json"));
        let row = find("json")?;
        let file = match Output::begin("its file", &path, Replace::No) {
            Ok(output) => Some((output, row)),
            Err(failure) => {
                message!("note: the record of this run is not saved: {failure}");
                None
            }
        };
        Ok(Sink { file, ..Sink::open(out, true)? })
    }

    /// Whether the text has a row for each rank.
    pub(crate) fn with_ranks(self, per_rank: bool) -> Sink {
        Sink { per_rank, ..self }
    }

    fn show(&self) -> Show<'static> {
        Show { evidence: self.evidence, per_rank: self.per_rank, ..Show::default() }
    }

    /// Saves and prints; the path of the file.
    pub(crate) fn write(self, record: &Record, width: u16) -> Result<Option<PathBuf>, Failure> {
        let (show, is_text) = (self.show(), self.is_text());
        // First, so that nothing that happens to a terminal or a pipe can lose it.
        let saved = self.file.map(|(output, row)| {
            let text = (row.render)(record, format::TEXT_WIDTH, show);
            output.save_text("the record", &text).map(|path| (path, row))
        });
        let kept = last::keep(record);
        let saved = saved.transpose()?;
        let Some(row) = self.stdout else { return Ok(saved.map(|(path, _)| path)) };
        let rest = saved.as_ref().filter(|(_, row)| row.name == "json").map(|(path, _)| path);
        // Nothing is left out that is nowhere else.
        let screen = self.screen && (rest.is_some() || kept);
        locale::printed_as(row.name);
        let show = Show { screen, ..show };
        match is_text && errors_are_beside_it() {
            true => put(&(row.render)(&without_unused(record), width, show))?,
            false => put(&(row.render)(record, width, show))?,
        }
        let show = match rest {
            Some(path) => ShellLine::new("gpuio show").file(path),
            None => ShellLine::new("gpuio show").word(last::LAST),
        };
        // The lines below a quick run's summary name what is saved.
        let rest = match (&saved, rest) {
            (Some(_), _) if !screen || row.name != "text" => String::new(),
            (Some(_), Some(_)) => format!("\nThe rest: {show}"),
            (Some(_), None) => format!("\nThe rest, until the next run: {show}"),
            (None, _) if screen => format!(" The rest, until the next run: {show}"),
            (None, _) => String::new(),
        };
        match &saved {
            Some((path, row)) => {
                put(&format!("\nRecord: {} ({}){rest}\n", path.display(), row.name))?
            }
            // Other formats are for programs, which read what is there to its end.
            None if is_text => put(&format!("\nNot saved; -o FILE saves it.{rest}\n"))?,
            None => {}
        }
        Ok(saved.map(|(path, _)| path))
    }
}

/// Whether standard output and standard error are one terminal or file: what was printed to one is
/// read in the other.
fn errors_are_beside_it() -> bool {
    let place = |of: rustix::io::Result<rustix::fs::Stat>| of.map(|it| (it.st_dev, it.st_ino));
    let errors = place(rustix::fs::fstat(std::io::stderr()));
    errors.is_ok() && errors == place(rustix::fs::fstat(std::io::stdout()))
}

/// The record without what `report_unused` printed before the run.
fn without_unused(record: &Record) -> Record {
    let is_unused =
        |kind: &WarningKind| matches!(kind, WarningKind::Note { note } if unused::is_said(note));
    let mut shown = record.clone();
    shown.warnings.retain(|warning| !is_unused(&warning.kind));
    shown
}

/// The text of a verb, on its way to standard output or to a file that was checked before the work.
pub(crate) struct Delivery(Option<Output>);

impl Delivery {
    pub(crate) fn open(save: &Save) -> Result<Delivery, Failure> {
        let replace = Replace::forced(save.force);
        let begin = |path: &PathBuf| Output::begin("-o", path, replace);
        save.output.as_ref().map(begin).transpose().map(Delivery)
    }

    pub(crate) fn put(self, text: &str) -> Result<(), Failure> {
        let Some(output) = self.0 else { return put(text) };
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let path = output.save_text("the output", &format!("{text}{newline}"))?;
        message!("Written: {}", path.display());
        Ok(())
    }
}

/// Makes text safe to print or save: keeps line feeds and escapes all other control characters and
/// invisible characters. JSON stays equivalent JSON.
pub(crate) fn fit(text: &str) -> Cow<'_, str> {
    printable_lines(text)
}

/// The same for a terminal of this process's locale.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    locale::shown(fit(text))
}

/// Whether this process prints nothing: it is a rank other than 0.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is printed but by [`print_always`].
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Undoes [`silence`].
pub(crate) fn speak() {
    SILENT.store(false, Ordering::Relaxed);
}

/// Whether nobody takes what goes to standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output, or its terminal, has gone: what prints again and again
/// ends then.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Whether this error says that the other end has gone: a closed pipe, or a terminal that was hung
/// up, which answers EIO. From a file, EIO is lost data.
fn has_gone(error: &std::io::Error, stream: &impl AsFd) -> bool {
    use rustix::fs::{FileType, fstat};
    let is_terminal =
        || fstat(stream).is_ok_and(|it| FileType::from_raw_mode(it.st_mode).is_char_device());
    let hung_up = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    error.kind() == ErrorKind::BrokenPipe || (hung_up && is_terminal())
}

/// Prints to standard output, after [`fit`]. A reader or a terminal that has gone is no error.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    if SILENT.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let mut text = if locale::is_data() { fit(text) } else { shown(text) };
    if colour::is_on(&std::io::stdout()) {
        text = Cow::Owned(colour::painted(&text));
    }
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if has_gone(&error, &out) => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => Err(Failure::Ran(format!("standard output: {error}"))),
    }
}

/// Prints a message to standard error, after [`fit`]. Lines after the first are indented, so that a
/// name with a line feed in it can't pass for a message of its own. A failure to print is ignored.
pub(crate) fn print_message(text: &str) {
    if !SILENT.load(Ordering::Relaxed) {
        print_always(text);
    }
}

/// [`print_message`] by any rank.
pub(crate) fn print_always(text: &str) {
    print_own(message_lines(text));
}

/// Prints text of the program's own to standard error, with its lines as they are.
pub(crate) fn print_own(mut lines: String) {
    if colour::is_on(&std::io::stderr()) {
        lines = colour::painted(&lines);
    }
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}

fn message_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for (nth, line) in shown(text).split('\n').enumerate() {
        let indented = nth == 0 || line.is_empty() || line.starts_with(' ');
        out.push_str(if indented { "" } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
    out
}

pub(crate) fn find(name: &str) -> Result<&'static Row, Failure> {
    format::find(name).ok_or_else(|| formats::unknown(name, &formats::names_of_records()))
}

/// Space that is reserved for a result before the run; most results are smaller.
const RESERVE: u64 = 1 << 20;

/// When an output may take the place of a file that gpuio wrote and nothing changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    /// Never.
    No,
    /// With `--force`.
    Forced,
    /// Without a flag: what is made again from its inputs at any time.
    Always,
}

impl Replace {
    /// As the flag `--force` says.
    pub(crate) fn forced(force: bool) -> Replace {
        if force { Replace::Forced } else { Replace::No }
    }
}

/// An output file that a flag names. It has no name until it is complete, so a killed process
/// leaves nothing behind, and it never replaces another file than one of gpuio's.
#[derive(Debug)]
pub(crate) struct Output {
    flag: &'static str,
    path: PathBuf,
    draft: Draft,
    /// A file of ours that is to be replaced.
    old: Option<File>,
}

impl Output {
    /// Checks name, permission and free space before the work, so that the result of a long run is
    /// not lost at its end. Makes the directory. A file that exists is refused, unless gpuio wrote
    /// it, nothing changed it since, and it may be replaced.
    pub(crate) fn begin(
        flag: &'static str,
        path: &Path,
        replace: Replace,
    ) -> Result<Output, Failure> {
        let at = path.display();
        let refused = |error: std::io::Error| Failure::Usage(format!("{flag} {at}: {error}"));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.exists()) {
            std::fs::create_dir_all(folder).map_err(refused)?;
        }
        let (directory, name) = Directory::of(path).map_err(refused)?;
        let mut old = None;
        if directory.look(&name).map_err(refused)?.is_some() {
            let there = directory.file(&name).map_err(refused)?;
            let ours = there.as_ref().map(made::is_ours).transpose().map_err(refused)?;
            let what = match (replace, ours == Some(true)) {
                (Replace::Forced | Replace::Always, true) => None,
                (Replace::Forced, false) => Some(
                    "gpuio did not write this file, or it was changed since, and --force \
                     replaces no such file; choose another name or remove it first",
                ),
                (Replace::Always, false) => Some(
                    "the file exists already, and gpuio did not write it, or it was changed \
                     since; choose another name or remove it first",
                ),
                (Replace::No, _) => Some(
                    "the file exists already; choose another name, or replace a file of gpuio's \
                     with --force",
                ),
            };
            if let Some(what) = what {
                return Err(Failure::Usage(format!("{flag} {at}: {what}")));
            }
            old = there;
        }
        clear_drafts(&directory, &name);
        let draft = Draft::begin(directory, &name).map_err(refused)?;
        draft.reserve(RESERVE).map_err(|error| Failure::Ran(format!("{flag} {at}: {error}")))?;
        Ok(Output { flag, path: path.to_owned(), draft, old })
    }

    /// Writes a text, after [`fit`], as [`Output::save`] does.
    pub(crate) fn save_text(self, what: &str, text: &str) -> Result<PathBuf, Failure> {
        self.save(what, fit(text).as_bytes())
    }

    /// Writes all of the text and names the file. If a file of that name was created during the
    /// run, or the one to be replaced was changed, that file stays and ours gets a similar name.
    /// Returns the final path.
    pub(crate) fn save(self, what: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let Output { flag, path, mut draft, old } = self;
        let failed = |error: std::io::Error| {
            Failure::Ran(format!("{}: {what} could not be saved: {error}", path.display()))
        };
        draft.fill(bytes).map_err(failed)?;
        made::mark(draft.file(), bytes);
        if let Some(old) = old.filter(|old| made::is_ours(old).unwrap_or(false)) {
            let named = draft.replace(Some(&old));
            return named.map(|_| path.clone()).map_err(|unnamed| failed(unnamed.error));
        }
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
            message!(
                "note: {flag} {}: a file of this name was created or changed during the run and \
                 is kept; {what} is in {}",
                path.display(),
                made.display()
            );
        }
        Ok(made)
    }
}

/// Handles drafts of this file that killed runs left on file systems without unnamed files: removes
/// empty ones and reports the others.
fn clear_drafts(directory: &Directory, name: &OsStr) {
    let empty = |file: &File| file.metadata().is_ok_and(|facts| facts.len() == 0);
    for path in directory.clear_drafts(name, empty) {
        let (remove, path) = (ShellLine::new("rm").file(&path), path.display());
        message!("note: {path} is an incomplete file of a killed run; remove it: {remove}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_message() {
        assert_eq!(message_lines("error: a"), "error: a\n");
        assert_eq!(message_lines("error: a\nerror: b"), "error: a\n  error: b\n");
        assert_eq!(message_lines("error: \x1b[2J\u{202e}\r"), "error: \\x1b[2J\\u202e\\r\n");
    }

    #[test]
    fn what_was_changed_during_the_run_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.txt");
        let begin = |replace| Output::begin("-o", &path, replace);
        begin(Replace::No).unwrap().save("it", b"first").unwrap();
        begin(Replace::No).unwrap_err();
        begin(Replace::Forced).unwrap().save("it", b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        let run = begin(Replace::Always).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let made = run.save("it", b"third").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        assert_eq!(std::fs::read(made).unwrap(), b"third");
        begin(Replace::Always).unwrap_err();
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "\u{9b}a": "\x1b\u{202e}\u{7f}\u{e0041}\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let back: serde_json::Value = serde_json::from_str(&fit(&text)).unwrap();
        assert_eq!(back, value);
    }
}
