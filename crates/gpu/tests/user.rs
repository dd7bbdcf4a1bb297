//! Streams of somebody else's: on gpuio's software GPU, or with `GPUIO_TEST_GPU=system` on the
//! system's.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the program whose streams are used calls the driver itself")]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpuio_gpu::{
    Context, DevPtr, DeviceBuf, Driver, GatherKernel, Locked, MemoryKind, PageSize, Piece, Pinned,
    RawStream, Stream, UserStream,
};
use gpuio_testkit::child;
use libloading::Library;

struct Bench {
    driver: Driver,
    context: Context,
    program: Library,
    /// One test at a time: what one frees waits for a stream that another holds, and blocks the
    /// call that would let it on.
    _alone: MutexGuard<'static, ()>,
}

fn bench() -> Bench {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = Driver::load(&gpuio_testkit::gpu::which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    // SAFETY: the library is loaded already; its initialisers do not run again.
    let program = unsafe { Library::new(driver.library_path_hint()) }.unwrap();
    Bench { driver, context, program, _alone: alone }
}

impl Bench {
    /// A call of the program's that takes a pointer's place, a number and one more.
    fn make(&self, name: &str, flags: c_uint, device: c_int) -> *mut c_void {
        type Make = unsafe extern "C" fn(*mut *mut c_void, c_uint, c_int) -> c_int;
        let mut made = std::ptr::null_mut();
        // SAFETY: the symbol's type, by the manual; one that takes fewer arguments leaves the last.
        let make = unsafe { self.program.get::<Make>(name) }.unwrap();
        // SAFETY: `made` is valid for the write of a pointer.
        assert_eq!(unsafe { make(&raw mut made, flags, device) }, 0, "{name}");
        made
    }

    fn on(&self, name: &str, handle: *mut c_void) -> c_int {
        type On = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the symbol's type, by the manual.
        let on = unsafe { self.program.get::<On>(name) }.unwrap();
        // SAFETY: a handle that the program made.
        unsafe { on(handle) }
    }

    fn stream(&self) -> (UserStream, *mut c_void) {
        let handle = self.make("cuStreamCreate", 1, 0);
        (self.of(handle), handle)
    }

    fn of(&self, handle: *mut c_void) -> UserStream {
        // SAFETY: the test makes it and destroys it last.
        unsafe { UserStream::new(&self.driver, RawStream::new(handle)) }.unwrap()
    }

    fn pinned(&self, byte: u8, len: usize) -> Pinned {
        let pinned = Pinned::alloc(&self.context, len).unwrap();
        // SAFETY: fresh memory of this length.
        unsafe { pinned.as_ptr().write_bytes(byte, len) };
        pinned
    }
}

fn word(pinned: &Pinned) -> &AtomicU32 {
    // SAFETY: the first four bytes of live memory, which everybody uses atomically.
    unsafe { AtomicU32::from_ptr(pinned.as_ptr().as_ptr().cast()) }
}

fn bytes(pinned: &Pinned) -> &[u8] {
    // SAFETY: live memory; the test waited for what wrote it.
    unsafe { std::slice::from_raw_parts(pinned.as_ptr().as_ptr(), pinned.len()) }
}

fn query(bench: &Bench, handle: *mut c_void) -> c_int {
    bench.on("cuStreamQuery", handle)
}

#[test]
fn a_stream_waits_for_a_word_and_says_when_it_passed() {
    let bench = bench();
    assert!(bench.driver.waits_for_words(0));
    let (stream, handle) = bench.stream();
    assert_eq!(stream.context(), bench.context.raw());
    let (flag, done) = (bench.pinned(0, 4), bench.pinned(0, 4));
    let (from, to) = (bench.pinned(1, 4096), bench.pinned(0, 4096));
    // By way of the device: the driver waits for a copy from the host to the host.
    let there = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
    let spare = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
    let free_done = bench.pinned(0, 4);
    // Just below where numbers of 32 bits go round.
    word(&flag).store(u32::MAX - 1, Ordering::Release);
    // SAFETY: memory of this test's, which lives until the stream has passed.
    unsafe { stream.wait_for(flag.ptr(), 1) }.unwrap();
    // SAFETY: as above.
    unsafe { stream.copy(there.ptr(), from.ptr(), 4096) }.unwrap();
    // SAFETY: as above.
    unsafe { stream.copy(to.ptr(), there.ptr(), 4096) }.unwrap();
    // SAFETY: as above.
    unsafe { stream.store(done.ptr(), 77) }.unwrap();
    // A stream with the same commands that is not held passes all of them.
    let (free, free_handle) = bench.stream();
    for passed in 1..=100 {
        // SAFETY: as above; the word has come.
        unsafe { free.wait_for(done.ptr(), 0) }.unwrap();
        // SAFETY: as above.
        unsafe { free.copy(spare.ptr(), from.ptr(), 4096) }.unwrap();
        // SAFETY: as above.
        unsafe { free.store(free_done.ptr(), passed) }.unwrap();
        assert_eq!(bench.on("cuStreamSynchronize", free_handle), 0);
        assert_eq!(word(&free_done).load(Ordering::Acquire), passed);
    }
    assert_eq!(query(&bench, handle), 600, "it is held");
    assert_eq!(word(&done).load(Ordering::Acquire), 0);
    // The data is written only now, before the word.
    // SAFETY: the copy waits for the word.
    unsafe { from.as_ptr().write_bytes(9, 4096) };
    word(&flag).store(2, Ordering::Release);
    let began = Instant::now();
    while word(&done).load(Ordering::Acquire) != 77 {
        assert!(began.elapsed() < Duration::from_secs(10), "the stream is held for ever");
        std::thread::yield_now();
    }
    assert!(bytes(&to).iter().all(|&byte| byte == 9));
    assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
    assert_eq!(bench.on("cuStreamDestroy_v2", free_handle), 0);
}

#[test]
fn host_functions_run_in_the_order_of_the_stream() {
    unsafe extern "C" fn note(data: *mut c_void) {
        // SAFETY: the test gives the word, which lives until the stream has passed.
        let word = unsafe { AtomicU32::from_ptr(data.cast()) };
        word.store(word.load(Ordering::Acquire) * 10 + 3, Ordering::Release);
    }
    let bench = bench();
    let (stream, handle) = bench.stream();
    let seen = bench.pinned(0, 4);
    for value in [1, 2] {
        // SAFETY: the word lives until the stream has passed.
        unsafe { stream.store(seen.ptr(), value) }.unwrap();
        // SAFETY: as above.
        unsafe { stream.call(note, seen.as_ptr().as_ptr().cast()) }.unwrap();
        // SAFETY: as above.
        unsafe { stream.call(note, seen.as_ptr().as_ptr().cast()) }.unwrap();
    }
    assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
    assert_eq!(word(&seen).load(Ordering::Acquire), 233);
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
}

#[test]
fn default_streams_are_of_the_current_context() {
    let bench = bench();
    let from = bench.pinned(0x3C, 8192);
    let there = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 8192).unwrap();
    for number in [0, 1, 2] {
        let handle = std::ptr::without_provenance_mut(number);
        assert!(RawStream::new(handle).is_default());
        let stream = bench.of(handle);
        assert_eq!(stream.context(), bench.context.raw());
        assert!(!stream.is_capturing().unwrap());
        let back = bench.pinned(0, 8192);
        // SAFETY: memory of this test's; the wait follows.
        unsafe { stream.copy(there.ptr(), from.ptr(), 8192) }.unwrap();
        // SAFETY: as above.
        unsafe { stream.copy(back.ptr(), there.ptr(), 8192) }.unwrap();
        assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
        assert_eq!(bytes(&back), bytes(&from), "default stream {number}");
    }
    // Without a current context there is none.
    let nothing = std::thread::scope(|scope| {
        let requested = scope.spawn(|| {
            let null = RawStream::new(std::ptr::null_mut());
            // SAFETY: a default stream.
            unsafe { UserStream::new(&bench.driver, null) }.map(|stream| stream.context())
        });
        requested.join().unwrap()
    });
    assert_eq!(nothing.unwrap_err().code, 201);
}

#[test]
fn a_stream_of_another_context_takes_copies_and_no_kernels() {
    let bench = bench();
    let created = bench.make("cuCtxCreate_v2", 0, 0);
    let (stream, handle) = bench.stream();
    assert_ne!(stream.context(), bench.context.raw());
    bench.context.make_current().unwrap();
    let (from, to) = (bench.pinned(5, 64), bench.pinned(0, 64));
    let list = bench.pinned(0, 4096);
    let kernel = GatherKernel::load(&bench.context).unwrap();
    let put = stream.entered(|| {
        // SAFETY: memory of this test's; the wait follows.
        unsafe { stream.copy(to.ptr(), from.ptr(), 64) }.unwrap();
        assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
        // SAFETY: the list and what it names live.
        unsafe { kernel.launch_in(&stream, list.ptr(), 1, kernel.shape(1, 64)) }
    });
    let error = put.unwrap().unwrap_err();
    assert!(error.to_string().contains("another context"), "{error}");
    assert_eq!(bytes(&to), bytes(&from));
    // The stream goes with it, and neither may be named to the driver any more.
    assert_eq!(bench.on("cuCtxDestroy_v2", created), 0);
}

#[test]
fn gather_reads_its_list_when_the_stream_comes_to_it() {
    let bench = bench();
    let (stream, handle) = bench.stream();
    let kernel = GatherKernel::load(&bench.context).unwrap();
    let (flag, list) = (bench.pinned(0, 4), bench.pinned(0, 4096));
    let (from, to) = (bench.pinned(0x77, 5000), bench.pinned(0, 5000));
    // SAFETY: memory of this test's, which lives until the stream has passed.
    unsafe { stream.wait_for(flag.ptr(), 1) }.unwrap();
    // SAFETY: as above; the list is written before the word.
    unsafe { kernel.launch_in(&stream, list.ptr(), 1, kernel.shape(1, 8192)) }.unwrap();
    let piece = Piece::new(from.ptr().byte_add(3), DevPtr(to.ptr().0 + 1), 4900);
    // SAFETY: the page is aligned, has room for an entry, and the kernel waits for the word.
    unsafe { list.as_ptr().cast::<Piece>().write(piece) };
    word(&flag).store(1, Ordering::Release);
    assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
    assert_eq!(bytes(&to)[0], 0);
    assert!(bytes(&to)[1..4901].iter().all(|&byte| byte == 0x77));
    assert!(bytes(&to)[4901..].iter().all(|&byte| byte == 0));
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
}

#[test]
fn a_stream_that_is_captured_says_so() {
    type Begin = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    type End = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
    let bench = bench();
    let (stream, handle) = bench.stream();
    assert!(!stream.is_capturing().unwrap());
    // SAFETY: the symbol's type, by the manual.
    let begin = unsafe { bench.program.get::<Begin>("cuStreamBeginCapture_v2") }.unwrap();
    // SAFETY: the symbol's type, by the manual.
    let end = unsafe { bench.program.get::<End>("cuStreamEndCapture") }.unwrap();
    // Mode 2 forbids nothing to other threads.
    // SAFETY: a stream of this test's.
    assert_eq!(unsafe { begin(handle, 2) }, 0);
    assert!(stream.is_capturing().unwrap());
    let mut graph = std::ptr::null_mut();
    // SAFETY: as above; `graph` is valid for the write of a pointer.
    assert_eq!(unsafe { end(handle, &raw mut graph) }, 0);
    assert!(!stream.is_capturing().unwrap());
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
}

#[test]
fn a_capture_of_the_programs_is_not_spoiled_by_calls_of_ours() {
    // In a process of its own: the other tests call the driver as a program does.
    child::alone(&[], || {
        type Begin = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
        type End = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
        let bench = bench();
        let (stream, handle) = bench.stream();
        // SAFETY: the symbol's type, by the manual.
        let begin = unsafe { bench.program.get::<Begin>("cuStreamBeginCapture_v2") }.unwrap();
        // SAFETY: the symbol's type, by the manual.
        let end = unsafe { bench.program.get::<End>("cuStreamEndCapture") }.unwrap();
        // Mode 0 forbids allocations to every thread that does not say otherwise.
        // SAFETY: a stream of this test's.
        assert_eq!(unsafe { begin(handle, 0) }, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let memory = Locked::new(&bench.context, 1 << 20, PageSize::Plain).unwrap();
                let there = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
                let own = Stream::new(&bench.context).unwrap();
                let moved = bench.context.entered(|| {
                    // SAFETY: memory of this thread's; the wait follows.
                    unsafe { own.h2d(there.ptr(), memory.as_ptr().as_ptr(), 4096) }?;
                    own.sync()
                });
                moved.unwrap().unwrap();
            });
        });
        assert!(stream.is_capturing().unwrap());
        let mut graph = std::ptr::null_mut();
        // SAFETY: as above; `graph` is valid for the write of a pointer.
        assert_eq!(unsafe { end(handle, &raw mut graph) }, 0, "the capture is whole");
        assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
    });
}

#[test]
fn a_word_that_never_comes_holds_up_no_other_stream() {
    let bench = bench();
    let (held, handle) = bench.stream();
    let flag = bench.pinned(0, 4);
    // SAFETY: the word lives, and comes at the end.
    unsafe { held.wait_for(flag.ptr(), 1) }.unwrap();
    let own = Stream::new(&bench.context).unwrap();
    let (from, to) = (bench.pinned(1, 4096), bench.pinned(0, 4096));
    // SAFETY: memory of this test's; the wait follows.
    unsafe { own.copy(to.ptr(), from.ptr(), 4096) }.unwrap();
    own.sync().unwrap();
    assert_eq!(query(&bench, handle), 600);
    word(&flag).store(1, Ordering::Release);
    assert_eq!(bench.on("cuStreamSynchronize", handle), 0);
    assert_eq!(bench.on("cuStreamDestroy_v2", handle), 0);
}

/// Calls of a program that gpuio itself never makes. On the system's driver the test tells nothing
/// of gpuio; on the software GPU it tells that programs can be tested there.
#[test]
fn a_program_finds_what_it_calls_itself() {
    type Set = unsafe extern "C" fn(u64, u8, usize, *mut c_void) -> c_int;
    type Wait = unsafe extern "C" fn(*mut c_void, *mut c_void, c_uint) -> c_int;
    type Copy = unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int;
    let bench = bench();
    let there = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
    let spare = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096).unwrap();
    let ((first, one), (_, two)) = (bench.stream(), bench.stream());
    let event = bench.make("cuEventCreate", 2, 0);
    let flag = bench.pinned(0, 4);
    // SAFETY: the symbol's type, by the manual.
    let set = unsafe { bench.program.get::<Set>("cuMemsetD8Async") }.unwrap();
    // SAFETY: the symbol's type, by the manual.
    let record = unsafe { bench.program.get::<Wait>("cuEventRecord") }.unwrap();
    // SAFETY: the symbol's type, by the manual.
    let wait = unsafe { bench.program.get::<Wait>("cuStreamWaitEvent") }.unwrap();
    // SAFETY: the symbol's type, by the manual.
    let copy = unsafe { bench.program.get::<Copy>("cuMemcpyDtoH_v2") }.unwrap();
    // SAFETY: the word lives until the stream has passed.
    unsafe { first.wait_for(flag.ptr(), 1) }.unwrap();
    // SAFETY: memory and handles of this test's, here and below.
    assert_eq!(unsafe { set(there.ptr().0, 9, 4096, one) }, 0);
    // SAFETY: as above; the call takes two arguments.
    assert_eq!(unsafe { record(event, one, 0) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { wait(two, event, 0) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { set(there.ptr().0, 5, 10, two) }, 0);
    // A stream that waits for nothing passes the same call a hundred times meanwhile.
    let (_, three) = bench.stream();
    for _ in 0..100 {
        // SAFETY: as above.
        assert_eq!(unsafe { set(spare.ptr().0, 7, 10, three) }, 0);
        assert_eq!(bench.on("cuStreamSynchronize", three), 0);
    }
    assert_eq!(query(&bench, two), 600, "it waits for the first");
    word(&flag).store(1, Ordering::Release);
    assert_eq!(bench.on("cuStreamSynchronize", two), 0);
    let mut bytes = [0_u8; 4096];
    // SAFETY: as above.
    assert_eq!(unsafe { copy(bytes.as_mut_ptr().cast(), there.ptr().0, 4096) }, 0);
    assert!(bytes[..10].iter().all(|&byte| byte == 5) && bytes[10..].iter().all(|&b| b == 9));
    for stream in [one, two, three] {
        assert_eq!(bench.on("cuStreamDestroy_v2", stream), 0);
    }
    assert_eq!(bench.on("cuEventDestroy_v2", event), 0);
}
