//! Parts that bytes pass, and flows through them.

use std::collections::BTreeMap;

/// A part by its index in its [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(usize);

/// Something that can be busy for at most all of the time: one direction of a link, a drive's
/// flash, a drive's commands, a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name for readers: `nvme2n1`, `link above 0000:2e:00.0`.
    pub name: String,
}

/// The parts. Each is there once, for all its users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    parts: Vec<(String, Part)>,
    /// Indices by key: a cluster has many thousand parts.
    by_key: BTreeMap<String, usize>,
}

impl Network {
    /// The part with this key, made with this name where it is new. The key distinguishes what
    /// shares a name, such as the two directions of a link.
    pub fn part(&mut self, key: &str, name: &str) -> PartId {
        if let Some(index) = self.by_key.get(key) {
            return PartId(*index);
        }
        self.by_key.insert(key.to_owned(), self.parts.len());
        self.parts.push((key.to_owned(), Part { name: name.to_owned() }));
        PartId(self.parts.len() - 1)
    }

    /// The part.
    ///
    /// # Panics
    ///
    /// When `id` is of another network.
    pub fn get(&self, id: PartId) -> &Part {
        &self.parts[id.0].1
    }

    /// The key that tells the part from others of the same name.
    pub(crate) fn key(&self, id: PartId) -> &str {
        &self.parts[id.0].0
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

impl PartId {
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// The load of a flow on a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    pub part: PartId,
    /// Seconds that the part is busy for each byte of the flow: the share of the flow's bytes that
    /// it carries, over its rate in bytes per second. For commands: their number per byte, over
    /// the part's I/Os per second.
    pub busy_s_per_byte: f64,
    /// The part's figure and where that is from: `3.50 GB/s read (data sheet of …)`.
    pub figure: String,
}

/// Bytes that go through parts all at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// Parts on the path; one may be there more than once.
    pub uses: Vec<Use>,
    /// A rate of its own that it can't exceed, in bytes per second, and why: what was asked for, or
    /// its depth.
    pub own_limit: Option<(f64, String)>,
}
