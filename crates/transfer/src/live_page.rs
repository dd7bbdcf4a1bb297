//! The live page of a program on one of our libraries: `gpuio stats PID` shows it (docs/stats.md).
//! A process has one page: of two libraries, the first that begins it counts.
//!
//! Paths say how bytes reached memory: `kernel` and `copy` between page-locked memory and a GPU,
//! `host` directly to host memory, `nvidia` by NVIDIA's library; engines say how they reached the
//! file: `cached`, `mapped` (in the page cache, without host memory of ours) or `direct`. A call
//! with several routes counts for the one of most of its bytes.

use std::cell::RefCell;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use gpuio_gpu::DeviceFacts;
use gpuio_host::Root;
use gpuio_watch::page::WorkerSlot;
pub use gpuio_watch::page::monotonic_ns;
use gpuio_watch::page::{Direction as PageDirection, Key, LivePage, LivePageRoot, SOFTWARE};
use rustix::time::{ClockId, clock_gettime};

use crate::fork::ProcessMark;
use crate::{Op, RouteBytes};

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct CompletedCall {
    /// Its direction.
    pub op: Op,
    /// The GPU of the memory; none for host memory.
    pub gpu: Option<u32>,
    /// Bytes moved; none if it failed.
    pub bytes: Option<u64>,
    /// From its beginning to its end, nanoseconds.
    pub latency_ns: u64,
    /// Its end, [`monotonic_ns`].
    pub ended_ns: u64,
    /// Whether offset or length is no multiple of 4 KiB.
    pub unaligned: bool,
    /// Whether NVIDIA's library moved it.
    pub forwarded: bool,
}

impl CompletedCall {
    /// One that ends now.
    pub fn now(
        op: Op,
        gpu: Option<u32>,
        (offset, len): (u64, u64),
        began_ns: u64,
        bytes: Option<u64>,
    ) -> Self {
        let ended_ns = monotonic_ns();
        let latency_ns = ended_ns.saturating_sub(began_ns);
        // Both are aligned where no low bit of either is set.
        let unaligned = !(offset | len).is_multiple_of(4096);
        Self { op, gpu, bytes, latency_ns, ended_ns, unaligned, forwarded: false }
    }
}

/// Worker slots of one thread and track each; further ones share.
const WORKER_SLOTS: u32 = 60;

/// How most bytes moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MovedBy {
    Kernel,
    Copy,
    Host,
    Nvidia,
}

/// The kind of transfers that a worker slot counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Track {
    gpu: Option<u32>,
    moved_by: MovedBy,
    file_side: FileSide,
}

/// Where most bytes came from or went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileSide {
    Cached,
    Mapped,
    Direct,
}

impl FileSide {
    fn of(route: &RouteBytes) -> Self {
        if route.direct > route.cached {
            Self::Direct
        } else if route.mapped * 2 > route.cached {
            Self::Mapped
        } else {
            Self::Cached
        }
    }
}

/// The page of the process that made it.
#[derive(Debug)]
pub struct OwnPage {
    mark: ProcessMark,
    /// The page.
    pub page: LivePage,
    /// Index and PCI address of each GPU.
    gpus: Vec<(u32, String)>,
}

static PAGE: OnceLock<Option<OwnPage>> = OnceLock::new();
/// Its file, to be removed at exit.
static FILE: OnceLock<(u32, CString)> = OnceLock::new();

thread_local! {
    /// The thread's worker slots.
    static SLOTS: RefCell<Vec<(Track, Option<WorkerSlot>)>> = const { RefCell::new(Vec::new()) };
}

/// Creates the page on the first call; `library` is its name in front of the program's. Without one
/// (no shared memory, no space) the program still runs. Children of fork(2) have none: it would be
/// their parent's.
pub fn begin(library: &str, gpus: &[DeviceFacts], software: bool) {
    PAGE.get_or_init(|| {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let began_ns = seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
        let name = Root::live().word("proc/self/comm").ok().flatten().unwrap_or_default();
        let program = format!("{library}: {name}");
        let page =
            LivePage::create(&LivePageRoot::live(), WORKER_SLOTS, &program, began_ns).ok()?;
        tidy_at_exit(&page);
        let pci = |one: &DeviceFacts| if software { SOFTWARE } else { &one.pci }.to_owned();
        let gpus = gpus.iter().map(|one| (one.index, pci(one))).collect();
        Some(OwnPage { mark: ProcessMark::new(), page, gpus })
    });
}

/// The page, where this process made it: a child of fork(2) has its parent's.
pub fn own_page() -> Option<&'static OwnPage> {
    PAGE.get()?.as_ref().filter(|own| own.mark.is_here())
}

/// Removes the page's file when the process ends by exit(3). The page itself is never dropped,
/// because threads may count until the end. After a crash the next reader recognises the file.
fn tidy_at_exit(page: &LivePage) {
    let Ok(path) = CString::new(page.path().as_os_str().as_bytes()) else { return };
    if FILE.set((std::process::id(), path)).is_ok() {
        // SAFETY: the function lives as long as the process: the object is never unloaded.
        let _ = unsafe { libc::atexit(remove) };
    }
}

extern "C" fn remove() {
    if let Some((pid, path)) = FILE.get()
        && *pid == std::process::id()
    {
        // SAFETY: a NUL-terminated string, which lives as long as the process.
        let _ = unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// How most of a call's bytes moved.
fn moved_by(route: &RouteBytes) -> MovedBy {
    if route.by_kernel > route.by_copy.max(route.by_host) {
        MovedBy::Kernel
    } else if route.by_copy > route.by_host {
        MovedBy::Copy
    } else {
        MovedBy::Host
    }
}

/// Counts a transfer; `route` has details of one of ours.
pub fn count(done: &CompletedCall, route: Option<&RouteBytes>) {
    let Some(own) = own_page() else { return };
    let track = Track {
        gpu: done.gpu,
        moved_by: route
            .map_or(if done.forwarded { MovedBy::Nvidia } else { MovedBy::Host }, moved_by),
        file_side: route.map_or(FileSide::Cached, FileSide::of),
    };
    let direction = match done.op {
        Op::Read => PageDirection::Read,
        Op::Write => PageDirection::Write,
    };
    // A thread that is exiting counts no more.
    let _ = SLOTS.try_with(|mine| {
        let Ok(mut mine) = mine.try_borrow_mut() else { return };
        let began_ns = done.ended_ns.saturating_sub(done.latency_ns);
        let known = mine.iter().position(|(one, _)| *one == track);
        let at = known.unwrap_or_else(|| {
            let is_counted = mine.iter().any(|(_, slot)| slot.is_some());
            mine.push((track, own.make_slot(track, is_counted, began_ns)));
            mine.len() - 1
        });
        let Some((_, Some(slot))) = mine.get(at) else { return };
        slot.began(began_ns);
        match done.bytes {
            Some(bytes) => {
                slot.add(direction, bytes, done.latency_ns, done.unaligned);
                slot.now(done.ended_ns, 0);
            }
            None => slot.fail(direction),
        }
    });
}

impl OwnPage {
    /// The PCI address of a GPU, or the software GPU's name; empty for host memory.
    pub fn pci(&self, gpu: Option<u32>) -> String {
        let found = gpu.and_then(|gpu| self.gpus.iter().find(|(index, _)| *index == gpu));
        found.map(|(_, pci)| pci.clone()).unwrap_or_default()
    }

    /// A slot of the calling thread, which others may have counted already.
    fn make_slot(&self, track: Track, is_counted: bool, began_ns: u64) -> Option<WorkerSlot> {
        let path = match track.moved_by {
            MovedBy::Kernel => "kernel",
            MovedBy::Copy => "copy",
            MovedBy::Host => "host",
            MovedBy::Nvidia => "nvidia",
        };
        let engine = match (track.moved_by, track.file_side) {
            (MovedBy::Nvidia, _) => "cufile",
            (_, FileSide::Direct) => "direct",
            (_, FileSide::Mapped) => "mapped",
            (_, FileSide::Cached) => "cached",
        };
        let key = Key {
            gpu: track.gpu,
            pci: self.pci(track.gpu),
            path: path.to_owned(),
            engine: engine.to_owned(),
            // They are counted in slots of their own.
            registrations_unknown: false,
        };
        let mut slot = match is_counted {
            true => self.page.further_slot(&key),
            false => self.page.worker_slot(&key),
        }?;
        slot.begin(1, began_ns);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transferred::Transferred;

    #[test]
    fn bytes_are_counted_where_most_of_them_went() {
        let filled = Transferred::filled(1 << 20, (4096, 0));
        assert_eq!((filled.bytes, filled.route.by_copy), ((1 << 20) + 4096, (1 << 20) + 4096));
        assert_eq!(FileSide::of(&filled.route), FileSide::Mapped);
        assert_eq!(FileSide::of(&Transferred::filled(0, (4096, 0)).route), FileSide::Cached);
        assert_eq!(FileSide::of(&Transferred::filled(0, (0, 4096)).route), FileSide::Direct);
    }
}
