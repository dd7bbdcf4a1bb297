//! Small calls: the calling thread does them alone, with a slot that it keeps.
//!
//! The file's part is one system call into or out of the slot. The GPU's part is a letter to a
//! kernel that stays on the device (`gpuio_gpu::resident_copy`), which costs no call of the driver;
//! where that has no room, or can't reach the memory, a copy.

use std::cell::RefCell;

use gpuio_gpu::resident_copy::{self, Outcome};
use gpuio_gpu::{DevPtr, GpuError};
use gpuio_io::engine::Op;

use crate::device::staging::StagingRing;
use crate::device::{Device, SMALL_SLOT};
use crate::fault::Fault;
use crate::file::{Inner, ReadBuffer};
use crate::memory::MemoryLocation;
use crate::transferred::Transferred;

/// The longest small call, bytes: more is moved faster by the driver's copies.
pub(crate) const SMALL: u64 = 64 << 10;

/// What a caller asked for. The file is borrowed: to count it would be a write that all threads of
/// a file make to the same place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallRequest<'a> {
    pub(crate) op: Op,
    pub(crate) file: &'a Inner,
    pub(crate) location: MemoryLocation,
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
    ring: Option<&'static mut StagingRing>,
    submitter: Option<resident_copy::Submitter>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // At the thread's end: no call of the driver, see `give_small` and
        // `resident_copy::Submitter`.
        if let Some(ring) = self.ring.take() {
            self.device.give_back_small(ring);
        }
    }
}

/// The desks of a thread, one for each device that it used.
struct Desks(Vec<Desk>);

thread_local! {
    static DESKS: RefCell<Desks> = const { RefCell::new(Desks(Vec::new())) };
}

/// Runs a small call on memory of the device; `None` where this thread can have no desk.
pub(crate) fn run(
    device: &'static Device,
    request: &SmallRequest<'_>,
) -> Option<Result<Transferred, Fault>> {
    let with = |desks: &RefCell<Desks>| {
        let mut desks = desks.try_borrow_mut().ok()?;
        let known = desks.0.iter().position(|desk| std::ptr::eq(desk.device, device));
        let at = match known {
            Some(at) => at,
            None => {
                let ring = Some(device.take_small_ring()?);
                desks.0.push(Desk { device, ring, submitter: device.submitter() });
                desks.0.len() - 1
            }
        };
        let desk = &mut desks.0[at];
        if desk.ring.is_none() {
            desk.ring = Some(device.take_small_ring()?);
        }
        desk.run(request)
    };
    // A thread that is ending has no desks any more.
    DESKS.try_with(with).ok().flatten()
}

impl Desk {
    fn run(&mut self, request: &SmallRequest<'_>) -> Option<Result<Transferred, Fault>> {
        let file = request.file;
        let skip = file.skip(request.offset);
        let len = request.len;
        let at = self.ring.as_ref()?.slot(0).memory.at.wrapping_add(skip);
        debug_assert!(skip + len <= SMALL_SLOT);
        let failed = |failed| file.fault(failed);
        let (file_bytes, by_kernel) = match request.op {
            Op::Read => {
                let buffer = ReadBuffer { at, slack: true };
                // SAFETY: the slot is this thread's; it holds the longest call and its slack.
                let file_bytes = match unsafe { file.read(buffer, len, request.offset, false) } {
                    Ok(file_bytes) => file_bytes,
                    Err(error) => return Some(Err(failed(error))),
                };
                match self.carry(request, skip, file_bytes.total()) {
                    Ok(by_kernel) => (file_bytes, by_kernel),
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                }
            }
            Op::Write => {
                let by_kernel = match self.carry(request, skip, len) {
                    Ok(by_kernel) => by_kernel,
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                };
                // SAFETY: `len` bytes that have landed in the slot.
                match unsafe { file.write(at, len, request.offset) } {
                    Ok(file_bytes) => (file_bytes, by_kernel),
                    Err(error) => return Some(Err(failed(error))),
                }
            }
        };
        Some(Ok(Transferred::through(file_bytes, by_kernel)))
    }

    /// Moves `len` bytes between the slot and the caller's memory, and waits; true if the kernel
    /// did.
    fn carry(
        &mut self,
        request: &SmallRequest<'_>,
        skip: usize,
        len: usize,
    ) -> Result<bool, GpuError> {
        if len == 0 {
            return Ok(false);
        }
        let Some(ring) = self.ring.as_mut() else { unreachable!("a desk that runs has a ring") };
        let slot = ring.slot(0);
        if request.location.is_reached_by_kernels(request.address, len)
            && let Some(submitter) = &mut self.submitter
        {
            let (ours, theirs) =
                (slot.memory.device_ptr.byte_add(skip as u64), DevPtr(request.address));
            let (src, dst) = if request.op == Op::Read { (ours, theirs) } else { (theirs, ours) };
            // SAFETY: the slot is this thread's, and the caller of the transfer promises its
            // memory, which the kernel reaches.
            if unsafe { submitter.copy(src, dst, len) }? == Outcome::Copied {
                return Ok(true);
            }
        }
        let copied = self.device.context().entered(|| {
            let (location, address) = (request.location, request.address);
            match request.op {
                // SAFETY: the slot is this thread's, and the caller of the transfer promises its
                // memory; both until the wait below.
                Op::Read => unsafe { ring.copy_to_gpu(slot, skip, location, address, len) },
                // SAFETY: as above.
                Op::Write => unsafe { ring.copy_from_gpu(slot, skip, location, address, len) },
            }?;
            ring.wait_for_slot(slot)
        });
        let copied = copied.flatten();
        if copied.is_err() {
            let synchronized = self.device.context().entered(|| ring.synchronize());
            if synchronized.flatten().is_err() {
                self.ring = None;
            }
        }
        copied.map(|()| false)
    }
}
