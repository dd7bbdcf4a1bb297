//! Managed memory and copies between GPUs, against the software GPU: what hardware forgives, such
//! as a hint that is missing, it catches.
//!
//! Each case runs in a child process, because the software GPU reads its environment once.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use gpuio_gpu::{
    Checker, Context, DeviceBuf, Driver, Managed, MemoryKind, PatternKernels, Side, Stream, Which,
};
use gpuio_testkit::child;

const LEN: usize = 64 << 10;
const KEY: u64 = 0x5EED;

struct Bench {
    context: Context,
    stream: Stream,
    kernels: PatternKernels,
    checker: Checker,
}

/// Leaves the context current.
fn bench(driver: &Driver, device: u32) -> Bench {
    let context = Context::new(driver, device).unwrap();
    context.make_current().unwrap();
    let stream = Stream::new(&context).unwrap();
    let kernels = PatternKernels::load(&context).unwrap();
    let checker = Checker::new(&context, &kernels).unwrap();
    Bench { context, stream, kernels, checker }
}

fn software() -> Driver {
    Driver::load(&Which::Software).unwrap()
}

// ---- managed memory

#[test]
fn pages_are_where_the_last_hint_put_them() {
    child::alone(&[("GPUIO_SOFT_DELAY_US", "2000")], || {
        let mut bench = bench(&software(), 0);
        let managed = Managed::alloc(&bench.context, LEN).unwrap();
        let whole = managed.len() as u64;
        managed.prefetch(&bench.stream, 0, LEN, Side::Device).unwrap();
        // SAFETY: the pages are this test's, and the stream is waited for.
        unsafe { bench.kernels.fill(&bench.stream, managed.ptr(), whole, KEY, 0).unwrap() };
        bench.stream.sync().unwrap();
        // A file read into pages that were not asked back: the kernel may not write there.
        let file = tempfile();
        assert_eq!(read_into(&file, &managed), Err(libc::EFAULT));
        managed.prefetch(&bench.stream, 0, LEN, Side::Host).unwrap();
        // Nor before they have come.
        assert_eq!(read_into(&file, &managed), Err(libc::EFAULT));
        bench.stream.sync().unwrap();
        // SAFETY: the pages are on the host and initialised; nothing is under way.
        let seen = unsafe { std::slice::from_raw_parts(managed.as_ptr().as_ptr(), LEN) };
        assert_eq!(gpuio_gpu::pattern::check(seen, KEY, 0), None);
        assert_eq!(read_into(&file, &managed), Ok(LEN));
        managed.prefetch(&bench.stream, 0, LEN, Side::Device).unwrap();
        // SAFETY: as above; the checker waits.
        let found = unsafe { bench.checker.check(&bench.stream, managed.ptr(), whole, KEY, 0) };
        assert_eq!(found.unwrap().unwrap().bad_words, whole / 8);
    });
}

/// An unnamed file of zeros.
fn tempfile() -> std::fs::File {
    let name = std::env::temp_dir().join(format!("gpuio-managed-{}", std::process::id()));
    std::fs::write(&name, vec![0; LEN]).unwrap();
    let file = std::fs::File::open(&name).unwrap();
    std::fs::remove_file(&name).unwrap();
    file
}

fn read_into(file: &std::fs::File, managed: &Managed) -> Result<usize, i32> {
    use std::os::fd::AsRawFd;
    let to = managed.as_ptr().as_ptr().cast();
    // SAFETY: the memory is `LEN` bytes long and no reference to it is held; where the host may
    // not write, the kernel answers.
    let actual = unsafe { libc::pread(file.as_raw_fd(), to, LEN, 0) };
    usize::try_from(actual).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap())
}

#[test]
fn a_kernel_needs_its_pages_there() {
    child::alone(&[], || {
        let bench = bench(&software(), 0);
        let managed = Managed::alloc(&bench.context, LEN).unwrap();
        // SAFETY: the pages are this test's, and the stream is waited for.
        unsafe { bench.kernels.fill(&bench.stream, managed.ptr(), 8, KEY, 0).unwrap() };
        let error = bench.stream.sync().unwrap_err();
        assert_eq!((error.code, error.is_sticky()), (700, true), "{error}");
    });
}

#[test]
fn a_gpu_that_takes_no_hints_is_reported() {
    child::alone(&[("GPUIO_SOFT_MANAGED", "0")], || {
        let driver = software();
        assert!(!driver.devices().unwrap()[0].managed_hints);
        let context = Context::new(&driver, 0).unwrap();
        let error = Managed::alloc(&context, LEN).unwrap_err();
        assert_eq!(error.code, 801);
        assert!(error.to_string().contains("CONCURRENT_MANAGED_ACCESS is 0"), "{error}");
    });
}

// ---- several GPUs

#[test]
fn a_copy_goes_from_one_gpu_to_the_other() {
    child::alone(&[("GPUIO_SOFT_GPUS", "2"), ("GPUIO_SOFT_DELAY_US", "500")], || {
        let driver = software();
        let mut far = bench(&driver, 1);
        let near = bench(&driver, 0);
        let there = DeviceBuf::alloc(&far.context, MemoryKind::Device, LEN).unwrap();
        let here = DeviceBuf::alloc(&near.context, MemoryKind::Device, LEN).unwrap();
        assert!(near.context.can_access_peer(&far.context).unwrap());
        assert!(!near.context.can_access_peer(&near.context).unwrap());
        // A kernel reaches the other GPU's memory only with the right to.
        near.context.enable_peer_access(&far.context).unwrap();
        near.context.enable_peer_access(&far.context).unwrap();
        // SAFETY: both are this test's, and the stream is waited for.
        unsafe { near.kernels.fill(&near.stream, here.ptr(), LEN as u64, KEY, 8).unwrap() };
        let (to, from) = ((there.ptr(), &far.context), (here.ptr(), &near.context));
        // SAFETY: as above; one stream keeps the order.
        unsafe { near.stream.peer_copy(to, from, LEN).unwrap() };
        // SAFETY: as above.
        let swapped = unsafe { near.stream.peer_copy((here.ptr(), &far.context), from, LEN) };
        assert_eq!(swapped.unwrap_err().code, 1, "an address of the other GPU");
        near.stream.sync().unwrap();
        far.context.make_current().unwrap();
        // SAFETY: as above; the checker waits.
        let found = unsafe { far.checker.check(&far.stream, there.ptr(), LEN as u64, KEY, 8) };
        assert_eq!(found.unwrap(), None);
        // SAFETY: the far GPU has no right to the near one's memory; its kernel fails.
        let refused = unsafe { far.checker.check(&far.stream, here.ptr(), LEN as u64, KEY, 8) };
        assert_eq!(refused.unwrap_err().code, 700);
    });
}

#[test]
fn gpus_that_are_no_peers_are_reported() {
    child::alone(&[("GPUIO_SOFT_GPUS", "2"), ("GPUIO_SOFT_PEER", "0")], || {
        let driver = software();
        let (near, far) = (bench(&driver, 0), bench(&driver, 1));
        assert!(!near.context.can_access_peer(&far.context).unwrap());
        let error = near.context.enable_peer_access(&far.context).unwrap_err();
        assert_eq!((error.call, error.code), ("cuCtxEnablePeerAccess", 217));
        let (here, there) = (
            DeviceBuf::alloc(&near.context, MemoryKind::Device, LEN).unwrap(),
            DeviceBuf::alloc(&far.context, MemoryKind::Device, LEN).unwrap(),
        );
        let (to, from) = ((there.ptr(), &far.context), (here.ptr(), &near.context));
        near.context.make_current().unwrap();
        // SAFETY: both are this test's, and the stream is waited for.
        unsafe { near.stream.peer_copy(to, from, LEN).unwrap() };
        near.stream.sync().unwrap();
    });
}
