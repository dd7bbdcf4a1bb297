//! The table of keys, and the only function that sets a value.
//!
//! Job files, gdsio's command line and gpuio's own command line all use [`apply`], so a key means
//! the same wherever it is written.

mod cufile;
mod error;
mod feed;
mod fio;
mod gdsio;
mod native;
mod refused;
mod set;
mod table;

pub use cufile::PREFIX as CUFILE_PREFIX;
pub use error::KeyError;
pub use table::markdown_table;

use crate::job::{JobSpec, RefusedForWrites};
use crate::nearest::nearest;
use crate::value::ValueError;
use crate::{Origin, Requested};
pub(crate) use error::full_width;

/// The tool that a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// gpuio's own.
    Native,
    /// gdsio's flags and configuration files.
    Gdsio,
    /// fio's job files.
    Fio,
    /// Same spelling and meaning in several.
    All,
}

impl Dialect {
    /// The name as printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "gpuio",
            Self::Gdsio => "gdsio",
            Self::Fio => "fio",
            Self::All => "all",
        }
    }
}

/// A key, supported or not.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name, without hyphens (a hyphen is read as an underscore).
    pub name: &'static str,
    /// Other spellings in the same dialect.
    pub aliases: &'static [&'static str],
    /// The tool that it comes from.
    pub dialect: Dialect,
    /// One line: what it sets, with its unit. Empty if the status is the description.
    pub summary: &'static str,
    /// What happens when it is used.
    pub status: Status,
}

/// What happens when a key is used.
#[derive(Debug, Clone, Copy)]
pub enum Status {
    /// It sets fields.
    Supported(Setter),
    /// It is accepted, has no effect here, and leaves a note.
    NoEffect {
        /// Why this loses nothing.
        why: &'static str,
    },
    /// It is known and refused: without it, the run would measure something else.
    Known {
        /// Why it is not supported.
        why: &'static str,
        /// What to use instead.
        instead: &'static str,
    },
}

/// How a key sets fields of [`JobSpec`].
#[derive(Debug, Clone, Copy)]
pub struct Setter {
    fields: &'static [&'static str],
    bare: Option<&'static str>,
    adds: bool,
    apply: fn(&mut JobSpec, &str) -> Result<(), ValueError>,
}

impl Setter {
    /// The fields it sets, by name.
    #[must_use]
    pub fn fields(&self) -> &'static [&'static str] {
        self.fields
    }

    /// The value if the key is written without one; `None` if it needs one.
    #[must_use]
    pub fn bare(&self) -> Option<&'static str> {
        self.bare
    }
}

/// Every key: supported, without effect, and refused.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    native::KEYS
        .iter()
        .chain(feed::KEYS)
        .chain(gdsio::KEYS)
        .chain(fio::KEYS)
        .chain(refused::KEYS.into_iter().flatten())
}

/// The key of this name or alias. Hyphens count as underscores, so a long flag without its
/// dashes is a key.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    let same = |known: &str| {
        known.len() == name.len()
            && known.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'_' && b == b'-'))
    };
    keys().find(|key| same(key.name) || key.aliases.iter().any(|alias| same(alias)))
}

/// Sets `key` in `job` and records the origin.
///
/// `key` is a name of the table, an alias, or either with hyphens (`rate-iops`); `value` is empty
/// for a bare flag. A later call replaces the value of an earlier one. Only two calls with the same
/// [`Origin::Flag`] add up, and only for keys that take lists of names (`path`, `filename`):
/// `--path host --path staged` sets both. `cufile.KEY` sets a key of cuFile's configuration.
///
/// # Errors
///
/// [`KeyError`] for an unknown key, an unsupported key, a missing value, or an invalid value. `job`
/// is unchanged then.
///
/// ```
/// use gpuio_spec::{JobSpec, Origin, apply};
///
/// let mut job = JobSpec::new("job1");
/// apply(&mut job, "depth", "32", Origin::Flag("--depth"))?;
/// assert_eq!(job.depth, Some(32));
/// let error = apply(&mut job, "dept", "32", Origin::Flag("--dept")).unwrap_err();
/// assert_eq!(error.to_string(), "unknown key 'dept'; nearest: depth");
/// # Ok::<(), gpuio_spec::KeyError>(())
/// ```
pub fn apply(job: &mut JobSpec, key: &str, value: &str, origin: Origin) -> Result<(), KeyError> {
    if let Some(path) = key.strip_prefix(cufile::PREFIX) {
        return cufile::set(job, path, value, origin);
    }
    let Some(found) = find(key) else {
        return Err(unknown(key));
    };
    match found.status {
        Status::Supported(setter) => set(job, found, setter, value, origin),
        Status::NoEffect { why } => {
            let note = format!("'{}' ({origin}) has no effect here: {why}", found.name);
            if !job.notes.contains(&note) {
                job.notes.push(note);
            }
            Ok(())
        }
        Status::Known { .. } if refused::is_harmless(found.name, value) => Ok(()),
        Status::Known { why, instead } => {
            let name = found.name;
            let error = KeyError::Known { key: name, dialect: found.dialect, why, instead };
            if !refused::is_for_writes(name) {
                return Err(error);
            }
            job.for_writes.push(RefusedForWrites { name, origin, why: error.to_string() });
            Ok(())
        }
    }
}

fn set(
    job: &mut JobSpec,
    key: &Key,
    setter: Setter,
    value: &str,
    origin: Origin,
) -> Result<(), KeyError> {
    let name = key.name;
    let read = match (value, setter.bare) {
        ("", None) => return Err(KeyError::NoValue { key: name }),
        ("", Some(bare)) => bare,
        (value, _) => value,
    };
    let requested = Requested { key: name, value: value.to_owned(), origin };
    let again = setter.adds
        && matches!(requested.origin, Origin::Flag(_))
        && setter.fields.iter().any(|field| job.origin(field) == Some(&requested.origin));
    let earlier = (again).then(|| (job.paths.clone(), job.filenames.clone()));
    (setter.apply)(job, read).map_err(|error| match full_width(value) {
        Some((at, found, plain)) => KeyError::FullWidth {
            text: crate::value::shown(value),
            in_value: true,
            at,
            found,
            plain,
        },
        None => KeyError::Value {
            key: name,
            value: value.to_owned(),
            at: error.at.min(value.len()),
            meaning: error.meaning,
        },
    })?;
    if let Some((paths, filenames)) = earlier {
        if setter.fields.contains(&"paths") {
            job.paths = joined(paths, job.paths.take());
        } else {
            job.filenames = joined(filenames, job.filenames.take());
        }
    }
    for field in setter.fields {
        job.requested.insert(field, requested.clone());
    }
    Ok(())
}

fn joined(first: Option<Vec<String>>, then: Option<Vec<String>>) -> Option<Vec<String>> {
    let mut all = first?;
    all.extend(then?);
    Some(all)
}

fn unknown(key: &str) -> KeyError {
    if let Some((at, found, plain)) = full_width(key) {
        return KeyError::FullWidth {
            text: crate::value::shown(key),
            in_value: false,
            at,
            found,
            plain,
        };
    }
    // Supported keys come first: among equally near keys they are suggested.
    let works = |key: &&Key| !matches!(key.status, Status::Known { .. });
    let names = keys()
        .filter(works)
        .chain(keys().filter(|key| !works(key)))
        .flat_map(|key| std::iter::once(key.name).chain(key.aliases.iter().copied()));
    KeyError::Unknown {
        key: crate::value::shown(key),
        nearest: nearest(&key.replace('-', "_"), names),
    }
}
