//! The load that an array puts on its members.

use crate::flow::Pattern;

/// Reads or writes that one byte of a stream causes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Io {
    pub bytes: f64,
    pub ios: f64,
}

/// The load of one byte of a stream on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    pub reads: Io,
    pub writes: Io,
}

/// How an array spreads its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Stripes.
    Raid0,
    /// Copies.
    Raid1,
    /// Stripes of pairs of copies.
    Raid10,
    /// Stripes with one parity (levels 4 and 5).
    Raid5,
    /// Stripes with two parities.
    Raid6,
}

impl Level {
    /// By the kernel's name (`md(4)`); `None` for levels whose members can't be distinguished by
    /// arithmetic, such as `linear`.
    pub fn parse(name: &str) -> Option<Level> {
        match name.to_ascii_lowercase().as_str() {
            "raid0" => Some(Level::Raid0),
            "raid1" => Some(Level::Raid1),
            "raid10" => Some(Level::Raid10),
            "raid4" | "raid5" => Some(Level::Raid5),
            "raid6" => Some(Level::Raid6),
            _ => None,
        }
    }

    /// Fewest members with which the level makes sense.
    pub fn least_members(self) -> u64 {
        match self {
            Level::Raid0 => 1,
            Level::Raid1 | Level::Raid10 => 2,
            Level::Raid5 => 3,
            Level::Raid6 => 4,
        }
    }

    /// The mean part of a load that each of `members` gets. `chunk_bytes` cuts I/Os that are
    /// larger; `None` leaves them whole.
    ///
    /// * Reads spread evenly over all members: stripes for levels 0, 10, 5 and 6 (parity turns, so
    ///   that every member holds data), the nearest or least busy copy for level 1.
    /// * Writes of copies go to each copy; `md`'s default is two copies for level 10.
    /// * Writes of whole stripes with parity carry the parity and read nothing; a sequential stream
    ///   counts as whole stripes, since `md` gathers them in its stripe cache.
    /// * Smaller random writes with parity read old data and parity and write both anew (2 + 2 I/Os
    ///   for one parity, 3 + 3 for two), or read the rest of the stripe where that is less.
    ///
    /// Source: `md(4)`; the counts of I/Os are those of Chen et al., *RAID: High-Performance,
    /// Reliable Secondary Storage*, ACM Computing Surveys 26 (1994), 4.1.
    pub fn member(
        self,
        load: Load,
        members: u64,
        chunk_bytes: Option<u64>,
        pattern: Pattern,
    ) -> Load {
        let n = members.max(1) as f64;
        let cut = |io: Io| cut(io, n, chunk_bytes);
        let spread = |io: Io, share: f64| Io { bytes: io.bytes * share, ios: io.ios * share };
        match self {
            Level::Raid0 => Load {
                reads: spread(cut(load.reads), 1.0 / n),
                writes: spread(cut(load.writes), 1.0 / n),
            },
            Level::Raid1 => Load { reads: spread(load.reads, 1.0 / n), writes: load.writes },
            Level::Raid10 => Load {
                reads: spread(cut(load.reads), 1.0 / n),
                writes: spread(cut(load.writes), 2.0 / n),
            },
            Level::Raid5 => parity(load, n, 1.0, chunk_bytes, pattern),
            Level::Raid6 => parity(load, n, 2.0, chunk_bytes, pattern),
        }
    }
}

/// I/Os cut at chunks: as many as chunks they touch, but one for each member at most, since what
/// lies side by side on a member is merged.
fn cut(io: Io, members: f64, chunk_bytes: Option<u64>) -> Io {
    let chunk = chunk_bytes.filter(|chunk| *chunk > 0).map(|chunk| chunk as f64);
    let Some(chunk) = chunk.filter(|_| io.ios > 0.0) else { return io };
    let pieces = (io.bytes / io.ios / chunk).ceil().clamp(1.0, members);
    Io { bytes: io.bytes, ios: io.ios * pieces }
}

fn parity(load: Load, n: f64, parities: f64, chunk: Option<u64>, pattern: Pattern) -> Load {
    let cut_reads = cut(load.reads, n, chunk);
    let mut reads = Io { bytes: cut_reads.bytes / n, ios: cut_reads.ios / n };
    let data = (n - parities).max(1.0);
    let stripe = chunk.map(|chunk| chunk as f64 * data);
    let size = if load.writes.ios > 0.0 { load.writes.bytes / load.writes.ios } else { 0.0 };
    let whole = pattern == Pattern::Sequential || stripe.is_some_and(|stripe| size >= stripe);
    if whole {
        let ios = cut(load.writes, data, chunk).ios;
        let writes = Io { bytes: load.writes.bytes / data, ios: ios / data };
        return Load { reads, writes };
    }
    // The old data and the parities, or the rest of the stripe.
    let read_first = (1.0 + parities).min(data - 1.0).max(0.0);
    reads.bytes += load.writes.bytes * read_first / n;
    reads.ios += load.writes.ios * read_first / n;
    let share = (1.0 + parities) / n;
    let writes = Io { bytes: load.writes.bytes * share, ios: load.writes.ios * share };
    Load { reads, writes }
}
