//! Uses that the driver's manual leaves undefined end a process on gpuio's software GPU, and calls
//! for which hardware's driver waits are waited for there: so a test that passes there does
//! neither.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the program that goes wrong calls the driver itself")]

use std::ffi::{c_int, c_uint, c_void};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, MemoryKind, Pinned, RawStream, Stream, UserStream, Which,
};
use gpuio_testkit::child;
use libloading::Library;

struct Bench {
    driver: Driver,
    context: Context,
    program: Library,
}

fn bench() -> Bench {
    let driver = Driver::load(&Which::Software).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    // SAFETY: the library is loaded already; its initialisers do not run again.
    let program = unsafe { Library::new(driver.library_path_hint()) }.unwrap();
    Bench { driver, context, program }
}

impl Bench {
    fn stream(&self) -> (UserStream, *mut c_void) {
        type Make = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int;
        let mut made = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual.
        let make = unsafe { self.program.get::<Make>("cuStreamCreate") }.unwrap();
        // SAFETY: `made` is valid for the write of a pointer.
        assert_eq!(unsafe { make(&raw mut made, 1) }, 0);
        // SAFETY: the tests that destroy it and go on want to be stopped.
        (unsafe { UserStream::new(&self.driver, RawStream::new(made)) }.unwrap(), made)
    }

    /// A context that becomes current.
    fn created(&self) -> *mut c_void {
        type Make = unsafe extern "C" fn(*mut *mut c_void, c_uint, c_int) -> c_int;
        let mut made = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual.
        let make = unsafe { self.program.get::<Make>("cuCtxCreate_v2") }.unwrap();
        // SAFETY: `made` is valid for the write of a pointer.
        assert_eq!(unsafe { make(&raw mut made, 0, 0) }, 0);
        made
    }

    fn on(&self, name: &str, handle: *mut c_void) -> c_int {
        type On = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the symbol's type, by the manual.
        let on = unsafe { self.program.get::<On>(name) }.unwrap();
        // SAFETY: a handle that the software GPU gave, and knows for stale.
        unsafe { on(handle) }
    }
}

/// Runs a test of this program's that must end by SIGABRT, after these words.
fn dies(test: impl Fn(), words: &str) {
    let output = child::output(test, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("gpuio software GPU: ") && said.contains(words), "{said}");
}

#[test]
fn a_context_that_was_destroyed_is_not_to_be_entered() {
    dies(child_context, "context 0x60000000000 is used after it was destroyed");
}

#[test]
#[ignore = "run as a child"]
fn child_context() {
    let bench = bench();
    let created = bench.created();
    let (stream, _) = bench.stream();
    assert_eq!(bench.on("cuCtxDestroy_v2", created), 0);
    let _ = stream.entered(|| ());
}

#[test]
fn a_stream_that_was_destroyed_is_not_to_be_used() {
    dies(child_stream, "is used after it was destroyed");
}

#[test]
#[ignore = "run as a child"]
fn child_stream() {
    let bench = bench();
    let (_, handle) = bench.stream();
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
    let _ = bench.on("cuStreamQuery", handle);
}

#[test]
fn the_driver_is_not_to_guess_what_memory_was_that_is_gone() {
    dies(child_memory, "there is none any more");
}

#[test]
#[ignore = "run as a child"]
fn child_memory() {
    let bench = bench();
    let (stream, pinned) =
        (Stream::new(&bench.context).unwrap(), Pinned::alloc(&bench.context, 64).unwrap());
    let memory = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 64).unwrap();
    let gone = memory.ptr();
    drop(memory);
    // SAFETY: a copy that names its direction is refused: the memory is no device's.
    let refused = unsafe { stream.h2d(gone, pinned.as_ptr().as_ptr(), 64) };
    assert_eq!(refused.unwrap_err().code, 1);
    // SAFETY: nothing is touched: the process ends.
    let _ = unsafe { stream.copy(gone, pinned.ptr(), 64) };
}

/// A number that was never a handle is refused, and a context that is current stays so after it was
/// destroyed, as the manual has it.
#[test]
fn what_the_manual_defines_is_answered() {
    let bench = bench();
    let never = std::ptr::without_provenance_mut(0x1234);
    assert_eq!(bench.on("cuStreamQuery", never), 400);
    assert_eq!(bench.on("cuCtxSetCurrent", never), 201);
    let created = bench.created();
    let ((entered, is_entered), (destroyed, is_destroyed)) = (channel(), channel());
    std::thread::scope(|scope| {
        let (bench, address) = (&bench, created.addr());
        scope.spawn(move || {
            let created = std::ptr::without_provenance_mut(address);
            assert_eq!(bench.on("cuCtxSetCurrent", created), 0);
            entered.send(()).unwrap();
            is_destroyed.recv().unwrap();
            assert_eq!(bench.on("cuStreamSynchronize", std::ptr::null_mut()), 709);
        });
        is_entered.recv().unwrap();
        let created = std::ptr::without_provenance_mut(address);
        assert_eq!(bench.on("cuCtxDestroy_v2", created), 0);
        destroyed.send(()).unwrap();
    });
}

/// CUDA driver API manual, "API synchronization behavior".
#[test]
fn copies_between_memory_of_the_host_are_waited_for() {
    let bench = bench();
    let there = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
    let locked = |byte: u8| {
        let memory = Pinned::alloc(&bench.context, 4096).unwrap();
        // SAFETY: fresh memory of this length.
        unsafe { memory.as_ptr().write_bytes(byte, 4096) };
        memory
    };
    let (flag, from, to) = (locked(0), locked(7), locked(0));
    let plain = vec![0_u8; 4096];
    let plain = DevPtr(plain.as_ptr().expose_provenance() as u64);
    // SAFETY: the first four bytes of live memory, which everybody uses atomically.
    let word = unsafe { AtomicU32::from_ptr(flag.as_ptr().as_ptr().cast()) };
    let ways = [
        (there.ptr(), from.ptr(), false),
        (to.ptr(), there.ptr(), false),
        (to.ptr(), from.ptr(), true),
        (plain, there.ptr(), true),
        (to.ptr(), plain, true),
    ];
    let (free, free_handle) = bench.stream();
    for (number, (dst, src, waits)) in (1..).zip(ways) {
        let (stream, handle) = bench.stream();
        // SAFETY: the word lives until the stream has passed.
        unsafe { stream.wait_for(flag.ptr(), number) }.unwrap();
        let returned = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let put = stream.entered(|| {
                    // SAFETY: memory of this test's, which lives until the stream has passed.
                    unsafe { stream.copy(dst, src, 4096) }
                });
                put.unwrap().unwrap();
                returned.store(true, Ordering::Release);
            });
            if waits {
                // The same call, in a stream that is free, comes back as often as it is made.
                for _ in 0..200 {
                    let put = free.entered(|| {
                        // SAFETY: memory of this test's; the call waits for the copy.
                        unsafe { free.copy(dst, src, 4096) }
                    });
                    put.unwrap().unwrap();
                }
                assert!(!returned.load(Ordering::Acquire), "way {number} waits for the stream");
            } else {
                while !returned.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            word.store(number, Ordering::Release);
        });
        assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
        assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
    }
    assert_eq!(bench.on("cuStreamDestroy_v2", free_handle), 0);
}
