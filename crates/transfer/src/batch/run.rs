//! Neighbours of a batch that go together: read into one slot, or written from one, with one
//! launch.

use std::collections::VecDeque;

use gpuio_gpu::{DevPtr, GatherKernel, GpuError, Piece, most_pieces, pieces};
use gpuio_io::engine::Op;

use super::{Entry, Event, cold};
use crate::fault::{Failed, Fault};
use crate::file::{Absent, Got, Spot, Tried};
use crate::gpus::{Device, Gpus};
use crate::job::{Asked, unpanicked};
use crate::lane::{Lane, List, Slot};
use crate::moved::Moved;

/// Most entries of a run.
pub(super) const MOST_ENTRIES: u32 = 128;
/// Most entries of a run where others can take the next.
const SHARED: usize = 32;
/// Most bytes of a run of more than one entry.
const BYTES_MOST: usize = 512 << 10;
/// The longest entry that goes into a run, bytes: longer ones cost a copy each, and no more.
const LONGEST: usize = 64 << 10;
/// Bytes at a slot's begin for the list of pieces: [`BYTES_MOST`] in pieces of 4 KiB, and two more
/// for each entry.
const LIST: usize = 16 << 10;
/// What the places of entries in a slot are multiples of, bytes; files may ask for more.
const ALIGN: usize = 4 << 10;

/// What the entries of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    device: u32,
    op: Op,
}

/// Entries that go together.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) kind: Kind,
    pub(super) entries: Vec<Entry>,
    /// Where each one's bytes stand in the slot.
    places: Vec<usize>,
}

/// What is to be done next.
#[derive(Debug)]
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

impl From<Entry> for Asked {
    fn from(entry: Entry) -> Self {
        let Entry { op, file, place, address, len, offset, .. } = entry;
        Self { op, file, place, address, len: len as u64, offset }
    }
}

/// For how many threads there is work.
pub(super) fn count(entries: &[Entry]) -> u64 {
    let small = entries.iter().filter(|entry| kind(entry).is_some()).count();
    (small.div_ceil(SHARED) + entries.len() - small) as u64
}

/// The kind of run that an entry may go into.
fn kind(entry: &Entry) -> Option<Kind> {
    let device = entry.place.device()?;
    let fits = (1..=LONGEST).contains(&entry.len) && entry.offset <= i64::MAX.cast_unsigned() / 2;
    fits.then_some(Kind { device, op: entry.op })
}

/// How many entries a run may have.
pub(super) fn most(is_crowded: bool) -> usize {
    if is_crowded { MOST_ENTRIES as usize } else { SHARED }
}

/// Takes the first entry, and those behind it that go with it into a slot of `slot` bytes, `most`
/// in all.
pub(super) fn take(waiting: &mut VecDeque<Entry>, slot: usize, most: usize) -> Option<Taken> {
    if let Some(run) = take_run(waiting, slot, most, None) {
        return Some(Taken::Run(run));
    }
    waiting.pop_front().map(|entry| Taken::One(Box::new(entry)))
}

/// As [`take`], but only a run, and of the kind that is wanted.
pub(super) fn take_run(
    waiting: &mut VecDeque<Entry>,
    slot: usize,
    most: usize,
    wanted: Option<Kind>,
) -> Option<Run> {
    let kind_of_run = kind(waiting.front()?)?;
    if wanted.is_some_and(|wanted| wanted != kind_of_run) {
        return None;
    }
    let (mut places, mut end, mut bytes) = (Vec::new(), LIST, 0);
    for entry in waiting.iter().take(most) {
        if kind(entry) != Some(kind_of_run) {
            break;
        }
        let align = ALIGN.max(entry.file.0.align());
        let start = end.next_multiple_of(align) + entry.file.0.skip(entry.offset);
        let next = (start + entry.len).next_multiple_of(align);
        bytes += entry.len;
        if next > slot || (bytes > BYTES_MOST && !places.is_empty()) {
            break;
        }
        places.push(start);
        end = next;
    }
    if places.is_empty() {
        return None;
    }
    let entries = waiting.drain(..places.len()).collect();
    Some(Run { kind: kind_of_run, entries, places })
}

/// Moves a run and those that `next` gives, one being read or written while another is copied, and
/// tells the ends of each when it has landed.
pub(super) fn carry(
    gpus: &Gpus,
    first: Run,
    next: impl Fn(Kind) -> Option<Run>,
    ended: impl Fn(Vec<Event>),
) {
    let kind = first.kind;
    let mut first = Some(first);
    let carried = gpus.device(kind.device).and_then(|device| {
        device.context().entered(|| {
            let mut carrier = Carrier::new(device)?;
            let mut flying: Option<Flying> = None;
            let mut turn = 0;
            loop {
                let run = first.take().or_else(|| next(kind));
                let is_last = run.is_none();
                let started = run.and_then(|run| carrier.try_to_start(run, turn, &ended));
                turn += 1;
                if let Some(flying) = std::mem::replace(&mut flying, started) {
                    ended(carrier.land(flying));
                }
                if is_last {
                    break;
                }
            }
            carrier.end();
            Ok::<(), GpuError>(())
        })?
    });
    if let (Err(error), Some(run)) = (carried, first) {
        ended(run.fail(&Fault::Gpu(error)));
    }
}

impl Run {
    fn fail(self, fault: &Fault) -> Vec<Event> {
        let event = |entry: Entry| Event { cookie: entry.cookie, outcome: Err(fault.clone()) };
        self.entries.into_iter().map(event).collect()
    }
}

/// A run whose copies are under way, and what is known of each entry.
struct Flying {
    slot: Slot,
    run: Run,
    /// For a read what came from the file, for a write nothing yet.
    got: Vec<Result<Got, Fault>>,
    by_kernel: Vec<bool>,
    put: Result<(), GpuError>,
}

/// A thread with a lane, for as long as runs come.
struct Carrier {
    device: &'static Device,
    lane: &'static mut Lane,
    kernel: Option<&'static GatherKernel>,
    failed: bool,
    /// Reads may be under way for ever into the lane's memory.
    lost: bool,
}

impl Carrier {
    fn new(device: &'static Device) -> Result<Self, GpuError> {
        Ok(Self {
            device,
            lane: device.lane()?,
            kernel: device.gather().ok(),
            failed: false,
            lost: false,
        })
    }

    /// Gives the lane back. Nothing is under way, unless something failed.
    fn end(self) {
        if self.lost || (self.failed && self.lane.settle().is_err()) {
            self.device.lose(self.lane);
        } else {
            self.device.give(self.lane);
        }
    }

    /// As [`Carrier::start`]; where that panics the run's entries end with that fault.
    fn try_to_start(
        &mut self,
        run: Run,
        turn: usize,
        ended: &impl Fn(Vec<Event>),
    ) -> Option<Flying> {
        let cookies: Vec<_> = run.entries.iter().map(|entry| entry.cookie).collect();
        let started = unpanicked(|| self.start(run, turn));
        started
            .inspect_err(|fault| {
                self.failed = true;
                // Nothing may touch the entries' memory once they have ended.
                self.lost |= self.lane.settle().is_err();
                let event = |cookie| Event { cookie, outcome: Err(fault.clone()) };
                ended(cookies.into_iter().map(event).collect());
            })
            .ok()
    }

    /// Reads a run from its files, for a read, and puts its copies into the stream.
    fn start(&mut self, run: Run, turn: usize) -> Flying {
        let slot = self.lane.slot(turn);
        let put = self.lane.free(slot);
        let mut flying = Flying { slot, got: Vec::new(), by_kernel: Vec::new(), put, run };
        if flying.put.is_ok() {
            flying.got = match flying.run.kind.op {
                Op::Read => self.read_all(&flying.run, slot),
                Op::Write => {
                    let all = |entry: &Entry| Ok(Got { cached: entry.len, direct: 0 });
                    flying.run.entries.iter().map(all).collect()
                }
            };
            flying.put = self.put(&mut flying);
        }
        flying
    }

    /// Reads each entry of a run to its place in the slot: first what the page cache holds, then
    /// the others all at once.
    fn read_all(&mut self, run: &Run, slot: Slot) -> Vec<Result<Got, Fault>> {
        let spots = run.entries.iter().zip(&run.places).map(|(entry, &place)| {
            (entry, Spot { at: slot.memory.at.wrapping_add(place), slack: true })
        });
        let mut absent: Vec<Absent> = Vec::new();
        let first = spots.clone().map(|(entry, spot)| {
            let file = &entry.file.0;
            // SAFETY: the slot is this thread's, and has room for the entry and its slack there.
            unsafe { file.read_or_tell(spot, entry.len, entry.offset, &mut absent) }
        });
        let first: Vec<_> = first.collect();
        // SAFETY: places in the slot, which is given up if reads are left under way.
        let whole = match unsafe { cold::read(&absent) } {
            Ok(whole) => whole.unwrap_or_default(),
            Err(_) => {
                self.lost = true;
                let fault = |entry: &Entry| {
                    entry.file.0.fault(Failed {
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
        let read = spots.zip(first).map(|((entry, spot), first)| {
            let file = &entry.file.0;
            let got = match first {
                Tried::Read(got) => got,
                Tried::Absent { got } if whole.next() == Some(true) => Ok(got),
                // SAFETY: as above.
                Tried::Absent { .. } => unsafe { file.read(spot, entry.len, entry.offset, false) },
            };
            got.map_err(|failed| file.fault(failed))
        });
        read.collect()
    }

    /// Puts the copies of a run into the stream: one launch for all that the kernel reaches.
    fn put(&mut self, flying: &mut Flying) -> Result<(), GpuError> {
        let (slot, run) = (flying.slot, &flying.run);
        let lens: Vec<usize> =
            flying.got.iter().map(|got| got.as_ref().map_or(0, Got::bytes)).collect();
        let total: usize = lens.iter().sum();
        let longest = self.kernel.map_or(0, |kernel| kernel.piece_len(total as u64));
        let mut list: Vec<Piece> = Vec::new();
        for ((entry, &place), &len) in run.entries.iter().zip(&run.places).zip(&lens) {
            let by_kernel = self.kernel.is_some() && entry.place.kernels(entry.address, len);
            flying.by_kernel.push(by_kernel);
            if len == 0 {
                continue;
            }
            let ours = slot.memory.seen.byte_add(place as u64);
            let theirs = DevPtr(entry.address);
            let (src, dst) = if run.kind.op == Op::Read { (ours, theirs) } else { (theirs, ours) };
            if by_kernel {
                debug_assert!(most_pieces(len as u64, longest) <= LIST as u64);
                list.extend(pieces(src, dst, len as u64, longest));
                continue;
            }
            let (to, address) = (entry.place, entry.address);
            match run.kind.op {
                // SAFETY: the bytes are in the slot, which is this thread's until it is free; the
                // memory is the promise of whoever submitted the entry.
                Op::Read => unsafe { self.lane.bring(slot, place, to, address, len) },
                // SAFETY: as above.
                Op::Write => unsafe { self.lane.fetch(slot, place, to, address, len) },
            }?;
        }
        if let (Some(kernel), false) = (self.kernel, list.is_empty()) {
            self.launch(slot, kernel, &list, longest)?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        slot: Slot,
        kernel: &'static GatherKernel,
        list: &[Piece],
        longest: u64,
    ) -> Result<(), GpuError> {
        assert!(size_of_val(list) <= LIST, "{} pieces", list.len());
        // SAFETY: LIST bytes at the slot's begin are the list's, and the slot is aligned.
        unsafe {
            std::ptr::copy_nonoverlapping(list.as_ptr(), slot.memory.at.cast(), list.len());
        }
        let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
        let list = List { kernel, at: slot.memory.seen, count, longest };
        // SAFETY: the list stands in the slot, which is this thread's until it is free; the kernel
        // reaches what the entries name, and their memory is the promise of who submitted them.
        unsafe { self.lane.gather(slot, list) }
    }

    /// Waits for a run's copies, writes its files, for a write, and tells the ends.
    fn land(&mut self, flying: Flying) -> Vec<Event> {
        let Flying { slot, run, got, by_kernel, put } = flying;
        if let Err(error) = put.and_then(|()| self.lane.free(slot)) {
            self.failed = true;
            // What is under way must not meet the next user of the memory.
            let _ = self.lane.settle();
            return run.fail(&Fault::Gpu(error));
        }
        let ends = run.entries.iter().zip(&run.places).zip(got).zip(by_kernel);
        let end = |(((entry, &place), got), by_kernel): (((&Entry, &usize), _), bool)| {
            let got = match run.kind.op {
                Op::Read => got,
                Op::Write => write(entry, slot.memory.at.wrapping_add(place)),
            };
            Event { cookie: entry.cookie, outcome: got.map(|got| Moved::through(got, by_kernel)) }
        };
        ends.map(end).collect()
    }
}

fn write(entry: &Entry, at: *const u8) -> Result<Got, Fault> {
    let file = &entry.file.0;
    // SAFETY: the entry's bytes, which have landed in the slot.
    let got = unsafe { file.write(at, entry.len, entry.offset) };
    got.map_err(|failed| file.fault(failed))
}

#[cfg(test)]
mod tests;
