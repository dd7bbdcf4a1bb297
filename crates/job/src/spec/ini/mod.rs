//! Job files: `[section]` headers and `key=value` lines, as fio and gdsio write them.

mod error;
mod expand;
mod line;
mod place;

pub use error::{JobFileError, JobFileFault};
pub use place::At;

use std::sync::Arc;

use crate::spec::dialect::Dialect;
use crate::spec::gdsio::speak_gdsio;
use crate::spec::job::{JobSpec, Spec};
use crate::spec::keys::{KeyError, Status, apply, find};
use crate::spec::{Origin, Requested};
pub use expand::MACHINE as MACHINE_WORDS;
use expand::expand;
use line::{Line, Setting};
use place::Place;

/// Maximum number of errors to collect: more than a screen is no help.
pub const MAX_ERRORS: usize = 20;

/// Reads a job file.
///
/// `file` is the name for errors and origins. `text` should be UTF-8 (a byte order mark and CRLF
/// line ends are fine). `env` gives the value of `${NAME}`, and that of fio's words for numbers of
/// the machine ([`MACHINE_WORDS`]) by these; it is only called for them.
///
/// # Errors
///
/// Every error found, up to [`MAX_ERRORS`], in the order of the file; never an empty list.
///
/// ```
/// let spec = gpuio_job::spec::parse_job_file("a.fio", "[job1]\nbs=4k\niodepth=8\n", &|_| None);
/// assert_eq!(spec.map(|spec| spec.jobs[0].depth), Ok(Some(8)));
/// ```
pub fn parse(
    file: &str,
    text: impl AsRef<[u8]>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Spec, Vec<JobFileError>> {
    parse_at(file, text, env, None)
}

/// The same for the process at a place: its sections `[place HOSTS/NUMBER]` apply to all jobs, or
/// to the one that they name. Later ones replace what earlier ones set. Without a place these
/// sections are checked, and apply to nothing.
///
/// # Errors
///
/// As for [`parse`]; and where the file has such sections, and none of them fits.
pub fn parse_at(
    file: &str,
    text: impl AsRef<[u8]>,
    env: &dyn Fn(&str) -> Option<String>,
    at: Option<At<'_>>,
) -> Result<Spec, Vec<JobFileError>> {
    let none = |_: &str| -> Result<Vec<u8>, String> {
        Err("there is no file here that could be included".to_owned())
    };
    parse_with(file, text, Sources { env, file: &none }, at)
}

/// Where a job file takes other texts from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The value of a variable; see [`parse`].
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that is included, by the name in the line; or why there is none.
    pub file: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// The same where files may be included: fio's line `include FILE` stands for the lines of that
/// file.
///
/// # Errors
///
/// As for [`parse_at`], with the name of the file that has the error.
pub fn parse_with(
    file: &str,
    text: impl AsRef<[u8]>,
    sources: Sources<'_>,
    at: Option<At<'_>>,
) -> Result<Spec, Vec<JobFileError>> {
    let mut reader = Reader {
        file: Arc::from(file),
        sources,
        depth: 0,
        at,
        places: Vec::new(),
        spec: Spec::default(),
        global: JobSpec::new(""),
        section: Section::Before,
        unread: Vec::new(),
        errors: Vec::new(),
    };
    let last = reader.take(text.as_ref());
    if reader.spec.jobs.is_empty() && reader.errors.is_empty() {
        reader.fail(last, 1, JobFileFault::NoJob);
    }
    reader.finish()
}

/// Line and column just after text that is known to be UTF-8.
fn end_of(valid: &[u8]) -> (u32, u32) {
    let valid = String::from_utf8_lossy(valid);
    let valid = valid.strip_prefix('\u{feff}').unwrap_or(&valid);
    let last = valid.rsplit('\n').next().unwrap_or("");
    let lines = valid.matches('\n').count();
    (position(lines), position(last.chars().count()))
}

/// Converts an index from 0 to a position from 1. Saturates at 2^32 lines.
fn position(count: usize) -> u32 {
    u32::try_from(count).map_or(u32::MAX, |count| count.saturating_add(1))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Global,
    Job,
    /// The last of the places.
    Place,
    /// After an invalid header: keys are checked and discarded.
    Broken,
}

/// Files that include one another, at most.
const DEPTH_MOST: u32 = 8;

struct Reader<'a> {
    /// The one that is read.
    file: Arc<str>,
    sources: Sources<'a>,
    /// How many files include it, one by another.
    depth: u32,
    at: Option<At<'a>>,
    places: Vec<Place>,
    spec: Spec,
    global: JobSpec,
    section: Section,
    /// Position and key of each setting of `[global]` since the last job's header.
    unread: Vec<(u32, u32, String)>,
    errors: Vec<JobFileError>,
}

impl Reader<'_> {
    /// Reads a whole file; the number of its last line.
    fn take(&mut self, bytes: &[u8]) -> u32 {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.read(text),
            Err(error) => {
                let (line, column) = end_of(&bytes[..error.valid_up_to()]);
                let utf16 = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
                self.fail(line, column, JobFileFault::NotUtf8 { utf16 });
                line
            }
        }
    }

    /// Reads the lines of another file here.
    fn include(&mut self, line: u32, column: u32, name: &str) {
        let fault = |why: String| JobFileFault::NotIncluded { name: name.to_owned(), why };
        if self.depth == DEPTH_MOST {
            let why = format!("{DEPTH_MOST} files include one another, which are the most");
            self.fail(line, column, fault(why));
            return;
        }
        match (self.sources.file)(name) {
            Err(why) => self.fail(line, column, fault(why)),
            Ok(text) => {
                let outer = std::mem::replace(&mut self.file, Arc::from(name));
                self.depth += 1;
                self.take(&text);
                self.depth -= 1;
                self.file = outer;
            }
        }
    }

    fn read(&mut self, text: &str) -> u32 {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut last = 0;
        for (index, line) in text.split('\n').enumerate() {
            if self.errors.len() >= MAX_ERRORS {
                break;
            }
            last = index;
            self.line(position(index), line.strip_suffix('\r').unwrap_or(line));
        }
        position(last)
    }

    fn line(&mut self, number: u32, text: &str) {
        if let Some(at) = text.find('\0') {
            self.fail(number, column(text, at), JobFileFault::Nul);
            return;
        }
        match line::read(text) {
            Ok(Line::Nothing) => {}
            Ok(Line::Section("global")) => self.section = Section::Global,
            Ok(Line::Section(name)) if place::is_header(name) => {
                let at = column(text, text.find('[').unwrap_or(0));
                match Place::read(name, (number, at)) {
                    Some(place) => {
                        self.section = Section::Place;
                        self.places.push(place);
                    }
                    None => {
                        self.section = Section::Broken;
                        self.fail(number, at, JobFileFault::BadPlace);
                    }
                }
            }
            Ok(Line::Section(name)) => {
                self.section = Section::Job;
                self.unread.clear();
                self.spec.jobs.push(JobSpec { name: name.to_owned(), ..self.global.clone() });
            }
            Ok(Line::Setting(setting)) => self.setting(number, text, &setting),
            Err((at, fault)) => {
                if text.trim_start().starts_with('[') {
                    self.section = Section::Broken;
                }
                self.fail(number, column(text, at), fault);
            }
        }
    }

    fn setting(&mut self, number: u32, text: &str, setting: &Setting<'_>) {
        let key_column = column(text, setting.key_at);
        if let (Some(name), None) = (included(setting.key), setting.value) {
            self.include(number, key_column, name);
            return;
        }
        if self.section == Section::Before {
            let key = crate::spec::value::shown(setting.key);
            self.fail(number, key_column, JobFileFault::OutsideSection { key });
            return;
        }
        let Some((value_at, raw)) = setting.value else {
            self.bare(number, key_column, setting.key);
            return;
        };
        let value = match expand(raw, column(text, value_at), self.sources.env) {
            Ok(value) => value,
            Err((at, fault)) => {
                self.fail(number, at, fault);
                return;
            }
        };
        if self.section == Section::Place && !place::takes(setting.key) {
            let key = crate::spec::value::shown(setting.key);
            self.fail(number, key_column, JobFileFault::NoPlacement { key });
            return;
        }
        // An unknown key is reported as such, whether or not it has a value.
        if value.text.is_empty() && find(setting.key).is_some() {
            let key = setting.key.to_owned();
            let variable = !raw.is_empty();
            let at = column(text, value_at);
            self.fail(number, at, JobFileFault::EmptyValue { key, variable });
            return;
        }
        if let Err(error) = self.apply(number, key_column, setting.key, &value.text) {
            let at = match &error {
                KeyError::Value { at, .. } => value.column(*at),
                KeyError::FullWidth { in_value, at, .. } if *in_value => value.column(*at),
                KeyError::FullWidth { at, .. } => column(text, setting.key_at + at),
                _ => key_column,
            };
            self.fail(number, at, JobFileFault::Key(error));
        }
    }

    /// A line without `=`: a flag, or a key whose value follows after a blank.
    fn bare(&mut self, number: u32, key_column: u32, words: &str) {
        if self.section == Section::Place && !place::takes(words) {
            let key = crate::spec::value::shown(words);
            self.fail(number, key_column, JobFileFault::NoPlacement { key });
            return;
        }
        let mut parts = words.splitn(2, line::is_blank);
        let (first, more) = (parts.next().unwrap_or(words), parts.next());
        let known = find(first);
        let refused = known.is_some_and(|key| matches!(key.status, Status::Known { .. }));
        if let (Some(key), Some(_), false) = (known, more, refused) {
            let key = key.name;
            self.fail(number, key_column, JobFileFault::NoEquals { key });
        } else if let Err(error) = self.apply(number, key_column, first, "") {
            let at = match &error {
                KeyError::FullWidth { at, .. } => key_column
                    .saturating_add(position(first[..*at].chars().count()).saturating_sub(1)),
                _ => key_column,
            };
            self.fail(number, at, JobFileFault::Key(error));
        }
    }

    fn apply(&mut self, line: u32, column: u32, key: &str, value: &str) -> Result<(), KeyError> {
        let origin = Origin::File { file: Arc::clone(&self.file), line, column };
        let mut nowhere = JobSpec::default();
        if let (Section::Place, Some(place)) = (self.section, self.places.last_mut()) {
            // Applied to a job of its own to be checked.
            apply(&mut nowhere, key, value, origin.clone())?;
            place.add(key, value, origin);
            return Ok(());
        }
        let job = match self.section {
            Section::Job => self.spec.jobs.last_mut().unwrap_or(&mut nowhere),
            Section::Global => &mut self.global,
            Section::Before | Section::Place | Section::Broken => &mut nowhere,
        };
        apply(job, key, value, origin)?;
        let of_run = find(key).is_some_and(|key| key.name == "name");
        if self.section == Section::Global && !of_run {
            self.unread.push((line, column, key.to_owned()));
        }
        // In [global] the name is the run's, and no job inherits it.
        if self.section == Section::Global && self.global.requested.remove("name").is_some() {
            self.spec.name = Some(std::mem::take(&mut self.global.name));
        }
        Ok(())
    }

    fn fail(&mut self, line: u32, column: u32, fault: JobFileFault) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(JobFileError { file: Arc::clone(&self.file), line, column, fault });
        }
    }

    /// Applies the places that fit, in the order of the file.
    fn place(&mut self) {
        let places = std::mem::take(&mut self.places);
        for place in &places {
            let (line, column) = place.at;
            if let Some(job) = place.of_no_job(&self.spec.jobs) {
                self.fail(line, column, JobFileFault::PlaceOfNoJob { job });
            }
        }
        let (Some(at), Some(first)) = (self.at, places.first()) else { return };
        if !self.errors.is_empty() {
            return;
        }
        let mut fits = false;
        for place in places.iter().filter(|place| place.fits(at)) {
            fits = true;
            if let Err(error) = place.apply_to(&mut self.spec.jobs) {
                self.fail(place.at.0, place.at.1, JobFileFault::Key(error));
            }
        }
        if !fits {
            let (host, local_rank) = (at.host.to_owned(), at.local_rank);
            let (line, column) = first.at;
            self.fail(line, column, JobFileFault::NoPlace { host, local_rank });
        }
    }

    /// Keys that jobs which write can't have, where the file has other errors anyway: without these
    /// a flag may still make the load one that only reads.
    fn refused_writes(&mut self) {
        if self.errors.is_empty() {
            return;
        }
        let writes = |job: &&JobSpec| job.reads_percent() < 100;
        let of_jobs = self.spec.jobs.iter().filter(writes).flat_map(|job| &job.for_writes);
        let mut found: Vec<JobFileError> = Vec::new();
        for refused in of_jobs {
            let Origin::File { file, line, column } = &refused.origin else { continue };
            let fault = find(refused.name).and_then(|key| match key.status {
                Status::Known { why, instead, .. } => {
                    let (key, dialect) = (key.name, key.dialect);
                    Some(JobFileFault::Key(KeyError::Known { key, dialect, why, instead }))
                }
                _ => None,
            });
            let (file, line, column) = (Arc::clone(file), *line, *column);
            let error = fault.map(|fault| JobFileError { file, line, column, fault });
            // A line of [global] is that of several jobs.
            found.extend(error.filter(|error| !found.contains(error)));
        }
        let room = MAX_ERRORS.saturating_sub(self.errors.len());
        self.errors.extend(found.into_iter().take(room));
    }

    fn finish(mut self) -> Result<Spec, Vec<JobFileError>> {
        // If there is no job at all, only that is reported.
        for (line, column, key) in std::mem::take(&mut self.unread) {
            if !self.spec.jobs.is_empty() {
                self.fail(line, column, JobFileFault::GlobalUnread { key });
            }
        }
        self.place();
        self.refused_writes();
        self.errors.sort_by_key(|error| (error.line, error.column));
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        for job in &mut self.spec.jobs {
            if job.requested.values().any(is_gdsios) {
                speak_gdsio(job);
            } else if job.requested.values().any(|requested| requested.key == FIO_MARK)
                || self.file.ends_with(FIO_ENDING) && !has_key_of(job, Dialect::Native)
            {
                job.dialect = Some(Dialect::Fio);
            } else {
                job.notes.extend(other_defaults(job, self.file.ends_with(FIO_ENDING)));
            }
        }
        Ok(self.spec)
    }
}

/// The file of fio's line `include FILE`.
fn included(words: &str) -> Option<&str> {
    let (word, name) = words.split_once(line::is_blank)?;
    (word == "include").then(|| name.trim_matches(line::is_blank))
}

/// The key that almost every fio job has and that is spelled so only in fio.
pub(super) const FIO_MARK: &str = "ioengine";

/// The end of the name of a file that is one of fio's, unless it has keys of gpuio's own.
const FIO_ENDING: &str = ".fio";

/// Values of `verify` that only gpuio has; fio's are names of checksums.
const OWN_VERIFY: [&str; 7] = ["", "off", "pass", "full", "rewrite", "inline", "file"];

/// Whether a job has a key that only one tool spells so.
pub fn has_key_of(job: &JobSpec, dialect: Dialect) -> bool {
    let of = |requested: &Requested| match requested.key {
        "verify" if !OWN_VERIFY.contains(&requested.value.trim()) => Some(Dialect::Fio),
        key => find(key).map(|key| key.dialect),
    };
    let is = |requested: &Requested| of(requested) == Some(dialect);
    job.requested.values().any(is)
}

/// The note on a job of fio's without [`FIO_MARK`] in a file of another name, whose keys are fio's
/// and none is gpuio's own, or in one of fio's with such a key: fio and gpuio take different
/// defaults.
fn other_defaults(job: &JobSpec, of_fio: bool) -> Option<String> {
    let fios = has_key_of(job, Dialect::Fio);
    let unset = [
        (job.direct.is_none(), "direct=1"),
        (job.depth.is_none(), "a depth that suits the engine"),
        (job.runtime_ns.or(job.loops).is_none() && job.io_size.is_none(), "runtime=10"),
        (job.blocks.is_none(), "bs=1M or 4k"),
    ];
    let unset: Vec<&str> =
        unset.iter().filter(|(unset, _)| *unset).map(|(_, words)| *words).collect();
    let is_fios = of_fio || fios && !has_key_of(job, Dialect::Native);
    (is_fios && !unset.is_empty()).then(|| {
        format!(
            "a section without ioengine has gpuio's defaults: {}; with ioengine=psync it has \
             fio's: direct=0, iodepth=1, bs=4k, one pass",
            unset.join(", ")
        )
    })
}

fn is_gdsios(requested: &Requested) -> bool {
    find(requested.key).is_some_and(|key| key.dialect == Dialect::Gdsio)
}

/// The column of a byte of the line.
fn column(line: &str, at: usize) -> u32 {
    position(line.get(..at).unwrap_or(line).chars().count())
}
