//! Settings of a transfer.

use gpuio_gpu::Which;

/// How bytes are read that are not in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncachedReads {
    /// With `O_DIRECT` if the call is large or the caller's own descriptor has it, otherwise
    /// through the page cache.
    #[default]
    Direct,
    /// Always in the mode of the caller's own descriptor.
    AsOpened,
}

/// Which files that are open with `O_DIRECT` are never read from the page cache, as the flag says.
/// Other such files are read from the cache if it holds their bytes. These are the file's bytes as
/// this host sees them, without what another host wrote to a shared device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BypassCache {
    /// Block devices, which hosts may share without a common file system.
    #[default]
    BlockDevices,
    /// All of them.
    All,
    /// None of them.
    None,
}

/// Settings of a [`Transfer`](crate::Transfer). The defaults follow from the number of cores.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Most workers that help callers. They are started on demand and help only while fewer threads
    /// than this are active; 0 means that callers work alone.
    pub max_workers: u32,
    /// Most threads, callers and workers together, that move the bytes of large calls at once, 1 or
    /// more; the others sleep. More threads than saturate memory bandwidth only cost CPU time.
    pub max_active: u32,
    /// Most workers for each GPU in use. The number of threads that saturates the link to one is
    /// about right.
    pub workers_per_gpu: u32,
    /// Oversubscription threshold: from so many concurrent calls on, large reads of cached files
    /// are left to as many workers, and their callers sleep. 0 or more than `max_workers` means
    /// never. `None`: from more calls than there may be workers, if these are eight or more.
    pub oversubscription: Option<u32>,
    /// With `None` above, how many workers then do these reads, for each GPU in use.
    pub oversubscribed_per_gpu: u32,
    /// Most page-locked memory per GPU, in bytes. One staging ring is always made. The same amount
    /// again is for transfers in streams, which use short pieces beyond it instead of waiting.
    pub max_staging_bytes: u64,
    /// Most bytes of files that are read or written again and again, which the GPU does in the page
    /// cache by itself: the driver keeps these pages in memory. `None` for an eighth of what the
    /// process may use, 0 for no such files.
    pub max_mapped_bytes: Option<u64>,
    /// Bytes that are read from the page cache out of 16 MiB of a file before these are mapped.
    pub bytes_until_mapped: u64,
    /// Longest piece of a large call, in bytes: rounded up to a power of two from 64 KiB to 16 MiB.
    pub max_piece_bytes: u32,
    /// How bytes are read that are not in the page cache.
    pub uncached: UncachedReads,
    /// Which files with `O_DIRECT` are never read from the page cache.
    pub bypass_cache: BypassCache,
    /// Whether calls may use the resident copy kernel, which stays on the GPU while calls
    /// keep coming.
    pub resident: bool,
    /// Whether a program's streams may wait for semaphore values that our threads store, where the
    /// device supports that. Otherwise host functions called by the stream read and write, one
    /// after the other.
    pub stream_semaphores: bool,
    /// Whether a poller thread watches the semaphore values by which streams announce that they
    /// have reached a transfer, when transfers follow each other quickly. Otherwise each stream
    /// calls a host function per transfer, which takes longer.
    pub stream_poller: bool,
    /// Whether files live longer than a call. Their descriptors then get numbers where programs'
    /// own are rare, for which the kernel may have to enlarge its table of them.
    pub files_outlast_calls: bool,
    /// Which CUDA driver.
    pub driver: Which,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cores = u32::try_from(cores).unwrap_or(u32::MAX).min(1024);
        // Twelve copying threads of sixteen cores fill the link to a GPU; with few cores all are
        // needed.
        let workers = (cores * 3 / 4).max(cores.min(4));
        Self {
            max_workers: workers,
            // A caller with a core to itself works sooner than a woken worker. Up to eight active
            // threads are safe for the memory of any machine.
            max_active: cores.max(8),
            // Twelve cores copy 45 GiB/s out of the page cache, as much as a link of 16 lanes of
            // PCIe 5 carries.
            workers_per_gpu: 12,
            oversubscription: None,
            // Their callers need processors too: ten of sixteen read as fast as twelve (42.9 GiB/s,
            // H100, 16 threads of 1 MiB) at 231 instead of 266 µs/MiB. With 32 processors, twelve
            // made 42.0 and ten 37.9.
            oversubscribed_per_gpu: (cores * 5 / 8).clamp(8, 12),
            max_staging_bytes: 256 << 20,
            max_mapped_bytes: None,
            // Sixteen passes. A registration takes 0.8 ms, and 2 to 4 where sixteen threads read,
            // which it holds up meanwhile; a pass over 16 MiB takes 0.4 to 1 ms. A pass then saves
            // between a hundredth (sixteen threads, 1 MiB) and half of it (one thread): so a file
            // that is read a few times is better left alone.
            bytes_until_mapped: 256 << 20,
            max_piece_bytes: 1 << 20,
            uncached: UncachedReads::default(),
            bypass_cache: BypassCache::default(),
            resident: true,
            stream_semaphores: true,
            stream_poller: true,
            files_outlast_calls: true,
            driver: Which::System,
        }
    }
}

impl Settings {
    /// The longest piece after rounding.
    pub(crate) fn max_piece(&self) -> usize {
        let bytes = self.max_piece_bytes.clamp(64 << 10, 16 << 20).next_power_of_two();
        bytes as usize
    }
}
