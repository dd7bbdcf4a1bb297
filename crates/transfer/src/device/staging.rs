//! The staging ring: page-locked slots and a CUDA stream, used by one thread at a time.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use gpuio_gpu::resident_copy::{Outcome, Submitter};
use gpuio_gpu::{
    COPIED_BY_DEVICE, Context, DevPtr, Event, GatherKernel, GpuError, Locked, PageSize, Stream,
    Wait,
};

use crate::Op;
use crate::clock::{Clock, Nanos};
use crate::device::pace::{CopyPace, PacedCopy};
use crate::mapped::copy_pages;
use crate::memory::MemoryLocation;

/// Slots of a ring for large calls: one is filled while others are copied.
pub(crate) const SLOTS: usize = 4;
/// Commands that such a ring has in flight with the resident copy kernel: with one, a thread waits
/// for a copy that another thread's read held up.
pub(crate) const COMMANDS: usize = 2;
/// How long a thread polls for the end of a copy before it sleeps between polls, nanoseconds:
/// longer than the copies of many threads take one after another.
const SPIN: Nanos = 1_000_000;
/// The first and the longest sleep; each is twice as long as the previous one. Events that wake a
/// sleeper are late by milliseconds while computations run: sixteen threads that read 4 KiB during
/// products of 8192 rows moved 0.57 GiB/s with them, and 1.48 by polling (H100).
const SLEEP: Duration = Duration::from_micros(50);
const SLEEP_MOST: Duration = Duration::from_millis(1);
/// A read that takes so long, nanoseconds, is slow: beside it a sleep of [`SLEEP`] and the
/// scheduler's delay are some hundredths.
const SLOW_READ: Nanos = 2_000_000;
/// Spin steps, some nanoseconds each, between two driver queries. Each query takes about a
/// microsecond and a lock that other threads need for their copies.
const PAUSE: u32 = 64;

/// For a copy of so many bytes or more a thread waits about as long as it takes before it asks the
/// driver.
const PACED: usize = 64 << 10;

/// From so many bytes on, a copy's source is first demoted from the processor's own cache.
const DEMOTED: usize = 64 << 10;

/// Asks the processor to move what it just wrote from its own cache to the shared one.
///
/// A copy engine has few reads in flight, and reads of lines that are modified in a processor's own
/// cache are slow on Xeons of the fourth generation: sixteen threads that read 1 MiB each and copy
/// it move 25 GiB/s over a link that carries 44, and 39 with this (H100). On those of the fifth the
/// instruction takes 90 µs/MiB and helps nothing: 38 GiB/s instead of 40 (H200). The resident copy
/// kernel, which has many reads in flight, never gains. The instruction is a hint (Intel SDM,
/// `CLDEMOTE`).
///
/// # Safety
/// `len` bytes at `from` are readable.
unsafe fn demote(from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        /// Bytes of a cache line.
        const LINE: usize = 64;
        static GAINS: LazyLock<bool> = LazyLock::new(|| {
            // Family 6, model 143: both with their extended bits, without the stepping.
            std::arch::x86_64::__cpuid(1).eax & 0x0fff_0ff0 == 0x0008_06f0
        });
        let first = from.addr() % LINE;
        let len = if *GAINS { first + len } else { 0 };
        for at in (0..len).step_by(LINE) {
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

/// Page-locked memory that is never freed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinnedMemory {
    pub(crate) at: *mut u8,
    pub(crate) device_ptr: DevPtr,
}

// SAFETY: an address of memory that lives as long as the process; who holds the ring decides who
// uses it.
unsafe impl Send for PinnedMemory {}
// SAFETY: as for Send.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, GpuError> {
        let memory = Locked::new(context, len, PageSize::Huge)?.leak();
        Ok(Self { at: memory.as_ptr().as_ptr(), device_ptr: memory.ptr() })
    }

    pub(crate) fn after(self, bytes: usize) -> Self {
        Self { at: self.at.wrapping_add(bytes), device_ptr: self.device_ptr.byte_add(bytes as u64) }
    }
}

/// A ring, which one thread uses at a time. Rings are made on demand and never freed.
#[derive(Debug)]
pub(crate) struct StagingRing {
    stream: Stream,
    memory: PinnedMemory,
    slot_len: usize,
    /// One for each slot, polled. Events that wake a sleeper would cost an interrupt each, whether
    /// or not a thread sleeps.
    copied: Vec<Event>,
    /// Each slot's last copy; `None` if it is known to have ended.
    in_flight: Vec<Option<SlotCopy>>,
    pace: Arc<CopyPace>,
    /// The number of the next slot; wraps around.
    next_number: usize,
    /// Bytes that the resident copy kernel moved since the last query.
    by_resident_kernel: u64,
    /// Access to the resident copy kernel, if there is one: each has a command in flight.
    submitters: Vec<(Submitter, Option<Pending>)>,
    /// Which of them has the next command.
    turn: usize,
}

/// Copies by the driver that are in flight.
#[derive(Debug, Clone, Copy)]
struct SlotCopy {
    by: WaitBy,
    /// Not of a list, nor of less than [`PACED`] bytes.
    paced: Option<PacedCopy>,
}

/// How a thread waits for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitBy {
    /// It polls, and sleeps between polls after [`SPIN`].
    Polling,
    /// It sleeps from the start.
    Sleeping,
}

/// A command of the resident copy kernel in flight.
#[derive(Debug, Clone, Copy)]
struct Pending {
    slot: usize,
    kind: CopyKind,
}

/// The bytes or the list that it copies.
#[derive(Debug, Clone, Copy)]
enum CopyKind {
    Bytes { src: DevPtr, dst: DevPtr, len: usize },
    List(List),
}

/// Pieces in a slot, or elsewhere in the ring's memory, that are copied together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    /// The kernel that copies them in one launch.
    pub(crate) kernel: &'static GatherKernel,
    pub(crate) at: DevPtr,
    pub(crate) count: u32,
    /// Bytes of the longest piece at most.
    pub(crate) longest: u64,
}

/// One of a ring's slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StagingSlot {
    pub(crate) index: usize,
    /// Its first byte, aligned to at least 64 KiB.
    pub(crate) memory: PinnedMemory,
}

impl StagingRing {
    /// Makes a ring of `slots` times `slot_len` bytes of `memory`.
    pub(crate) fn new(
        context: &Context,
        memory: PinnedMemory,
        slot_len: usize,
        slots: usize,
        pace: &Arc<CopyPace>,
    ) -> Result<Self, GpuError> {
        let events = (0..slots).map(|_| Event::new(context, Wait::Spin));
        Ok(Self {
            stream: Stream::new(context)?,
            copied: events.collect::<Result<_, _>>()?,
            memory,
            slot_len,
            in_flight: vec![None; slots],
            pace: Arc::clone(pace),
            next_number: 0,
            by_resident_kernel: 0,
            submitters: Vec::new(),
            turn: 0,
        })
    }

    /// With submitters the resident copy kernel does the copies where it reaches the memory. That
    /// saves a driver call, which takes some microseconds and a lock.
    pub(crate) fn with_submitters(mut self, submitters: impl Iterator<Item = Submitter>) -> Self {
        self.submitters = submitters.map(|submitter| (submitter, None)).collect();
        self
    }

    /// Bytes that the resident copy kernel moved since the last call. Copies in flight do not
    /// count.
    pub(crate) fn take_by_resident_kernel(&mut self) -> u64 {
        std::mem::take(&mut self.by_resident_kernel)
    }

    /// Submits a copy between a slot and `address` to the resident copy kernel; false if it can't
    /// do it, or not now.
    ///
    /// # Safety
    /// As [`StagingRing::copy`]; the ranges are those of the slot and of the caller.
    unsafe fn submit(
        &mut self,
        slot: StagingSlot,
        location: MemoryLocation,
        (src, dst): (DevPtr, DevPtr),
        address: u64,
        len: usize,
    ) -> Result<bool, GpuError> {
        if !location.is_reached_by_kernels(address, len) {
            return Ok(false);
        }
        let kind = CopyKind::Bytes { src, dst, len };
        // SAFETY: the caller's promise; `finish` waits for the end before the slot is used again.
        self.command(slot, kind, |submitter| unsafe { submitter.submit(src, dst, len) })
    }

    /// Has the next submitter submit a command for the slot, after its previous one; false if none
    /// can, or not now.
    fn command(
        &mut self,
        slot: StagingSlot,
        kind: CopyKind,
        submit: impl FnOnce(&mut Submitter) -> Result<Outcome, GpuError>,
    ) -> Result<bool, GpuError> {
        let turn = self.turn;
        self.finish(turn)?;
        let Some((submitter, pending)) = self.submitters.get_mut(turn) else {
            return Ok(false);
        };
        match submit(submitter)? {
            Outcome::Busy => return Ok(false),
            Outcome::Copied => self.has_moved(kind),
            Outcome::Pending => *pending = Some(Pending { slot: slot.index, kind }),
        }
        self.turn = (turn + 1) % self.submitters.len();
        Ok(true)
    }

    /// Counts what the resident copy kernel moved.
    fn has_moved(&mut self, kind: CopyKind) {
        if let CopyKind::Bytes { len, .. } = kind {
            self.by_resident_kernel += len as u64;
        }
    }

    /// Waits for a submitter's command in flight. If it was cancelled, the driver copies.
    fn finish(&mut self, which: usize) -> Result<(), GpuError> {
        let Some((submitter, in_flight)) = self.submitters.get_mut(which) else {
            return Ok(());
        };
        let Some(Pending { slot, kind }) = in_flight.take() else {
            return Ok(());
        };
        match (submitter.wait()?, kind) {
            (Outcome::Busy, CopyKind::Bytes { src, dst, len }) => {
                // SAFETY: the copy of the command: the promise of `submit` holds until the slot
                // is free.
                self.enqueue(slot, len, |stream| unsafe { stream.copy(dst, src, len) })
            }
            // SAFETY: as above, of `gather`.
            (Outcome::Busy, CopyKind::List(list)) => unsafe { self.launch(slot, list) },
            (_, kind) => {
                self.has_moved(kind);
                Ok(())
            }
        }
    }

    /// Enqueues work for a slot, and the event that `wait_for_slot` polls. `len` are its bytes; 0
    /// if nothing is known of its time.
    fn enqueue(
        &mut self,
        slot: usize,
        len: usize,
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let paced = (len >= PACED).then(|| self.pace.begin(len));
        let before = self.in_flight[slot].and_then(|copy| copy.paced);
        let paced = match (before, paced) {
            (Some(before), Some(later)) => Some(before.and(later)),
            (before, later) => before.or(later),
        };
        self.in_flight[slot] = Some(SlotCopy { by: WaitBy::Polling, paced });
        work(&self.stream)?;
        self.copied[slot].record(&self.stream)
    }

    /// Notes that the copies of a slot have ended, or are no longer waited for.
    fn free(&mut self, slot: usize) {
        if let Some(paced) = self.in_flight[slot].take().and_then(|copy| copy.paced) {
            self.pace.end(paced);
        }
    }

    /// The slot with this number, modulo the number of slots.
    pub(crate) fn slot(&self, number: usize) -> StagingSlot {
        let index = number % self.in_flight.len();
        StagingSlot { index, memory: self.memory.after(index * self.slot_len) }
    }

    /// The least recently used slot.
    pub(crate) fn next_slot(&mut self) -> StagingSlot {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.slot(number)
    }

    /// Waits until the slot's last copy has ended. The context must be current.
    pub(crate) fn wait_for_slot(&mut self, slot: StagingSlot) -> Result<(), GpuError> {
        for which in 0..self.submitters.len() {
            if self.submitters[which].1.is_some_and(|pending| pending.slot == slot.index) {
                self.finish(which)?;
            }
        }
        let Some(SlotCopy { by, paced }) = self.in_flight[slot.index] else {
            return Ok(());
        };
        let paced = paced.filter(|_| by == WaitBy::Polling);
        let has_waited = paced.is_some_and(|copy| self.pace.wait(copy));
        let spin = if by == WaitBy::Polling { SPIN } else { 0 };
        let event = &self.copied[slot.index];
        let clock = Clock::start();
        let mut sleep = SLEEP;
        let mut polls = 0u32;
        while !event.query()? {
            polls += 1;
            if clock.now() > spin {
                std::thread::sleep(sleep);
                sleep = (sleep * 2).min(SLEEP_MOST);
                continue;
            }
            for _ in 0..PAUSE {
                std::hint::spin_loop();
            }
        }
        match paced {
            Some(copy) if polls > 0 => self.pace.seen(copy),
            Some(_) if has_waited => self.pace.late(),
            _ => {}
        }
        self.free(slot.index);
        Ok(())
    }

    /// Waits for all copies of the ring. The context must be current.
    pub(crate) fn wait_for_all(&mut self) -> Result<(), GpuError> {
        (0..self.in_flight.len()).try_for_each(|index| self.wait_for_slot(self.slot(index)))
    }

    /// Waits for all work in the stream after a failed call: its copy may be in flight without an
    /// event. The context must be current.
    pub(crate) fn synchronize(&mut self) -> Result<(), GpuError> {
        // All of them, also after a failure.
        let finished = (0..self.submitters.len()).map(|which| self.finish(which));
        let finished = finished.fold(Ok(()), Result::and);
        let synchronized = self.stream.sync();
        // Also after a failure: no thread will wait for them.
        (0..self.in_flight.len()).for_each(|slot| self.free(slot));
        synchronized.and(finished)
    }

    /// Copies `len` bytes between `skip` bytes into a slot and the caller's memory, to the memory
    /// for a read and from it for a write, by the resident copy kernel or the driver. Does not
    /// wait: the bytes have arrived once the slot is free.
    ///
    /// # Safety
    /// The bytes are in their source, and `len` bytes at `address` of this location stay valid
    /// until the slot is free, used by nothing else.
    pub(crate) unsafe fn copy(
        &mut self,
        op: Op,
        slot: StagingSlot,
        skip: usize,
        location: MemoryLocation,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let (ours, theirs) = (slot.memory.device_ptr.byte_add(skip as u64), DevPtr(address));
        let sides = if op == Op::Read { (ours, theirs) } else { (theirs, ours) };
        // SAFETY: the caller's promise.
        if unsafe { self.submit(slot, location, sides, address, len) }? {
            return Ok(());
        }
        let ours = slot.memory.at.wrapping_add(skip);
        if op == Op::Read && len >= DEMOTED {
            // SAFETY: `len` bytes of the slot.
            unsafe { demote(ours, len) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.copy_by_driver(op, slot, ours, location, address, len) }
    }

    /// Like [`StagingRing::copy`] of a read, for bytes that a storage device wrote into the slot.
    /// Always by the driver: the resident copy kernel has exited during so long a wait, most
    /// likely. No processor's cache has these bytes, so there is nothing to demote.
    ///
    /// `read_took` is how long the device took for them. Beside [`SLOW_READ`] a sleep costs no time
    /// that counts, and saves the processor time of polling: of 1 MiB about 50 microseconds.
    ///
    /// # Safety
    /// As [`StagingRing::copy`].
    pub(crate) unsafe fn copy_dma_to_gpu(
        &mut self,
        slot: StagingSlot,
        skip: usize,
        location: MemoryLocation,
        address: u64,
        len: usize,
        read_took: Nanos,
    ) -> Result<(), GpuError> {
        let ours = slot.memory.at.wrapping_add(skip);
        // SAFETY: the caller's promise.
        unsafe { self.copy_by_driver(Op::Read, slot, ours, location, address, len) }?;
        if read_took >= SLOW_READ
            && let Some(copy) = &mut self.in_flight[slot.index]
        {
            copy.by = WaitBy::Sleeping;
        }
        Ok(())
    }

    /// Copies bytes of a mapped file by the driver. Does not wait: the slot is free when the copy
    /// has ended. Only a copy below [`COPIED_BY_DEVICE`] uses it, from `slot_offset` on.
    ///
    /// # Safety
    /// As [`StagingRing::copy`], of `len` bytes from `from` on, which stay registered.
    pub(crate) unsafe fn copy_mapped(
        &mut self,
        slot: StagingSlot,
        slot_offset: usize,
        from: *const u8,
        location: MemoryLocation,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let mut from = from.cast_mut();
        if len < COPIED_BY_DEVICE && slot_offset + len <= self.slot_len {
            let to = slot.memory.at.wrapping_add(slot_offset);
            // SAFETY: bytes of the slot, which is this thread's until the copy below has ended.
            if unsafe { copy_pages(to, from, len) } {
                from = to;
            }
        }
        // SAFETY: the caller's promise; a copy to the GPU does not write its source.
        unsafe { self.copy_by_driver(Op::Read, slot, from, location, address, len) }
    }

    /// Copies `len` bytes of a GPU's memory, of whatever context, to `to` by the driver. Does not
    /// wait: the slot is free when the copy has ended.
    ///
    /// # Safety
    /// As [`StagingRing::copy`] of a write; `to` is valid for the write of `len` bytes and used by
    /// nothing else until then.
    pub(crate) unsafe fn copy_out(
        &mut self,
        slot: StagingSlot,
        to: *mut u8,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let to = DevPtr(to.addr() as u64);
        // SAFETY: the caller's promise. Unified addressing tells the driver whose memory it is.
        self.enqueue(slot.index, len, |stream| unsafe { stream.copy(to, DevPtr(address), len) })
    }

    /// # Safety
    /// As [`StagingRing::copy`].
    unsafe fn copy_by_driver(
        &mut self,
        op: Op,
        slot: StagingSlot,
        ours: *mut u8,
        location: MemoryLocation,
        address: u64,
        len: usize,
    ) -> Result<(), GpuError> {
        let theirs = DevPtr(address);
        let ours_by_address = DevPtr(ours.addr() as u64);
        self.enqueue(slot.index, len, |stream| match (op, location.is_primary()) {
            // SAFETY: the caller's promise; the slot is not used until it is free again.
            (Op::Read, true) => unsafe { stream.h2d(theirs, ours, len) },
            // SAFETY: as above.
            (Op::Write, true) => unsafe { stream.d2h(ours, theirs, len) },
            // Unified addressing tells the driver whose memory it is.
            // SAFETY: as above.
            (Op::Read, false) => unsafe { stream.copy(theirs, ours_by_address, len) },
            // SAFETY: as above.
            (Op::Write, false) => unsafe { stream.copy(ours_by_address, theirs, len) },
        })
    }

    /// Copies a whole list of pieces by a kernel: the resident one, or one that is launched for it.
    /// The list is in the slot, or elsewhere in the ring's memory and unchanged until the slot is
    /// free.
    ///
    /// # Safety
    /// As [`GatherKernel::launch`], until the slot is free.
    pub(crate) unsafe fn gather(&mut self, slot: StagingSlot, list: List) -> Result<(), GpuError> {
        let kind = CopyKind::List(list);
        // SAFETY: the caller's promise; `finish` waits for the end before the slot is used again.
        let submit = |to: &mut Submitter| unsafe { to.submit_list(list.at, list.count) };
        if self.command(slot, kind, submit)? {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(slot.index, list) }
    }

    /// # Safety
    /// As [`StagingRing::gather`].
    unsafe fn launch(&mut self, slot: usize, list: List) -> Result<(), GpuError> {
        let List { kernel, at, count, longest } = list;
        let shape = kernel.modest_shape(count, longest);
        // SAFETY: the caller's promise.
        self.enqueue(slot, 0, |stream| unsafe { kernel.launch(stream, at, count, shape) })
    }
}
