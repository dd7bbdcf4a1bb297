//! The content of a page at one moment, as plain values.

use gpuio_base::stat::Percentile;

use crate::page::bucket::{Latencies, SIZES};
use crate::page::layout::{LIBRARY_NUMBERS, REGISTERED, SOFTWARE};

/// Counts of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of I/Os that completed in full.
    pub bytes: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Sum of latencies, nanoseconds.
    pub latency_ns: u64,
    /// I/Os whose offset or length is no multiple of 4 KiB.
    pub unaligned: u64,
    /// I/Os by class of size ([`crate::page::size_class`]).
    pub sizes: [u64; SIZES],
    /// I/Os by bucket of latency.
    pub(crate) latencies: Vec<u64>,
}

/// The counters of all threads with one GPU, path and engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Index of the GPU; none for host memory.
    pub gpu: Option<u32>,
    /// Its PCI address, or [`SOFTWARE`]; empty for host memory.
    pub pci: String,
    pub path: String,
    pub engine: String,
    /// Threads that run now.
    pub threads: u64,
    /// Those of them that another path counts too.
    pub again: u64,
    /// Files opened; of path [`crate::page::REGISTERED`], files registered now.
    pub files: u64,
    /// Buffers registered with cuFile; none where they are not counted.
    pub registered: Option<u64>,
    /// I/O slots of threads that run now.
    pub slots: u64,
    /// I/Os in flight, each thread at its last update.
    pub in_flight: u64,
    /// Start of the first I/O, `CLOCK_MONOTONIC` nanoseconds of the writer; 0 before it.
    pub first_ns: u64,
    /// Completion of the last.
    pub last_ns: u64,
    pub read: Counts,
    pub write: Counts,
}

/// NVIDIA's library's counts of one direction of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LibraryCounts {
    /// Pieces in which it moved bytes, and those of them by peer-to-peer DMA, by nvidia-fs, and by
    /// POSIX calls.
    pub all: u64,
    pub p2p: u64,
    pub nvidia_fs: u64,
    pub posix: u64,
    /// Not aligned as a direct path requires; through the memory of another GPU; failed.
    pub unaligned: u64,
    pub routed: u64,
    pub failed: u64,
}

/// Whether NVIDIA's library's statistics are there, and why not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LibraryState {
    /// They were read.
    Read,
    /// The release has no such calls.
    NoCalls,
    /// Nothing is counted, or less than level 3.
    Off,
    /// The release's layout is not known.
    Layout,
    /// The library refused.
    #[default]
    Refused,
}

impl LibraryState {
    const ALL: [LibraryState; 5] = [
        LibraryState::Read,
        LibraryState::NoCalls,
        LibraryState::Off,
        LibraryState::Layout,
        LibraryState::Refused,
    ];

    fn of(number: u64) -> LibraryState {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        LibraryState::ALL.get(at).copied().unwrap_or_default()
    }
}

/// The statistics of NVIDIA's library in a process whose bytes it moves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Library {
    /// Its release; zeros where it has none.
    pub version: (u64, u64),
    pub state: LibraryState,
    /// Its GPUs, where they were read.
    pub gpus: Vec<LibraryGpu>,
}

impl Library {
    /// Figures that `gds_stats` prints and no release's `cuFileGetStats` gives.
    pub const NOT_GIVEN: &str = "pool buffers, POSIX pool buffers, RDMA and its memory regions";

    /// The numbers of the slot without a GPU.
    pub fn numbers(&self) -> [[u64; LIBRARY_NUMBERS]; 2] {
        let mut numbers = [[0; LIBRARY_NUMBERS]; 2];
        numbers[0][..3].copy_from_slice(&[self.state as u64, self.version.0, self.version.1]);
        numbers
    }

    /// Takes a slot.
    pub(crate) fn take(&mut self, counts: &PathCounters) {
        match counts.gpu {
            Some(gpu) => self.gpus.push(LibraryGpu::of(gpu, counts)),
            None => {
                let [state, major, minor, ..] = counts.read.sizes;
                (self.state, self.version) = (LibraryState::of(state), (major, minor));
            }
        }
    }

    /// Its counts of a GPU.
    pub fn gpu(&self, gpu: Option<u32>) -> Option<&LibraryGpu> {
        self.gpus.iter().find(|one| Some(one.gpu) == gpu)
    }

    /// Why its own counts are absent; `None` where they were read.
    pub fn why_absent(&self) -> Option<String> {
        let (major, minor) = self.version;
        Some(match self.state {
            LibraryState::Read => return None,
            LibraryState::NoCalls => {
                "cuFile has statistics from release 1.15 on; this one has none".to_owned()
            }
            LibraryState::Off => {
                let set = "set profile.cufile_stats to 3 in cufile.json, or CUFILE_STATS_LEVEL=3";
                format!("cuFile's statistics are below level 3: {set}")
            }
            LibraryState::Layout => format!(
                "the layout of cuFile {major}.{minor}'s statistics is unknown: only those of 1.15 \
                 and 1.20 are known"
            ),
            LibraryState::Refused => "cuFile refused its statistics".to_owned(),
        })
    }
}

/// NVIDIA's library's counts of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LibraryGpu {
    /// Its number.
    pub gpu: u32,
    pub read: LibraryCounts,
    pub write: LibraryCounts,
    /// Holes of files, and regions in the inode, that reads met.
    pub sparse: u64,
    pub inline: u64,
    /// Registrations of buffers: those that succeeded, failed and ended, and bytes now.
    pub registered: u64,
    pub register_failed: u64,
    pub freed: u64,
    pub registered_bytes: u64,
}

impl LibraryGpu {
    /// The numbers of a slot, as [`crate::page::WorkerSlot::of_library`] takes them.
    pub fn numbers(&self) -> [[u64; LIBRARY_NUMBERS]; 2] {
        let side = |of: &LibraryCounts, more: [u64; 4]| {
            let [a, b, c, d] = more;
            let LibraryCounts { all, p2p, nvidia_fs, posix, unaligned, routed, failed } = *of;
            [all, p2p, nvidia_fs, posix, unaligned, routed, failed, a, b, c, d]
        };
        [
            side(&self.read, [self.sparse, self.inline, self.registered, self.register_failed]),
            side(&self.write, [self.freed, self.registered_bytes, 0, 0]),
        ]
    }

    /// The counts of a slot.
    pub(crate) fn of(gpu: u32, counts: &PathCounters) -> LibraryGpu {
        let side = |numbers: &[u64; SIZES]| {
            let [all, p2p, nvidia_fs, posix, unaligned, routed, failed, ..] = *numbers;
            LibraryCounts { all, p2p, nvidia_fs, posix, unaligned, routed, failed }
        };
        let (read, write) = (&counts.read.sizes, &counts.write.sizes);
        LibraryGpu {
            gpu,
            read: side(read),
            write: side(write),
            sparse: read[7],
            inline: read[8],
            registered: read[9],
            register_failed: read[10],
            freed: write[7],
            registered_bytes: write[8],
        }
    }
}

/// Saves of `gpuio.checkpoint`, of the process that writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saves {
    /// The checkpoint that is being written, or was last.
    pub directory: String,
    /// The error of the last save that failed; empty where none did.
    pub error: String,
    /// Its bytes, those in staged pages until now, and those that were written.
    pub bytes: u64,
    pub staged: u64,
    pub written: u64,
    /// Its rank, of so many.
    pub rank: u64,
    pub ranks: u64,
    /// Saves that are under way.
    pub under_way: u64,
    state: u64,
    /// Bytes of all saves of the process.
    pub all_staged: u64,
    pub all_written: u64,
}

impl Saves {
    pub(crate) fn of(counts: &PathCounters, directory: String, error: String) -> Saves {
        let [bytes, staged, written, rank, ranks, under_way, state, ..] = counts.read.sizes;
        let (all_staged, all_written) = (counts.read.bytes, counts.write.bytes);
        Saves {
            directory,
            error,
            bytes,
            staged,
            written,
            rank,
            ranks,
            under_way,
            state,
            all_staged,
            all_written,
        }
    }

    /// Its stage, and what else is to be said of the save that has this name.
    pub fn words(&self, name: &str) -> String {
        let mut words = format!("{name}: {}", self.state());
        if self.ranks > 1 {
            words.push_str(&format!(", rank {} of {}", self.rank, self.ranks));
        }
        if !self.error.is_empty() {
            words.push_str(&format!("; last error: {}", self.error));
        }
        words
    }

    /// Its stage, in a word.
    pub fn state(&self) -> &'static str {
        let states = ["staged", "writing", "waits for other ranks", "complete", "failed"];
        let at = usize::try_from(self.state).unwrap_or(usize::MAX);
        states.get(at).copied().unwrap_or("?")
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The process, in its PID namespace.
    pub pid: u32,
    /// Its owner.
    pub uid: u32,
    /// When it began: clock ticks after boot.
    pub start_ticks: u64,
    /// Inode of its PID namespace; 0 where the kernel did not report it.
    pub namespace: u64,
    /// The boot, a UUID; may be empty.
    pub boot: String,
    /// Program that wrote it.
    pub program: String,
    /// That program's release.
    pub release: String,
    /// When the page was made: nanoseconds since 1970.
    pub began_ns: u64,
    /// By GPU, path and engine, in order.
    pub paths: Vec<PathCounters>,
    /// The statistics of NVIDIA's library, where it moves bytes.
    pub library: Option<Library>,
    /// Its saves, where it writes checkpoints.
    pub saves: Option<Saves>,
}

impl Counts {
    /// I/Os that completed in full.
    pub fn ios(&self) -> u64 {
        self.sizes.iter().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// Mean latency in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        let ios = self.ios();
        let mean = self.latency_ns as f64 / ios as f64;
        (ios > 0).then_some(mean)
    }

    /// A percentile of the latency in nanoseconds, within 3 %; `None` with too few I/Os for it
    /// ([`gpuio_base::stat::enough_for`]).
    pub fn percentile_ns(&self, at: Percentile) -> Option<u64> {
        let latency = Latencies::at(&self.latencies, at.quantile());
        latency.filter(|_| self.ios() >= at.least_values())
    }

    pub(crate) fn merge(&mut self, other: &Counts) {
        self.each(other, u64::saturating_add);
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut since = self.clone();
        since.each(earlier, u64::saturating_sub);
        since
    }

    fn each(&mut self, other: &Counts, with: fn(u64, u64) -> u64) {
        self.bytes = with(self.bytes, other.bytes);
        self.failed = with(self.failed, other.failed);
        self.latency_ns = with(self.latency_ns, other.latency_ns);
        self.unaligned = with(self.unaligned, other.unaligned);
        for (mine, &theirs) in self.sizes.iter_mut().zip(&other.sizes) {
            *mine = with(*mine, theirs);
        }
        self.latencies.resize(self.latencies.len().max(other.latencies.len()), 0);
        for (mine, &theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            *mine = with(*mine, theirs);
        }
    }
}

impl PathCounters {
    /// Whether the GPU is gpuio's software GPU.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.pci == SOFTWARE
    }

    /// Whether both have the same GPU, path and engine.
    pub(crate) fn same(&self, other: &PathCounters) -> bool {
        (self.gpu, &self.path, &self.engine) == (other.gpu, &other.path, &other.engine)
    }

    pub(crate) fn merge(&mut self, other: &PathCounters) {
        self.threads = self.threads.saturating_add(other.threads);
        self.again = self.again.saturating_add(other.again);
        self.files = self.files.saturating_add(other.files);
        self.registered = match (self.registered, other.registered) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            _ => None,
        };
        self.slots = self.slots.saturating_add(other.slots);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (0, began) | (began, 0) => began,
            (one, two) => one.min(two),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }

    /// Seconds from the start of its first I/O to the completion of its last, with pauses.
    pub fn seconds(&self) -> Option<f64> {
        let span = self.last_ns.checked_sub(self.first_ns).filter(|_| self.first_ns > 0)?;
        (span > 0).then_some(span as f64 / 1e9)
    }
}

impl Snapshot {
    /// The sum of all paths; each thread once.
    pub fn total(&self) -> PathCounters {
        let mut sum = PathCounters { registered: Some(0), ..PathCounters::default() };
        self.paths.iter().for_each(|counters| sum.merge(counters));
        sum.threads = sum.threads.saturating_sub(std::mem::take(&mut sum.again));
        sum
    }

    /// Files opened, or registered now; none where they are not counted, as by `libgpuio`.
    pub(crate) fn files_opened(&self) -> Option<u64> {
        let is_counted = |path: &PathCounters| path.files > 0 || path.path == REGISTERED;
        let sum = self.total().files;
        (self.paths.is_empty() || self.paths.iter().any(is_counted)).then_some(sum)
    }

    /// Buffers registered now on a GPU, or of host memory; none where they are not counted.
    pub fn registered_on(&self, gpu: Option<u32>) -> Option<u64> {
        let paths = self.paths.iter().filter(|counters| counters.gpu == gpu);
        paths
            .map(|counters| counters.registered)
            .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    }

    /// The sums of each GPU, in order of their numbers.
    pub fn gpus(&self) -> Vec<PathCounters> {
        let mut gpus: Vec<PathCounters> = Vec::new();
        for counters in self.paths.iter().filter(|counters| counters.gpu.is_some()) {
            match gpus.iter_mut().find(|gpu| gpu.gpu == counters.gpu) {
                Some(gpu) => gpu.merge(counters),
                None => gpus.push(counters.clone()),
            }
        }
        gpus.sort_by_key(|gpu| gpu.gpu);
        gpus
    }
}
