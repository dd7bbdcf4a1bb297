//! A stream and page-locked memory for one thread at a time.

use std::time::{Duration, Instant};

use gpuio_gpu::{Context, DevPtr, Event, GpuError, Leaked, Locked, PageSize, Stream, Wait};

use crate::place::Place;

/// Slots of a lane: one is filled while others are copied.
pub(crate) const SLOTS: usize = 4;
/// How long a thread looks for a copy's end before it sleeps: longer than a copy takes that does not
/// wait for others.
const SPIN: Duration = Duration::from_micros(60);

/// Whoever has one works with it alone. Lanes are made when they are needed and never given back.
#[derive(Debug)]
pub(crate) struct Lane {
    stream: Stream,
    memory: Leaked,
    slot_len: usize,
    reached: [Event; SLOTS],
    /// Whether a slot's last copy may be under way.
    busy: [bool; SLOTS],
}

/// One of a lane's slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// The first byte: aligned to 64 KiB at least.
    pub(crate) at: *mut u8,
    /// The same as the device sees it.
    pub(crate) seen: DevPtr,
}

impl Lane {
    pub(crate) fn new(context: &Context, slot_len: usize) -> Result<Self, GpuError> {
        let memory = Locked::new(context, slot_len * SLOTS, PageSize::Huge)?;
        let event = || Event::new(context, Wait::Block);
        Ok(Self {
            stream: Stream::new(context)?,
            reached: [event()?, event()?, event()?, event()?],
            memory: memory.leak(),
            slot_len,
            busy: [false; SLOTS],
        })
    }

    pub(crate) fn slot_len(&self) -> usize {
        self.slot_len
    }

    pub(crate) fn slot(&self, index: usize) -> Slot {
        let index = index % SLOTS;
        let by = index * self.slot_len;
        Slot {
            index,
            at: self.memory.as_ptr().as_ptr().wrapping_add(by),
            seen: self.memory.ptr().byte_add(by as u64),
        }
    }

    /// Waits until the slot's last copy has ended. The context must be current.
    pub(crate) fn free(&mut self, slot: Slot) -> Result<(), GpuError> {
        if !self.busy[slot.index] {
            return Ok(());
        }
        let event = &self.reached[slot.index];
        let began = Instant::now();
        while !event.query()? {
            if began.elapsed() > SPIN {
                event.sync()?;
                break;
            }
            std::hint::spin_loop();
        }
        self.busy[slot.index] = false;
        Ok(())
    }

    /// Waits for all of the lane's copies. The context must be current.
    pub(crate) fn drain(&mut self) -> Result<(), GpuError> {
        (0..SLOTS).try_for_each(|index| self.free(self.slot(index)))
    }

    /// Puts a copy from `skip` bytes into a slot to the caller's memory into the stream.
    ///
    /// # Safety
    ///
    /// The bytes are in the slot, and `len` bytes of memory at `address` of this place stay until
    /// the slot is free, used by no one else.
    pub(crate) unsafe fn to_memory(
        &mut self,
        slot: Slot,
        skip: usize,
        place: Place,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let (from, to) = (slot.at.wrapping_add(skip), DevPtr(address));
        self.busy[slot.index] = true;
        if place.is_primary() {
            // SAFETY: the caller's promise; the slot is not used until it is free again.
            unsafe { self.stream.h2d(to, from, len) }?;
        } else {
            // SAFETY: as above. Unified addressing tells the driver whose memory it is.
            unsafe { self.stream.copy(to, DevPtr(from.addr() as u64), len) }?;
        }
        self.reached[slot.index].record(&self.stream)
    }

    /// Puts a copy from the caller's memory to `skip` bytes into a slot into the stream.
    ///
    /// # Safety
    ///
    /// As [`Lane::to_memory`]; the bytes are in the slot once it is free.
    pub(crate) unsafe fn from_memory(
        &mut self,
        slot: Slot,
        skip: usize,
        place: Place,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let (to, from) = (slot.at.wrapping_add(skip), DevPtr(address));
        self.busy[slot.index] = true;
        if place.is_primary() {
            // SAFETY: the caller's promise; the slot is not used until it is free again.
            unsafe { self.stream.d2h(to, from, len) }?;
        } else {
            // SAFETY: as above. Unified addressing tells the driver whose memory it is.
            unsafe { self.stream.copy(DevPtr(to.addr() as u64), from, len) }?;
        }
        self.reached[slot.index].record(&self.stream)
    }
}
