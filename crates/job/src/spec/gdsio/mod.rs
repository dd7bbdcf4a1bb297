//! gdsio's command line, as its 1.12 help text lists it (CUDA 12.8), and `-O` from NVIDIA's
//! configuration guide.

mod error;
mod flags;

pub use error::GdsioError;
pub(crate) use flags::flag_of;
pub use flags::{GDSIO_KEYS, is_flag};

use crate::spec::Origin;
use crate::spec::dialect::Dialect;
use crate::spec::job::{JobSpec, Spec};
use crate::spec::keys::{KeyError, apply};
use flags::{FLAGS, Flag, Takes};

/// A parsed gdsio command line.
#[derive(Debug, Clone, PartialEq)]
pub struct GdsioRequest {
    /// The requested action.
    pub run: GdsioRun,
    /// `-J`: results for each job as well.
    pub per_job: bool,
    /// Long options, which gdsio does not have, for the caller to check: name without dashes, and
    /// the value if there was one.
    pub leftovers: Vec<(String, Option<String>)>,
}

/// The action of a gdsio command line.
#[derive(Debug, Clone, PartialEq)]
pub enum GdsioRun {
    /// One job from flags.
    Flags(Spec),
    /// A configuration file, to be read by [`crate::spec::parse_job_file`].
    Config(String),
    /// `-h` or `--help`.
    Help,
    /// `--version`.
    Version,
}

/// Reads gdsio's arguments, without the program's name.
///
/// Values may be attached (`-w8`) or separate (`-w 8`), and flags without value may be joined
/// (`-VR`), as in `getopt(3)`. Numbers are decimal even with leading zeros. `takes_value` tells for
/// a long option (name without dashes) whether the next argument is its value; `--name=value` does
/// not need it.
///
/// gdsio's meanings are set where they differ: `-f` makes all threads share the file, thread `i` at
/// `start offset + i * size`; `-T` repeats the load until the time is up.
///
/// # Errors
///
/// The first [`GdsioError`]; it names the flag and says what to do.
pub fn parse(
    args: &[String],
    takes_value: &dyn Fn(&str) -> bool,
) -> Result<GdsioRequest, GdsioError> {
    let mut reader = Reader {
        job: JobSpec::new("gdsio"),
        config: None,
        seen: Vec::new(),
        request: GdsioRequest { run: GdsioRun::Help, per_job: false, leftovers: Vec::new() },
    };
    let mut rest = args.iter().map(String::as_str).peekable();
    while let Some(argument) = rest.next() {
        // No flag of gdsio's is -v; other tools print their version for it.
        if ["-v", "--version"].contains(&argument) {
            reader.request.run = GdsioRun::Version;
            return Ok(reader.request);
        }
        if let Some(long) = argument.strip_prefix("--") {
            match long {
                "help" => return Ok(reader.request),
                long => {
                    let leftover = leftover(long, &mut rest, takes_value);
                    reader.request.leftovers.push(leftover);
                }
            }
        } else if let Some(letters) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            if reader.letters(letters, &mut rest)? == Next::Help {
                return Ok(reader.request);
            }
        } else {
            reader.positional(argument)?;
        }
    }
    reader.finish()
}

fn leftover<'a>(
    long: &str,
    rest: &mut impl Iterator<Item = &'a str>,
    takes_value: &dyn Fn(&str) -> bool,
) -> (String, Option<String>) {
    match long.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None if takes_value(long) => (long.to_owned(), rest.next().map(str::to_owned)),
        None => (long.to_owned(), None),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Argument,
    Help,
}

struct Reader {
    job: JobSpec,
    config: Option<String>,
    seen: Vec<&'static Flag>,
    request: GdsioRequest,
}

impl Reader {
    /// The letters after one dash: flags, and at most one value at the end.
    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    ) -> Result<Next, GdsioError> {
        for (at, letter) in letters.char_indices() {
            if letter == 'h' {
                return Ok(Next::Help);
            }
            let flag = FLAGS.iter().find(|flag| flag.letter() == letter);
            let Some(flag) = flag else {
                let flag = crate::spec::value::shown(&format!("-{letter}"));
                return Err(GdsioError::UnknownFlag { flag });
            };
            if self.seen.iter().any(|seen| seen.name == flag.name) {
                return Err(GdsioError::Twice { flag: flag.name });
            }
            self.seen.push(flag);
            if matches!(flag.takes, Takes::Nothing(_) | Takes::PerJob) {
                self.set(flag, "1")?;
                continue;
            }
            let missing = || GdsioError::MissingValue { flag: flag.name, what: flag.what };
            let value = match &letters[at + letter.len_utf8()..] {
                "" => rest.next_if(|next| !looks_like_flag(next)).ok_or_else(missing)?,
                attached => attached,
            };
            self.set(flag, value)?;
            break;
        }
        Ok(Next::Argument)
    }

    fn set(&mut self, flag: &'static Flag, value: &str) -> Result<(), GdsioError> {
        let (key, value) = match flag.takes {
            Takes::PerJob => {
                self.request.per_job = true;
                return Ok(());
            }
            Takes::Nothing(key) | Takes::Value(key) => (key, value.to_owned()),
            Takes::Name(key) => (key, crate::spec::value::one_name(value)),
            Takes::Number(key, names) => match names.iter().find(|(number, _)| *number == value) {
                Some((_, name)) => (key, (*name).to_owned()),
                None => {
                    return Err(GdsioError::Value {
                        flag: flag.name,
                        source: KeyError::Value {
                            key,
                            value: value.to_owned(),
                            at: 0,
                            meaning: format!("expected {}", flag.what),
                        },
                    });
                }
            },
        };
        apply(&mut self.job, key, &value, Origin::Flag(flag.name))
            .map_err(|source| GdsioError::Value { flag: flag.name, source })
    }

    fn positional(&mut self, argument: &str) -> Result<(), GdsioError> {
        let shown = crate::spec::value::shown(argument);
        if let Some((0, found, plain @ '-')) = crate::spec::keys::full_width(argument) {
            return Err(GdsioError::LookAlike { argument: shown, found, plain });
        }
        if self.config.is_some() || !self.seen.iter().all(|flag| flag.takes == Takes::PerJob) {
            let after = self.seen.last().map(|flag| flag.name);
            return Err(GdsioError::Unexpected {
                argument: shown,
                after: after.map(|flag| format!(" after {flag}")).unwrap_or_default(),
            });
        }
        self.config = Some(argument.to_owned());
        Ok(())
    }

    fn finish(mut self) -> Result<GdsioRequest, GdsioError> {
        if let Some(config) = self.config {
            if let Some(flag) = self.seen.iter().find(|flag| flag.takes != Takes::PerJob) {
                return Err(GdsioError::ConfigAndFlag {
                    config: crate::spec::value::shown(&config),
                    flag: flag.name,
                });
            }
            self.request.run = GdsioRun::Config(config);
            return Ok(self.request);
        }
        match (&self.job.filenames, &self.job.directory) {
            (Some(_), Some(_)) => return Err(GdsioError::FileAndDirectory),
            (None, None) => return Err(GdsioError::NoTarget),
            _ => {}
        }
        speak_gdsio(&mut self.job);
        self.request.run = GdsioRun::Flags(Spec { name: None, jobs: vec![self.job] });
        Ok(self.request)
    }
}

/// A dash and a letter. gdsio has no negative numbers, so this is a flag, and the value before it
/// is missing.
fn looks_like_flag(argument: &str) -> bool {
    let mut chars = argument.chars();
    chars.next() == Some('-') && chars.next().is_some_and(|c| c.is_alphabetic() || c == '-')
}

/// Gives a job gdsio's meanings unless other values were set: a run time repeats the load, and a
/// named file is shared by all threads.
pub(crate) fn speak_gdsio(job: &mut JobSpec) {
    job.dialect = Some(Dialect::Gdsio);
    if job.runtime_ns.is_some() && job.time_based.is_none() {
        job.time_based = Some(true);
        implied(job, "runtime_ns", "time_based");
    }
    if job.filenames.is_some() && job.shared_files.is_none() {
        job.shared_files = Some(true);
        implied(job, "filenames", "shared_files");
    }
}

fn implied(job: &mut JobSpec, by: &str, field: &'static str) {
    if let Some(requested) = job.requested.get(by).cloned() {
        job.requested.insert(field, requested);
    }
}
