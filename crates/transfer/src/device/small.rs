//! Small calls: the calling thread does them alone, with a slot of its own.
//!
//! The file side is one system call into or out of the slot. The GPU side is a command to the
//! resident copy kernel (`gpuio_gpu::resident_copy`), which needs no driver call. If that kernel is
//! full or can't reach the memory, the driver copies.

use std::cell::RefCell;

use gpuio_gpu::resident_copy::{self, Outcome};
use gpuio_gpu::{COPIED_BY_DEVICE, DevPtr, GpuError};

use crate::Op;
use crate::device::staging::StagingRing;
use crate::device::{Device, SMALL_SLOT};
use crate::fault::Fault;
use crate::file::{OpenFile, ReadBuffer};
use crate::mapped::MappedRange;
use crate::memory::MemoryLocation;
use crate::transferred::Transferred;

/// The longest small call, bytes: longer ones are faster in pieces.
pub(crate) const SMALL: u64 = 64 << 10;

/// The parameters of a call that its own thread runs whole: a small one, or a read of mapped bytes
/// of any length. The file is borrowed: a reference count would be a write by all threads of a file
/// to one cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineRequest<'a> {
    pub(crate) op: Op,
    pub(crate) file: &'a OpenFile,
    pub(crate) location: MemoryLocation,
    pub(crate) address: u64,
    /// At most [`SMALL`], unless the bytes are mapped.
    pub(crate) len: usize,
    /// The range ends below 2^63.
    pub(crate) offset: u64,
}

/// The state that a thread keeps for small calls on one device.
struct SmallState {
    device: &'static Device,
    /// `None` after a failed copy, which may stay in flight forever.
    ring: Option<&'static mut StagingRing>,
    submitter: Option<resident_copy::Submitter>,
}

impl Drop for SmallState {
    fn drop(&mut self) {
        // At thread exit: no driver call, see `give_back_small` and `resident_copy::Submitter`.
        if let Some(ring) = self.ring.take() {
            self.device.give_back_small(ring);
        }
    }
}

/// The states of a thread, one for each device that it used.
struct SmallStates(Vec<SmallState>);

thread_local! {
    static STATES: RefCell<SmallStates> = const { RefCell::new(SmallStates(Vec::new())) };
}

/// Runs a small call on memory of the device; `None` if this thread can't have a slot.
pub(crate) fn run(
    device: &'static Device,
    request: &InlineRequest<'_>,
) -> Option<Result<Transferred, Fault>> {
    with_state(device, |state| state.run(request)).flatten()
}

/// Copies a mapped range of a file to memory of the device; `None` if this thread can't have a
/// stream.
pub(crate) fn read_mapped(
    device: &'static Device,
    request: &InlineRequest<'_>,
    range: &MappedRange,
) -> Option<Result<Transferred, GpuError>> {
    with_state(device, |state| state.read_mapped(request, range))
}

/// Makes this thread's slot.
pub(crate) fn prepare(device: &'static Device) {
    let _ = with_state(device, |_| ());
}

/// Does `work` with this thread's state for the device; `None` if it can't have a slot.
fn with_state<T>(device: &'static Device, work: impl FnOnce(&mut SmallState) -> T) -> Option<T> {
    let with = |states: &RefCell<SmallStates>| {
        let mut states = states.try_borrow_mut().ok()?;
        let known = states.0.iter().position(|state| std::ptr::eq(state.device, device));
        let at = match known {
            Some(at) => at,
            None => {
                let ring = Some(device.take_small_ring()?);
                states.0.push(SmallState { device, ring, submitter: device.submitter() });
                states.0.len() - 1
            }
        };
        let state = &mut states.0[at];
        if state.ring.is_none() {
            state.ring = Some(device.take_small_ring()?);
        }
        Some(work(state))
    };
    // A thread that is exiting has no state any more.
    STATES.try_with(with).ok().flatten()
}

impl SmallState {
    fn run(&mut self, request: &InlineRequest<'_>) -> Option<Result<Transferred, Fault>> {
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
                match self.copy_slot(request, skip, file_bytes.total()) {
                    Ok(by_kernel) => (file_bytes, by_kernel),
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                }
            }
            Op::Write => {
                let by_kernel = match self.copy_slot(request, skip, len) {
                    Ok(by_kernel) => by_kernel,
                    Err(error) => return Some(Err(Fault::Gpu(error))),
                };
                // SAFETY: `len` bytes that are in the slot.
                match unsafe { file.write(at, len, request.offset) } {
                    Ok(file_bytes) => (file_bytes, by_kernel),
                    Err(error) => return Some(Err(failed(error))),
                }
            }
        };
        Some(Ok(Transferred::through(file_bytes, by_kernel)))
    }

    /// Copies a mapped range, and waits: short ones by the resident copy kernel, others by the
    /// driver.
    fn read_mapped(
        &mut self,
        request: &InlineRequest<'_>,
        range: &MappedRange,
    ) -> Result<Transferred, GpuError> {
        let (location, len) = (request.location, range.len);
        let mut copied = 0;
        if len as u64 <= SMALL
            && location.is_reached_by_kernels(request.address, len)
            && let Some(submitter) = &mut self.submitter
        {
            for part in range.parts() {
                let dst = DevPtr(request.address + part.before as u64);
                // SAFETY: the range stays registered until it is dropped, and the caller of the
                // transfer promises its memory, which the kernel reaches.
                if unsafe { submitter.copy(part.device_ptr, dst, part.len) }? != Outcome::Copied {
                    break;
                }
                copied += part.len;
            }
        }
        if copied == len {
            return Ok(Transferred::mapped(len, true));
        }
        let Some(ring) = self.ring.as_mut() else { unreachable!("a running call has a ring") };
        let slot = ring.slot(0);
        let waited = self.device.context().entered(|| {
            for part in range.parts().filter(|part| part.before >= copied) {
                let address = request.address + part.before as u64;
                // Short parts are the first and the last alone.
                let at = if part.before == 0 { 0 } else { COPIED_BY_DEVICE };
                // SAFETY: as above, until the wait below.
                unsafe { ring.copy_mapped(slot, at, part.at, location, address, part.len) }?;
            }
            ring.wait_for_slot(slot)
        });
        self.after(waited.flatten()).map(|()| Transferred::mapped(len, false))
    }

    /// Copies `len` bytes between the slot and the caller's memory, and waits; true if the resident
    /// copy kernel did it.
    fn copy_slot(
        &mut self,
        request: &InlineRequest<'_>,
        skip: usize,
        len: usize,
    ) -> Result<bool, GpuError> {
        if len == 0 {
            return Ok(false);
        }
        let Some(ring) = self.ring.as_mut() else { unreachable!("a running call has a ring") };
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
            // SAFETY: the slot is this thread's, and the caller of the transfer promises its
            // memory; both until the wait below.
            unsafe { ring.copy(request.op, slot, skip, location, address, len) }?;
            ring.wait_for_slot(slot)
        });
        self.after(copied.flatten()).map(|()| false)
    }

    /// Handles the result of a copy of the ring. After a failure it may still be in flight, so this
    /// waits for it; the ring is given up if that fails too.
    fn after(&mut self, copied: Result<(), GpuError>) -> Result<(), GpuError> {
        if copied.is_err()
            && let Some(ring) = self.ring.as_mut()
        {
            let synchronized = self.device.context().entered(|| ring.synchronize());
            if synchronized.flatten().is_err() {
                self.ring = None;
            }
        }
        copied
    }
}
