//! The memory on both sides of a GPU leg: the pinned slots and their locations in the destination.

use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use gpuio_gpu::{DevPtr, DeviceBuf, GpuError, MemoryKind, Pinned, Stream};

use super::two_legs::Slots;
use super::{GpuSide, PathConfig, PathError, Place, Request};
use crate::buf::aligned::Aligned;
use crate::engine::{HostRegion, Io, Op, Span};

pub(super) struct SlotBuffers {
    destination: DeviceBuf,
    memory: SlotMemory,
    /// Host memory that requests may name a place in.
    tier: Option<Arc<Pinned>>,
    /// The position of each slot in the destination; without, slot `n` has position `n`.
    positions: Option<Vec<u32>>,
}

/// The GPU that a path can't do without.
pub(super) fn gpu<'a>(
    path: &'static str,
    config: &'a PathConfig,
) -> Result<&'a GpuSide, PathError> {
    config.gpu.as_ref().ok_or_else(|| PathError::Setup {
        path,
        what: "this path needs a GPU; name one with --gpu, or --gpu software to try it".into(),
    })
}

impl SlotBuffers {
    /// Memory for all slots on both sides. The GPU's context must be current.
    ///
    /// # Errors
    /// Either memory could not be had.
    pub(super) fn new(
        path: &'static str,
        config: &PathConfig,
        gpu: &GpuSide,
        positions: Option<Vec<u32>>,
    ) -> Result<SlotBuffers, PathError> {
        let memory = SlotMemory::pinned(path, config)?;
        let len = stride(config.block_max) * config.slots as usize;
        let destination = DeviceBuf::alloc(&gpu.context, gpu.memory, len)
            .map_err(|source| refused(path, config, gpu.memory, source))?;
        Ok(SlotBuffers { destination, memory, tier: config.tier.clone(), positions })
    }

    pub(super) fn destination(&self) -> &DeviceBuf {
        &self.destination
    }

    /// The distance between slots and between positions, in bytes.
    pub(super) fn stride(&self) -> usize {
        self.memory.stride()
    }

    /// Address of a slot's location in the destination.
    pub(super) fn device(&self, slot: u32) -> DevPtr {
        self.destination.ptr().byte_add(self.location(slot, 0).start as u64)
    }

    /// Where the slot itself begins, as the GPU sees it: an address of page-locked memory is the
    /// same on both sides.
    pub(super) fn host(&self, slot: u32) -> DevPtr {
        DevPtr(self.memory.slot(slot).as_ptr() as u64)
    }

    /// Where the slot itself begins, as the host sees it.
    pub(super) fn slot(&self, slot: u32) -> *mut u8 {
        self.memory.slot(slot).as_ptr()
    }

    /// Enqueues the copy of `len` bytes between a slot and its location into the stream: to the
    /// location for a read, from it for a write.
    ///
    /// # Errors
    /// The driver's refusal; nothing is in flight then.
    ///
    /// # Safety
    /// `len` is at most the stride, or the slots and positions that it reaches lie side by side in
    /// the same order. Nothing else uses either side, and `self` lives, until the stream has passed
    /// the copy.
    pub(super) unsafe fn copy(
        &self,
        stream: &Stream,
        op: Op,
        slot: u32,
        len: usize,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise, of the slot's own memory.
        unsafe { self.copy_at(stream, op, self.memory.slot(slot), (slot, len)) }
    }

    /// The same, with the host's side of the slot at `ptr`.
    ///
    /// # Errors
    /// As for [`SlotBuffers::copy`].
    ///
    /// # Safety
    /// As for [`SlotBuffers::copy`], of `len` bytes of page-locked memory at `ptr` that live as
    /// long as `self`.
    unsafe fn copy_at(
        &self,
        stream: &Stream,
        op: Op,
        ptr: NonNull<u8>,
        (slot, len): (u32, usize),
    ) -> Result<(), GpuError> {
        // An address of page-locked memory is the same on both sides.
        let (host, device) = (DevPtr(ptr.as_ptr() as u64), self.device(slot));
        let ptr = ptr.as_ptr();
        match (op, self.destination.is_host()) {
            // SAFETY: the caller's promise.
            (Op::Read, false) => unsafe { stream.h2d(device, ptr, len) },
            // SAFETY: the caller's promise.
            (Op::Write, false) => unsafe { stream.d2h(ptr, device, len) },
            // The calls above take device memory only.
            // SAFETY: the caller's promise.
            (Op::Read, true) => unsafe { stream.copy(device, host, len) },
            // SAFETY: the caller's promise.
            (Op::Write, true) => unsafe { stream.copy(host, device, len) },
        }
    }
}

impl SlotBuffers {
    /// Where a request's bytes begin in host memory.
    ///
    /// # Panics
    /// If its place is not inside the tier, or there is none.
    fn host_side(&self, request: &Request) -> NonNull<u8> {
        let (Place::Into(at) | Place::Kept(at)) = request.place else {
            return self.memory.slot(request.slot);
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let tier = self.tier.as_ref().filter(|tier| {
            at.checked_add(request.len as usize).is_some_and(|end| end <= tier.len())
        });
        // Whoever names a place has the memory that the path was opened with.
        let tier = tier.unwrap_or_else(|| panic!("byte {at} is past the tier of this path"));
        // SAFETY: checked above to lie inside the one allocation.
        unsafe { tier.as_ptr().add(at) }
    }
}

impl Slots for SlotBuffers {
    fn region(&self) -> Option<HostRegion> {
        Some(self.memory.region())
    }

    fn bytes(&self) -> (u64, u64) {
        // Both sides are equally long.
        let bytes = self.memory.bytes();
        if self.destination.is_host() { (2 * bytes, 0) } else { (bytes, bytes) }
    }

    fn io(&self, request: &Request) -> Io {
        Io {
            op: request.op,
            file: request.file,
            offset: request.offset,
            span: match request.place {
                Place::Slot => self.memory.span(request.slot, request.len),
                // SAFETY: inside the tier, which lives as long as `self`, and the path drops that
                // after its engine; by the promise of `PathConfig::tier` nothing else uses the
                // place, and no reference to its bytes is ever made.
                _ => unsafe { Span::new(self.host_side(request), request.len) },
            },
            token: request.slot,
        }
    }

    fn location(&self, slot: u32, len: u32) -> Range<usize> {
        assert!(len as usize <= self.stride(), "a block of {len} bytes does not fit its slot");
        let position = self.positions.as_ref().map_or(slot, |positions| positions[slot as usize]);
        let start = position as usize * self.stride();
        start..start + len as usize
    }

    fn held_from_file(&self, slot: u32, len: u32) -> Option<&[u8]> {
        Some(self.memory.bytes_of(slot, len))
    }

    /// One copy between a pinned slot and its location.
    unsafe fn transfer(&self, stream: &Stream, request: &Request) -> Result<(), GpuError> {
        let Request { op, slot, len, .. } = *request;
        let len = self.location(slot, len).len();
        let ptr = self.host_side(request);
        // SAFETY: `location` checked the length, `host_side` the place; the rest is the caller's
        // promise, and that of `PathConfig::tier`.
        unsafe { self.copy_at(stream, op, ptr, (slot, len)) }
    }
}

/// Slots start at multiples of this: O_DIRECT asks at most for the page (open(2)).
const PAGE: usize = 4096;

/// Page-aligned memory from the allocator, touched by the thread that requested it.
struct Heap {
    ptr: NonNull<u8>,
    layout: Layout,
}

impl Heap {
    fn new(len: usize) -> Option<Heap> {
        let layout = Layout::from_size_align(len.max(PAGE), PAGE).ok()?;
        // SAFETY: the layout's size is at least one page, so not zero.
        let ptr = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        // SAFETY: the allocation is `layout.size()` bytes long and nothing else knows it yet.
        unsafe { ptr.write_bytes(0, layout.size()) };
        Some(Heap { ptr, layout })
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout and freed only here.
        unsafe { std::alloc::dealloc(self.ptr.as_ptr(), self.layout) };
    }
}

enum Holder {
    Heap(Heap),
    Mapped(Aligned),
    Pinned(Pinned),
}

/// One piece of host memory cut into equal slots.
pub(super) struct SlotMemory {
    holder: Holder,
    stride: usize,
    len: usize,
}

/// The distance between slots: the block rounded up to whole pages.
pub(super) fn stride(block_max: u32) -> usize {
    (block_max as usize).next_multiple_of(PAGE).max(PAGE)
}

/// The error of memory for all slots that the driver did not give. It names a number of bytes that
/// the user never typed; this explains where it comes from and what to change.
pub(super) fn refused(
    path: &'static str,
    config: &PathConfig,
    memory: MemoryKind,
    source: GpuError,
) -> PathError {
    if !source.is_out_of_memory() {
        return PathError::Gpu { path, source };
    }
    PathError::Setup {
        path,
        what: format!(
            "{memory} memory for {} slots of {} bytes could not be had; lower --depth or --bs. \
             {source}",
            config.slots,
            stride(config.block_max)
        ),
    }
}

impl SlotMemory {
    /// Memory of the kind that the configuration asks for where the bytes end in host memory.
    pub(super) fn for_host(
        path: &'static str,
        config: &PathConfig,
    ) -> Result<SlotMemory, PathError> {
        let stride = stride(config.block_max);
        let len = stride * config.slots as usize;
        let no_memory = || PathError::Setup {
            path,
            what: format!(
                "{len} bytes of host memory for {} slots could not be had; lower --depth or --bs",
                config.slots
            ),
        };
        let holder = match config.memory {
            MemoryKind::Mmap => {
                Holder::Mapped(Aligned::new(len).map_err(|error| PathError::Setup {
                    path,
                    what: format!("mmap of {len} bytes for slots: {error}; lower --depth or --bs"),
                })?)
            }
            MemoryKind::Pinned => return SlotMemory::pinned(path, config),
            MemoryKind::Malloc => Holder::Heap(Heap::new(len).ok_or_else(no_memory)?),
            MemoryKind::Device | MemoryKind::Vmm | MemoryKind::Managed => {
                return Err(PathError::Setup {
                    path,
                    what: format!(
                        "{} memory is not host memory, in which this path ends; \
                         use --memory malloc, mmap or pinned",
                        config.memory
                    ),
                });
            }
        };
        Ok(SlotMemory { holder, stride, len })
    }

    /// Page-locked memory known to the GPU.
    pub(super) fn pinned(path: &'static str, config: &PathConfig) -> Result<SlotMemory, PathError> {
        let stride = stride(config.block_max);
        let len = stride * config.slots as usize;
        let Some(gpu) = &config.gpu else {
            return Err(PathError::Setup {
                path,
                what: "page-locked memory needs a GPU driver; use --gpu or --memory malloc".into(),
            });
        };
        let pinned = Pinned::alloc(&gpu.context, len)
            .map_err(|source| refused(path, config, MemoryKind::Pinned, source))?;
        Ok(SlotMemory { holder: Holder::Pinned(pinned), stride, len })
    }

    fn base(&self) -> NonNull<u8> {
        match &self.holder {
            Holder::Heap(heap) => heap.ptr,
            Holder::Mapped(aligned) => aligned.region().ptr,
            Holder::Pinned(pinned) => pinned.as_ptr(),
        }
    }

    pub(super) fn region(&self) -> HostRegion {
        HostRegion { ptr: self.base(), len: self.len }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.len as u64
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// First byte of a slot.
    pub(super) fn slot(&self, slot: u32) -> NonNull<u8> {
        let at = slot as usize * self.stride;
        assert!(at + self.stride <= self.len, "slot {slot} is past the path's memory");
        // SAFETY: checked above to lie inside the one allocation.
        unsafe { self.base().add(at) }
    }

    /// The first `len` bytes of a slot for an engine. The memory lives as long as `self`, and the
    /// paths drop their engine, which waits for its I/Os, before they drop their memory.
    pub(super) fn span(&self, slot: u32, len: u32) -> Span {
        assert!(len as usize <= self.stride, "a block of {len} bytes does not fit its slot");
        // SAFETY: the slot is inside the allocation; a slot has one I/O at a time and no reference
        // to it is made while it is out (`bytes_of` and `bytes_of_mut` are for idle slots).
        unsafe { Span::new(self.slot(slot), len) }
    }

    /// The first `len` bytes of an idle slot.
    pub(super) fn bytes_of(&self, slot: u32, len: u32) -> &[u8] {
        assert!(len as usize <= self.stride, "a block of {len} bytes does not fit its slot");
        // SAFETY: inside the allocation, initialised at allocation, and no I/O is out on it: the
        // paths call this for slots that have completed.
        unsafe { std::slice::from_raw_parts(self.slot(slot).as_ptr(), len as usize) }
    }

    /// The first `len` bytes of an idle slot, to be filled.
    pub(super) fn bytes_of_mut(&mut self, slot: u32, len: u32) -> &mut [u8] {
        assert!(len as usize <= self.stride, "a block of {len} bytes does not fit its slot");
        // SAFETY: as for `bytes_of`, and `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.slot(slot).as_ptr(), len as usize) }
    }
}
