//! The library's statistics of its own transfers, levels 1 to 3 (release 1.15).
//!
//! Level 1 has totals of all transfers, level 2 a histogram of their sizes, level 3 one entry per
//! GPU, and the structure of each level begins with that of the one below. Their size changed
//! without a mark in the ABI: 512, 1024 and 5000 bytes in release 1.15; 624, 1136 and 5112 in 1.20,
//! which inserted calls with several buffers after level 1. So the release determines the offset of
//! each field, the buffer is larger than either, and an unknown release has no statistics here.
//!
//! In an entry per GPU, with release 1.15 in compatibility mode on an H100: bytes are exact; the
//! number of transfers counts pieces (four for one read of 32 MiB), and so does the number of those
//! done by POSIX calls, which was the same. The operations of level 1 counted each transfer twice
//! and are not used.

use std::ffi::c_int;

use crate::cufile::abi::CufileError as Answer;
use crate::cufile::codes::CufileError;
use crate::cufile::diagnosis::Diagnosis;
use crate::cufile::driver::Driver;

/// Size of the buffer for level 3: more than any known release writes.
pub(crate) const BUFFER_BYTES: usize = 16 << 10;
/// Numbers of such a buffer.
pub const STATS_WORDS: usize = BUFFER_BYTES / 8;
/// Entries per GPU in level 3.
const GPUS: usize = 16;
/// Bytes of an entry.
const ENTRY: usize = 248;
/// Level with an entry per GPU.
const PER_GPU: c_int = 3;

/// One direction of one GPU, since its statistics were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectionStats {
    pub bytes: u64,
    /// Transfers, of which a large one counts as several.
    pub all: u64,
    /// Those done by peer-to-peer DMA, without nvidia-fs.
    pub p2p: u64,
    /// Those done by nvidia-fs.
    pub nvidia_fs: u64,
    /// Those done by POSIX calls: through host memory.
    pub posix: u64,
    /// Those that were not aligned as a direct path requires.
    pub unaligned: u64,
}

impl DirectionStats {
    /// From this reading to a `later` one; `None` if a counter went back.
    pub fn until(&self, later: &DirectionStats) -> Option<DirectionStats> {
        Some(DirectionStats {
            bytes: later.bytes.checked_sub(self.bytes)?,
            all: later.all.checked_sub(self.all)?,
            p2p: later.p2p.checked_sub(self.p2p)?,
            nvidia_fs: later.nvidia_fs.checked_sub(self.nvidia_fs)?,
            posix: later.posix.checked_sub(self.posix)?,
            unaligned: later.unaligned.checked_sub(self.unaligned)?,
        })
    }

    /// Both together.
    pub fn and(&self, other: &DirectionStats) -> DirectionStats {
        DirectionStats {
            bytes: self.bytes.saturating_add(other.bytes),
            all: self.all.saturating_add(other.all),
            p2p: self.p2p.saturating_add(other.p2p),
            nvidia_fs: self.nvidia_fs.saturating_add(other.nvidia_fs),
            posix: self.posix.saturating_add(other.posix),
            unaligned: self.unaligned.saturating_add(other.unaligned),
        }
    }
}

/// One GPU's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerGpu {
    /// UUID as in the CUDA driver; zeros from gpuio's stand-in, which does not distinguish GPUs.
    pub uuid: [u8; 16],
    pub read: DirectionStats,
    pub write: DirectionStats,
    /// Counts that only the library has.
    pub more: MoreOfGpu,
}

/// Counts of one GPU that only the library has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoreOfGpu {
    /// Reads and writes through the memory of another GPU (dynamic routing).
    pub routed: [u64; 2],
    /// Reads and writes that failed.
    pub failed: [u64; 2],
    /// Holes of files that were filled with zeros, and bytes that lay in the file's inode.
    pub sparse: u64,
    pub inline: u64,
    /// Registrations of buffers that succeeded, failed and were undone, and bytes registered now.
    pub registered: u64,
    pub register_failed: u64,
    pub freed: u64,
    pub registered_bytes: u64,
}

/// A reading of all levels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes read, all GPUs together (level 1).
    pub read_bytes: u64,
    /// Bytes written, all GPUs together (level 1).
    pub write_bytes: u64,
    /// Reads by size (level 2), in the library's classes.
    pub read_sizes: [u64; 32],
    /// Writes by size (level 2).
    pub write_sizes: [u64; 32],
    /// One entry per GPU that the library knows (level 3).
    pub gpus: Vec<PerGpu>,
}

impl Stats {
    /// One direction of all GPUs together.
    pub fn total(&self, read: bool) -> DirectionStats {
        let of = |gpu: &PerGpu| if read { gpu.read } else { gpu.write };
        self.gpus.iter().fold(DirectionStats::default(), |sum, gpu| sum.and(&of(gpu)))
    }
}

/// Why there are no statistics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsAbsent {
    /// The library has no such calls.
    #[error("this cuFile has no statistics: they came with release 1.15")]
    NoCalls,
    /// It does not report its release, so the offsets of its fields are unknown.
    #[error("this cuFile does not report its release, so its statistics can't be read")]
    NoVersion,
    /// A release whose layout is not known.
    #[error(
        "the layout of cuFile {0}.{1}'s statistics is unknown: only those of 1.15 and 1.20 are \
         known"
    )]
    Layout(u32, u32),
    /// The data can't be statistics of the assumed layout.
    #[error(
        "cuFile's statistics list {0} GPUs, more than the 16 possible: their layout is unknown"
    )]
    Nonsense(u32),
    /// A call failed.
    #[error(transparent)]
    Refused(#[from] CufileError),
}

/// The offsets of a release's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// The two histograms, each of 32 numbers.
    sizes: usize,
    /// The number of GPUs; their entries begin 8 bytes further.
    gpus: usize,
}

impl Layout {
    fn of(version: Option<(u32, u32)>) -> Result<Layout, StatsAbsent> {
        match version {
            None => Err(StatsAbsent::NoVersion),
            Some((1, 15)) => Ok(Layout { sizes: 512, gpus: 1024 }),
            Some((1, 20)) => Ok(Layout { sizes: 624, gpus: 1136 }),
            Some((major, minor)) => Err(StatsAbsent::Layout(major, minor)),
        }
    }

    fn parse(self, buffer: &StatsBuffer) -> Result<Stats, StatsAbsent> {
        let listed = buffer.number(self.gpus) & u64::from(u32::MAX);
        let count = usize::try_from(listed).unwrap_or(usize::MAX);
        if count > GPUS {
            return Err(StatsAbsent::Nonsense(u32::try_from(listed).unwrap_or(u32::MAX)));
        }
        let entry = |nth: usize| self.gpus + 8 + nth * ENTRY;
        let moved = |at: usize, unaligned: usize| DirectionStats {
            bytes: buffer.number(at),
            all: buffer.number(at + 32),
            p2p: buffer.number(at + 40),
            nvidia_fs: buffer.number(at + 48),
            posix: buffer.number(at + 56),
            unaligned: buffer.number(unaligned),
        };
        let gpu = |at: usize| PerGpu {
            uuid: buffer.uuid(at),
            read: moved(at + 16, at + 80),
            write: moved(at + 120, at + 184),
            more: MoreOfGpu {
                routed: [buffer.number(at + 88), buffer.number(at + 192)],
                failed: [buffer.number(at + 112), buffer.number(at + 200)],
                sparse: buffer.number(at + 96),
                inline: buffer.number(at + 104),
                registered: buffer.number(at + 216),
                register_failed: buffer.number(at + 224),
                freed: buffer.number(at + 232),
                registered_bytes: buffer.number(at + 240),
            },
        };
        let sizes = |at: usize| std::array::from_fn(|nth| buffer.number(at + nth * 8));
        Ok(Stats {
            read_bytes: buffer.number(96),
            write_bytes: buffer.number(104),
            read_sizes: sizes(self.sizes),
            write_sizes: sizes(self.sizes + 256),
            gpus: (0..count).map(|nth| gpu(entry(nth))).collect(),
        })
    }
}

/// Reads what `cuFileGetStatsL3` of a release wrote.
///
/// # Errors
/// Why it can't be read.
pub fn parse_stats(
    version: Option<(u32, u32)>,
    words: Box<[u64; STATS_WORDS]>,
) -> Result<Stats, StatsAbsent> {
    Layout::of(version)?.parse(&StatsBuffer(words))
}

/// The buffer that the library fills, aligned as its structures are.
struct StatsBuffer(Box<[u64; STATS_WORDS]>);

impl StatsBuffer {
    fn new() -> StatsBuffer {
        StatsBuffer(Box::new([0; STATS_WORDS]))
    }

    /// The number at an offset in bytes.
    fn number(&self, at: usize) -> u64 {
        self.0[at / 8]
    }

    fn uuid(&self, at: usize) -> [u8; 16] {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&self.number(at).to_ne_bytes());
        uuid[8..].copy_from_slice(&self.number(at + 8).to_ne_bytes());
        uuid
    }
}

/// While this lives, the library counts; when it is dropped, the previous level returns. The level
/// is one per process, so have only one of these at a time. Start and drop it outside measured
/// time.
#[derive(Debug)]
pub struct Counting {
    driver: Driver,
    layout: Layout,
    /// The previous level; 0 for none.
    before: c_int,
}

impl Counting {
    /// Sets the library's level to 3, which takes effect at once.
    ///
    /// # Errors
    /// Why it can't, or why its counters can't be read.
    pub fn start(driver: &Driver) -> Result<Counting, StatsAbsent> {
        let library = driver.library();
        let calls = (library.cuFileGetStatsLevel, library.cuFileSetStatsLevel);
        let (Some(get), Some(set)) = calls else { return Err(StatsAbsent::NoCalls) };
        let (Some(start), Some(_)) = (library.cuFileStatsStart, library.cuFileGetStatsL3) else {
            return Err(StatsAbsent::NoCalls);
        };
        let layout = Layout::of(driver.facts().version)?;
        let mut before: c_int = 0;
        // SAFETY: `before` is valid for the write of one int.
        check(driver, "cuFileGetStatsLevel", unsafe { get(&raw mut before) })?;
        let counting = Counting { driver: driver.clone(), layout, before };
        if before < PER_GPU {
            // SAFETY: takes a number only.
            check(driver, "cuFileSetStatsLevel", unsafe { set(PER_GPU) })?;
        }
        if before == 0 {
            // SAFETY: takes no argument.
            check(driver, "cuFileStatsStart", unsafe { start() })?;
        }
        Ok(counting)
    }

    /// Reads all levels.
    ///
    /// # Errors
    /// The library's error, or [`StatsAbsent::Nonsense`].
    pub fn read(&self) -> Result<Stats, StatsAbsent> {
        let call = self.driver.library().cuFileGetStatsL3.ok_or(StatsAbsent::NoCalls)?;
        let mut buffer = StatsBuffer::new();
        // SAFETY: the buffer has three times the bytes of the structure's largest known form.
        let answer = unsafe { call(buffer.0.as_mut_ptr()) };
        check(&self.driver, "cuFileGetStatsL3", answer)?;
        self.layout.parse(&buffer)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let library = self.driver.library();
        if let Some(stop) = library.cuFileStatsStop.filter(|_| self.before == 0) {
            // SAFETY: takes no argument. A refusal leaves the library counting, which is harmless.
            let _ = unsafe { stop() };
        }
        if let Some(set) = library.cuFileSetStatsLevel.filter(|_| self.before < PER_GPU) {
            // SAFETY: takes a number only.
            let _ = unsafe { set(self.before) };
        }
    }
}

fn check(driver: &Driver, call: &'static str, answer: Answer) -> Result<(), StatsAbsent> {
    let nothing = || (String::new(), Diagnosis::default());
    Ok(driver.check(call, answer, nothing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading in which each number is its own offset, except the number of GPUs.
    fn numbered(layout: Layout, gpus: u64) -> StatsBuffer {
        let mut buffer = StatsBuffer::new();
        for (nth, number) in buffer.0.iter_mut().enumerate() {
            *number = nth as u64 * 8;
        }
        buffer.0[layout.gpus / 8] = gpus;
        buffer
    }

    #[test]
    fn fields_lie_where_their_release_has_them() {
        // Offsets of a reading of release 1.15 with known transfers, on an H100.
        let old = Layout::of(Some((1, 15))).unwrap();
        let stats = old.parse(&numbered(old, 1)).unwrap();
        assert_eq!((stats.read_bytes, stats.write_bytes), (96, 104));
        assert_eq!((stats.read_sizes[9], stats.write_sizes[9]), (584, 840));
        let [gpu] = stats.gpus[..] else { panic!("{stats:?}") };
        let read = DirectionStats {
            bytes: 1048,
            all: 1080,
            p2p: 1088,
            nvidia_fs: 1096,
            posix: 1104,
            unaligned: 1112,
        };
        assert_eq!(gpu.read, read);
        assert_eq!((gpu.write.bytes, gpu.write.all, gpu.write.posix), (1152, 1184, 1208));
        assert_eq!((gpu.more.routed, gpu.more.failed), ([1120, 1224], [1144, 1232]));
        assert_eq!((gpu.more.registered, gpu.more.registered_bytes), (1248, 1272));
        let new = Layout::of(Some((1, 20))).unwrap();
        let stats = new.parse(&numbered(new, 2)).unwrap();
        assert_eq!((stats.read_bytes, stats.read_sizes[0], stats.write_sizes[0]), (96, 624, 880));
        assert_eq!(stats.gpus[0].read.bytes, 1136 + 8 + 16);
        assert_eq!(stats.gpus[1].read.bytes, 1136 + 8 + 248 + 16);
        assert_eq!(stats.total(true).bytes, 2 * (1136 + 8 + 16) + 248);
        let sixteen = old.parse(&numbered(old, 16)).unwrap();
        assert_eq!(sixteen.gpus[15].write.bytes, 1024 + 8 + 15 * 248 + 120);
        assert!(old.gpus + 8 + GPUS * ENTRY == 5000 && new.gpus + 8 + GPUS * ENTRY == 5112);
    }

    #[test]
    fn releases_that_are_not_known_have_none() {
        assert_eq!(Layout::of(None), Err(StatsAbsent::NoVersion));
        for version in [(1, 14), (1, 16), (1, 19), (1, 21), (2, 15)] {
            let error = Layout::of(Some(version)).unwrap_err();
            assert!(error.to_string().contains(&format!("{}.{}", version.0, version.1)), "{error}");
        }
        let old = Layout::of(Some((1, 15))).unwrap();
        assert_eq!(old.parse(&numbered(old, 17)), Err(StatsAbsent::Nonsense(17)));
    }

    #[test]
    fn a_counter_that_went_back_leaves_no_figure() {
        let first = DirectionStats { bytes: 10, posix: 3, ..DirectionStats::default() };
        let later = DirectionStats { bytes: 30, posix: 4, ..DirectionStats::default() };
        let moved = first.until(&later).unwrap();
        assert_eq!((moved.bytes, moved.posix), (20, 1));
        assert_eq!(later.until(&first), None);
    }
}
