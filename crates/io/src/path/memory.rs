//! Host memory for the slots of a path.

use std::alloc::Layout;
use std::ptr::NonNull;

use gpuio_gpu::{GpuError, MemoryKind, Pinned};

use super::{PathConfig, PathError};
use crate::buf::aligned::Aligned;
use crate::engine::{HostRegion, Span};

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
