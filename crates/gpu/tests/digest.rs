//! Digests by the device against those by the CPU, on gpuio's software GPU, or with
//! `GPUIO_TEST_GPU=system` on the system's.
#![expect(unsafe_code, reason = "the copies and kernels of the API are unsafe")]

use gpuio_gpu::{Context, DeviceBuf, DigestKernel, Driver, MemoryKind, Range, Stream, pattern};
use gpuio_testkit::gpu::which;
use gpuio_testkit::random_bytes;

/// Ranges at every alignment, empty ones, and one that several blocks share.
const RANGES: [(usize, usize); 11] = [
    (0, 0),
    (0, 1),
    (0, 16),
    (1, 15),
    (3, 4096),
    (8, 4095),
    (16, 4111),
    (2, 65_537),
    (32, 300_003),
    (5, 300_003),
    (0, 400_000),
];

#[test]
fn the_device_and_the_cpu_agree_on_every_range() {
    let driver = Driver::load(&which()).unwrap();
    let context = Context::new(&driver, 0).unwrap();
    context.make_current().unwrap();
    let kernel = DigestKernel::load(&context).unwrap();
    let bytes = random_bytes(43, 400_000);
    let memory = DeviceBuf::alloc(&context, MemoryKind::Device, bytes.len()).unwrap();
    let stream = Stream::new(&context).unwrap();
    // SAFETY: the buffer has so many bytes, and the wait follows.
    unsafe { stream.h2d(memory.ptr(), bytes.as_ptr(), bytes.len()) }.unwrap();
    stream.sync().unwrap();
    let ranges: Vec<Range> = (7_u64..)
        .zip(RANGES)
        .map(|(first, (at, len))| Range {
            start: memory.ptr().byte_add(at as u64),
            len: len as u64,
            first,
        })
        .collect();
    // SAFETY: ranges of the buffer, which nothing writes until the results are there.
    let found = unsafe { kernel.start(&ranges) }.unwrap().wait().unwrap();
    let expected: Vec<u64> = (7_u64..)
        .zip(RANGES)
        .map(|(first, (at, len))| pattern::digest(&bytes[at..at + len], first))
        .collect();
    assert_eq!(found, expected);
    // SAFETY: no range.
    assert_eq!(unsafe { kernel.start(&[]) }.unwrap().wait().unwrap(), Vec::<u64>::new());
}
