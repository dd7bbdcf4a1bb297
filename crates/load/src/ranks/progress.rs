//! The facts about the others that rank 0 knows.

/// The rates of all ranks together.
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
    Result(Vec<u8>),
    /// It has none, for this reason.
    None(String),
    /// It died, hangs, or did not deliver in time.
    Lost(String),
}
