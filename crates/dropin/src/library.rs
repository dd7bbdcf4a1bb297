//! The state of the library in this process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use gpuio_gpu::{Absent, DeviceFacts, Driver, Owner};
use gpuio_host::input;
use gpuio_transfer::{BypassCache, Settings, Transfer};

use crate::batches::ProgramBatch;
use crate::buffers::{Buffer, Buffers, MapGuard};
use crate::code::{CallError, DRIVER_ALREADY_OPEN, DRIVER_NOT_INITIALIZED};
use crate::config::{Config, Sources, Staged, table};
use crate::direct;
use crate::environment::{self, Tuning};
use crate::fork;
use crate::handles::{Free, Table};
use crate::io::Registered;
use crate::log::{self, Level};
use crate::stats::Stats;

/// The CUDA driver's codes for reasons why it can't be loaded.
pub(crate) const CUDA_NOT_INITIALIZED: c_int = 3;
const CUDA_NO_DEVICE: c_int = 100;
const CUDA_NOT_FOUND: c_int = 500;

/// The library of this process. None of it is ever dropped.
pub(crate) struct Library {
    state: Mutex<State>,
    /// Whether the driver is open. Most calls read only this, without the lock.
    open: AtomicBool,
    transfer: OnceLock<Transfer>,
    gpus: OnceLock<Gpus>,
    pub(crate) files: Table<Registered>,
    pub(crate) batches: Table<Arc<ProgramBatch>>,
    pub(crate) buffers: Buffers,
    pub(crate) stats: Stats,
}

/// The GPUs, and the driver that is kept loaded.
pub(crate) struct Gpus {
    pub(crate) facts: Vec<DeviceFacts>,
    driver: Driver,
}

/// State that changes rarely.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Opens without a close.
    uses: i64,
    staged: Staged,
    /// The settings in effect while the driver is open.
    config: Option<Config>,
    pub(crate) free: Free,
    /// Registered streams with their flags.
    pub(crate) streams: BTreeMap<usize, u32>,
    /// Numbers of streams in a trace, by address, and by thread where each has its own.
    pub(crate) stream_numbers: BTreeMap<(usize, usize), u32>,
    pub(crate) free_batches: Free,
    /// Batches that may have entries in flight.
    pub(crate) living: Vec<Weak<ProgramBatch>>,
}

thread_local! {
    /// Whether this thread holds the library's lock.
    static OWNER: Cell<bool> = const { Cell::new(false) };
}

/// The state, locked.
pub(crate) struct StateGuard<'l>(MutexGuard<'l, State>);

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        let _ = OWNER.try_with(|owner| owner.set(false));
    }
}

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

/// The library, made by the first call.
pub(crate) fn get() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        install_fork_handlers();
        Library {
            state: Mutex::default(),
            open: AtomicBool::new(false),
            transfer: OnceLock::new(),
            gpus: OnceLock::new(),
            files: Table::new(),
            batches: Table::new(),
            buffers: Buffers::default(),
            stats: Stats::default(),
        }
    })
}

/// In the order in which all code takes them.
type Locks = (StateGuard<'static>, MapGuard<'static>);

thread_local! {
    /// The locks, held by the forking thread from before the fork until after it.
    static HELD: Cell<Option<Locks>> = const { Cell::new(None) };
}

/// Registers three handlers for every later fork (`pthread_atfork(3)`). A child has one thread and
/// a copy of the memory: a lock that another thread held stays locked. So the forking thread takes
/// our two locks first and releases them on both sides.
fn install_fork_handlers() {
    // SAFETY: the functions live as long as the process: the object is never unloaded. If memory
    // for the handlers is lacking, a fork may leave the child with a locked lock, and nothing else
    // happens.
    let _ = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
}

unsafe extern "C" fn before_fork() {
    // A driver that forks while this thread calls it under the lock: its child runs another program
    // at once. Waiting for the lock here would never end.
    if OWNER.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    let library = get();
    let locks = (library.lock(), library.buffers.lock());
    let _ = HELD.try_with(|held| held.set(Some(locks)));
}

unsafe extern "C" fn after_fork() {
    let _ = HELD.try_with(Cell::take);
}

unsafe extern "C" fn in_child() {
    fork::advance();
    let library = get();
    library.files.forget_users();
    library.batches.forget_users();
    let _ = HELD.try_with(Cell::take);
}

impl Library {
    /// The lock of all rarely changing state. Reads and writes do not take it.
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = OWNER.try_with(|owner| owner.set(true));
        StateGuard(state)
    }

    /// Opens the driver once more.
    pub(crate) fn open(&self) -> Result<(), CallError> {
        self.load_driver()?;
        let mut state = self.lock();
        self.begin(&mut state)?;
        state.uses += 1;
        Ok(())
    }

    /// Opens the driver for a call that came before any open. It counts as one open.
    pub(crate) fn ensure_open(&self) -> Result<&Transfer, CallError> {
        if !self.open.load(Ordering::Acquire) {
            self.load_driver()?;
            let mut state = self.lock();
            if state.uses == 0 {
                self.begin(&mut state)?;
                state.uses = 1;
            }
        }
        Ok(self.transfer.get_or_init(|| Transfer::new(self.settings(environment::get().tuning))))
    }

    /// Undoes one open. After the last one, registrations of buffers and streams end and settings
    /// may be changed. Handles stay valid until they are deregistered; threads and memory stay for
    /// a later open.
    pub(crate) fn close(&self) -> Result<(), CallError> {
        let mut state = self.lock();
        if state.uses == 0 {
            return Err(DRIVER_NOT_INITIALIZED.into());
        }
        state.uses -= 1;
        if state.uses > 0 {
            return Ok(());
        }
        self.open.store(false, Ordering::Release);
        state.config = None;
        state.streams.clear();
        let buffers = self.buffers.clear();
        drop(state);
        for buffer in buffers.values() {
            crate::live_page::count_registrations(buffer.gpu, 0, -1);
        }
        // Outside the lock: NVIDIA's library may take long.
        let is_nvidias = |buffer: &Buffer| {
            buffer.location.is_some_and(|location| direct::supports_memory(&location))
        };
        for (base, _) in buffers.iter().filter(|(_, buffer)| is_nvidias(buffer)) {
            direct::deregister_buffer(*base);
        }
        Ok(())
    }

    pub(crate) fn uses(&self) -> i64 {
        self.lock().uses
    }

    /// Fails before the first open.
    pub(crate) fn needs_open(&self) -> Result<(), CallError> {
        let open = self.open.load(Ordering::Acquire);
        if open { Ok(()) } else { Err(DRIVER_NOT_INITIALIZED.into()) }
    }

    /// The first open, after the driver is loaded.
    fn begin(&self, state: &mut State) -> Result<(), CallError> {
        if state.uses > 0 {
            return Ok(());
        }
        let environment = environment::get();
        let config = read(&state.staged);
        log::set(&config);
        for note in environment.notes.iter().chain(&config.notes) {
            log::line(Level::Warn, || note.clone());
        }
        if !config.switches[table::ALLOW_COMPAT] {
            log::line(Level::Warn, || {
                "allow_compat_mode is off, but has no effect: this library always moves bytes \
                 through host memory"
                    .to_owned()
            });
        }
        self.stats.begin(config.sizes[table::STATS_LEVEL]);
        crate::live_page::begin("cuFile", self.gpus(), self.is_software());
        crate::recorder::begin();
        state.config = Some(config);
        self.open.store(true, Ordering::Release);
        log::line(Level::Info, || {
            format!(
                "driver open: backend {:?}, gpuio {}",
                environment.backend,
                env!("CARGO_PKG_VERSION")
            )
        });
        Ok(())
    }

    /// Makes what shows the calls that NVIDIA's library serves: live page and trace. Without a CUDA
    /// driver no GPU is named.
    pub(crate) fn look_on(&self) {
        let _ = self.load_driver();
        crate::live_page::begin("cuFile", self.gpus(), self.is_software());
        crate::recorder::begin();
    }

    /// The GPU on which memory lies; `None` for host memory.
    pub(crate) fn gpu_of(&self, address: u64) -> Option<u32> {
        let pointer = self.gpus.get()?.driver.pointer(address).ok()?;
        pointer.device.filter(|_| matches!(pointer.owner, Owner::Device | Owner::Managed))
    }

    /// Loads and initialises the CUDA driver; the program need not have done so. Not under the
    /// lock: the driver may fork (to run nvidia-modprobe), and a fork takes the lock.
    fn load_driver(&self) -> Result<(), CallError> {
        if self.gpus.get().is_some() {
            return Ok(());
        }
        let found = Driver::load(&environment::get().driver).map_err(|absent| {
            log::line(Level::Error, || absent.to_string());
            absent_error(&absent)
        })?;
        let facts = found.devices().unwrap_or_default();
        // If another thread was quicker, this one's is dropped.
        let _ = self.gpus.set(Gpus { facts, driver: found });
        Ok(())
    }

    /// The driver's GPUs; none before the first open.
    pub(crate) fn gpus(&self) -> &[DeviceFacts] {
        self.gpus.get().map_or(&[], |gpus| &gpus.facts)
    }

    fn is_software(&self) -> bool {
        self.gpus.get().is_some_and(|gpus| gpus.driver.is_software())
    }

    /// The settings in effect, or those that an open would put into effect now.
    pub(crate) fn config<T>(&self, look: impl FnOnce(&Config) -> T) -> T {
        let state = self.lock();
        match &state.config {
            Some(config) => look(config),
            None => look(&read(&state.staged)),
        }
    }

    /// Changes a setting in effect if the driver is open, otherwise the program's staged one.
    pub(crate) fn set_size(&self, at: usize, value: usize) {
        let mut state = self.lock();
        match &mut state.config {
            Some(config) => config.sizes[at] = value,
            None => state.staged.sizes[at] = Some(value),
        }
    }

    /// Like [`Library::set_size`], for a switch.
    pub(crate) fn set_switch(&self, at: usize, value: bool) {
        let mut state = self.lock();
        match &mut state.config {
            Some(config) => config.switches[at] = value,
            None => state.staged.switches[at] = Some(value),
        }
    }

    /// Changes the program's staged settings; fails while the driver is open.
    pub(crate) fn stage(&self, change: impl FnOnce(&mut Staged)) -> Result<(), CallError> {
        let mut state = self.lock();
        if state.uses > 0 {
            return Err(DRIVER_ALREADY_OPEN.into());
        }
        change(&mut state.staged);
        Ok(())
    }
}

/// Reads all settings again: a program may change its environment until it opens the driver.
fn read(staged: &Staged) -> Config {
    let sources = Sources {
        variable: &gpuio_guard::objects::environment::variable,
        file: &|path| input::read_text(path, input::MOST_WRITTEN),
    };
    Config::read(&sources, staged)
}

impl Library {
    /// The settings of the transfers, made once per process.
    fn settings(&self, tuning: Tuning) -> Settings {
        let mut settings = settings(tuning);
        settings.stream_semaphores = !self.config(|config| config.switches[table::MEMOPS_BYPASS]);
        settings
    }
}

fn settings(tuning: Tuning) -> Settings {
    let mut settings = Settings::default();
    settings.driver = environment::get().driver.clone();
    if let Some(workers) = tuning.workers {
        settings.max_workers = workers;
        settings.workers_per_gpu = workers;
    }
    settings.max_active = tuning.busy.unwrap_or(settings.max_active).max(1);
    settings.oversubscription = tuning.oversubscription;
    if let Some(mib) = tuning.ring_mib {
        settings.max_staging_bytes = u64::from(mib) << 20;
    }
    settings.max_mapped_bytes = tuning.mapped_mib.map(|mib| u64::from(mib) << 20);
    if let Some(kib) = tuning.chunk_kib {
        settings.max_piece_bytes = kib.saturating_mul(1024);
    }
    settings.bypass_cache = match tuning.strict {
        Some(true) => BypassCache::All,
        Some(false) => BypassCache::None,
        None => settings.bypass_cache,
    };
    settings.resident = tuning.resident.unwrap_or(settings.resident);
    settings
}

fn absent_error(absent: &Absent) -> CallError {
    CallError::Cuda(match absent {
        Absent::InitFailed { code, .. } => *code,
        Absent::NoDevice => CUDA_NO_DEVICE,
        Absent::SymbolMissing { .. } => CUDA_NOT_FOUND,
        _ => CUDA_NOT_INITIALIZED,
    })
}
