//! Kinds of load that a key is not of.

/// The kinds of load besides a load of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadKind {
    /// A training feed: its samples decide what is moved.
    Feed = 1,
    /// Files that are read as a whole.
    Ranges = 2,
    /// A trace: its calls decide.
    Replay = 4,
}

pub(super) const FEED: u8 = LoadKind::Feed as u8;
pub(super) const RANGES: u8 = LoadKind::Ranges as u8;
pub(super) const REPLAY: u8 = LoadKind::Replay as u8;
