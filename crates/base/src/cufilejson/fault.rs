//! Problems of a configuration.

use crate::cufilejson::{Config, Entry, KEYS, combination, find, value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// No known release has the key, but there is a similar one.
    Misspelt,
    /// No known release has the key.
    Unknown,
    /// The key is repeated with another value.
    Repeated,
    /// The value's type is wrong for the key.
    Type,
    /// The value is out of range, or none of the allowed words.
    Range,
    /// A size that is no multiple of 4 KiB.
    Alignment,
    /// Settings that contradict each other.
    Combination,
    /// A key that was replaced by another.
    Outdated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFault {
    pub kind: FaultKind,
    pub path: String,
    /// Line of the key, counted from 1.
    pub line: usize,
    /// Column of the key in characters, counted from 1.
    pub column: usize,
    /// The fault, as a clause that can follow the key.
    pub message: String,
    pub fix: String,
}

impl EntryFault {
    pub(crate) fn at(entry: &Entry, kind: FaultKind, message: String, fix: String) -> EntryFault {
        let Entry { path, line, column, .. } = entry;
        EntryFault { kind, path: path.clone(), line: *line, column: *column, message, fix }
    }
}

/// All faults in the order of the text; combinations last.
pub fn faults(config: &Config) -> Vec<EntryFault> {
    let mut all: Vec<EntryFault> = Vec::new();
    for (index, entry) in config.entries.iter().enumerate() {
        all.extend(own(entry));
        all.extend(repeated(entry, &config.entries[..index]));
    }
    all.extend(combination::all(config));
    all
}

/// The fault of a single key.
fn own(entry: &Entry) -> Option<EntryFault> {
    let Some(key) = find(&entry.path) else { return unknown(entry) };
    if let Some((kind, message)) = value::wrong(key, &entry.value) {
        let default = key.default.map(|default| format!(", or take it out: {default} holds then"));
        let fix = format!("correct the value{}", default.unwrap_or_default());
        return Some(EntryFault::at(entry, kind, message, fix));
    }
    let other = key.instead?;
    // The three sizes of the uniform buffers count as long as no slabs are named.
    if other.ends_with("slab_config") {
        return None;
    }
    let message = format!("is the older name of {other}");
    Some(EntryFault::at(entry, FaultKind::Outdated, message, format!("write {other}")))
}

/// An empty group is no fault if it is the prefix of a key.
fn unknown(entry: &Entry) -> Option<EntryFault> {
    let group = format!("{}.", entry.path);
    if entry.value.is_object() && KEYS.iter().any(|key| key.path.starts_with(&group)) {
        return None;
    }
    Some(match nearest(&entry.path) {
        Some(near) => {
            let message = "is not a key of cuFile, which ignores it silently".to_owned();
            EntryFault::at(entry, FaultKind::Misspelt, message, format!("did you mean {near}?"))
        }
        None => {
            let message = "is not documented up to GPUDirect Storage 1.20".to_owned();
            let fix = "remove it, unless your release's own file has it".to_owned();
            EntryFault::at(entry, FaultKind::Unknown, message, fix)
        }
    })
}

/// The key that was probably meant: by its whole path, or the same name in another group.
pub(crate) fn nearest(path: &str) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let by_name = || KEYS.iter().find(|key| last(key.path) == last(path));
    // Only names of similar length, so that a long name costs nothing.
    let alike = KEYS.iter().filter(|key| key.path.len().abs_diff(path.len()) <= 12);
    let distance = |key: &&crate::cufilejson::Key| strsim::damerau_levenshtein(path, key.path);
    let near = alike.min_by_key(distance).filter(|key| distance(key) <= 3);
    near.or_else(by_name).map(|key| key.path)
}

/// Keys to suggest: [`nearest`], else those of the same group with the same beginning, then those
/// with the fewest different letters.
pub(crate) fn near(path: &str) -> Vec<&'static str> {
    /// A longer list is not read to its end.
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

fn repeated(entry: &Entry, before: &[Entry]) -> Option<EntryFault> {
    let first = before.iter().rev().find(|other| other.path == entry.path)?;
    if first.value == entry.value {
        return None;
    }
    let message =
        format!("stands there again: {} here, {} in line {}", entry.value, first.value, first.line);
    let fix = "keep one: which one cuFile uses is not documented".to_owned();
    Some(EntryFault::at(entry, FaultKind::Repeated, message, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cufilejson::read;

    fn of(text: &str) -> Vec<(FaultKind, usize, String)> {
        let all = faults(&read(text).unwrap());
        all.into_iter().map(|fault| (fault.kind, fault.line, fault.fix)).collect()
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
        assert_eq!((found[2].0, found[2].1), (FaultKind::Unknown, 3));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn repeated_keys_matter_where_they_differ() {
        let found = of("{ \"properties\": { \"use_poll_mode\": false,\n\"use_poll_mode\": true,\n\
                        \"use_poll_mode\": true } }");
        let kinds: Vec<(FaultKind, usize)> = found.iter().map(|f| (f.0, f.1)).collect();
        assert_eq!(kinds, [(FaultKind::Repeated, 2)]);
    }

    #[test]
    fn older_names() {
        let found = of(r#"{ "blacklist": { "drivers": [] } }"#);
        assert_eq!((found[0].0, &found[0].2[..]), (FaultKind::Outdated, "write denylist.drivers"));
    }

    #[test]
    fn wrong_values_name_what_holds_without_them() {
        let found = of(r#"{ "properties": { "io_batchsize": 512 } }"#);
        assert!(found[0].2.ends_with("128 holds then"), "{found:?}");
    }
}
