//! What is wrong with a configuration.

use crate::{Config, Entry, KEYS, combination, find, value};

/// What kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// No release that this table knows has the key, and one has a name like it.
    Misspelt,
    /// No release that this table knows has the key.
    Unknown,
    /// The key comes again with another value.
    Repeated,
    /// The value is of another type than the key takes.
    Type,
    /// The value is out of range, or none of the words that the key takes.
    Range,
    /// A size off the 4 KiB grid.
    Alignment,
    /// Settings that contradict each other, or that do together what nobody wants.
    Combination,
    /// A key from another time, which another one took the place of.
    Outdated,
}

/// One problem and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Of what kind.
    pub kind: ProblemKind,
    /// The key.
    pub path: String,
    /// Line of the key, counted from 1.
    pub line: usize,
    /// Column of the key in characters, counted from 1.
    pub column: usize,
    /// What is wrong, as a clause that can stand after the key.
    pub words: String,
    /// What to do.
    pub mend: String,
}

impl Problem {
    pub(crate) fn at(entry: &Entry, kind: ProblemKind, words: String, mend: String) -> Problem {
        let Entry { path, line, column, .. } = entry;
        Problem { kind, path: path.clone(), line: *line, column: *column, words, mend }
    }
}

/// Everything that is wrong, in the order of the text; settings that do not go together last.
#[must_use]
pub fn problems(config: &Config) -> Vec<Problem> {
    let mut all: Vec<Problem> = Vec::new();
    for (index, entry) in config.entries.iter().enumerate() {
        all.extend(own(entry));
        all.extend(repeated(entry, &config.entries[..index]));
    }
    all.extend(combination::all(config));
    all
}

/// What is wrong with a key for itself.
fn own(entry: &Entry) -> Option<Problem> {
    let Some(key) = find(&entry.path) else { return unknown(entry) };
    if let Some((kind, words)) = value::wrong(key, &entry.value) {
        let default = key.default.map(|default| format!(", or take it out: {default} holds then"));
        let mend = format!("correct the value{}", default.unwrap_or_default());
        return Some(Problem::at(entry, kind, words, mend));
    }
    let other = key.instead?;
    // The three sizes of the uniform buffers count as long as no slabs are named.
    if other.ends_with("slab_config") {
        return None;
    }
    let words = format!("is the older name of {other}");
    Some(Problem::at(entry, ProblemKind::Outdated, words, format!("write {other}")))
}

/// A group that is empty is no problem if a key lies in it.
fn unknown(entry: &Entry) -> Option<Problem> {
    let group = format!("{}.", entry.path);
    if entry.value.is_object() && KEYS.iter().any(|key| key.path.starts_with(&group)) {
        return None;
    }
    Some(match nearest(&entry.path) {
        Some(near) => {
            let words = "is no key of cuFile, which passes it over in silence".to_owned();
            Problem::at(entry, ProblemKind::Misspelt, words, format!("did you mean {near}?"))
        }
        None => {
            let words = "is in no document up to GPUDirect Storage 1.20".to_owned();
            let mend = "take it out, unless your release's own file has it".to_owned();
            Problem::at(entry, ProblemKind::Unknown, words, mend)
        }
    })
}

/// The key that was meant, if one is near: by its whole path, or right but in another group.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let by_name = || KEYS.iter().find(|key| last(key.path) == last(path));
    // No nearer than their lengths: a long name costs nothing.
    let alike = KEYS.iter().filter(|key| key.path.len().abs_diff(path.len()) <= 12);
    let distance = |key: &&crate::Key| strsim::damerau_levenshtein(path, key.path);
    let near = alike.min_by_key(distance).filter(|key| distance(key) <= 3);
    near.or_else(by_name).map(|key| key.path)
}

/// Keys to suggest: [`nearest`], else of the same group those that begin alike, then those that
/// differ in the fewest letters.
pub(crate) fn near(path: &str) -> Vec<&'static str> {
    /// More are a list that nobody reads.
    const MOST: usize = 5;
    // Longer ones are no typing mistakes, and the distance is quadratic in the length.
    const LONGEST: usize = 100;
    if path.len() > LONGEST {
        return Vec::new();
    }
    if let Some(one) = nearest(path) {
        return vec![one];
    }
    let group = path.rsplit_once('.').map(|(group, _)| format!("{group}."));
    let of_group = |path: &str| group.as_ref().is_some_and(|group| path.starts_with(group));
    let mut keys: Vec<&str> = KEYS.iter().map(|key| key.path).filter(|key| of_group(key)).collect();
    keys.sort_by_key(|key| (!key.starts_with(path), strsim::damerau_levenshtein(path, key)));
    keys.truncate(MOST);
    keys
}

fn repeated(entry: &Entry, before: &[Entry]) -> Option<Problem> {
    let first = before.iter().rev().find(|other| other.path == entry.path)?;
    if first.value == entry.value {
        return None;
    }
    let words =
        format!("stands there again: {} here, {} in line {}", entry.value, first.value, first.line);
    let mend = "keep one: no document tells which one cuFile takes".to_owned();
    Some(Problem::at(entry, ProblemKind::Repeated, words, mend))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn of(text: &str) -> Vec<(ProblemKind, usize, String)> {
        let all = problems(&read(text).unwrap());
        all.into_iter().map(|problem| (problem.kind, problem.line, problem.mend)).collect()
    }

    #[test]
    fn misspelt_misplaced_and_strange_keys() {
        let found = of(r#"{
            "properties": { "alow_compat_mode": true, "cufile_stats": 1 },
            "zebra": { "stripes": 3 },
            "denylist": { }
        }"#);
        assert_eq!(found[0].2, "did you mean properties.allow_compat_mode?");
        assert_eq!(found[1].2, "did you mean profile.cufile_stats?");
        assert_eq!((found[2].0, found[2].1), (ProblemKind::Unknown, 3));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn repeated_keys_matter_where_they_differ() {
        let found = of("{ \"properties\": { \"use_poll_mode\": false,\n\"use_poll_mode\": true,\n\
                        \"use_poll_mode\": true } }");
        let kinds: Vec<(ProblemKind, usize)> = found.iter().map(|f| (f.0, f.1)).collect();
        assert_eq!(kinds, [(ProblemKind::Repeated, 2)]);
    }

    #[test]
    fn older_names() {
        let found = of(r#"{ "blacklist": { "drivers": [] } }"#);
        assert_eq!(
            (found[0].0, &found[0].2[..]),
            (ProblemKind::Outdated, "write denylist.drivers")
        );
    }

    #[test]
    fn wrong_values_name_what_holds_without_them() {
        let found = of(r#"{ "properties": { "io_batchsize": 512 } }"#);
        assert!(found[0].2.ends_with("128 holds then"), "{found:?}");
    }
}
