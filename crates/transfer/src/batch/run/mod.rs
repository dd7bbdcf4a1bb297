//! Runs: neighbouring small entries of a batch that are read into one slot, or written from one,
//! with one launch.

use std::collections::VecDeque;

use gpuio_gpu::{DevPtr, GatherKernel, GpuError, Piece, PieceList};

use super::{Entry, Event, uring};
use crate::Op;
use crate::call::{CallRequest, catch_panic};
use crate::device::Device;
use crate::device::staging::{List, StagingRing, StagingSlot};
use crate::fault::{Fault, FileFault};
use crate::file::{CacheLookup, FileBytes, ReadBuffer, UncachedRead};
use crate::mapped::{MappedFiles, MappedRange};
use crate::state::State;
use crate::transferred::Transferred;

/// Most entries of a run.
pub(super) const MOST_ENTRIES: u32 = 128;
/// Most entries of a run while other threads can take the next one.
const SHARED: usize = 32;
/// Most bytes of a run of more than one entry.
const BYTES_MOST: usize = 512 << 10;
/// The longest entry of a run, bytes: a longer one costs no more than a copy of its own.
const LONGEST: usize = 64 << 10;
/// Bytes at the start of a slot for the list of pieces: [`BYTES_MOST`] in pieces of 4 KiB, and two
/// more for each entry.
const LIST: usize = 16 << 10;
/// Alignment of entries in a slot, bytes; files may require more.
const ALIGN: usize = 4 << 10;

/// The common part of the entries of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunKind {
    device: u32,
    op: Op,
}

/// Entries that are moved together.
pub(super) struct Run {
    pub(super) kind: RunKind,
    pub(super) entries: Vec<Entry>,
    /// The offset of each entry's bytes in the slot.
    slot_offsets: Vec<usize>,
}

/// The next work.
pub(super) enum Taken {
    Run(Run),
    One(Box<Entry>),
}

impl Taken {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.entries.len(),
            Self::One(_) => 1,
        }
    }
}

impl From<Entry> for CallRequest {
    fn from(entry: Entry) -> Self {
        let Entry { op, file, location, address, len, offset, .. } = entry;
        Self { op, file, location, address, len: len as u64, offset }
    }
}

/// The number of threads that can work on the entries.
pub(super) fn count(entries: &[Entry]) -> u64 {
    let small = entries.iter().filter(|entry| kind(entry).is_some()).count();
    (small.div_ceil(SHARED) + entries.len() - small) as u64
}

/// The kind of run that an entry can be part of.
fn kind(entry: &Entry) -> Option<RunKind> {
    let device = entry.location.device()?;
    let fits = (1..=LONGEST).contains(&entry.len) && entry.offset <= i64::MAX.cast_unsigned() / 2;
    fits.then_some(RunKind { device, op: entry.op })
}

/// The most entries of a run.
pub(super) fn most(is_busy: bool) -> usize {
    if is_busy { MOST_ENTRIES as usize } else { SHARED }
}

/// Takes the first entry, and those after it that fit with it into a slot of `slot` bytes, `most`
/// in all.
pub(super) fn take(waiting: &mut VecDeque<Entry>, slot: usize, most: usize) -> Option<Taken> {
    if let Some(run) = take_run(waiting, slot, most, None) {
        return Some(Taken::Run(run));
    }
    waiting.pop_front().map(|entry| Taken::One(Box::new(entry)))
}

/// Like [`take`], but takes only a run, and of the wanted kind.
pub(super) fn take_run(
    waiting: &mut VecDeque<Entry>,
    slot: usize,
    most: usize,
    wanted: Option<RunKind>,
) -> Option<Run> {
    let kind_of_run = kind(waiting.front()?)?;
    if wanted.is_some_and(|wanted| wanted != kind_of_run) {
        return None;
    }
    let (mut slot_offsets, mut end, mut bytes) = (Vec::new(), LIST, 0);
    for entry in waiting.iter().take(most) {
        if kind(entry) != Some(kind_of_run) {
            break;
        }
        let align = ALIGN.max(entry.file.0.align());
        let start = end.next_multiple_of(align) + entry.file.0.skip(entry.offset);
        let next = (start + entry.len).next_multiple_of(align);
        bytes += entry.len;
        if next > slot || (bytes > BYTES_MOST && !slot_offsets.is_empty()) {
            break;
        }
        slot_offsets.push(start);
        end = next;
    }
    if slot_offsets.is_empty() {
        return None;
    }
    let entries = waiting.drain(..slot_offsets.len()).collect();
    Some(Run { kind: kind_of_run, entries, slot_offsets })
}

/// Moves a run and those that `next` returns. One is read or written while another is copied.
/// Reports the entries of each as they complete.
pub(super) fn execute(
    state: &'static State,
    first: Run,
    next: impl Fn(RunKind) -> Option<Run>,
    completed: impl Fn(Vec<Event>),
) {
    let kind = first.kind;
    let mut first = Some(first);
    let executed = state.devices.device(kind.device).and_then(|device| {
        device.context().entered(|| {
            let mut executor = RunExecutor::new(device, &state.mapped)?;
            let mut in_flight: Option<InFlightRun> = None;
            let mut number = 0;
            loop {
                let run = first.take().or_else(|| next(kind));
                let is_last = run.is_none();
                let started = run.and_then(|run| executor.try_to_start(run, number, &completed));
                number += 1;
                if let Some(in_flight) = std::mem::replace(&mut in_flight, started) {
                    completed(executor.complete(in_flight));
                }
                if is_last {
                    break;
                }
            }
            executor.end();
            Ok::<(), GpuError>(())
        })?
    });
    if let (Err(error), Some(run)) = (executed, first) {
        completed(run.fail(&Fault::Gpu(error)));
    }
}

impl Run {
    fn fail(self, fault: &Fault) -> Vec<Event> {
        let event = |entry: Entry| Event { cookie: entry.cookie, outcome: Err(fault.clone()) };
        self.entries.into_iter().map(event).collect()
    }
}

/// A run whose copies are in flight, and what is known of each entry.
struct InFlightRun {
    slot: StagingSlot,
    run: Run,
    /// For a read the mapped bytes of each entry that has them. They stay registered until this
    /// is dropped.
    mapped: Vec<Option<MappedRange>>,
    /// For a read the bytes from the file, for a write nothing yet.
    file_bytes: Vec<Result<FileBytes, Fault>>,
    by_kernel: Vec<bool>,
    enqueued: Result<(), GpuError>,
}

/// A thread with a ring, for as long as there are runs.
struct RunExecutor {
    device: &'static Device,
    ring: &'static mut StagingRing,
    kernel: Option<&'static GatherKernel>,
    files: &'static MappedFiles,
    failed: bool,
    /// Reads may stay in flight into the ring's memory forever.
    lost: bool,
}

impl RunExecutor {
    fn new(device: &'static Device, files: &'static MappedFiles) -> Result<Self, GpuError> {
        Ok(Self {
            device,
            ring: device.take_ring()?,
            kernel: device.gather().ok(),
            files,
            failed: false,
            lost: false,
        })
    }

    /// Returns the ring. Nothing is in flight, unless something failed.
    fn end(self) {
        if self.lost || (self.failed && self.ring.synchronize().is_err()) {
            self.device.abandon(self.ring);
        } else {
            self.device.give_back(self.ring);
        }
    }

    /// Like [`RunExecutor::start`]; if that panics, the run's entries end with that fault.
    fn try_to_start(
        &mut self,
        run: Run,
        number: usize,
        completed: &impl Fn(Vec<Event>),
    ) -> Option<InFlightRun> {
        let cookies: Vec<_> = run.entries.iter().map(|entry| entry.cookie).collect();
        let started = catch_panic(|| self.start(run, number));
        started
            .inspect_err(|fault| {
                self.failed = true;
                // Nothing may touch the entries' memory after they have ended.
                self.lost |= self.ring.synchronize().is_err();
                let event = |cookie| Event { cookie, outcome: Err(fault.clone()) };
                completed(cookies.into_iter().map(event).collect());
            })
            .ok()
    }

    /// For a read, reads a run from its files; then enqueues its copies.
    fn start(&mut self, run: Run, number: usize) -> InFlightRun {
        let slot = self.ring.slot(number);
        let enqueued = self.ring.wait_for_slot(slot);
        let mapped = match run.kind.op {
            Op::Read => self.find_mapped(&run),
            Op::Write => run.entries.iter().map(|_| None).collect(),
        };
        let (file_bytes, by_kernel) = (Vec::new(), Vec::new());
        let mut in_flight = InFlightRun { slot, mapped, file_bytes, by_kernel, enqueued, run };
        if in_flight.enqueued.is_ok() {
            in_flight.file_bytes = match in_flight.run.kind.op {
                Op::Read => self.read_all(&in_flight.run, &in_flight.mapped, slot),
                Op::Write => {
                    let all = |entry: &Entry| Ok(FileBytes { cached: entry.len, direct: 0 });
                    in_flight.run.entries.iter().map(all).collect()
                }
            };
            in_flight.enqueued = self.enqueue_copies(&mut in_flight);
        }
        in_flight
    }

    /// The mapped bytes of each entry that has them.
    fn find_mapped(&self, run: &Run) -> Vec<Option<MappedRange>> {
        let find =
            |entry: &Entry| self.files.find(&entry.file.0, self.device, entry.offset, entry.len);
        run.entries.iter().map(find).collect()
    }

    /// Reads each entry of a run that is not mapped to its offset in the slot: first what the page
    /// cache holds, then the others all at once.
    fn read_all(
        &mut self,
        run: &Run,
        mapped: &[Option<MappedRange>],
        slot: StagingSlot,
    ) -> Vec<Result<FileBytes, Fault>> {
        let buffers = run.entries.iter().zip(&run.slot_offsets).map(|(entry, &slot_offset)| {
            (entry, ReadBuffer { at: slot.memory.at.wrapping_add(slot_offset), slack: true })
        });
        let mut uncached: Vec<UncachedRead<'_>> = Vec::new();
        let first = buffers.clone().zip(mapped).map(|((entry, buffer), mapped)| {
            if let Some(range) = mapped {
                return CacheLookup::Done(Ok(FileBytes { cached: range.len, direct: 0 }));
            }
            let file = &entry.file.0;
            // SAFETY: the slot is this thread's, and has space for the entry and its slack there.
            let found = unsafe {
                file.read_cached_or_defer(buffer, entry.len, entry.offset, &mut uncached)
            };
            if let CacheLookup::Done(Ok(bytes)) = found {
                self.files.observe_small(file, self.device, entry.offset, bytes.cached as u64);
            }
            found
        });
        let first: Vec<_> = first.collect();
        // SAFETY: ranges of the slot, which is dropped if reads are left in flight.
        let whole = match unsafe { uring::read(&uncached) } {
            Ok(whole) => whole.unwrap_or_default(),
            Err(_) => {
                self.lost = true;
                let fault = |entry: &Entry| {
                    entry.file.0.fault(FileFault {
                        call: "io_uring_enter",
                        errno: libc::EIO,
                        offset: entry.offset,
                        len: entry.len as u64,
                    })
                };
                return run.entries.iter().map(|entry| Err(fault(entry))).collect();
            }
        };
        let mut whole = whole.into_iter();
        let read = buffers.zip(first).map(|((entry, buffer), first)| {
            let file = &entry.file.0;
            let file_bytes = match first {
                CacheLookup::Done(file_bytes) => file_bytes,
                CacheLookup::Uncached { file_bytes } if whole.next() == Some(true) => {
                    Ok(file_bytes)
                }
                // SAFETY: as above.
                CacheLookup::Uncached { .. } => unsafe {
                    file.read(buffer, entry.len, entry.offset, false)
                },
            };
            file_bytes.map_err(|failed| file.fault(failed))
        });
        read.collect()
    }

    /// Enqueues the copies of a run: one launch for all memory that the kernel reaches.
    fn enqueue_copies(&mut self, in_flight: &mut InFlightRun) -> Result<(), GpuError> {
        let (slot, run) = (in_flight.slot, &in_flight.run);
        let lens: Vec<usize> = in_flight
            .file_bytes
            .iter()
            .map(|file_bytes| file_bytes.as_ref().map_or(0, FileBytes::total))
            .collect();
        let total: usize = lens.iter().sum();
        let longest = self.kernel.map_or(0, |kernel| kernel.piece_len(total as u64));
        // SAFETY: LIST bytes at the start of the slot are the list's; the slot is this thread's,
        // and begins at a page.
        let mut list = unsafe {
            PieceList::new(slot.memory.at.cast(), slot.memory.device_ptr, LIST / size_of::<Piece>())
        };
        let entries = run.entries.iter().zip(&run.slot_offsets).zip(&lens).zip(&in_flight.mapped);
        for (((entry, &slot_offset), &len), mapped) in entries {
            let by_kernel =
                self.kernel.is_some() && entry.location.is_reached_by_kernels(entry.address, len);
            in_flight.by_kernel.push(by_kernel);
            if len == 0 {
                continue;
            }
            if let Some(range) = mapped {
                for part in range.parts() {
                    let to = entry.address + part.before as u64;
                    let at = slot_offset + part.before;
                    if by_kernel {
                        list.push(part.device_ptr, DevPtr(to), part.len as u64, longest);
                        continue;
                    }
                    // SAFETY: the range stays registered until the run is complete; who submitted
                    // the entry promises its memory.
                    unsafe {
                        self.ring.copy_mapped(slot, at, part.at, entry.location, to, part.len)
                    }?;
                }
                continue;
            }
            let ours = slot.memory.device_ptr.byte_add(slot_offset as u64);
            let theirs = DevPtr(entry.address);
            let (src, dst) = if run.kind.op == Op::Read { (ours, theirs) } else { (theirs, ours) };
            if by_kernel {
                list.push(src, dst, len as u64, longest);
                continue;
            }
            let (to, address) = (entry.location, entry.address);
            // SAFETY: what a read moves is in the slot, which is this thread's until it is free;
            // who submitted the entry promises its memory.
            unsafe { self.ring.copy(run.kind.op, slot, slot_offset, to, address, len) }?;
        }
        let Some(kernel) = self.kernel.filter(|_| list.count() > 0) else {
            return Ok(());
        };
        let list = List { kernel, at: list.ptr(), count: list.count(), longest };
        // SAFETY: the list is in the slot, which is this thread's until it is free; the kernel
        // reaches what the entries name, and who submitted them promises their memory.
        unsafe { self.ring.gather(slot, list) }
    }

    /// Waits for a run's copies, for a write writes its files, and returns the events.
    fn complete(&mut self, in_flight: InFlightRun) -> Vec<Event> {
        let InFlightRun { slot, run, mapped, file_bytes, by_kernel, enqueued } = in_flight;
        if let Err(error) = enqueued.and_then(|()| self.ring.wait_for_slot(slot)) {
            self.failed = true;
            // Copies in flight must not meet the next user of the memory.
            let _ = self.ring.synchronize();
            let mapped = run.entries.iter().zip(mapped).filter(|(_, range)| range.is_some());
            mapped.for_each(|(entry, _)| self.files.give_up(&entry.file.0));
            return run.fail(&Fault::Gpu(error));
        }
        let ends = run.entries.iter().zip(&run.slot_offsets).zip(file_bytes).zip(by_kernel);
        let ends = ends.zip(mapped);
        let events = ends.map(|((((entry, &slot_offset), file_bytes), by_kernel), mapped)| {
            let file_bytes = match run.kind.op {
                Op::Read => file_bytes,
                Op::Write => write(entry, slot.memory.at.wrapping_add(slot_offset)),
            };
            let outcome = file_bytes.map(|file_bytes| match mapped {
                Some(range) => Transferred::mapped(range.len, by_kernel),
                None => Transferred::through(file_bytes, by_kernel),
            });
            Event { cookie: entry.cookie, outcome }
        });
        events.collect()
    }
}

fn write(entry: &Entry, at: *const u8) -> Result<FileBytes, Fault> {
    let file = &entry.file.0;
    // SAFETY: the entry's bytes, which are in the slot.
    let file_bytes = unsafe { file.write(at, entry.len, entry.offset) };
    file_bytes.map_err(|failed| file.fault(failed))
}

#[cfg(test)]
mod tests;
