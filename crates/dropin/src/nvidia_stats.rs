//! The statistics that NVIDIA's library has of itself, copied to the live page.
//!
//! A call that ends looks at them, a few times per second at most: the library has them in this
//! process alone (`cuFileGetStatsL3`). Their level is the program's or the configuration's
//! (`profile.cufile_stats`, `CUFILE_STATS_LEVEL`) and is not changed here, because counting costs
//! the library time; below level 3 the page says so. The structures of releases 1.15 and 1.20 have
//! no pool buffers, no POSIX pools and no RDMA (`gpuio_drivers::cufile`), which the page says too.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use gpuio_drivers::cufile::{DirectionStats, PerGpu, STATS_WORDS, StatsAbsent, parse_stats};
use gpuio_gpu::DeviceFacts;
use gpuio_watch::page::{Library, LibraryCounts, LibraryGpu, LibraryState};

use crate::abi::CufileError;
use crate::nvidia::NvidiaLibrary;
use crate::stats::uuid;
use crate::{fork, live_page};

/// Between two looks.
const INTERVAL_NS: u64 = 200_000_000;

struct Calls {
    get_level: Option<unsafe extern "C" fn(*mut c_int) -> CufileError>,
    get: Option<unsafe extern "C" fn(*mut u64) -> CufileError>,
    version: Option<(u32, u32)>,
    /// UUID and number of each GPU.
    gpus: Vec<([u8; 16], u32)>,
    /// The fork generation of the process that opened the library.
    generation: u32,
}

static CALLS: OnceLock<Calls> = OnceLock::new();
static LAST_NS: AtomicU64 = AtomicU64::new(0);
/// Two threads that read at once would write an older reading over a newer one.
static ONE: Mutex<()> = Mutex::new(());

/// Begins to look at the statistics of this library, which is open.
pub(crate) fn begin(library: &NvidiaLibrary, gpus: &[DeviceFacts]) {
    CALLS.get_or_init(|| {
        // SAFETY: the types are those of the interface, here and below.
        let get_version: Option<unsafe extern "C" fn(*mut c_int) -> CufileError> =
            unsafe { library.function(c"cuFileGetVersion") };
        let mut version: c_int = 0;
        // SAFETY: valid for the write of one number.
        let answer = get_version.map(|get| unsafe { get(&raw mut version) });
        let version = u32::try_from(version).ok().filter(|_| answer.is_some_and(|a| a.code == 0));
        Calls {
            // SAFETY: as above.
            get_level: unsafe { library.function(c"cuFileGetStatsLevel") },
            // SAFETY: as above.
            get: unsafe { library.function(c"cuFileGetStatsL3") },
            version: version.map(|version| (version / 1000, version % 1000 / 10)),
            gpus: gpus.iter().map(|gpu| (uuid(&gpu.uuid), gpu.index)).collect(),
            generation: fork::generation(),
        }
    });
}

/// Looks at them, where the last look is long enough ago.
pub(crate) fn look(now_ns: u64) {
    let Some(calls) = CALLS.get().filter(|calls| calls.generation == fork::generation()) else {
        return;
    };
    let last = LAST_NS.load(Ordering::Relaxed);
    let is_due = last == 0 || now_ns.saturating_sub(last) >= INTERVAL_NS;
    let order = Ordering::Relaxed;
    if is_due && LAST_NS.compare_exchange(last, now_ns, order, order).is_ok() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        live_page::of_library(&calls.read());
    }
}

impl Calls {
    fn read(&self) -> Library {
        let (major, minor) = self.version.unwrap_or_default();
        let without = |state| {
            let version = (u64::from(major), u64::from(minor));
            Library { version, state, gpus: Vec::new() }
        };
        let (Some(get_level), Some(get)) = (self.get_level, self.get) else {
            return without(LibraryState::NoCalls);
        };
        let mut level: c_int = 0;
        // SAFETY: valid for the write of one number.
        let answer = unsafe { get_level(&raw mut level) };
        if answer.code != 0 {
            return without(LibraryState::Refused);
        }
        if level < 3 {
            return without(LibraryState::Off);
        }
        let mut words = Box::new([0_u64; STATS_WORDS]);
        // SAFETY: three times the bytes of the structure's largest known form.
        let answer = unsafe { get(words.as_mut_ptr()) };
        if answer.code != 0 {
            return without(LibraryState::Refused);
        }
        match parse_stats(self.version, words) {
            Ok(stats) => {
                let gpus = stats.gpus.iter().enumerate().map(|(nth, gpu)| self.gpu(nth, gpu));
                Library { gpus: gpus.collect(), ..without(LibraryState::Read) }
            }
            Err(StatsAbsent::Layout(..) | StatsAbsent::NoVersion) => without(LibraryState::Layout),
            Err(_) => without(LibraryState::Refused),
        }
    }

    /// An entry, with the number of the GPU of its UUID; entries without one are in the order of
    /// numbers.
    fn gpu(&self, nth: usize, of: &PerGpu) -> LibraryGpu {
        let known = self.gpus.iter().find(|(uuid, _)| *uuid == of.uuid && of.uuid != [0; 16]);
        let side = |counts: &DirectionStats, way: usize| LibraryCounts {
            all: counts.all,
            p2p: counts.p2p,
            nvidia_fs: counts.nvidia_fs,
            posix: counts.posix,
            unaligned: counts.unaligned,
            routed: of.more.routed[way],
            failed: of.more.failed[way],
        };
        LibraryGpu {
            gpu: known.map_or(u32::try_from(nth).unwrap_or(u32::MAX), |(_, gpu)| *gpu),
            read: side(&of.read, 0),
            write: side(&of.write, 1),
            sparse: of.more.sparse,
            inline: of.more.inline,
            registered: of.more.registered,
            register_failed: of.more.register_failed,
            freed: of.more.freed,
            registered_bytes: of.more.registered_bytes,
        }
    }
}
