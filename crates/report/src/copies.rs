//! Copies of a run: files with the same content, which are one run.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use gpuio_record::Record;

/// A hash of content by which a copy is known again, within one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content(u64);

impl Content {
    /// That of a record: its values, however they are written.
    #[must_use]
    pub fn of_record(record: &Record) -> Content {
        Content::of(&serde_json::to_vec(record).unwrap_or_default())
    }

    /// That of a text.
    pub(crate) fn of(content: &[u8]) -> Content {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        Content(hasher.finish())
    }
}

/// The files that were met, in their order: the first of several with the same content counts.
#[derive(Debug, Default)]
pub(crate) struct Copies(BTreeMap<Content, (usize, String)>);

impl Copies {
    /// Why a file does not count, if it is a copy. `place` and `name` distinguish files.
    pub(crate) fn of(&mut self, content: Content, place: usize, name: &str) -> Option<String> {
        let own = (place, name.to_owned());
        let first = self.0.entry(content).or_insert_with(|| own.clone());
        (*first != own).then(|| format!("{name}: the same run as {}, counted once", first.1))
    }
}
