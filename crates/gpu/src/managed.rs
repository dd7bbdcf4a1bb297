//! Managed memory: one address for host and GPU, and hints about where its pages shall be.
//!
//! The driver moves a page to whoever touches it. A hint (`cuMemPrefetchAsync`) moves it before,
//! in a stream's order, so that no access waits for a page fault. That needs a GPU with
//! concurrent managed access (Pascal and later on Linux; not under WSL, and not where a hypervisor
//! withholds it).
//!
//! The driver exports two forms of `cuMemPrefetchAsync` and `cuMemAdvise`: that of CUDA 8, which
//! takes a device, under the plain name, and since CUDA 12.2 one that takes a `CUmemLocation` under
//! the name with `_v2`. The headers of CUDA 13 call the latter by the plain name; the exported
//! symbols kept their meaning. The first is used where it is there, else the second.

use std::ptr::NonNull;

use crate::DevPtr;
use crate::context::Context;
use crate::error::GpuError;
use crate::stream::Stream;
use crate::table::{self, CUdeviceptr, CUmemLocation, CUresult};

/// Where pages of managed memory shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In host memory.
    Host,
    /// In the memory of the context's GPU.
    Device,
}

/// Memory of `cuMemAllocManaged` that its context's GPU and the host share.
///
/// It is given back when dropped, which waits for hints that are under way.
#[derive(Debug)]
pub struct Managed {
    context: Context,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its memory as a Box<[u8]> does; the driver allows the free on any thread.
unsafe impl Send for Managed {}
// SAFETY: through a shared reference only addresses can be had, and hints move no bytes that
// anybody could tell apart.
unsafe impl Sync for Managed {}

impl Managed {
    /// Allocates `len` bytes, aligned to a page, whose home is the context's GPU
    /// (`CU_MEM_ADVISE_SET_PREFERRED_LOCATION`): when the GPU's memory runs short the driver sends
    /// other pages away before these. "Accessed by" is not advised: it would keep mappings of the
    /// GPU alive for pages that are on the host, which each move would have to change, and nothing
    /// here reaches across.
    ///
    /// # Errors
    /// No memory, a length of 0, or a GPU that takes no hints, with the reason.
    pub fn alloc(context: &Context, len: usize) -> Result<Self, GpuError> {
        let table = context.table();
        takes_hints(context)?;
        let call = "cuMemAllocManaged";
        let alloc = table.cuMemAllocManaged.ok_or_else(|| table.lacking(call))?;
        let named = |e: GpuError| e.with(format!("{len} bytes of managed memory"));
        let _entered = context.enter()?;
        let mut address: CUdeviceptr = 0;
        // SAFETY: `address` is valid for the write of one address.
        let code = unsafe { alloc(&raw mut address, len, table::MEM_ATTACH_GLOBAL) };
        context.check(call, code).map_err(named)?;
        let start = usize::try_from(address).ok().map(std::ptr::with_exposed_provenance_mut);
        let Some(start) = start.and_then(NonNull::new) else {
            let error = table.error(call, table::OUT_OF_MEMORY);
            return Err(named(error.on(context.device())));
        };
        let made = Self { context: context.clone(), start, len };
        made.prefer_device()?;
        Ok(made)
    }

    /// The first byte, as the host sees it.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// The same address as the GPU sees it.
    pub fn ptr(&self) -> DevPtr {
        DevPtr(self.start.addr().get() as u64)
    }

    /// The length in bytes, as requested.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a length of 0, which [`Managed::alloc`] never gives.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts the hint into the stream that the pages which hold `len` bytes from byte `at` on shall
    /// be on that side. They are there once the stream has passed it; pages that are there already
    /// stay. Their contents do not change.
    ///
    /// # Errors
    /// The driver's refusal. A failure of the move itself comes with the next sync or query.
    ///
    /// # Panics
    /// If the range ends past the memory.
    pub fn prefetch(
        &self,
        stream: &Stream,
        at: usize,
        len: usize,
        to: Side,
    ) -> Result<(), GpuError> {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "a hint past the memory");
        let table = self.context.table();
        let address = self.ptr().byte_add(at as u64).0;
        let (call, code) = if let Some(prefetch) = table.cuMemPrefetchAsync {
            let device = self.device_or_cpu(to)?;
            // SAFETY: the range is inside memory that lives, and the stream does.
            let code = unsafe { prefetch(address, len, device, stream.handle()) };
            ("cuMemPrefetchAsync", code)
        } else {
            let call = "cuMemPrefetchAsync_v2";
            let prefetch = table.cuMemPrefetchAsync_v2.ok_or_else(|| table.lacking(call))?;
            let location = self.location(to)?;
            // SAFETY: as above.
            let code = unsafe { prefetch(address, len, location, 0, stream.handle()) };
            (call, code)
        };
        self.done(call, code, len, to)
    }

    fn prefer_device(&self) -> Result<(), GpuError> {
        let table = self.context.table();
        let (address, advice) = (self.ptr().0, table::MEM_ADVISE_SET_PREFERRED_LOCATION);
        let (call, code) = if let Some(advise) = table.cuMemAdvise {
            let device = self.device_or_cpu(Side::Device)?;
            // SAFETY: the range is this memory, which lives.
            ("cuMemAdvise", unsafe { advise(address, self.len, advice, device) })
        } else {
            let call = "cuMemAdvise_v2";
            let advise = table.cuMemAdvise_v2.ok_or_else(|| table.lacking(call))?;
            let location = self.location(Side::Device)?;
            // SAFETY: as above.
            (call, unsafe { advise(address, self.len, advice, location) })
        };
        self.done(call, code, self.len, Side::Device)
    }

    /// The side in the words of the first form.
    fn device_or_cpu(&self, side: Side) -> Result<i32, GpuError> {
        match side {
            Side::Host => Ok(table::DEVICE_CPU),
            Side::Device => self.context.driver().device(self.context.device()),
        }
    }

    /// The side in the words of the second form.
    fn location(&self, side: Side) -> Result<CUmemLocation, GpuError> {
        match side {
            // The number says nothing for this kind of place.
            Side::Host => Ok(CUmemLocation { kind: table::MEM_LOCATION_TYPE_HOST, id: 0 }),
            Side::Device => {
                let id = self.device_or_cpu(side)?;
                Ok(CUmemLocation { kind: table::MEM_LOCATION_TYPE_DEVICE, id })
            }
        }
    }

    fn done(
        &self,
        call: &'static str,
        code: CUresult,
        len: usize,
        to: Side,
    ) -> Result<(), GpuError> {
        self.context.check(call, code).map_err(|e| {
            let to = if to == Side::Host { "the host" } else { "the GPU" };
            e.with(format!("{len} bytes of managed memory, to {to}"))
        })
    }
}

/// Refuses a GPU without concurrent managed access: the driver would refuse every hint.
fn takes_hints(context: &Context) -> Result<(), GpuError> {
    let attribute = table::ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    if context.driver().attribute(context.device(), attribute)? != 0 {
        return Ok(());
    }
    let error = context.table().error("cuDeviceGetAttribute", table::NOT_SUPPORTED);
    Err(error.on(context.device()).with(
        "CONCURRENT_MANAGED_ACCESS is 0: this GPU, or this system's driver (WSL, some virtual \
         machines), takes no hints about managed memory; use another path, such as staged",
    ))
}

impl Drop for Managed {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else {
            return;
        };
        // SAFETY: from cuMemAllocManaged and freed once; the call waits for what is under way.
        let _ = unsafe { (self.context.table().cuMemFree_v2)(self.ptr().0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Driver, Which};

    /// Bytes that the host wrote, after the pages went to the GPU and came back.
    fn there_and_back(driver: &Driver) -> Vec<u8> {
        let context = Context::new(driver, 0).unwrap();
        context.make_current().unwrap();
        let stream = Stream::new(&context).unwrap();
        let managed = Managed::alloc(&context, 3 * 4096).unwrap();
        // SAFETY: fresh memory of this length is on the host and not used elsewhere.
        unsafe { managed.as_ptr().as_ptr().write_bytes(7, managed.len()) };
        managed.prefetch(&stream, 0, managed.len(), Side::Device).unwrap();
        managed.prefetch(&stream, 4096, 4096, Side::Host).unwrap();
        stream.sync().unwrap();
        // SAFETY: the second page came back, and the stream was waited for.
        let second = unsafe { managed.as_ptr().add(4096) };
        // SAFETY: as above; nothing writes it.
        unsafe { std::slice::from_raw_parts(second.as_ptr(), 4096) }.to_vec()
    }

    #[test]
    fn hints_go_through_either_form_of_the_call() {
        let first = Driver::load(&Which::Software).unwrap();
        assert_eq!(there_and_back(&first), vec![7; 4096]);
        let second = Driver::load_with(&Which::Software, |table| {
            table.cuMemPrefetchAsync = None;
            table.cuMemAdvise = None;
        });
        assert_eq!(there_and_back(&second.unwrap()), vec![7; 4096]);
        let neither = Driver::load_with(&Which::Software, |table| {
            table.cuMemPrefetchAsync = None;
            table.cuMemPrefetchAsync_v2 = None;
        });
        let context = Context::new(&neither.unwrap(), 0).unwrap();
        let managed = Managed::alloc(&context, 4096).unwrap();
        let stream = Stream::new(&context).unwrap();
        let error = managed.prefetch(&stream, 0, 4096, Side::Host).unwrap_err();
        assert_eq!((error.call, error.code), ("cuMemPrefetchAsync_v2", table::NOT_SUPPORTED));
    }
}
