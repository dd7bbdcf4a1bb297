//! Where results go: standard output, and a file that must not have been there.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpuio_record::Record;
use gpuio_report::format::{self, Row};

use crate::args::Out;
use crate::failure::Failure;

/// Formats and places, checked before the run, so that an hour's result is not lost to a typing
/// error at its end.
#[derive(Debug)]
pub(crate) struct Sink {
    stdout: Option<&'static Row>,
    /// Whether text shows the witnesses of all jobs.
    evidence: bool,
    file: Option<(PathBuf, File, &'static Row)>,
}

impl Sink {
    /// Opens the output. A file that exists already is always refused: `--overwrite` is about data
    /// files, and one flag must not do two dangerous things.
    pub(crate) fn open(out: &Out) -> Result<Sink, Failure> {
        let named = out.format.as_deref().map(find).transpose()?;
        let Some(path) = &out.output else {
            let text = find("text")?;
            let stdout = Some(named.unwrap_or(text));
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
        let file = create("-o", path)?;
        let file = Some((path.clone(), file, row));
        Ok(Sink { stdout, evidence: out.evidence, file })
    }

    /// A JSON file beside the text, in the working directory, by the time of day. Where none can
    /// be written, the run goes on without.
    pub(crate) fn open_quick(evidence: bool) -> Result<Sink, Failure> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let path = PathBuf::from(format!("gpuio-bench-{now}.json"));
        let row = find("json")?;
        let file = match create("-o", &path) {
            Ok(file) => Some((path, file, row)),
            Err(failure) => {
                eprintln!("note: no record is saved: {failure}");
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
        if let Some((path, mut file, row)) = self.file {
            let text = rendered(row, record, format::TEXT_WIDTH, self.evidence);
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| {
                Failure::Ran(format!("{}: the record could not be saved: {error}", path.display()))
            })?;
            if self.stdout.is_some() {
                put(&format!("\nRecord: {} ({})\n", path.display(), row.name))?;
            }
        }
        Ok(())
    }

    /// Takes the empty file away again when there will be no record.
    pub(crate) fn abandon(self) {
        if let Some((path, _, _)) = self.file {
            // It was made by `open` and is empty; if it can't be removed it does no harm.
            let _ = std::fs::remove_file(path);
        }
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

/// Prints to standard output; a reader that has gone away is no error.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Ran(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The format of this name.
pub(crate) fn find(name: &str) -> Result<&'static Row, Failure> {
    format::find(name).ok_or_else(|| {
        let known: Vec<&str> = format::FORMATS.iter().map(|row| row.name).collect();
        Failure::Usage(format!("--format {name}: formats are {}", known.join(", ")))
    })
}

/// A new file, for this flag.
pub(crate) fn create(flag: &str, path: &Path) -> Result<File, Failure> {
    File::create_new(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; choose another name, or remove it first",
            _ => "",
        };
        Failure::Usage(format!("{flag} {}: {error}{hint}", path.display()))
    })
}
