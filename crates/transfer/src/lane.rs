//! A stream and page-locked memory for one thread at a time.

use std::time::Duration;

use gpuio_gpu::resident_copy::{Outcome, Submitter};
use gpuio_gpu::{Context, DevPtr, Event, GatherKernel, GpuError, Locked, PageSize, Stream, Wait};

use gpuio_io::clock::{Clock, Nanos};

use crate::place::Place;

/// Slots of a lane for large calls: one is filled while others are copied.
pub(crate) const SLOTS: usize = 4;
/// How long a thread polls for the end of a copy before it sleeps between two polls, nanoseconds:
/// longer than the copies of many threads take one after another.
const SPIN: Nanos = 1_000_000;
/// How long it sleeps then, and at most: each sleep is twice as long as the one before. An event
/// that wakes a sleeper instead is late by milliseconds beside computations: with it sixteen
/// threads that read 4 KiB beside products of 8192 rows moved 0.57 GiB/s, by polling 1.48 (H100).
const SLEEP: Duration = Duration::from_micros(50);
const SLEEP_MOST: Duration = Duration::from_millis(1);
/// Looks at memory, some nanoseconds each, between two questions to the driver, each of which takes
/// about a microsecond and a lock that others want for their copies.
const PAUSE: u32 = 64;

/// Copies of so many bytes read lines that their processor has given back first.
const DEMOTED: usize = 64 << 10;

/// Has the processor move what it just wrote from its own cache to the one that all share.
///
/// A copy engine has few reads under way, and reads of lines that lie changed in a processor's own
/// cache take long: sixteen threads that read 1 MiB each and copy it move 25 GiB/s over a link that
/// carries 44, and 39 after this (H100, Xeon of the fourth generation). The instruction is a hint,
/// and does nothing where the processor does not know it (Intel SDM, `CLDEMOTE`).
///
/// # Safety
///
/// `len` bytes at `from` are readable.
unsafe fn demote(from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        /// Bytes of a line.
        const LINE: usize = 64;
        let first = from.addr() % LINE;
        for at in (0..first + len).step_by(LINE) {
            let line = from.wrapping_sub(first).wrapping_add(at);
            // SAFETY: a hint that changes no memory and no register, and never faults.
            unsafe {
                std::arch::asm!("cldemote [{}]", in(reg) line,
                    options(nostack, preserves_flags));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, len);
}

/// Page-locked memory that is never given back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: *mut u8,
    /// The same as the device sees it.
    pub(crate) seen: DevPtr,
}

// SAFETY: an address of memory that lives as long as the process; who may use it is decided by who
// has the lane.
unsafe impl Send for Memory {}
// SAFETY: as for Send.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, GpuError> {
        let memory = Locked::new(context, len, PageSize::Huge)?.leak();
        Ok(Self { at: memory.as_ptr().as_ptr(), seen: memory.ptr() })
    }

    pub(crate) fn after(self, bytes: usize) -> Self {
        Self { at: self.at.wrapping_add(bytes), seen: self.seen.byte_add(bytes as u64) }
    }
}

/// Whoever has one works with it alone. Lanes are made when they are needed and never given back.
#[derive(Debug)]
pub(crate) struct Lane {
    stream: Stream,
    memory: Memory,
    slot_len: usize,
    /// One for each slot. Not those that wake a sleeper: each of them costs an interrupt, whether
    /// or not anybody sleeps.
    reached: Vec<Event>,
    /// Whether a slot's last copy may be under way.
    busy: Vec<bool>,
    /// The number of the slot that is used next, going round.
    turn: usize,
    /// Bytes that the resident copy kernel moved since the last query.
    by_resident_kernel: u64,
    /// Access to the resident copy kernel, if there is one.
    submitter: Option<Submitter>,
    pending: Option<Pending>,
}

/// A command of the resident copy kernel in flight.
#[derive(Debug, Clone, Copy)]
struct Pending {
    slot: usize,
    kind: CopyKind,
}

/// What it copies.
#[derive(Debug, Clone, Copy)]
enum CopyKind {
    Bytes { src: DevPtr, dst: DevPtr, len: usize },
    List(List),
}

/// Pieces in a slot, or beside it in the lane's memory, that go together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    /// The kernel that copies them in one launch.
    pub(crate) kernel: &'static GatherKernel,
    pub(crate) at: DevPtr,
    pub(crate) count: u32,
    /// Bytes of the longest at most.
    pub(crate) longest: u64,
}

/// One of a lane's slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// Its first byte: aligned to 64 KiB at least.
    pub(crate) memory: Memory,
}

impl Lane {
    /// Takes `slots` times `slot_len` bytes of memory.
    pub(crate) fn new(
        context: &Context,
        memory: Memory,
        slot_len: usize,
        slots: usize,
    ) -> Result<Self, GpuError> {
        let events = (0..slots).map(|_| Event::new(context, Wait::Spin));
        Ok(Self {
            stream: Stream::new(context)?,
            reached: events.collect::<Result<_, _>>()?,
            memory,
            slot_len,
            busy: vec![false; slots],
            turn: 0,
            by_resident_kernel: 0,
            submitter: None,
            pending: None,
        })
    }

    /// With a submitter the resident copy kernel does the copies where it reaches the memory. That
    /// saves a driver call, which takes some microseconds and a lock.
    pub(crate) fn with_submitter(mut self, submitter: Option<Submitter>) -> Self {
        self.submitter = submitter;
        self
    }

    /// Bytes that the resident copy kernel moved since the last call. Copies in flight do not
    /// count.
    pub(crate) fn take_by_resident_kernel(&mut self) -> u64 {
        std::mem::take(&mut self.by_resident_kernel)
    }

    /// Submits a copy between a slot and `address` to the resident copy kernel; false if it can't
    /// do it, or not now. A lane has one command in flight, so this waits for the previous one.
    ///
    /// # Safety
    ///
    /// As [`Lane::bring`]; the ranges are those of the slot and of the caller.
    unsafe fn submit(
        &mut self,
        slot: Slot,
        place: Place,
        (src, dst): (DevPtr, DevPtr),
        address: u64,
        len: usize,
    ) -> Result<bool, GpuError> {
        if self.submitter.is_none() || !place.kernels(address, len) {
            return Ok(false);
        }
        self.land()?;
        let Some(submitter) = &mut self.submitter else {
            return Ok(false);
        };
        // SAFETY: the caller's promise; `land` sees the end before the slot is used again.
        match unsafe { submitter.submit(src, dst, len) }? {
            Outcome::Busy => return Ok(false),
            Outcome::Copied => self.by_resident_kernel += len as u64,
            Outcome::Pending => {
                let kind = CopyKind::Bytes { src, dst, len };
                self.pending = Some(Pending { slot: slot.index, kind });
            }
        }
        Ok(true)
    }

    /// Waits for the command in flight. If it was cancelled, the driver copies.
    fn land(&mut self) -> Result<(), GpuError> {
        let (Some(pending), Some(submitter)) = (self.pending, &mut self.submitter) else {
            return Ok(());
        };
        let outcome = submitter.wait();
        self.pending = None;
        match (outcome?, pending.kind) {
            (Outcome::Busy, CopyKind::Bytes { src, dst, len }) => {
                // SAFETY: the copy of the command: the promise of `submit` holds until the slot
                // is free.
                self.put(pending.slot, |stream| unsafe { stream.copy(dst, src, len) })
            }
            // SAFETY: as above, of `gather`.
            (Outcome::Busy, CopyKind::List(list)) => unsafe { self.launch(pending.slot, list) },
            (_, CopyKind::Bytes { len, .. }) => {
                self.by_resident_kernel += len as u64;
                Ok(())
            }
            (_, CopyKind::List(_)) => Ok(()),
        }
    }

    /// Puts work for a slot into the stream, and the mark that `free` looks at behind it.
    fn put(
        &mut self,
        slot: usize,
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        self.busy[slot] = true;
        work(&self.stream)?;
        self.reached[slot].record(&self.stream)
    }

    /// The slot for the turn of this number.
    pub(crate) fn slot(&self, turn: usize) -> Slot {
        let index = turn % self.busy.len();
        Slot { index, memory: self.memory.after(index * self.slot_len) }
    }

    /// The slot that was used the longest ago.
    pub(crate) fn next(&mut self) -> Slot {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        self.slot(turn)
    }

    /// Waits until the slot's last copy has ended. The context must be current.
    pub(crate) fn free(&mut self, slot: Slot) -> Result<(), GpuError> {
        if self.pending.is_some_and(|pending| pending.slot == slot.index) {
            self.land()?;
        }
        if !self.busy[slot.index] {
            return Ok(());
        }
        let event = &self.reached[slot.index];
        let clock = Clock::start();
        let mut sleep = SLEEP;
        while !event.query()? {
            if clock.now() > SPIN {
                std::thread::sleep(sleep);
                sleep = (sleep * 2).min(SLEEP_MOST);
                continue;
            }
            for _ in 0..PAUSE {
                std::hint::spin_loop();
            }
        }
        self.busy[slot.index] = false;
        Ok(())
    }

    /// Waits for all of the lane's copies. The context must be current.
    pub(crate) fn drain(&mut self) -> Result<(), GpuError> {
        (0..self.busy.len()).try_for_each(|index| self.free(self.slot(index)))
    }

    /// Waits for all that is in the stream, after a call that failed: its copy may be under way
    /// without a mark behind it. The context must be current.
    pub(crate) fn settle(&mut self) -> Result<(), GpuError> {
        let landed = self.land();
        self.stream.sync()?;
        landed?;
        self.busy.fill(false);
        Ok(())
    }

    /// Puts a copy from `skip` bytes into a slot to the caller's memory into the stream, or has the
    /// kernel that stays do it.
    ///
    /// # Safety
    ///
    /// The bytes are in the slot, and `len` bytes of memory at `address` of this place stay until
    /// the slot is free, used by no one else.
    pub(crate) unsafe fn bring(
        &mut self,
        slot: Slot,
        skip: usize,
        place: Place,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let ours = slot.memory.seen.byte_add(skip as u64);
        // SAFETY: the caller's promise.
        if unsafe { self.submit(slot, place, (ours, DevPtr(address)), address, len) }? {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.bring_by_copy(slot, skip, place, address, len) }
    }

    /// As [`Lane::bring`], by the driver in any case.
    ///
    /// # Safety
    ///
    /// As [`Lane::bring`].
    pub(crate) unsafe fn bring_by_copy(
        &mut self,
        slot: Slot,
        skip: usize,
        place: Place,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let (from, to) = (slot.memory.at.wrapping_add(skip), DevPtr(address));
        if len >= DEMOTED {
            // SAFETY: `len` bytes of the slot.
            unsafe { demote(from, len) };
        }
        self.put(slot.index, |stream| {
            if place.is_primary() {
                // SAFETY: the caller's promise; the slot is not used until it is free again.
                unsafe { stream.h2d(to, from, len) }
            } else {
                // SAFETY: as above. Unified addressing tells the driver whose memory it is.
                unsafe { stream.copy(to, DevPtr(from.addr() as u64), len) }
            }
        })
    }

    /// As [`Lane::bring`], from the caller's memory to `skip` bytes into a slot.
    ///
    /// # Safety
    ///
    /// As [`Lane::bring`]; the bytes are in the slot once it is free.
    pub(crate) unsafe fn fetch(
        &mut self,
        slot: Slot,
        skip: usize,
        place: Place,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let (to, from) = (slot.memory.at.wrapping_add(skip), DevPtr(address));
        let ours = slot.memory.seen.byte_add(skip as u64);
        // SAFETY: the caller's promise.
        if unsafe { self.submit(slot, place, (from, ours), address, len) }? {
            return Ok(());
        }
        self.put(slot.index, |stream| {
            if place.is_primary() {
                // SAFETY: the caller's promise; the slot is not used until it is free again.
                unsafe { stream.d2h(to, from, len) }
            } else {
                // SAFETY: as above. Unified addressing tells the driver whose memory it is.
                unsafe { stream.copy(DevPtr(to.addr() as u64), from, len) }
            }
        })
    }

    /// Has a whole list of pieces moved by a kernel: the one that stays, or one that is launched
    /// for it. The list stands in the slot, or in another part of the lane's memory that is not
    /// used before the slot is free.
    ///
    /// # Safety
    ///
    /// As [`GatherKernel::launch`], until the slot is free.
    pub(crate) unsafe fn gather(&mut self, slot: Slot, list: List) -> Result<(), GpuError> {
        self.land()?;
        if let Some(submitter) = &mut self.submitter {
            // SAFETY: the caller's promise; `land` sees the end before the slot is used again.
            match unsafe { submitter.submit_list(list.at, list.count) }? {
                Outcome::Busy => {}
                Outcome::Copied => return Ok(()),
                Outcome::Pending => {
                    self.pending = Some(Pending { slot: slot.index, kind: CopyKind::List(list) });
                    return Ok(());
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(slot.index, list) }
    }

    /// # Safety
    ///
    /// As [`Lane::gather`].
    unsafe fn launch(&mut self, slot: usize, list: List) -> Result<(), GpuError> {
        let List { kernel, at, count, longest } = list;
        let shape = kernel.shape(count, longest);
        // SAFETY: the caller's promise.
        self.put(slot, |stream| unsafe { kernel.launch(stream, at, count, shape) })
    }
}
