//! Small calls: the calling thread does them alone, with a slot that it keeps.
//!
//! The file's part is one system call into or out of the slot. The GPU's part is a letter to a
//! kernel that stays on the device (`gpuio_gpu::resident_copy`), which costs no call of the driver;
//! where that has no room, or can't reach the memory, a copy.

use std::cell::RefCell;

use gpuio_gpu::resident_copy::{self, Outcome};
use gpuio_gpu::{DevPtr, GpuError};
use gpuio_io::engine::Op;

use crate::fault::Fault;
use crate::file::{Inner, Spot};
use crate::gpus::{Device, SMALL_SLOT};
use crate::lane::Lane;
use crate::moved::Moved;
use crate::place::Place;

/// The longest small call, bytes: more is moved faster by the driver's copies.
pub(crate) const SMALL: u64 = 64 << 10;

/// What a caller asked for. The file is borrowed: to count it would be a write that all threads of
/// a file make to the same place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Small<'a> {
    pub(crate) op: Op,
    pub(crate) file: &'a Inner,
    pub(crate) place: Place,
    pub(crate) address: u64,
    /// At most [`SMALL`].
    pub(crate) len: usize,
    /// The range ends below 2^63.
    pub(crate) offset: u64,
}

/// What a thread keeps for small calls on one device.
#[derive(Debug)]
struct Desk {
    device: &'static Device,
    /// `None` once a copy failed: it may be under way for ever.
    lane: Option<&'static mut Lane>,
    submitter: Option<resident_copy::Submitter>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // At the thread's end: no call of the driver, see `give_small` and
        // `resident_copy::Submitter`.
        if let Some(lane) = self.lane.take() {
            self.device.give_small(lane);
        }
    }
}

/// The desks of a thread, one for each device that it used.
struct Desks(Vec<Desk>);

thread_local! {
    static DESKS: RefCell<Desks> = const { RefCell::new(Desks(Vec::new())) };
}

/// Runs a small call on memory of the device; `None` where this thread can have no desk.
pub(crate) fn run(device: &'static Device, asked: &Small<'_>) -> Option<Result<Moved, Fault>> {
    let with = |desks: &RefCell<Desks>| {
        let mut desks = desks.try_borrow_mut().ok()?;
        let known = desks.0.iter().position(|desk| std::ptr::eq(desk.device, device));
        let at = match known {
            Some(at) => at,
            None => {
                let lane = Some(device.small_lane()?);
                desks.0.push(Desk { device, lane, submitter: device.submitter() });
                desks.0.len() - 1
            }
        };
        let desk = &mut desks.0[at];
        if desk.lane.is_none() {
            desk.lane = Some(device.small_lane()?);
        }
        desk.run(asked)
    };
    // A thread that is ending has no desks any more.
    DESKS.try_with(with).ok().flatten()
}

impl Desk {
    fn run(&mut self, asked: &Small<'_>) -> Option<Result<Moved, Fault>> {
        let file = asked.file;
        let skip = file.skip(asked.offset);
        let len = asked.len;
        let at = self.lane.as_ref()?.slot(0).memory.at.wrapping_add(skip);
        debug_assert!(skip + len <= SMALL_SLOT);
        let failed = |failed| file.fault(failed);
        let (got, by_kernel) = match asked.op {
            Op::Read => {
                let spot = Spot { at, slack: true };
                // SAFETY: the slot is this thread's; it holds the longest call and its slack.
                let got = match unsafe { file.read(spot, len, asked.offset, false) } {
                    Ok(got) => got,
                    Err(error) => return Some(Err(failed(error))),
                };
                match self.carry(asked, skip, got.bytes()) {
                    Ok(by_kernel) => (got, by_kernel),
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                }
            }
            Op::Write => {
                let by_kernel = match self.carry(asked, skip, len) {
                    Ok(by_kernel) => by_kernel,
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                };
                // SAFETY: `len` bytes that have landed in the slot.
                match unsafe { file.write(at, len, asked.offset) } {
                    Ok(got) => (got, by_kernel),
                    Err(error) => return Some(Err(failed(error))),
                }
            }
        };
        Some(Ok(Moved::through(got, by_kernel)))
    }

    /// Moves `len` bytes between the slot and the caller's memory, and waits; true if the kernel
    /// did.
    fn carry(&mut self, asked: &Small<'_>, skip: usize, len: usize) -> Result<bool, GpuError> {
        if len == 0 {
            return Ok(false);
        }
        let Some(lane) = self.lane.as_mut() else { unreachable!("a desk that runs has a lane") };
        let slot = lane.slot(0);
        if asked.place.kernels(asked.address, len)
            && let Some(submitter) = &mut self.submitter
        {
            let (ours, theirs) = (slot.memory.seen.byte_add(skip as u64), DevPtr(asked.address));
            let (src, dst) = if asked.op == Op::Read { (ours, theirs) } else { (theirs, ours) };
            // SAFETY: the slot is this thread's, and the caller of the transfer promises its
            // memory, which the kernel reaches.
            if unsafe { submitter.copy(src, dst, len) }? == Outcome::Copied {
                return Ok(true);
            }
        }
        let copied = self.device.context().entered(|| {
            let (place, address) = (asked.place, asked.address);
            match asked.op {
                // SAFETY: the slot is this thread's, and the caller of the transfer promises its
                // memory; both until the wait below.
                Op::Read => unsafe { lane.bring(slot, skip, place, address, len) },
                // SAFETY: as above.
                Op::Write => unsafe { lane.fetch(slot, skip, place, address, len) },
            }?;
            lane.free(slot)
        });
        let copied = copied.flatten();
        if copied.is_err() {
            let settled = self.device.context().entered(|| lane.settle());
            if settled.flatten().is_err() {
                self.lane = None;
            }
        }
        copied.map(|()| false)
    }
}
