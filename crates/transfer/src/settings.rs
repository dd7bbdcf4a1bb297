//! What may be set.

use gpuio_gpu::Which;

/// How bytes are read that are not in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cold {
    /// By a descriptor with `O_DIRECT` where the call is large or the caller's own descriptor has
    /// it, by a plain one otherwise.
    #[default]
    Direct,
    /// Always in the mode of the caller's own descriptor.
    AsOpened,
}

/// Which files that are open with `O_DIRECT` are read past the page cache in any case, as the flag
/// says. Others are read from the cache where it holds their bytes: these are the file's as this
/// host sees it, but not what another host wrote to a shared device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strict {
    /// Block devices, which hosts may share without a file system that knows of it.
    #[default]
    BlockDevices,
    /// All.
    All,
    /// None.
    None,
}

/// How a [`Transfer`](crate::Transfer) shall work. The default is made from the machine's cores.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Most threads of our own that help callers, and no more at once than make so many with those
    /// who work already. They are started when there is work for them; 0 means that callers work
    /// alone.
    pub workers_most: u32,
    /// Most threads, callers and our own together, that move the bytes of large calls at once, 1 or
    /// more; the others sleep. More than use up the bandwidth of memory only burn time.
    pub busy_most: u32,
    /// From so many calls at once on, large reads of files that the page cache holds are left to as
    /// many threads of our own, and their callers sleep; 0 or more than `workers_most` for never.
    /// What saturates the link to a GPU is about right.
    pub crowd: u32,
    /// Most page-locked memory for each GPU, in bytes. One lane of it is always made. As much again
    /// is for transfers in streams, which beyond it get short pieces instead of waiting.
    pub ring_bytes_most: u64,
    /// Longest piece that a large call is cut into, in bytes: rounded to a power of two from 64 KiB
    /// to 16 MiB.
    pub chunk_bytes: u32,
    /// How bytes are read that are not in the page cache.
    pub cold: Cold,
    /// Which files with `O_DIRECT` are never read from the page cache.
    pub strict: Strict,
    /// Whether small calls may go through a kernel that stays on the GPU while calls keep coming.
    pub resident: bool,
    /// Whether the streams of a program may wait for words of memory that we store, where the
    /// device can do that. Otherwise functions that the stream calls read and write, one after
    /// the other.
    pub stream_words: bool,
    /// Whether a thread of ours looks at the words by which streams tell that they have come to a
    /// transfer, where transfers follow soon one after another. Otherwise each stream calls a
    /// function for each transfer, which takes longer.
    pub stream_sentry: bool,
    /// Which CUDA driver.
    pub driver: Which,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cores = u32::try_from(cores).unwrap_or(u32::MAX).min(1024);
        // Twelve copying threads of sixteen cores fill the link to a GPU; few cores are all needed.
        let workers = (cores * 3 / 4).max(cores.min(4));
        Self {
            workers_most: workers,
            // A caller with a core to itself works sooner than one that is woken. Fewer than eight
            // are no danger to the memory of any machine.
            busy_most: cores.max(8),
            // Ten of sixteen cores copy 45 GiB/s out of the page cache, which a link of 16 lanes
            // of PCIe 5 carries.
            crowd: (cores * 5 / 8).max(8),
            ring_bytes_most: 256 << 20,
            chunk_bytes: 1 << 20,
            cold: Cold::default(),
            strict: Strict::default(),
            resident: true,
            stream_words: true,
            stream_sentry: true,
            driver: Which::System,
        }
    }
}

impl Settings {
    /// The longest piece, as it is used.
    pub(crate) fn chunk(&self) -> usize {
        let bytes = self.chunk_bytes.clamp(64 << 10, 16 << 20).next_power_of_two();
        bytes as usize
    }
}
