//! The live page of a program that uses this library: `gpuio stats PID` shows it (docs/stats.md).
//!
//! Paths say how bytes reached memory: `kernel` and `copy` between page-locked memory and a GPU,
//! `host` directly to host memory, `nvidia` by NVIDIA's library; engines say how they reached the
//! file: `cached`, `mapped` (in the page cache, without host memory of ours) or `direct`. A call
//! with several routes counts for the one of most of its bytes.

use std::cell::RefCell;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use gpuio_gpu::DeviceFacts;
use gpuio_host::Root;
use gpuio_transfer::{Op, RouteBytes};
use gpuio_watch::page::{
    Direction as PageDirection, Key, Library, LivePage, LivePageRoot, SOFTWARE, WorkerSlot,
};
use rustix::time::{ClockId, clock_gettime};

use crate::fork;
use crate::stats::CompletedCall;

/// Worker slots of one thread and track each; further ones share.
const WORKER_SLOTS: u32 = 60;

/// How most bytes moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MovedBy {
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
struct OwnPage {
    /// That process's fork generation.
    generation: u32,
    page: LivePage,
    /// Index and PCI address of each GPU.
    gpus: Vec<(u32, String)>,
}

static PAGE: OnceLock<Option<OwnPage>> = OnceLock::new();
/// Its file, to be removed at exit.
static FILE: OnceLock<(u32, CString)> = OnceLock::new();

/// A thread's worker slots, and the fork generation of their process.
struct ThreadWorkerSlots {
    generation: u32,
    slots: Vec<(Track, Option<WorkerSlot>)>,
}

thread_local! {
    static SLOTS_OF_THREAD: RefCell<ThreadWorkerSlots> =
        const { RefCell::new(ThreadWorkerSlots { generation: 0, slots: Vec::new() }) };
}

/// Creates the page. Without one (no shared memory, no space) the program still runs. Children of
/// fork(2) have none: it would be their parent's.
pub(crate) fn begin(gpus: &[DeviceFacts], software: bool) {
    PAGE.get_or_init(|| {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let began_ns = seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
        let name = Root::live().word("proc/self/comm").ok().flatten().unwrap_or_default();
        let program = format!("cuFile: {name}");
        let page =
            LivePage::create(&LivePageRoot::live(), WORKER_SLOTS, &program, began_ns).ok()?;
        tidy_at_exit(&page);
        let pci = |one: &DeviceFacts| if software { SOFTWARE } else { &one.pci }.to_owned();
        let gpus = gpus.iter().map(|one| (one.index, pci(one))).collect();
        Some(OwnPage { generation: fork::generation(), page, gpus })
    });
}

/// The page, where this process made it: a child of fork(2) has its parent's.
fn own_page() -> Option<&'static OwnPage> {
    let own = PAGE.get()?.as_ref()?;
    (own.generation == fork::generation()).then_some(own)
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
pub(crate) fn moved_by(route: &RouteBytes) -> MovedBy {
    if route.by_kernel > route.by_copy.max(route.by_host) {
        MovedBy::Kernel
    } else if route.by_copy > route.by_host {
        MovedBy::Copy
    } else {
        MovedBy::Host
    }
}

/// Counts a transfer; `route` has details of one of ours.
pub(crate) fn count(done: &CompletedCall, route: Option<&RouteBytes>) {
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
    let _ = SLOTS_OF_THREAD.try_with(|mine| {
        let Ok(mut mine) = mine.try_borrow_mut() else { return };
        if mine.generation != own.generation {
            // They are of the parent's page, whose data about its threads must not change.
            std::mem::forget(std::mem::take(&mut mine.slots));
            mine.generation = own.generation;
        }
        let known = mine.slots.iter().position(|(one, _)| *one == track);
        let at = known.unwrap_or_else(|| {
            mine.slots.push((track, own.make_slot(track)));
            mine.slots.len() - 1
        });
        let Some((_, Some(slot))) = mine.slots.get(at) else { return };
        match done.bytes {
            Some(bytes) => {
                slot.add(direction, bytes, done.latency_ns, done.unaligned);
                slot.now(done.ended_ns, 0);
            }
            None => slot.fail(direction),
        }
    });
}

/// The registrations for a GPU, or without one: files have no GPU.
struct Registrations {
    gpu: Option<u32>,
    files: i64,
    buffers: i64,
    slot: Option<WorkerSlot>,
}

static HELD: Mutex<Vec<Registrations>> = Mutex::new(Vec::new());

/// Counts registrations of files and buffers; negative for deregistrations.
pub(crate) fn count_registrations(gpu: Option<u32>, files: i64, buffers: i64) {
    // In a child the lock, too, may be the parent's.
    let Some(own) = own_page() else { return };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.iter().any(|one| one.gpu == gpu) {
        let slot = own.page.registrations(gpu, &own.pci(gpu));
        held.push(Registrations { gpu, files: 0, buffers: 0, slot });
    }
    let Some(one) = held.iter_mut().find(|one| one.gpu == gpu) else { return };
    one.files += files;
    one.buffers += buffers;
    // A deregistration by one thread may be counted before another's registration.
    let now = |count: i64| u64::try_from(count).unwrap_or(0);
    if let Some(slot) = &one.slot {
        slot.holds(now(one.files), now(one.buffers));
    }
}

/// The slots of NVIDIA's library's statistics: of no GPU, and of each.
static LIBRARY: Mutex<Vec<(Option<u32>, Option<WorkerSlot>)>> = Mutex::new(Vec::new());

/// Puts the statistics of NVIDIA's library on the page.
pub(crate) fn of_library(library: &Library) {
    let Some(own) = own_page() else { return };
    let mut slots = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let of_gpus = library.gpus.iter().map(|gpu| (Some(gpu.gpu), gpu.numbers()));
    for (gpu, numbers) in std::iter::once((None, library.numbers())).chain(of_gpus) {
        if !slots.iter().any(|(known, _)| *known == gpu) {
            slots.push((gpu, own.page.library(gpu, &own.pci(gpu))));
        }
        let slot = slots.iter().find(|(known, _)| *known == gpu);
        if let Some((_, Some(slot))) = slot {
            slot.of_library(&numbers);
        }
    }
}

impl OwnPage {
    fn pci(&self, gpu: Option<u32>) -> String {
        let found = gpu.and_then(|gpu| self.gpus.iter().find(|(index, _)| *index == gpu));
        found.map(|(_, pci)| pci.clone()).unwrap_or_default()
    }

    fn make_slot(&self, track: Track) -> Option<WorkerSlot> {
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
            // They are counted in slots of their own ([`count_registrations`]).
            registrations_unknown: false,
        };
        let mut slot = self.page.worker_slot(&key)?;
        slot.begin(1, gpuio_watch::page::monotonic_ns());
        Some(slot)
    }
}
