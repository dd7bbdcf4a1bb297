//! The memory that a test reads into or writes from.

use std::alloc::Layout;
use std::ptr::NonNull;

use gpuio_base::catalog::MemoryKind;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::pinned::Pinned;
use crate::table::{self, CUdeviceptr};
use crate::vmm::Mapping;

/// The alignment of host memory, in bytes: what O_DIRECT asks for.
const PAGE: usize = 4096;

/// Memory of one [`MemoryKind`], given back when dropped. The contents of fresh memory are not
/// defined.
///
/// No copy into or out of it may be under way when it is dropped, which is the contract of the
/// copies in [`Stream`](crate::Stream).
#[derive(Debug)]
pub struct DeviceBuf {
    owner: Owner,
    kind: MemoryKind,
    len: usize,
}

#[derive(Debug)]
enum Owner {
    Device { context: Context, address: CUdeviceptr },
    Vmm(Mapping),
    Pinned(Pinned),
    Malloc { start: NonNull<u8>, layout: Layout },
    Mmap { start: NonNull<u8>, len: usize },
}

// SAFETY: it owns its memory as a Box<[u8]> does, and each kind may be freed on any thread.
unsafe impl Send for DeviceBuf {}
// SAFETY: through a shared reference only addresses can be had.
unsafe impl Sync for DeviceBuf {}

impl DeviceBuf {
    /// Allocates `len` bytes of this kind.
    ///
    /// # Errors
    /// No memory, a length of 0, a driver without the calls that the kind needs, or
    /// [`MemoryKind::Managed`], which [`Managed`](crate::Managed) is for.
    pub fn alloc(context: &Context, kind: MemoryKind, len: usize) -> Result<Self, GpuError> {
        let owner = match kind {
            MemoryKind::Device => device(context, len)?,
            MemoryKind::Vmm => Owner::Vmm(Mapping::new(context, len)?),
            MemoryKind::Pinned => Owner::Pinned(Pinned::alloc(context, len)?),
            MemoryKind::Malloc => malloc(context, len)?,
            MemoryKind::Mmap => mmap(context, len)?,
            MemoryKind::Managed => {
                let error = context.table().error("DeviceBuf::alloc", table::INVALID_VALUE);
                return Err(error.with("managed memory is a path's own, of another type"));
            }
        };
        Ok(Self { owner, kind, len })
    }

    /// Its address: on the device, or in host memory for the host kinds.
    pub fn ptr(&self) -> DevPtr {
        match &self.owner {
            Owner::Device { address, .. } => DevPtr(*address),
            Owner::Vmm(mapping) => DevPtr(mapping.address()),
            Owner::Pinned(pinned) => pinned.ptr(),
            Owner::Malloc { start, .. } | Owner::Mmap { start, .. } => {
                DevPtr(start.addr().get() as u64)
            }
        }
    }

    /// Its first byte, if the CPU can read and write it at any time.
    pub fn host_ptr(&self) -> Option<NonNull<u8>> {
        match &self.owner {
            Owner::Device { .. } | Owner::Vmm(_) => None,
            Owner::Pinned(pinned) => Some(pinned.as_ptr()),
            Owner::Malloc { start, .. } | Owner::Mmap { start, .. } => Some(*start),
        }
    }

    /// True if the CPU can read and write it.
    pub fn is_host(&self) -> bool {
        self.kind.is_host()
    }

    /// Its kind.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Its length in bytes, as requested.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a length of 0, which [`DeviceBuf::alloc`] never gives.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn device(context: &Context, len: usize) -> Result<Owner, GpuError> {
    let _entered = context.enter()?;
    let mut address: CUdeviceptr = 0;
    // SAFETY: `address` is valid for the write of one address.
    let code = unsafe { (context.table().cuMemAlloc_v2)(&raw mut address, len) };
    context
        .check("cuMemAlloc_v2", code)
        .map_err(|e| e.with(format!("{len} bytes of device memory")))?;
    Ok(Owner::Device { context: context.clone(), address })
}

fn malloc(context: &Context, len: usize) -> Result<Owner, GpuError> {
    let layout = Layout::from_size_align(len, PAGE).ok().filter(|layout| layout.size() > 0);
    let Some(layout) = layout else {
        return Err(refused(context, "malloc", table::INVALID_VALUE, len));
    };
    // SAFETY: the layout's size is not 0.
    let start = NonNull::new(unsafe { std::alloc::alloc(layout) });
    let Some(start) = start else {
        return Err(refused(context, "malloc", table::OUT_OF_MEMORY, len));
    };
    Ok(Owner::Malloc { start, layout })
}

fn mmap(context: &Context, len: usize) -> Result<Owner, GpuError> {
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address that the kernel chooses touches no other.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        let code = if len == 0 { table::INVALID_VALUE } else { table::OUT_OF_MEMORY };
        return Err(refused(context, "mmap", code, len));
    }
    let Some(start) = NonNull::new(start.cast::<u8>()) else {
        return Err(refused(context, "mmap", table::OUT_OF_MEMORY, len));
    };
    Ok(Owner::Mmap { start, len })
}

/// The error of host memory that was not given, in the driver's codes.
fn refused(context: &Context, call: &'static str, code: i32, len: usize) -> GpuError {
    context.table().error(call, code).with(format!("{len} bytes of host memory"))
}

impl Drop for Owner {
    fn drop(&mut self) {
        match self {
            Self::Device { context, address } => {
                let Ok(_entered) = context.enter() else {
                    return;
                };
                // SAFETY: from cuMemAlloc and freed once; no copy is under way, by the contract of
                // the copies.
                let _ = unsafe { (context.table().cuMemFree_v2)(*address) };
            }
            // These free themselves.
            Self::Vmm(_) | Self::Pinned(_) => {}
            // SAFETY: from this allocator with this layout, and freed once.
            Self::Malloc { start, layout } => unsafe {
                std::alloc::dealloc(start.as_ptr(), *layout);
            },
            Self::Mmap { start, len } => {
                // SAFETY: mapped with this length and unmapped once.
                let _ = unsafe { libc::munmap(start.as_ptr().cast(), *len) };
            }
        }
    }
}
