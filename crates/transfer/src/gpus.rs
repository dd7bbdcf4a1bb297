//! The driver, and what we keep on each of its devices. Nothing of it is ever given back.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_gpu::resident_copy::{self, CommandQueue, Timing};
use gpuio_gpu::{Context, Driver, GatherKernel, GpuError, Which};

use crate::attempt::Attempt;
use crate::lane::{Lane, Memory, SLOTS};
use crate::settings::Settings;

/// The driver, from the first time that it is asked for.
#[derive(Debug)]
pub(crate) struct Gpus {
    which: Which,
    slot_len: usize,
    lanes_most: usize,
    resident: bool,
    driver: OnceLock<Option<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    driver: Driver,
    devices: Vec<Current>,
    making: Mutex<()>,
}

/// What we keep on a device now: nothing yet, or the state of its context as that is. Where a
/// program resets the device, another takes its place; the old one is never freed, for others may
/// still have it.
#[derive(Debug, Default)]
struct Current(AtomicPtr<Device>);

impl Current {
    fn get(&self) -> Option<&'static Device> {
        // SAFETY: null, or made by `Box::leak` and never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    fn set(&self, device: &'static Device) {
        self.0.store(std::ptr::from_ref(device).cast_mut(), Ordering::Release);
    }
}

/// A device's primary context and its lanes.
#[derive(Debug)]
pub(crate) struct Device {
    /// No other state of any device has this number.
    serial: u32,
    context: Context,
    slot_len: usize,
    lanes_most: usize,
    resident: bool,
    lanes: Mutex<Lanes>,
    given: Condvar,
    small: Mutex<Small>,
    command_queue: Attempt<CommandQueue>,
    gather: Attempt<GatherKernel>,
    /// Whether the context makes synchronous memory operations synchronize, for memory that can't
    /// be given that attribute.
    syncs_memops: AtomicBool,
}

/// How long a call waits for the default streams, which may hold a kernel that waits for the
/// caller; a copy that was begun ends in milliseconds.
const DEFAULT_STREAMS_MOST: Duration = Duration::from_secs(1);

/// Lanes of one short slot, for small calls: each thread that makes such calls keeps one.
#[derive(Debug, Default)]
struct Small {
    free: Vec<&'static mut Lane>,
    made: usize,
    /// Memory that no lane has yet, and how many slots of it.
    shelf: Option<(Memory, usize)>,
}

/// Bytes of the slot of a lane for small calls: the longest one and the slack around it.
pub(crate) const SMALL_SLOT: usize = 128 << 10;
/// Slots of memory that is locked at once.
const SHELF: usize = 16;
/// Most lanes for small calls: 32 MiB.
const SMALL_MOST: usize = 256;

#[derive(Debug, Default)]
struct Lanes {
    /// The one given back last is taken first: its memory is most likely in a cache.
    free: Vec<&'static mut Lane>,
    made: usize,
    waiting: usize,
}

impl Gpus {
    pub(crate) fn new(settings: &Settings) -> Self {
        let slot_len = settings.chunk();
        let lane = (slot_len * SLOTS) as u64;
        let lanes = (settings.ring_bytes_most / lane).max(1);
        Self {
            which: settings.driver.clone(),
            slot_len,
            lanes_most: usize::try_from(lanes).unwrap_or(usize::MAX),
            resident: settings.resident,
            driver: OnceLock::new(),
        }
    }

    fn loaded(&self) -> Option<&Loaded> {
        let made = self.driver.get_or_init(|| {
            let driver = Driver::load(&self.which).ok()?;
            let devices = (0..driver.device_count()).map(|_| Current::default()).collect();
            Some(Loaded { driver, devices, making: Mutex::new(()) })
        });
        made.as_ref()
    }

    /// The driver, where there is one: without it there is no memory of a GPU.
    pub(crate) fn driver(&self) -> Option<&Driver> {
        self.loaded().map(|loaded| &loaded.driver)
    }

    /// What we keep on the device of this index, made when it is first asked for.
    pub(crate) fn device(&self, index: u32) -> Result<&'static Device, GpuError> {
        let Some(loaded) = self.loaded() else {
            unreachable!("a place on a GPU comes from a driver")
        };
        let Some(known) = loaded.devices.get(index as usize) else {
            // The driver tells of it in its own words.
            return Context::new(&loaded.driver, index).map(|context| self.keep(context));
        };
        if let Some(device) = known.get() {
            return Ok(device);
        }
        let _one = loaded.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = known.get() {
            return Ok(device);
        }
        let device = self.keep(Context::new(&loaded.driver, index)?);
        known.set(device);
        Ok(device)
    }

    /// What we keep on the device now, if anything.
    pub(crate) fn current(&self, index: u32) -> Option<&'static Device> {
        self.loaded()?.devices.get(index as usize)?.get()
    }

    /// Makes new state for a device whose context was reset, once a call found out. True if the
    /// call may be made again.
    pub(crate) fn renew(&self, index: u32) -> bool {
        let Some(loaded) = self.loaded() else {
            return false;
        };
        let Some(known) = loaded.devices.get(index as usize) else {
            return false;
        };
        let _one = loaded.making.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get().is_some_and(|device| !device.context.is_reset()) {
            return true;
        }
        let made = Context::new(&loaded.driver, index).map(|context| self.keep(context));
        made.map(|device| known.set(device)).is_ok()
    }

    /// Keeps a device, with the kernels loaded. To load one may wait for all that is under way on
    /// the device (CUDA C++ Programming Guide, "Lazy Loading"), for streams that are held by the
    /// program among it: better now than at a transfer in such a stream.
    fn keep(&self, context: Context) -> &'static Device {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        let device: &'static Device = Box::leak(Box::new(Device {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            context,
            slot_len: self.slot_len,
            lanes_most: self.lanes_most,
            resident: self.resident,
            lanes: Mutex::default(),
            given: Condvar::new(),
            small: Mutex::default(),
            command_queue: Attempt::new(),
            gather: Attempt::new(),
            syncs_memops: AtomicBool::new(false),
        }));
        let _ = device.gather();
        let _ = device.command_queue();
        device
    }
}

impl Device {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Which state of a device this is.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// Waits for the program's synchronous memory operations on the memory at `address` that are
    /// under way though their calls returned, and has later ones return after they have ended: see
    /// [`Driver::synchronize_memops`]. Called for memory that has not been given the attribute.
    ///
    /// Mappings (`cuMemMap`) can't have it. For them the primary context gets the same property, as
    /// a whole, and the first call waits for the default streams. A driver before CUDA 12.1 has
    /// neither, and each call waits.
    pub(crate) fn synchronize_memops(&self, driver: &Driver, address: u64) -> Result<(), GpuError> {
        if self.syncs_memops.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.context.entered(|| driver.synchronize_memops(address))? {
            return Ok(());
        }
        let lasts = self.context.synchronize_memops()?;
        let _ended = self.context.wait_for_default_streams(DEFAULT_STREAMS_MOST)?;
        self.syncs_memops.fetch_or(lasts, Ordering::AcqRel);
        Ok(())
    }

    /// Takes a lane, making one where there is none and memory may still be had, waiting for one
    /// otherwise. Whoever holds one gives it back without waiting for another, so there is always
    /// one to come.
    pub(crate) fn lane(&self) -> Result<&'static mut Lane, GpuError> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(lane) = lanes.free.pop() {
                return Ok(lane);
            }
            if lanes.made < self.lanes_most {
                lanes.made += 1;
                drop(lanes);
                let made = Memory::new(&self.context, self.slot_len * SLOTS)
                    .and_then(|memory| Lane::new(&self.context, memory, self.slot_len, SLOTS));
                lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
                match made {
                    Ok(lane) => {
                        drop(lanes);
                        return Ok(Box::leak(Box::new(
                            lane.with_submitter(self.shared_submitter()),
                        )));
                    }
                    // No more memory to lock: what there is has to do.
                    Err(_) if lanes.made > 1 => lanes.made -= 1,
                    Err(error) => {
                        lanes.made -= 1;
                        return Err(error);
                    }
                }
                if !lanes.free.is_empty() {
                    continue;
                }
            }
            lanes.waiting += 1;
            lanes = self.given.wait(lanes).unwrap_or_else(PoisonError::into_inner);
            lanes.waiting -= 1;
        }
    }

    /// Gives a lane back, none of whose copies is under way.
    pub(crate) fn give(&self, lane: &'static mut Lane) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.free.push(lane);
        if lanes.waiting > 0 {
            self.given.notify_one();
        }
    }

    /// Gives up a lane whose copies may be under way for ever: its memory is never used again.
    pub(crate) fn lose(&self, lane: &'static mut Lane) {
        let _ = lane;
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.made -= 1;
        if lanes.waiting > 0 {
            self.given.notify_one();
        }
    }

    /// A lane of one slot of [`SMALL_SLOT`] bytes; `None` where no more are to be had.
    pub(crate) fn small_lane(&self) -> Option<&'static mut Lane> {
        let mut small = self.small.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = small.free.pop() {
            return Some(lane);
        }
        if small.made == SMALL_MOST {
            return None;
        }
        let (memory, left) = match small.shelf.take() {
            Some(shelf) => shelf,
            None => (Memory::new(&self.context, SMALL_SLOT * SHELF).ok()?, SHELF),
        };
        small.shelf = (left > 1).then(|| (memory.after(SMALL_SLOT), left - 1));
        let lane = Lane::new(&self.context, memory, SMALL_SLOT, 1).ok()?;
        small.made += 1;
        Some(Box::leak(Box::new(lane)))
    }

    /// Gives it back, for another thread. Calls no driver; where that would have to wait, which it
    /// might for ever in a child of `fork(2)`, the lane is lost.
    pub(crate) fn give_small(&self, lane: &'static mut Lane) {
        if let Ok(mut small) = self.small.try_lock() {
            small.free.push(lane);
        }
    }

    /// A submitter for one thread to the resident copy kernel; `None` where there is none.
    pub(crate) fn submitter(&self) -> Option<resident_copy::Submitter> {
        self.command_queue().ok().flatten().map(CommandQueue::submitter)
    }

    /// The same for long moves.
    fn shared_submitter(&self) -> Option<resident_copy::Submitter> {
        self.command_queue().ok().flatten().map(CommandQueue::shared_submitter)
    }

    /// Whether the driver's copy engines move the bytes of large calls now: there is no kernel that
    /// stays, or others fill the device.
    pub(crate) fn uses_engines(&self) -> bool {
        self.command_queue.had().is_none_or(CommandQueue::is_backing_off)
    }

    fn command_queue(&self) -> Result<Option<&CommandQueue>, GpuError> {
        if !self.resident {
            return Ok(None);
        }
        self.command_queue
            .get(|| CommandQueue::new(&self.context, Timing::of(&self.context)))
            .map(Some)
    }

    /// The kernel for many pieces.
    ///
    /// # Errors
    ///
    /// Why the device does not have it: for good, or for now, as its memory is full.
    pub(crate) fn gather(&self) -> Result<&GatherKernel, GpuError> {
        self.gather.get(|| GatherKernel::load(&self.context))
    }
}
