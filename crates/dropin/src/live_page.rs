//! The live page of a program that uses this library: `gpuio stats PID` shows it (docs/stats.md).
//!
//! Paths are by how bytes reached memory: `kernel` and `copy` between page-locked memory and a GPU,
//! `host` straight to memory of the host, `nvidia` where NVIDIA's library did it; engines by the
//! file's side: `cached` or `direct`. A call of several ways counts where most of its bytes went.

use std::cell::RefCell;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use gpuio_host::Root;
use gpuio_page::{Direction as PageDirection, Key, Lane, Page, Place};
use gpuio_transfer::RouteBytes;
use rustix::time::{ClockId, clock_gettime};

use crate::stats::{Direction, Done};
use crate::{fork, library};

/// Lanes of one thread and way each; further ones share.
const LANES: u32 = 60;

/// How bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MovedBy {
    Kernel,
    Copy,
    Host,
    Nvidia,
}

/// A way: what a lane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Track {
    gpu: Option<u32>,
    moved_by: MovedBy,
    direct: bool,
}

/// The page of one process of a line of forks.
static PAGE: OnceLock<(u32, Option<Page>)> = OnceLock::new();
/// Its file, to be removed at exit.
static FILE: OnceLock<(u32, CString)> = OnceLock::new();

/// A thread's lanes, and the process that they are of.
struct Lanes {
    generation: u32,
    lanes: Vec<(Track, Option<Lane>)>,
}

thread_local! {
    static SLOTS_OF_THREAD: RefCell<Lanes> =
        const { RefCell::new(Lanes { generation: 0, lanes: Vec::new() }) };
}

/// Makes the page. Without one (no shared memory, no room) the program runs on all the same.
/// Children of fork(2) have none: theirs would be their parent's.
pub(crate) fn begin() {
    PAGE.get_or_init(|| {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let began_ns = seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
        let name = Root::live().word("proc/self/comm").ok().flatten().unwrap_or_default();
        let program = format!("cuFile: {name}");
        let page = Page::create(&Place::live(), LANES, &program, began_ns).ok();
        if let Some(page) = &page {
            tidy_at_exit(page);
        }
        (fork::generation(), page)
    });
}

/// Has the page's file removed when the process ends by exit(3): nobody drops the page, since
/// threads may count until the end. After a crash the next reader recognises the file.
fn tidy_at_exit(page: &Page) {
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
        // SAFETY: a string that ends, and lives as long as the process.
        let _ = unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// How most of a call's bytes went.
pub(crate) fn moved_by(route: &RouteBytes) -> MovedBy {
    if route.by_kernel > route.by_copy.max(route.by_host) {
        MovedBy::Kernel
    } else if route.by_copy > route.by_host {
        MovedBy::Copy
    } else {
        MovedBy::Host
    }
}

/// Counts a transfer, which `route` tells more of where it is ours.
pub(crate) fn count(done: &Done, route: Option<&RouteBytes>) {
    let Some((generation, Some(page))) = PAGE.get() else { return };
    if *generation != fork::generation() {
        return;
    }
    let track = Track {
        gpu: done.gpu,
        moved_by: route
            .map_or(if done.forwarded { MovedBy::Nvidia } else { MovedBy::Host }, moved_by),
        direct: route.is_some_and(|route| route.direct > route.cached),
    };
    let direction = match done.direction {
        Direction::Read => PageDirection::Read,
        Direction::Write => PageDirection::Write,
    };
    // A thread that is ending counts no more.
    let _ = SLOTS_OF_THREAD.try_with(|mine| {
        let Ok(mut mine) = mine.try_borrow_mut() else { return };
        if mine.generation != *generation {
            // Of the parent's page: what it says of its threads is not ours to change.
            std::mem::forget(std::mem::take(&mut mine.lanes));
            mine.generation = *generation;
        }
        let known = mine.lanes.iter().position(|(one, _)| *one == track);
        let at = known.unwrap_or_else(|| {
            mine.lanes.push((track, lane(page, track)));
            mine.lanes.len() - 1
        });
        let Some((_, Some(lane))) = mine.lanes.get(at) else { return };
        match done.bytes {
            Some(bytes) => {
                lane.add(direction, bytes, done.latency_ns, done.unaligned);
                lane.now(done.ended_ns, 0);
            }
            None => lane.fail(direction),
        }
    });
}

/// What is registered on a GPU, or without one: files are of no GPU.
struct Held {
    gpu: Option<u32>,
    files: i64,
    buffers: i64,
    lane: Option<Lane>,
}

static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Counts files and buffers that were registered, or taken back (below 0).
pub(crate) fn count_registrations(gpu: Option<u32>, files: i64, buffers: i64) {
    let Some((generation, Some(page))) = PAGE.get() else { return };
    // The page is the parent's, and so may be the lock.
    if *generation != fork::generation() {
        return;
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.iter().any(|one| one.gpu == gpu) {
        let lane = page.registrations(gpu, &pci(gpu));
        held.push(Held { gpu, files: 0, buffers: 0, lane });
    }
    let Some(one) = held.iter_mut().find(|one| one.gpu == gpu) else { return };
    one.files += files;
    one.buffers += buffers;
    // Of two threads the one that takes back may come before the one that registers.
    let now = |count: i64| u64::try_from(count).unwrap_or(0);
    if let Some(lane) = &one.lane {
        lane.holds(now(one.files), now(one.buffers));
    }
}

fn pci(gpu: Option<u32>) -> String {
    let facts = library::get().gpus();
    let found = gpu.and_then(|gpu| facts.iter().find(|one| one.index == gpu));
    found.map(|one| one.pci.clone()).unwrap_or_default()
}

fn lane(page: &Page, track: Track) -> Option<Lane> {
    let path = match track.moved_by {
        MovedBy::Kernel => "kernel",
        MovedBy::Copy => "copy",
        MovedBy::Host => "host",
        MovedBy::Nvidia => "nvidia",
    };
    let engine = match (track.moved_by, track.direct) {
        (MovedBy::Nvidia, _) => "cufile",
        (_, true) => "direct",
        (_, false) => "cached",
    };
    let key = Key {
        gpu: track.gpu,
        pci: pci(track.gpu),
        path: path.to_owned(),
        engine: engine.to_owned(),
        // They are counted on lanes of their own ([`holds`]).
        counts_registrations: true,
    };
    let mut lane = page.lane(&key)?;
    lane.begin(1, gpuio_page::monotonic_ns());
    Some(lane)
}
