//! The driver, and the state that is kept per device. None of it is ever freed.

pub(crate) mod pace;
pub(crate) mod small;
pub(crate) mod staging;
mod waited;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gpuio_gpu::resident_copy::{self, CommandQueue, Timing};
use gpuio_gpu::{Context, Driver, GatherKernel, GpuError, Pointer, Which};

use crate::device::pace::CopyPace;
use crate::device::staging::{COMMANDS, PinnedMemory, SLOTS, StagingRing};
use crate::device::waited::WaitedAllocations;
use crate::retry::RetryingCell;
use crate::settings::Settings;

/// The driver, loaded on first use.
#[derive(Debug)]
pub(crate) struct Devices {
    which: Which,
    slot_len: usize,
    max_rings: usize,
    resident: bool,
    driver: OnceLock<Option<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    driver: Driver,
    devices: Vec<CurrentDevice>,
    making: Mutex<()>,
}

/// The current state of a device: empty until first use. When a program resets the device, new
/// state replaces it; the old one is never freed, because other threads may still use it.
#[derive(Debug, Default)]
struct CurrentDevice(AtomicPtr<Device>);

impl CurrentDevice {
    fn get(&self) -> Option<&'static Device> {
        // SAFETY: null, or made by `Box::leak` and never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    fn set(&self, device: &'static Device) {
        self.0.store(std::ptr::from_ref(device).cast_mut(), Ordering::Release);
    }
}

/// A device's primary context, its staging rings and kernels.
#[derive(Debug)]
pub(crate) struct Device {
    /// Differs between all states of all devices.
    serial: u32,
    context: Context,
    slot_len: usize,
    max_rings: usize,
    resident: bool,
    rings: Mutex<RingPool>,
    returned: Condvar,
    small: Mutex<SmallRings>,
    command_queue: RetryingCell<CommandQueue>,
    gather: RetryingCell<GatherKernel>,
    /// Allocations whose earlier synchronous operations have ended.
    waited: WaitedAllocations,
    /// Whether the context makes synchronous memory operations synchronize, for memory that can't
    /// have that attribute itself. Set when those before have ended.
    syncs_memops: AtomicBool,
    /// The pace of the rings' copies by the driver.
    copy_pace: Arc<CopyPace>,
}

/// How long a call waits for the default streams. These may hold a kernel that waits for the
/// caller; a started copy ends in milliseconds.
const DEFAULT_STREAMS_TIMEOUT: Duration = Duration::from_secs(1);

/// Rings of one short slot for small calls. Each thread that makes such calls keeps one.
#[derive(Debug, Default)]
struct SmallRings {
    free: Vec<&'static mut StagingRing>,
    made: usize,
    /// Memory that no ring uses yet, and its number of slots.
    spare: Vec<(PinnedMemory, usize)>,
}

/// Bytes of the slot of a small ring: the longest small call and its slack.
pub(crate) const SMALL_SLOT: usize = 128 << 10;
/// Slots of memory that are page-locked at once.
const SLOTS_LOCKED_AT_ONCE: usize = 16;
/// Most small rings: 32 MiB.
const MAX_SMALL_RINGS: usize = 256;

#[derive(Debug, Default)]
struct RingPool {
    /// Last in, first out: the memory of the ring that came back last is most likely in a cache.
    free: Vec<&'static mut StagingRing>,
    made: usize,
    waiting: usize,
}

impl Devices {
    pub(crate) fn new(settings: &Settings) -> Self {
        let slot_len = settings.max_piece();
        let ring = (slot_len * SLOTS) as u64;
        let rings = (settings.max_staging_bytes / ring).max(1);
        Self {
            which: settings.driver.clone(),
            slot_len,
            max_rings: usize::try_from(rings).unwrap_or(usize::MAX),
            resident: settings.resident,
            driver: OnceLock::new(),
        }
    }

    /// How many devices have been used. Loads no driver.
    pub(crate) fn in_use(&self) -> u32 {
        let Some(Some(loaded)) = self.driver.get() else { return 0 };
        let used = loaded.devices.iter().filter(|device| device.get().is_some()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    fn loaded(&self) -> Option<&Loaded> {
        let made = self.driver.get_or_init(|| {
            let driver = Driver::load(&self.which).ok()?;
            let devices = (0..driver.device_count()).map(|_| CurrentDevice::default()).collect();
            Some(Loaded { driver, devices, making: Mutex::new(()) })
        });
        made.as_ref()
    }

    /// The driver, if there is one. Without it there is no GPU memory.
    pub(crate) fn driver(&self) -> Option<&Driver> {
        self.loaded().map(|loaded| &loaded.driver)
    }

    /// The state of the device with this index, made on first use.
    pub(crate) fn device(&self, index: u32) -> Result<&'static Device, GpuError> {
        let Some(loaded) = self.loaded() else {
            unreachable!("a location on a GPU comes from a driver")
        };
        let Some(known) = loaded.devices.get(index as usize) else {
            // The driver reports this error in its own words.
            return Context::new(&loaded.driver, index).map(|context| self.leak(context));
        };
        if let Some(device) = known.get() {
            return Ok(device);
        }
        let _one = loaded.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = known.get() {
            return Ok(device);
        }
        let device = self.leak(Context::new(&loaded.driver, index)?);
        known.set(device);
        Ok(device)
    }

    /// The current state of the device, if any.
    pub(crate) fn current(&self, index: u32) -> Option<&'static Device> {
        self.loaded()?.devices.get(index as usize)?.get()
    }

    /// Makes new state for a device after a call found that its context was reset. True if the call
    /// may be repeated.
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
        let made = Context::new(&loaded.driver, index).map(|context| self.leak(context));
        made.map(|device| known.set(device)).is_ok()
    }

    /// Leaks the state of a device, with its kernels loaded. Loading a kernel may wait for all work
    /// on the device (CUDA C++ Programming Guide, "Lazy Loading"), including streams that the
    /// program holds up: better now than at a transfer in such a stream.
    fn leak(&self, context: Context) -> &'static Device {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        let device: &'static Device = Box::leak(Box::new(Device {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            context,
            slot_len: self.slot_len,
            max_rings: self.max_rings,
            resident: self.resident,
            rings: Mutex::default(),
            returned: Condvar::new(),
            small: Mutex::default(),
            command_queue: RetryingCell::new(),
            gather: RetryingCell::new(),
            waited: WaitedAllocations::new(),
            syncs_memops: AtomicBool::new(false),
            copy_pace: Arc::new(CopyPace::new()),
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

    /// Identifies this state of the device.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// Waits for the program's synchronous memory operations on the memory at `address` that are
    /// still running although their calls returned, and makes later ones return only after they
    /// have ended: see [`Driver::synchronize_memops`]. Once a wait for an allocation has ended,
    /// that costs a load.
    ///
    /// Memory of no context can't have it: a mapping (`cuMemMap`) refuses it, and for memory of a
    /// pool (`cuMemAllocAsync`) it does nothing. For these the primary context as a whole gets the
    /// same property, and the first call waits for the default streams. A driver before CUDA 12.1
    /// has neither, and each call waits.
    pub(crate) fn synchronize_memops(
        &self,
        driver: &Driver,
        address: u64,
        info: &Pointer,
    ) -> Result<(), GpuError> {
        // Whatever the primary context has: memory of another one may be used in that.
        let wait = || self.context.entered(|| driver.synchronize_memops(address));
        if info.context.is_some() && self.waited.ensure(info.id, info.sync_memops, wait)? {
            return Ok(());
        }
        if self.syncs_memops.load(Ordering::Acquire) {
            return Ok(());
        }
        let lasts = self.context.synchronize_memops()?;
        let _ended = self.context.wait_for_default_streams(DEFAULT_STREAMS_TIMEOUT)?;
        self.syncs_memops.fetch_or(lasts, Ordering::AcqRel);
        Ok(())
    }

    /// Takes a ring. Makes one if none is free and the memory limit allows it, otherwise waits for
    /// one. Who holds a ring returns it without waiting for another, so a ring always becomes free.
    pub(crate) fn take_ring(&self) -> Result<&'static mut StagingRing, GpuError> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ring) = rings.free.pop() {
                return Ok(ring);
            }
            if rings.made < self.max_rings {
                rings.made += 1;
                drop(rings);
                let made = self.make_ring();
                rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
                match made {
                    Ok(ring) => return Ok(ring),
                    // No more memory can be page-locked: the existing rings must do.
                    Err(_) if rings.made > 1 => rings.made -= 1,
                    Err(error) => {
                        rings.made -= 1;
                        // Who waits does so for a ring that this thread seemed to make.
                        if rings.waiting > 0 {
                            self.returned.notify_one();
                        }
                        return Err(error);
                    }
                }
                if !rings.free.is_empty() {
                    continue;
                }
            }
            rings.waiting += 1;
            rings = self.returned.wait(rings).unwrap_or_else(PoisonError::into_inner);
            rings.waiting -= 1;
        }
    }

    fn make_ring(&self) -> Result<&'static mut StagingRing, GpuError> {
        let memory = PinnedMemory::new(&self.context, self.slot_len * SLOTS)?;
        let ring = StagingRing::new(&self.context, memory, self.slot_len, SLOTS, &self.copy_pace)?;
        let submitters = (0..COMMANDS).map_while(|_| self.shared_submitter());
        Ok(Box::leak(Box::new(ring.with_submitters(submitters))))
    }

    /// Makes one more ring, if the memory limit allows it and the driver does.
    pub(crate) fn add_ring(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if rings.made == self.max_rings {
            return;
        }
        rings.made += 1;
        drop(rings);
        match self.make_ring() {
            Ok(ring) => self.give_back(ring),
            Err(_) => self.forget_ring(),
        }
    }

    /// Returns a ring without copies in flight.
    pub(crate) fn give_back(&self, ring: &'static mut StagingRing) {
        // Bytes that a batch or a failed call moved are not the next call's.
        ring.take_by_resident_kernel();
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.free.push(ring);
        if rings.waiting > 0 {
            self.returned.notify_one();
        }
    }

    /// Drops a ring whose copies may stay in flight forever. Its memory is never used again.
    pub(crate) fn abandon(&self, ring: &'static mut StagingRing) {
        let _ = ring;
        self.forget_ring();
    }

    /// Counts a ring less: who waits may make one.
    fn forget_ring(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.made -= 1;
        if rings.waiting > 0 {
            self.returned.notify_one();
        }
    }

    /// A ring with one slot of [`SMALL_SLOT`] bytes; `None` if the limit is reached.
    pub(crate) fn take_small_ring(&self) -> Option<&'static mut StagingRing> {
        let lock = || self.small.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = {
            let mut small = lock();
            if let Some(ring) = small.free.pop() {
                return Some(ring);
            }
            if small.made == MAX_SMALL_RINGS {
                return None;
            }
            small.made += 1;
            small.spare.pop()
        };
        // The driver's calls may take long, or fork: no lock is held.
        let make = || -> Result<StagingRing, GpuError> {
            let (memory, left) = match spare {
                Some(spare) => spare,
                None => (
                    PinnedMemory::new(&self.context, SMALL_SLOT * SLOTS_LOCKED_AT_ONCE)?,
                    SLOTS_LOCKED_AT_ONCE,
                ),
            };
            if left > 1 {
                lock().spare.push((memory.after(SMALL_SLOT), left - 1));
            }
            StagingRing::new(&self.context, memory, SMALL_SLOT, 1, &self.copy_pace)
        };
        match make() {
            Ok(ring) => Some(Box::leak(Box::new(ring))),
            Err(_) => {
                lock().made -= 1;
                None
            }
        }
    }

    /// Returns it, for another thread. Calls no driver. If the lock is held, possibly forever in a
    /// child of `fork(2)`, the ring is lost.
    pub(crate) fn give_back_small(&self, ring: &'static mut StagingRing) {
        if let Ok(mut small) = self.small.try_lock() {
            small.free.push(ring);
        }
    }

    /// Access of one thread to the resident copy kernel; `None` if there is none.
    pub(crate) fn submitter(&self) -> Option<resident_copy::Submitter> {
        self.command_queue().ok().flatten().map(CommandQueue::submitter)
    }

    /// The same for long copies.
    fn shared_submitter(&self) -> Option<resident_copy::Submitter> {
        self.command_queue().ok().flatten().map(CommandQueue::shared_submitter)
    }

    /// Whether the driver's copy engines now move the bytes of large calls: there is no resident
    /// copy kernel, or other kernels fill the device.
    pub(crate) fn uses_copy_engines(&self) -> bool {
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

    /// The kernel that copies many pieces.
    ///
    /// # Errors
    /// Why the device does not have it: permanently, or for now because its memory is full.
    pub(crate) fn gather(&self) -> Result<&GatherKernel, GpuError> {
        self.gather.get(|| GatherKernel::load(&self.context))
    }
}
