//! Memory that its owner freed: alone in its program, so that no other thread gets the address.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use gpuio_gpu::MemoryKind;
use gpuio_transfer::{Fault, Op, Transfer};
use support::{Memory, Mode, dir, file, random_bytes, settings, written};

const FILE: usize = 3 << 20;

#[test]
fn memory_that_was_freed_is_an_error_and_the_next_call_works() {
    // A thread alone has no other that takes the pieces after the failed one.
    for workers in [0, 3] {
        let mut settings = settings();
        settings.max_workers = workers;
        freed(&Transfer::new(settings));
    }
}

fn freed(transfer: &Transfer) {
    let dir = dir();
    let file = file(transfer, &written(&dir, "file", &random_bytes(1, FILE)), Mode::Plain);
    let memory = Memory::new(MemoryKind::Device, 1 << 20);
    for _ in 0..4 {
        let gone = Memory::new(MemoryKind::Device, 1 << 20);
        let at = gone.address();
        drop(gone);
        let location = transfer.locate(at).unwrap();
        assert_eq!(location.device(), None, "the driver no longer reports it");
        // A location queried before the memory was freed; by copies, which report it.
        let stale = transfer.locate(memory.address()).unwrap();
        // SAFETY: it is not live memory, which is what is tested: the copy is refused.
        let fault = unsafe { transfer.call(Op::Read, &file, stale, at, 1 << 20, 0) }.unwrap_err();
        assert!(matches!(fault, Fault::Gpu(_)), "{fault}");
    }
    let location = transfer.locate(memory.address()).unwrap();
    // SAFETY: memory of the test's own.
    let moved = unsafe { transfer.call(Op::Read, &file, location, memory.address(), 1 << 20, 0) };
    assert_eq!(moved.unwrap().bytes, 1 << 20);
}
