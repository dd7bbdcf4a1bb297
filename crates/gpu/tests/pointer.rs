//! Kinds of addresses, and contexts of others: on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the program whose memory is asked about calls the driver itself")]

use std::ffi::{c_int, c_uint, c_void};

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, Locked, Managed, MemoryKind, Owner, PageSize, Pinned,
    Stream,
};
use libloading::Library;

fn driver() -> Driver {
    Driver::load(&gpuio_testkit::gpu::which()).unwrap()
}

/// The driver as the program calls it whose memory is asked about.
struct Program(Library);

impl Program {
    fn of(driver: &Driver) -> Self {
        // SAFETY: the library is loaded already; its initialisers do not run again.
        Self(unsafe { Library::new(driver.library_path_hint()) }.unwrap())
    }

    /// A context of the program's own, current on this thread.
    fn context(&self) -> *mut c_void {
        type Create = unsafe extern "C" fn(*mut *mut c_void, c_uint, c_int) -> c_int;
        let mut context = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual.
        let create = unsafe { self.0.get::<Create>("cuCtxCreate_v2") }.unwrap();
        // SAFETY: `context` is valid for the write of a pointer.
        assert_eq!(unsafe { create(&raw mut context, 0, 0) }, 0);
        context
    }

    fn destroy(&self, context: *mut c_void) {
        type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the symbol's type, by the manual.
        let destroy = unsafe { self.0.get::<Destroy>("cuCtxDestroy_v2") }.unwrap();
        // SAFETY: a context of this program's, destroyed once.
        assert_eq!(unsafe { destroy(context) }, 0);
    }

    fn current(&self) -> *mut c_void {
        type Current = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
        let mut context = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual.
        let current = unsafe { self.0.get::<Current>("cuCtxGetCurrent") }.unwrap();
        // SAFETY: `context` is valid for the write of a pointer.
        assert_eq!(unsafe { current(&raw mut context) }, 0);
        context
    }

    fn alloc(&self, len: usize) -> u64 {
        type Alloc = unsafe extern "C" fn(*mut u64, usize) -> c_int;
        let mut address = 0;
        // SAFETY: the symbol's type, by the manual.
        let alloc = unsafe { self.0.get::<Alloc>("cuMemAlloc_v2") }.unwrap();
        // SAFETY: `address` is valid for the write of an address.
        assert_eq!(unsafe { alloc(&raw mut address, len) }, 0);
        address
    }

    /// Memory of the device's pool, put into the default stream of the current context.
    fn alloc_of_pool(&self, len: usize) -> u64 {
        type Alloc = unsafe extern "C" fn(*mut u64, usize, *mut c_void) -> c_int;
        let mut address = 0;
        // SAFETY: the symbol's type, by the manual.
        let alloc = unsafe { self.0.get::<Alloc>("cuMemAllocAsync") }.unwrap();
        // SAFETY: `address` is valid for the write of an address.
        assert_eq!(unsafe { alloc(&raw mut address, len, std::ptr::null_mut()) }, 0);
        address
    }

    fn free_of_pool(&self, address: u64) {
        type Free = unsafe extern "C" fn(u64, *mut c_void) -> c_int;
        // SAFETY: the symbol's type, by the manual.
        let free = unsafe { self.0.get::<Free>("cuMemFreeAsync") }.unwrap();
        // SAFETY: memory of this program's, freed once.
        assert_eq!(unsafe { free(address, std::ptr::null_mut()) }, 0);
    }
}

#[test]
fn every_kind_of_memory_is_reported_without_a_current_context() {
    let driver = driver();
    let context = Context::new(&driver, 0).unwrap();
    let len = 3 << 20;
    for kind in [
        MemoryKind::Device,
        MemoryKind::Vmm,
        MemoryKind::Pinned,
        MemoryKind::Malloc,
        MemoryKind::Mmap,
    ] {
        let memory = DeviceBuf::alloc(&context, kind, len).unwrap();
        let inside = memory.ptr().0 + 12_345;
        let reported = driver.pointer(inside).unwrap();
        let owner = match kind {
            MemoryKind::Device | MemoryKind::Vmm => Owner::Device,
            MemoryKind::Pinned => Owner::Pinned,
            _ => Owner::Host,
        };
        assert_eq!(reported.owner, owner, "{kind}: {reported:?}");
        assert_eq!(reported.is_reached_by(&context), owner != Owner::Host, "{kind}: {reported:?}");
        if owner == Owner::Host {
            continue;
        }
        assert_eq!(reported.device, Some(0), "{kind}: {reported:?}");
        assert!(reported.mapped, "{kind}: {reported:?}");
        let (start, whole) = reported.range.unwrap();
        assert!(start + whole - inside >= (len - 12_345) as u64, "{kind}: {reported:?}");
        let none = matches!(kind, MemoryKind::Vmm);
        assert_eq!(reported.context, (!none).then(|| context.raw()), "{kind}");
    }
    let managed = Managed::alloc(&context, 8192).unwrap();
    let reported = driver.pointer(managed.ptr().0 + 8191).unwrap();
    assert_eq!(reported.owner, Owner::Managed, "{reported:?}");
    assert!(reported.is_reached_by(&context), "{reported:?}");
}

#[test]
fn what_is_no_memory_of_the_drivers_is_of_the_host() {
    let driver = driver();
    let context = Context::new(&driver, 0).unwrap();
    let memory = DeviceBuf::alloc(&context, MemoryKind::Device, 4096).unwrap();
    let freed = memory.ptr().0;
    drop(memory);
    let local = 0_u8;
    for address in [0, 1, (&raw const local).addr() as u64, freed, u64::MAX] {
        let reported = driver.pointer(address).unwrap();
        assert_eq!((reported.owner, reported.device), (Owner::Host, None), "{address:#x}");
        assert!(!reported.is_reached_by(&context));
    }
}

#[test]
fn memory_of_another_context_and_of_a_pool_is_distinguished() {
    let driver = driver();
    let program = Program::of(&driver);
    let context = Context::new(&driver, 0).unwrap();
    let created = program.context();
    let address = program.alloc(1 << 20);
    let pooled = program.alloc_of_pool(1 << 20);
    std::thread::scope(|scope| {
        // A thread that has no context.
        scope.spawn(|| {
            let reported = driver.pointer(address).unwrap();
            assert_eq!((reported.owner, reported.device), (Owner::Device, Some(0)), "{reported:?}");
            assert!(reported.context.is_some_and(|raw| raw != context.raw()), "{reported:?}");
            assert!(!reported.is_reached_by(&context), "{reported:?}");
            let reported = driver.pointer(pooled).unwrap();
            assert_eq!((reported.owner, reported.device), (Owner::Device, Some(0)), "{reported:?}");
            assert!(reported.is_reached_by(&context), "{reported:?}");
        });
    });
    program.free_of_pool(pooled);
    // A copy by the driver reaches it from the primary context's streams.
    let stream = Stream::new(&context).unwrap();
    let pinned = Pinned::alloc(&context, 4096).unwrap();
    // SAFETY: fresh memory of this length.
    unsafe { pinned.as_ptr().write_bytes(0x5C, 4096) };
    let back = Pinned::alloc(&context, 4096).unwrap();
    context
        .entered(|| {
            // SAFETY: memory of this test's; the wait follows.
            unsafe { stream.copy(DevPtr(address + 512), pinned.ptr(), 4096) }.unwrap();
            // SAFETY: as above.
            unsafe { stream.copy(back.ptr(), DevPtr(address + 512), 4096) }.unwrap();
            stream.sync().unwrap();
        })
        .unwrap();
    // SAFETY: the copy was waited for.
    let bytes = unsafe { std::slice::from_raw_parts(back.as_ptr().as_ptr(), 4096) };
    assert!(bytes.iter().all(|&byte| byte == 0x5C));
    assert_eq!(program.current(), created, "the stack of contexts is as it was");
    program.destroy(created);
    // Once its context is gone, it is nothing any more. Who asks is told; a copy there would be one
    // to memory of the host, which is not there either.
    assert_eq!(driver.pointer(address).unwrap().owner, Owner::Host);
}

#[test]
fn a_thread_gets_its_own_context_back() {
    let driver = driver();
    let program = Program::of(&driver);
    let context = Context::new(&driver, 0).unwrap();
    assert!(program.current().is_null());
    assert!(!context.entered(|| program.current()).unwrap().is_null());
    assert!(program.current().is_null());
    let created = program.context();
    let within = context.entered(|| program.current()).unwrap();
    assert_ne!(within, created);
    let panicked = std::panic::catch_unwind(|| context.entered(|| panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(program.current(), created);
    program.destroy(created);
}

#[test]
fn locked_memory_holds_zeros_and_may_be_leaked() {
    let driver = driver();
    let context = Context::new(&driver, 0).unwrap();
    for (len, pages) in [(1, PageSize::Plain), (5 << 20, PageSize::Huge), (4096, PageSize::Huge)] {
        let locked = Locked::new(&context, len, pages).unwrap();
        assert_eq!(locked.len(), len);
        let align = if pages == PageSize::Huge { 2 << 20 } else { 4096 };
        assert!(locked.as_ptr().addr().get().is_multiple_of(align));
        // SAFETY: live memory of this length that nobody writes.
        let bytes = unsafe { std::slice::from_raw_parts(locked.as_ptr().as_ptr(), len) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        let address = locked.ptr().0 + len as u64 - 1;
        assert_eq!(driver.pointer(address).unwrap().owner, Owner::Pinned);
        drop(locked);
        assert_eq!(driver.pointer(address).unwrap().owner, Owner::Host);
    }
    let leaked = Locked::new(&context, 8192, PageSize::Plain).unwrap().leak();
    drop(context);
    assert_eq!(driver.pointer(leaked.ptr().0 + 8191).unwrap().owner, Owner::Pinned);
    // SAFETY: memory that lives as long as the process, known to nobody else.
    unsafe { leaked.as_ptr().write_bytes(1, 8192) };
    assert!(Locked::new(&Context::new(&driver, 0).unwrap(), 0, PageSize::Plain).is_err());
}
