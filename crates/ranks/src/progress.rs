//! What rank 0 knows of the others.

/// What all ranks move together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overall {
    /// Ranks that are in their measured time.
    pub running: u32,
    /// Bytes per second of those.
    pub bytes_per_s: f64,
    /// I/Os per second of those.
    pub iops: f64,
    /// I/Os that failed.
    pub failed: u64,
}

/// The result of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collected {
    /// What it delivered.
    Result(Vec<u8>),
    /// It has none, for this reason.
    None(String),
    /// It died, hangs, or did not deliver in time.
    Lost(String),
}
