//! The owners against a driver: gpuio's software GPU, or with `GPUIO_TEST_GPU=system` the
//! system's, where the cases that need the software one say that they are skipped.
//!
//! Cases that need an environment of their own run in child processes: this program again, with
//! the name of an ignored test.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use std::path::PathBuf;
use std::ptr::NonNull;

use gpuio_gpu::pattern::{Key, Repeats};
use gpuio_gpu::{
    Absent, Checker, Context, DevPtr, DeviceBuf, Driver, Event, GpuError, MemoryKind,
    PatternKernels, PatternMismatch, Pinned, REPORT_LEN, Registered, Stream, Wait, Which, pattern,
    software_candidates,
};
use gpuio_testkit::child;
use gpuio_testkit::gpu::{on_system, skipped, which};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The tools of a case; its thread has the context current.
struct Bench {
    context: Context,
    stream: Stream,
}

fn bench_on(device: u32) -> Bench {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, device).unwrap();
    context.make_current().unwrap();
    let stream = Stream::new(&context).unwrap();
    Bench { context, stream }
}

fn bench() -> Bench {
    bench_on(0)
}

impl Bench {
    fn alloc(&self, kind: MemoryKind, len: usize) -> DeviceBuf {
        DeviceBuf::alloc(&self.context, kind, len).unwrap()
    }

    fn pinned(&self, bytes: &[u8]) -> Pinned {
        let pinned = Pinned::alloc(&self.context, bytes.len()).unwrap();
        // SAFETY: both are as long as `bytes`, and no one else has the new memory's address.
        unsafe { pinned.as_ptr().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        pinned
    }

    /// Writes to device memory and waits.
    fn put(&self, to: DevPtr, bytes: &[u8]) {
        // SAFETY: the test gives a range of its own; the wait follows.
        unsafe { self.stream.h2d(to, bytes.as_ptr(), bytes.len()).unwrap() };
        self.stream.sync().unwrap();
    }

    /// Reads device memory, waiting.
    fn take(&self, from: DevPtr, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: the test gives a range of its own; the wait follows.
        unsafe { self.stream.d2h(bytes.as_mut_ptr(), from, len).unwrap() };
        self.stream.sync().unwrap();
        bytes
    }
}

fn contents(memory: &Pinned) -> Vec<u8> {
    // SAFETY: initialised by `pinned` or a copy that the test has waited for.
    unsafe { std::slice::from_raw_parts(memory.as_ptr().as_ptr(), memory.len()) }.to_vec()
}

fn numbers(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(&mut bytes, 0xC0FFEE, 0);
    bytes
}

// ---- loading

#[test]
fn a_library_that_is_not_there_is_named_and_another_with_the_loaders_words() {
    let no_library = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (path, said) in [
        ("/nonexistent/libcuda.so.1", "not there: /nonexistent/libcuda.so.1. GPUIO_"),
        (no_library, "/Cargo.toml: invalid ELF header"),
    ] {
        let absent = Driver::load(&Which::Library(path.into())).unwrap_err();
        let Absent::NoLibrary { tried, why } = &absent else { panic!("{absent:?}") };
        assert_eq!(tried, &[PathBuf::from(path)]);
        assert_eq!(why.len(), 1);
        let reported = absent.to_string();
        assert!(reported.contains(said), "{reported}");
        assert!(
            reported.contains("GPUIO_LIBCUDA (of the program) or GPUIO_CUFILE_DRIVER"),
            "{reported}"
        );
    }
}

#[test]
fn a_library_that_is_no_driver_lacks_a_symbol() {
    let absent = Driver::load(&Which::Library("libm.so.6".into())).unwrap_err();
    let expected = Absent::SymbolMissing { library: "libm.so.6".into(), symbol: "cuInit" };
    assert_eq!(absent, expected);
    assert!(absent.to_string().contains("no function cuInit"), "{absent}");
}

#[test]
fn the_software_gpu_is_found_beside_this_program() {
    if skipped("the_software_gpu_is_found_beside_this_program") {
        return;
    }
    let found: Vec<_> = software_candidates().into_iter().filter(|path| path.exists()).collect();
    assert!(!found.is_empty(), "none of {:?}", software_candidates());
    let driver = Driver::load(&Which::Software).unwrap();
    assert!(driver.is_software());
    assert_eq!(driver.library_path_hint(), found[0].canonicalize().unwrap());
    assert_eq!(driver.version(), (12, 0));
}

#[test]
fn a_driver_that_does_not_start_is_distinguished() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuInit:100")], || {
        let absent = Driver::load(&which()).unwrap_err();
        let Absent::InitFailed { call, code, name, hint, .. } = &absent else {
            panic!("{absent:?}")
        };
        assert_eq!((*call, *code, name.as_str()), ("cuInit", 100, "CUDA_ERROR_NO_DEVICE"));
        assert!(hint.contains("CUDA_VISIBLE_DEVICES"));
    });
}

#[test]
fn a_driver_without_devices_is_distinguished() {
    child::alone_on_software(&[("GPUIO_SOFT_GPUS", "0")], || {
        assert_eq!(Driver::load(&which()).unwrap_err(), Absent::NoDevice);
    });
}

// ---- facts

#[test]
fn facts_have_the_forms_of_nvidia_smi_and_sysfs() {
    let driver = Driver::load(&which()).unwrap();
    let devices = driver.devices().unwrap();
    assert_eq!(devices.len(), driver.device_count() as usize);
    for (index, device) in (0..).zip(&devices) {
        assert_eq!(device.index, index);
        assert!(!device.name.is_empty());
        let groups: Vec<usize> = device.uuid.split('-').map(str::len).collect();
        assert_eq!(groups, [3, 8, 4, 4, 4, 12], "{}", device.uuid);
        let places: Vec<usize> = device.pci.split([':', '.']).map(str::len).collect();
        assert_eq!(places, [4, 2, 2, 1], "{}", device.pci);
        assert_eq!(device.pci, device.pci.to_lowercase());
        assert!(device.total_memory > 0 && device.multiprocessors > 0);
        assert!(device.compute >= (7, 0), "{:?}", device.compute);
        println!("{device:?}");
    }
    println!("{driver:?}");
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let driver = Driver::load(&which()).unwrap();
    let error = Context::new(&driver, 4096).unwrap_err();
    assert_eq!((error.code, error.device), (101, Some(4096)));
    assert!(error.to_string().contains("the devices are numbered 0 to"), "{error}");
}

#[test]
fn several_devices_are_apart() {
    child::alone_on_software(&[("GPUIO_SOFT_GPUS", "3")], || {
        let devices = Driver::load(&which()).unwrap().devices().unwrap();
        let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["gpuio software GPU 0", "gpuio software GPU 1", "gpuio software GPU 2"]);
        assert!(devices[0].uuid != devices[1].uuid && devices[1].uuid != devices[2].uuid);
        assert!(devices[0].pci != devices[1].pci && devices[1].pci != devices[2].pci);
        let benches: Vec<Bench> = (0..3).map(bench_on).collect();
        let memory: Vec<DeviceBuf> =
            benches.iter().map(|bench| bench.alloc(MemoryKind::Device, 4096)).collect();
        for (i, bench) in (1_u8..).zip(&benches) {
            bench.context.make_current().unwrap();
            bench.put(memory[usize::from(i) - 1].ptr(), &[i; 4096]);
        }
        for (i, bench) in (1_u8..).zip(&benches) {
            bench.context.make_current().unwrap();
            assert_eq!(bench.take(memory[usize::from(i) - 1].ptr(), 4096), [i; 4096]);
        }
        // Device 2's context is current: device 0's stream is not for this thread now.
        let event = Event::new(&benches[0].context, Wait::Spin).unwrap();
        assert_eq!(event.record(&benches[0].stream).unwrap_err().code, 400);
        // Making and dropping owners of another device leaves the current context alone.
        drop(benches[0].alloc(MemoryKind::Device, 4096));
        assert_eq!(benches[2].take(memory[2].ptr(), 16), [3; 16]);
    });
}

// ---- memory and copies

#[test]
fn bytes_go_in_and_come_out_of_every_kind() {
    let bench = bench();
    let len = (3 << 20) + 17;
    let bytes = numbers(len);
    let source = bench.pinned(&bytes);
    // Managed memory has tests of its own (managed_peer.rs): no copy of ours ends in it.
    let kinds = MemoryKind::ALL.into_iter().filter(|kind| *kind != MemoryKind::Managed);
    for kind in kinds {
        let memory = bench.alloc(kind, len);
        assert_eq!((memory.kind(), memory.len()), (kind, len));
        assert_eq!(memory.is_host(), memory.host_ptr().is_some());
        let back = bench.pinned(&vec![0; len]);
        // SAFETY: all of it lives until the sync.
        unsafe { bench.stream.copy(memory.ptr(), source.ptr(), len).unwrap() };
        // SAFETY: as above; the stream orders it after the first.
        unsafe { bench.stream.copy(back.ptr(), memory.ptr(), len).unwrap() };
        bench.stream.sync().unwrap();
        assert!(contents(&back) == bytes, "{kind}");
        if let Some(start) = memory.host_ptr() {
            // SAFETY: host memory that the copies have initialised.
            let seen = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
            assert!(seen == bytes, "{kind}");
            assert_eq!(start.as_ptr() as usize % 4096, 0, "{kind}");
        }
    }
}

#[test]
fn plain_and_registered_host_memory_can_be_copied_too() {
    let bench = bench();
    let bytes = numbers(1 << 20);
    for kind in [MemoryKind::Device, MemoryKind::Vmm] {
        let memory = bench.alloc(kind, bytes.len());
        bench.put(memory.ptr(), &bytes);
        assert!(bench.take(memory.ptr(), bytes.len()) == bytes, "{kind}");
        let part = bench.take(memory.ptr().byte_add(4096 + 3), 1001);
        assert!(part == bytes[4096 + 3..][..1001], "{kind}");
    }
    let host = bench.alloc(MemoryKind::Mmap, bytes.len());
    let start = host.host_ptr().unwrap();
    // SAFETY: the mapping outlives the value.
    let registered = unsafe { Registered::new(&bench.context, start, host.len()).unwrap() };
    // SAFETY: as above.
    let again = unsafe { Registered::new(&bench.context, start, host.len()) };
    assert_eq!(again.unwrap_err().code, 712);
    let memory = bench.alloc(MemoryKind::Device, bytes.len());
    bench.put(memory.ptr(), &bytes);
    // SAFETY: all of it lives until the sync.
    unsafe { bench.stream.d2h(start.as_ptr(), memory.ptr(), bytes.len()).unwrap() };
    bench.stream.sync().unwrap();
    // SAFETY: the copy has initialised it.
    assert!(unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes.len()) } == bytes);
    drop(registered);
    // SAFETY: the mapping outlives the value.
    drop(unsafe { Registered::new(&bench.context, start, host.len()).unwrap() });
}

#[test]
fn memory_comes_back_when_it_is_dropped() {
    if skipped("memory_comes_back_when_it_is_dropped: others use the GPU too") {
        return;
    }
    child::alone_on_software(&[("GPUIO_SOFT_MEM", "33554432")], || {
        let bench = bench();
        assert_eq!(bench.context.memory().unwrap(), (32 << 20, 32 << 20));
        for kind in [MemoryKind::Device, MemoryKind::Vmm] {
            let held = bench.alloc(kind, 20 << 20);
            assert_eq!(bench.context.memory().unwrap(), (12 << 20, 32 << 20));
            let error = DeviceBuf::alloc(&bench.context, kind, 20 << 20).unwrap_err();
            assert!(error.is_out_of_memory(), "{error}");
            assert!(error.to_string().contains("20971520 bytes of device memory"), "{error}");
            drop(held);
            assert_eq!(bench.context.memory().unwrap(), (32 << 20, 32 << 20));
            drop(bench.alloc(kind, 20 << 20));
        }
    });
}

#[test]
fn what_cannot_be_had_is_an_error() {
    let bench = bench();
    let error = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 1 << 46).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(error.device, Some(0));
    for kind in MemoryKind::ALL {
        let empty: Result<DeviceBuf, GpuError> = DeviceBuf::alloc(&bench.context, kind, 0);
        assert_eq!(empty.unwrap_err().code, 1, "{kind}");
    }
}

#[test]
fn a_copy_past_the_end_is_refused() {
    if skipped("a_copy_past_the_end_is_refused") {
        return;
    }
    let bench = bench();
    let memory = bench.alloc(MemoryKind::Device, 8192);
    let bytes = vec![0; 8193];
    // SAFETY: the software GPU refuses it before it touches anything.
    let error = unsafe { bench.stream.h2d(memory.ptr(), bytes.as_ptr(), 8193) }.unwrap_err();
    assert_eq!((error.call, error.code), ("cuMemcpyHtoDAsync_v2", 1));
    assert!(error.to_string().contains("8193 bytes from"), "{error}");
    // SAFETY: as above: a device address where a host address belongs.
    let host = unsafe { bench.stream.h2d(memory.ptr(), memory.ptr().0 as *const u8, 1) };
    assert_eq!(host.unwrap_err().code, 1);
    // Fresh memory is no one's to read.
    assert_eq!(bench.take(memory.ptr(), 8192), [0xA5; 8192]);
}

#[test]
fn the_cpu_cannot_touch_device_memory() {
    if skipped("the_cpu_cannot_touch_device_memory") {
        return;
    }
    use std::os::unix::process::ExitStatusExt;
    let output = child::output(child_touches_device_memory, &[]);
    assert_eq!(output.status.signal(), Some(11), "{output:?}");
}

#[test]
#[ignore = "run as a child"]
fn child_touches_device_memory() {
    let bench = bench();
    let memory = bench.alloc(MemoryKind::Device, 4096);
    let start = NonNull::new(memory.ptr().0 as *mut u8).unwrap();
    // SAFETY: it is not safe: the process is to die of it.
    println!("read {}", unsafe { start.read_volatile() });
}

#[test]
fn a_thread_without_a_context_is_reported_so() {
    let bench = bench();
    let stream = bench.stream;
    std::thread::spawn(move || {
        let memory = DeviceBuf::alloc(stream.context(), MemoryKind::Device, 4096).unwrap();
        let bytes = [0_u8; 16];
        // SAFETY: both live until the sync, or nothing is copied.
        let refused = unsafe { stream.h2d(memory.ptr(), bytes.as_ptr(), 16) };
        // Real drivers take the context from the stream in some releases.
        if let Err(error) = refused {
            assert_eq!(error.code, 201);
            assert!(error.to_string().contains("make_current"), "{error}");
        } else {
            assert!(on_system());
        }
        stream.context().make_current().unwrap();
        // SAFETY: both live until the sync.
        unsafe { stream.h2d(memory.ptr(), bytes.as_ptr(), 16).unwrap() };
        stream.sync().unwrap();
    })
    .join()
    .unwrap();
}

// ---- order

#[test]
fn without_a_wait_the_bytes_are_not_there() {
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "300000")], || {
        let bench = bench();
        let bytes = numbers(4096);
        let source = bench.pinned(&bytes);
        let back = bench.pinned(&[0; 4096]);
        let memory = bench.alloc(MemoryKind::Device, 4096);
        let event = Event::new(&bench.context, Wait::Block).unwrap();
        assert!(event.query().unwrap(), "an event that was never recorded is reached");
        // SAFETY: all of it lives until the event is reached.
        unsafe { bench.stream.h2d(memory.ptr(), source.as_ptr().as_ptr(), 4096).unwrap() };
        // SAFETY: as above.
        unsafe { bench.stream.d2h(back.as_ptr().as_ptr(), memory.ptr(), 4096).unwrap() };
        event.record(&bench.stream).unwrap();
        // SAFETY: valid memory; the copy cannot have come this far.
        let early = unsafe { back.as_ptr().read_volatile() };
        assert_eq!(early, 0);
        assert!(!event.query().unwrap());
        assert!(!bench.stream.query().unwrap());
        event.sync().unwrap();
        assert!(contents(&back) == bytes);
        assert!(event.query().unwrap());
        assert!(bench.stream.query().unwrap());
    });
}

#[test]
fn a_context_is_waited_for_over_all_streams() {
    child::alone_on_software(&[("GPUIO_SOFT_DELAY_US", "20000")], || {
        let bench = bench();
        let other = Stream::new(&bench.context).unwrap();
        let bytes = numbers(4096);
        let source = bench.pinned(&bytes);
        let memory = bench.alloc(MemoryKind::Device, 2 * 4096);
        for (stream, at) in [(&bench.stream, 0), (&other, 4096)] {
            let to = memory.ptr().byte_add(at);
            // SAFETY: both live until the context was waited for.
            unsafe { stream.h2d(to, source.as_ptr().as_ptr(), 4096).unwrap() };
            assert!(!stream.query().unwrap());
        }
        bench.context.synchronize().unwrap();
        assert!(bench.stream.query().unwrap() && other.query().unwrap());
        assert!(bench.take(memory.ptr().byte_add(4096), 4096) == bytes);
    });
}

#[test]
fn an_event_marks_what_came_before_it() {
    let bench = bench();
    for wait in [Wait::Spin, Wait::Block] {
        let event = Event::new(&bench.context, wait).unwrap();
        let memory = bench.alloc(MemoryKind::Device, 1 << 20);
        for round in 0_u8..50 {
            let source = bench.pinned(&vec![round; 1 << 20]);
            let back = bench.pinned(&vec![!round; 1 << 20]);
            // SAFETY: all of it lives until the event is reached.
            unsafe { bench.stream.h2d(memory.ptr(), source.as_ptr().as_ptr(), 1 << 20).unwrap() };
            // SAFETY: as above.
            unsafe { bench.stream.d2h(back.as_ptr().as_ptr(), memory.ptr(), 1 << 20).unwrap() };
            event.record(&bench.stream).unwrap();
            if round % 2 == 0 {
                event.sync().unwrap();
            } else {
                while !event.query().unwrap() {
                    std::thread::yield_now();
                }
            }
            assert!(contents(&back).iter().all(|&byte| byte == round));
        }
    }
}

#[test]
fn many_threads_use_one_device() {
    let bench = bench();
    let context = &bench.context;
    std::thread::scope(|scope| {
        for thread in 0_u64..8 {
            scope.spawn(move || {
                context.make_current().unwrap();
                let stream = Stream::new(context).unwrap();
                let bench = Bench { context: context.clone(), stream };
                let kernels = PatternKernels::load(context).unwrap();
                let mut checker = Checker::new(context, &kernels).unwrap();
                for round in 0_u64..20 {
                    let key = pattern::file_key(thread, round);
                    let mut bytes = vec![0; 65_536];
                    pattern::fill(&mut bytes, key, 4096 * round);
                    let memory = bench.alloc(MemoryKind::Device, bytes.len());
                    bench.put(memory.ptr(), &bytes);
                    let (at, len) = (memory.ptr(), bytes.len() as u64);
                    // SAFETY: the buffer is this thread's own.
                    let found = unsafe { checker.check(&bench.stream, at, len, key, 4096 * round) };
                    assert_eq!(found.unwrap(), None);
                }
            });
        }
    });
}

// ---- kernels

/// Fills a range of a buffer with the kernel and compares with the CPU, then spoils bytes and
/// compares what both checks say.
fn twins_agree(
    bench: &Bench,
    kernels: &PatternKernels,
    checker: &mut Checker,
    (shift, len, key, offset): (usize, usize, Key, u64),
    flips: &[(usize, u8)],
) -> Option<PatternMismatch> {
    let whole = shift + len + 64;
    let memory = bench.alloc(MemoryKind::Device, whole);
    bench.put(memory.ptr(), &vec![0x5A; whole]);
    let at = memory.ptr().byte_add(shift as u64);
    // SAFETY: the range lies in the buffer, which lives until the wait in `take`.
    unsafe { kernels.fill(&bench.stream, at, len as u64, key, offset).unwrap() };
    let mut expected = vec![0x5A; whole];
    pattern::fill(&mut expected[shift..shift + len], key, offset);
    assert!(bench.take(memory.ptr(), whole) == expected, "{shift} {len} {key:?} {offset}");
    // SAFETY: the buffer is this test's own.
    let good = unsafe { checker.check(&bench.stream, at, len as u64, key, offset) };
    assert_eq!(good.unwrap(), None);

    for (place, bits) in flips {
        if len > 0 {
            expected[shift + place % len] ^= bits;
        }
    }
    bench.put(memory.ptr(), &expected);
    // SAFETY: the buffer is this test's own.
    let found = unsafe { checker.check(&bench.stream, at, len as u64, key, offset).unwrap() };
    assert_eq!(found, pattern::check(&expected[shift..shift + len], key, offset));
    found
}

#[test]
fn kernels_and_cpu_agree_for_any_range() {
    let bench = bench();
    let kernels = PatternKernels::load(&bench.context).unwrap();
    let mut checker = Checker::new(&bench.context, &kernels).unwrap();
    let repeats = (0..=100_u8, 6..=12_u32)
        .prop_map(|(percent, log)| Repeats::new(percent, 1 << log).unwrap_or_default());
    let key = (any::<u64>(), repeats).prop_map(|(seed, repeats)| Key { seed, repeats });
    let ranges = (0..40_usize, 0..6000_usize, key, 0..1_u64 << 60);
    let flips = prop::collection::vec((0..6000_usize, 1..=255_u8), 0..6);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let checker = std::cell::RefCell::new(&mut checker);
    let run = runner.run(&(ranges, flips), |(range, flips)| {
        twins_agree(&bench, &kernels, &mut checker.borrow_mut(), range, &flips);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn kernels_and_cpu_agree_for_aligned_and_long_ranges() {
    let bench = bench();
    let kernels = PatternKernels::load(&bench.context).unwrap();
    let mut checker = Checker::new(&bench.context, &kernels).unwrap();
    let long = 64 << 20;
    for (shift, len, offset) in [
        (0, 4096, 0),
        (0, 4096, 4096),
        (0, 1 << 20, 1 << 40),
        (0, 1 << 20, 8),
        (8, 1 << 20, 8),
        (8, 1 << 20, 0),
        (3, 1 << 20, 3),
        (3, 1 << 20, 4),
        (0, long, 1 << 33),
        (5, long + 11, 12_345_678_901),
    ] {
        let flips = [(len - 1, 0x80), (len / 2, 1), (len / 3, 7)];
        for repeats in [Repeats::NONE, Repeats::new(60, 4096).unwrap()] {
            let range = (shift, len, Key { seed: 0xFEED_F00D, repeats }, offset);
            let found = twins_agree(&bench, &kernels, &mut checker, range, &flips).unwrap();
            assert_eq!(found.bad_words, 3);
            assert_eq!(found.first_offset, (offset + len as u64 / 3) / 8 * 8);
            assert_eq!((found.expected ^ found.found).count_ones(), 3);
        }
    }
}

#[test]
fn reports_of_several_launches_add_up_in_pinned_memory_too() {
    let bench = bench();
    let kernels = PatternKernels::load(&bench.context).unwrap();
    let memory = bench.alloc(MemoryKind::Pinned, 1 << 16);
    let report = bench.alloc(MemoryKind::Device, REPORT_LEN);
    let mut start = [0; REPORT_LEN];
    start[8..].fill(0xFF);
    bench.put(report.ptr(), &start);
    let (at, len) = (memory.ptr(), memory.len() as u64);
    // SAFETY: the memory is this test's own and lives until the wait in `take`.
    unsafe { kernels.fill(&bench.stream, at, len, 1, 0).unwrap() };
    for key in [1, 2, 3] {
        // SAFETY: as above.
        unsafe { kernels.check(&bench.stream, at, len, key, 0, report.ptr()).unwrap() };
    }
    let report = bench.take(report.ptr(), REPORT_LEN);
    let bad = u64::from_le_bytes(report[..8].try_into().unwrap());
    // A wrong key spoils every word but for one chance in 2^64 each.
    assert_eq!((bad, &report[8..]), (2 * len / 8, &[0; 8][..]));
    // SAFETY: nothing is launched.
    let past = unsafe { kernels.fill(&bench.stream, at, len, 1, u64::MAX - 10) };
    assert_eq!(past.unwrap_err().code, 1);
}

// ---- failures

#[test]
fn a_failure_that_lasts_answers_everything() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemcpyHtoDAsync_v2:700:2")], || {
        let bench = bench();
        let memory = bench.alloc(MemoryKind::Device, 4096);
        let event = Event::new(&bench.context, Wait::Spin).unwrap();
        bench.put(memory.ptr(), &[1; 4096]);
        bench.put(memory.ptr(), &[2; 4096]);
        // SAFETY: lives for the process.
        unsafe { bench.stream.h2d(memory.ptr(), [3; 4096].as_ptr(), 4096).unwrap() };
        // The device may be lost before the record or after it.
        let seen = event.record(&bench.stream).and_then(|()| event.sync()).unwrap_err();
        assert_eq!((seen.code, seen.name.as_str()), (700, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        assert!(seen.is_sticky() && seen.to_string().contains("the context is lost"), "{seen}");
        assert_eq!(bench.stream.sync().unwrap_err().code, 700);
        assert_eq!(bench.stream.query().unwrap_err().code, 700);
        let alloc = DeviceBuf::alloc(&bench.context, MemoryKind::Device, 4096);
        assert_eq!(alloc.unwrap_err().code, 700);
    });
}

#[test]
fn a_failure_that_passes_is_reported_once() {
    child::alone_on_software(&[("GPUIO_SOFT_FAIL", "cuMemcpyDtoHAsync_v2:1:1")], || {
        let bench = bench();
        let memory = bench.alloc(MemoryKind::Device, 4096);
        let event = Event::new(&bench.context, Wait::Spin).unwrap();
        bench.put(memory.ptr(), &[1; 4096]);
        assert_eq!(bench.take(memory.ptr(), 4096), [1; 4096]);
        let mut bytes = [0; 4096];
        // SAFETY: lives until the event is reached.
        unsafe { bench.stream.d2h(bytes.as_mut_ptr(), memory.ptr(), 4096).unwrap() };
        event.record(&bench.stream).unwrap();
        assert_eq!(event.sync().unwrap_err().code, 1);
        assert_eq!(bytes, [0; 4096]);
        event.sync().unwrap();
        bench.stream.sync().unwrap();
        bench.put(memory.ptr(), &[2; 4096]);
    });
}

#[test]
fn a_kernel_that_leaves_its_memory_loses_the_device() {
    child::alone_on_software(&[], || {
        let bench = bench();
        let kernels = PatternKernels::load(&bench.context).unwrap();
        let memory = bench.alloc(MemoryKind::Device, 4096);
        // SAFETY: the software GPU looks the range up before it touches it.
        unsafe { kernels.fill(&bench.stream, memory.ptr(), 4097, 0, 0).unwrap() };
        assert_eq!(bench.stream.sync().unwrap_err().code, 700);
        assert_eq!(bench.stream.sync().unwrap_err().code, 700);
    });
}

#[test]
fn a_wrong_setting_fails_and_says_why() {
    if skipped("a_wrong_setting_fails_and_says_why") {
        return;
    }
    let output = child::output(child_wrong_setting, &[("GPUIO_SOFT_GPUS", "many")]);
    assert!(output.status.success(), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("GPUIO_SOFT_GPUS=many: give a whole number"), "{errors}");
}

#[test]
#[ignore = "run as a child"]
fn child_wrong_setting() {
    let absent = Driver::load(&which()).unwrap_err();
    assert!(matches!(absent, Absent::InitFailed { code: 1, .. }), "{absent:?}");
}

// ---- names

#[test]
fn kinds_have_names() {
    for kind in MemoryKind::ALL {
        assert_eq!(kind.to_string().parse::<MemoryKind>().unwrap(), kind);
    }
    let error = "gpu".parse::<MemoryKind>().unwrap_err();
    assert!(error.to_string().contains("device, vmm, pinned, malloc, mmap or managed"));
}
