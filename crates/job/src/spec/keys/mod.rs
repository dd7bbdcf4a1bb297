//! The table of keys, and the only function that sets a value.
//!
//! Job files, gdsio's command line and gpuio's own command line all use [`apply`], so a key means
//! the same wherever it is written.

// First, because its macros are used by the tables.
#[macro_use]
mod set;

mod cufile;
mod data;
mod error;
mod feed;
mod fio;
mod flag;
mod gdsio;
mod known;
mod load;
mod loads;
mod machine;
mod native;
mod printed;
mod table;
mod unused;

pub use cufile::PREFIX as CUFILE_PREFIX;
pub use error::KeyError;
pub(super) use flag::ALL;
pub use flag::Flag;
pub use loads::LoadKind;
pub use printed::plan_lines;
pub use table::markdown_table;
pub use unused::KeyContext;

use gpuio_record::{JobPlan, VerifyMode};

use crate::spec::dialect::Dialect;
use crate::spec::job::{JobSpec, WriteRefusal};
use crate::spec::value::ValueError;
use crate::spec::{Origin, Requested};
pub(crate) use error::full_width;
use gpuio_base::nearest::nearest;

/// The part of a load that grows with a larger value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Raises {
    /// I/Os in flight.
    InFlight,
    /// I/Os that are due in a second.
    Rate,
}

/// A text about a plan, or nothing.
pub(in crate::spec) type OfPlan = fn(&JobPlan) -> Option<String>;

/// A key, supported or not.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name, without hyphens (a hyphen is read as an underscore).
    pub name: &'static str,
    /// Other spellings in the same dialect.
    pub aliases: &'static [&'static str],
    /// The tool that it comes from.
    pub dialect: Dialect,
    /// One line: what it sets, with its unit. Empty if [`Key::about`] is another text.
    summary: &'static str,
    /// The effect of its use.
    pub status: Status,
    /// Flags in the help of verbs. As a hidden flag of `bench` and `sweep` every key is accepted.
    pub flags: &'static [Flag],
    /// Two values for tests that walk the table, neither of which is what happens anyway where that
    /// could be avoided. Empty where the key is not supported.
    pub tried: [&'static str; 2],
    /// Words that its value may be, or begin with; empty where there are none.
    words: fn() -> Vec<&'static str>,
    /// Kinds of load that its field is not of: bits of [`LoadKind`]. See [`not_of`].
    kinds: u8,
    /// Why the field that it sets has no effect on a job, and what to do; nothing where it has one.
    /// One row says that for all keys of the field.
    pub unused: Option<fn(&KeyContext<'_>) -> Option<String>>,
    /// Where its line stands in a plan that is printed as a job file, and its value there; nothing
    /// where another key says it.
    pub(in crate::spec) prints: Option<(u16, OfPlan)>,
    /// A remark for the line below, where the value does not say all.
    pub remark: Option<OfPlan>,
    /// Whether its field decides over the effect of others, so that a flag may take the effect from
    /// a line of a job file.
    pub decides: bool,
    /// The part of a load that grows with it, where a search for the highest load may vary it.
    pub raises: Option<Raises>,
    /// Whether `gpuio bench` with its flag alone is still the run without a load.
    pub quick: bool,
}

impl Key {
    const fn new(name: &'static str, dialect: Dialect, status: Status) -> Self {
        Self {
            name,
            aliases: &[],
            dialect,
            summary: "",
            status,
            flags: &[],
            tried: [""; 2],
            words: Vec::new,
            kinds: 0,
            unused: None,
            prints: None,
            remark: None,
            decides: false,
            raises: None,
            quick: false,
        }
    }

    const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn flags(self, flags: &'static [Flag]) -> Self {
        Self { flags, ..self }
    }

    const fn tried(self, tried: [&'static str; 2]) -> Self {
        Self { tried, ..self }
    }

    const fn with_words(self, words: fn() -> Vec<&'static str>) -> Self {
        Self { words, ..self }
    }

    const fn not_of(self, kinds: u8) -> Self {
        Self { kinds, ..self }
    }

    const fn unused(self, why: fn(&KeyContext<'_>) -> Option<String>) -> Self {
        Self { unused: Some(why), ..self }
    }

    const fn prints(self, line: u16, value: OfPlan) -> Self {
        Self { prints: Some((line, value)), ..self }
    }

    const fn remark(self, words: OfPlan) -> Self {
        Self { remark: Some(words), ..self }
    }

    const fn decides(self) -> Self {
        Self { decides: true, ..self }
    }

    const fn raises(self, what: Raises) -> Self {
        Self { raises: Some(what), ..self }
    }

    const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Every spelling.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Words that its value may be, or begin with, for completion.
    pub fn words(&self) -> Vec<&'static str> {
        (self.words)()
    }

    /// The setting, as a part of a sentence; empty where the status says it.
    pub fn about(&self) -> String {
        let (text, flag) = match (self.summary, self.flags) {
            ("", [flag, ..]) => (flag.help, true),
            (summary, _) => (summary, false),
        };
        // A help text begins with a capital, which goes unless it belongs to an abbreviation.
        let mut letters = text.chars();
        match (letters.next(), letters.clone().next()) {
            (Some(first), Some(second)) if flag && second.is_lowercase() => {
                format!("{}{}", first.to_lowercase(), letters.as_str())
            }
            _ => text.to_owned(),
        }
    }

    /// Whether plans are printed with it.
    pub fn is_printed(&self) -> bool {
        self.prints.is_some()
    }

    /// The field that it sets, of several the first.
    pub fn field(&self) -> Option<&'static str> {
        match self.status {
            Status::Supported(setter) => setter.fields.first().copied(),
            _ => None,
        }
    }

    /// The spelling of one of its flags, without dashes.
    pub fn long(&self, flag: &Flag) -> String {
        if flag.long.is_empty() { self.name.replace('_', "-") } else { flag.long.to_owned() }
    }
}

/// The effect of a key's use.
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
        /// The replacement.
        instead: &'static str,
        /// Whether it has no effect on a job that only reads.
        for_writes: bool,
        /// Values that say what happens anyway, separated by blanks.
        harmless: &'static str,
    },
}

type ListOf = fn(&mut JobSpec) -> &mut Option<Vec<String>>;
type Apply = fn(&mut JobSpec, &str) -> Result<(), ValueError>;

/// How a key sets fields of [`JobSpec`].
#[derive(Debug, Clone, Copy)]
pub struct Setter {
    fields: &'static [&'static str],
    bare: Option<&'static str>,
    /// The list that a repeated flag adds to.
    adds: Option<ListOf>,
    /// Sets the value for writes, where the text is a list that has it apart.
    writes: Option<Apply>,
    clear: fn(&mut JobSpec),
    apply: Apply,
}

impl Setter {
    /// The fields it sets, by name.
    pub fn fields(&self) -> &'static [&'static str] {
        self.fields
    }

    /// Takes the value away.
    pub fn clear(&self, job: &mut JobSpec) {
        (self.clear)(job);
        for field in self.fields {
            job.requested.remove(field);
        }
    }

    /// Whether a repeated flag adds to what it said before, instead of replacing it.
    pub fn adds(&self) -> bool {
        self.adds.is_some()
    }

    /// The value if the key is written without one; `None` if it needs one.
    pub fn bare(&self) -> Option<&'static str> {
        self.bare
    }
}

/// Every key: supported, without effect, and refused. Those with flags come in the order of the
/// help.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    let ours = [feed::KEYS, load::KEYS, machine::KEYS, data::KEYS, native::KEYS];
    ours.into_iter().chain([gdsio::KEYS, fio::KEYS, known::KEYS.as_slice()]).flatten()
}

/// Gives `field` the value for writes that a list such as `bs=64k,4k` has for it.
pub(crate) fn take_writes(job: &mut JobSpec, field: &str) {
    let Some(Requested { key, value, .. }) = job.requested.get(field).cloned() else { return };
    if let Some(Status::Supported(Setter { writes: Some(writes), .. })) =
        find(key).map(|it| it.status)
    {
        // The text was read before, so there is no error in it.
        let _ = writes(job, &value);
    }
}

/// Whether this field of [`JobSpec`] means nothing in such a load.
pub fn not_of(field: &str, kind: LoadKind) -> bool {
    keys().any(|key| {
        let of_field = |setter: Setter| setter.fields.contains(&field);
        key.kinds & kind as u8 != 0 && matches!(key.status, Status::Supported(it) if of_field(it))
    })
}

/// The keys that a search for the highest load may vary.
pub fn searched() -> Vec<&'static Key> {
    let mut all: Vec<&Key> = keys().filter(|key| key.raises.is_some()).collect();
    all.sort_by_key(|key| (key.raises, key.name));
    all
}

/// The key of this name or alias. Hyphens count as underscores, so a long flag without its
/// dashes is a key.
pub fn find(name: &str) -> Option<&'static Key> {
    let same = |known: &str| {
        known.len() == name.len()
            && known.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'_' && b == b'-'))
    };
    keys().find(|key| key.spellings().any(same))
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
/// use gpuio_job::spec::{JobSpec, Origin, apply};
///
/// let mut job = JobSpec::new("job1");
/// apply(&mut job, "depth", "32", Origin::Flag("--depth"))?;
/// assert_eq!(job.depth, Some(32));
/// let error = apply(&mut job, "dept", "32", Origin::Flag("--dept")).unwrap_err();
/// assert_eq!(error.to_string(), "unknown key 'dept'; nearest: depth");
/// # Ok::<(), gpuio_job::spec::KeyError>(())
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
        Status::Known { harmless, .. }
            if harmless.split(' ').any(|it| it == value) && !value.is_empty() =>
        {
            Ok(())
        }
        Status::Known { why, instead, for_writes, .. } => {
            let name = found.name;
            let error = KeyError::Known { key: name, dialect: found.dialect, why, instead };
            if !for_writes {
                return Err(error);
            }
            job.for_writes.push(WriteRefusal { name, origin, why: error.to_string() });
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
    // fio's default beside `verify=`, which says more: that one stays the reason for a refusal.
    let verifies = job.verify.is_some_and(|verify| verify != VerifyMode::Off);
    if name == "do_verify" && verifies && crate::spec::value::on_or_off(read) == Ok(true) {
        return Ok(());
    }
    let requested = Requested { key: name, value: value.to_owned(), origin };
    let again = matches!(requested.origin, Origin::Flag(_))
        && setter.fields.iter().any(|field| job.origin(field) == Some(&requested.origin));
    let list = setter.adds.filter(|_| again);
    let earlier = list.and_then(|list| list(job).clone());
    (setter.apply)(job, read).map_err(|error| match full_width(value) {
        Some((at, found, plain)) => KeyError::FullWidth {
            text: crate::spec::value::shown(value),
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
    if let (Some(list), Some(mut all)) = (list, earlier) {
        all.extend(list(job).take().into_iter().flatten());
        *list(job) = Some(all);
    }
    for field in setter.fields {
        job.requested.insert(field, requested.clone());
    }
    Ok(())
}

fn unknown(key: &str) -> KeyError {
    if let Some((at, found, plain)) = full_width(key) {
        return KeyError::FullWidth {
            text: crate::spec::value::shown(key),
            in_value: false,
            at,
            found,
            plain,
        };
    }
    // Supported keys come first: among equally near keys they are suggested.
    let works = |key: &&Key| !matches!(key.status, Status::Known { .. });
    let names =
        keys().filter(works).chain(keys().filter(|key| !works(key))).flat_map(Key::spellings);
    KeyError::Unknown {
        key: crate::spec::value::shown(key),
        nearest: nearest(&key.replace('-', "_"), names),
    }
}
