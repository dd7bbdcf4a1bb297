//! Device memory by the virtual memory management calls (CUDA 10.2): an address range, physical
//! memory, a mapping of one on the other, and the right to use it.

use crate::context::Context;
use crate::error::GpuError;
use crate::table::{
    self, CUdeviceptr, CUmemAccessDesc, CUmemAllocationFlags, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUmemLocation,
};

/// One mapped range. Fields are set as the steps succeed, so that a half-made one undoes what was
/// done.
#[derive(Debug)]
pub(crate) struct Mapping {
    context: Context,
    size: usize,
    address: CUdeviceptr,
    memory: Option<CUmemGenericAllocationHandle>,
    mapped: bool,
}

impl Mapping {
    /// Maps at least `len` bytes, readable and writable on the context's device.
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, GpuError> {
        let _entered = context.enter()?;
        let prop = Self::wanted(context)?;
        let alignment = granularity(context, &prop)?.max(1);
        let Some(size) = len.checked_next_multiple_of(alignment).filter(|&size| size > 0) else {
            let error = context.table().error("cuMemAddressReserve", table::INVALID_VALUE);
            return Err(error.on(context.device()).with(format!("{len} bytes")));
        };
        let address = reserve(context, size)?;
        let mut made =
            Self { context: context.clone(), size, address, memory: None, mapped: false };
        made.back(&prop)?;
        made.allow(&prop)?;
        Ok(made)
    }

    pub(crate) fn address(&self) -> CUdeviceptr {
        self.address
    }

    fn wanted(context: &Context) -> Result<CUmemAllocationProp, GpuError> {
        // Memory that a NIC or an NVMe device reaches itself must say so when it is made.
        let rdma = context.driver().attribute(context.device(), table::ATTRIBUTE_RDMA_WITH_VMM)?;
        Ok(CUmemAllocationProp {
            kind: table::MEM_ALLOCATION_TYPE_PINNED,
            requested_handle_types: 0,
            location: CUmemLocation {
                kind: table::MEM_LOCATION_TYPE_DEVICE,
                id: context.driver().device(context.device())?,
            },
            win32_handle_meta_data: std::ptr::null_mut(),
            flags: CUmemAllocationFlags {
                gpu_direct_rdma_capable: u8::from(rdma != 0),
                ..CUmemAllocationFlags::default()
            },
        })
    }

    /// Makes the physical memory and maps it.
    fn back(&mut self, prop: &CUmemAllocationProp) -> Result<(), GpuError> {
        let table = self.context.table();
        let create = table.cuMemCreate.ok_or_else(|| table.lacking("cuMemCreate"))?;
        let map = table.cuMemMap.ok_or_else(|| table.lacking("cuMemMap"))?;
        let mut handle: CUmemGenericAllocationHandle = 0;
        // SAFETY: `handle` is valid for the write of one handle, `prop` for reads.
        let code = unsafe { create(&raw mut handle, self.size, prop, 0) };
        self.context
            .check("cuMemCreate", code)
            .map_err(|e| e.with(format!("{} bytes of device memory", self.size)))?;
        self.memory = Some(handle);
        // SAFETY: the range was reserved with this size, and the memory has it too.
        let code = unsafe { map(self.address, self.size, 0, handle, 0) };
        self.context.check("cuMemMap", code)?;
        self.mapped = true;
        Ok(())
    }

    /// Lets the device read and write.
    fn allow(&self, prop: &CUmemAllocationProp) -> Result<(), GpuError> {
        let table = self.context.table();
        let access = table.cuMemSetAccess.ok_or_else(|| table.lacking("cuMemSetAccess"))?;
        let desc = CUmemAccessDesc { location: prop.location, flags: table::MEM_ACCESS_READWRITE };
        // SAFETY: the range is mapped in full, and `desc` is one readable descriptor.
        let code = unsafe { access(self.address, self.size, &raw const desc, 1) };
        self.context.check("cuMemSetAccess", code)
    }
}

fn granularity(context: &Context, prop: &CUmemAllocationProp) -> Result<usize, GpuError> {
    let table = context.table();
    let call = "cuMemGetAllocationGranularity";
    let query = table.cuMemGetAllocationGranularity.ok_or_else(|| table.lacking(call))?;
    let mut alignment = 0_usize;
    // SAFETY: `alignment` is valid for the write of one size_t, `prop` for reads.
    let code = unsafe { query(&raw mut alignment, prop, table::MEM_GRANULARITY_MINIMUM) };
    context.check(call, code)?;
    Ok(alignment)
}

fn reserve(context: &Context, size: usize) -> Result<CUdeviceptr, GpuError> {
    let table = context.table();
    let call = "cuMemAddressReserve";
    let reserve = table.cuMemAddressReserve.ok_or_else(|| table.lacking(call))?;
    let mut address: CUdeviceptr = 0;
    // SAFETY: `address` is valid for the write of one address.
    let code = unsafe { reserve(&raw mut address, size, 0, 0, 0) };
    context.check(call, code).map_err(|e| e.with(format!("{size} bytes of addresses")))?;
    Ok(address)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        let table = self.context.table();
        if let (true, Some(unmap)) = (self.mapped, table.cuMemUnmap) {
            // SAFETY: mapped by `back` with this size and unmapped once.
            let _ = unsafe { unmap(self.address, self.size) };
        }
        if let (Some(memory), Some(release)) = (self.memory, table.cuMemRelease) {
            // SAFETY: made by `back` and released once.
            let _ = unsafe { release(memory) };
        }
        if let Some(free) = table.cuMemAddressFree {
            // SAFETY: reserved by `reserve` with this size and freed once, after the unmapping.
            let _ = unsafe { free(self.address, self.size) };
        }
    }
}
