//! Transfers against a reference model: for any offset, length, address, mode of the file and kind
//! of memory, the bytes are the same.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]
#![allow(unsafe_code, reason = "the interface under test is unsafe")]

mod support;

use gpuio_gpu::MemoryKind;
use gpuio_transfer::{Op, Transfer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Memory, Mode, chill, dir, file, memory_dir, random_bytes, transfer};
use tempfile::TempDir;

const MEMORY: usize = 512 << 10;

#[derive(Debug, Clone)]
struct Step {
    op: Op,
    offset: u64,
    len: usize,
    at: usize,
    cold: bool,
}

/// Round numbers and odd ones, short and long.
fn sizes(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![
        0..most,
        0..=5000_usize,
        (0..=most / 4096).prop_map(|pages| pages * 4096),
        Just(64 << 10),
        Just(1),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (any::<bool>(), sizes(600 << 10), sizes(300 << 10), sizes(200 << 10), any::<bool>());
    let step = one.prop_map(|(read, offset, len, at, cold)| Step {
        op: if read { Op::Read } else { Op::Write },
        offset: offset as u64,
        len,
        at,
        cold,
    });
    proptest::collection::vec(step, 1..10)
}

struct Reference<'a> {
    transfer: &'a Transfer,
    dir: TempDir,
    mode: Mode,
    kind: MemoryKind,
}

impl Reference<'_> {
    /// Runs the steps on a file and on the model.
    fn run(&self, start: usize, sparse: usize, steps: &[Step]) {
        let path = self.dir.path().join("file");
        let mut model = random_bytes(1, start);
        std::fs::write(&path, &model).unwrap();
        model.resize(start + sparse, 0);
        let plain = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        plain.set_len(model.len() as u64).unwrap();
        let file = file(self.transfer, &path, self.mode);
        let memory = Memory::new(self.kind, MEMORY);
        let mut held = random_bytes(2, MEMORY);
        memory.put(0, &held);
        for (turn, step) in steps.iter().enumerate() {
            let (from, len) = (usize::try_from(step.offset).unwrap(), step.len);
            let at = step.at..step.at + len;
            let address = memory.address() + step.at as u64;
            let location = self.transfer.locate(address).unwrap();
            assert_eq!(location.device().is_none(), self.kind.is_host());
            if step.cold {
                chill(&path);
            }
            let moved = match step.op {
                Op::Read => {
                    let end = (from + len).min(model.len()).max(from.min(model.len()));
                    let there = &model[from.min(model.len())..end];
                    held[at.start..at.start + there.len()].copy_from_slice(there);
                    // SAFETY: memory of the test's own.
                    let moved = unsafe {
                        self.transfer.call(Op::Read, &file, location, address, len, step.offset)
                    };
                    let moved = moved.unwrap();
                    assert_eq!(moved.bytes, there.len(), "step {turn}: {step:?}");
                    if self.kind.is_host() {
                        // A direct read ends with a whole block, also where the file ends in it.
                        let padding = at.start + there.len()..at.end;
                        let now = memory.take(padding.start, padding.len());
                        held[padding].copy_from_slice(&now);
                    }
                    moved
                }
                Op::Write => {
                    let fresh = random_bytes(turn as u64 + 3, len);
                    memory.put(at.start, &fresh);
                    held[at].copy_from_slice(&fresh);
                    if len > 0 {
                        model.resize(model.len().max(from + len), 0);
                        model[from..from + len].copy_from_slice(&fresh);
                    }
                    // SAFETY: memory of the test's own.
                    let moved = unsafe {
                        self.transfer.call(Op::Write, &file, location, address, len, step.offset)
                    };
                    let moved = moved.unwrap();
                    assert_eq!(moved.bytes, len, "step {turn}: {step:?}");
                    moved
                }
            };
            let route = moved.route;
            assert_eq!(route.cached + route.direct, moved.bytes as u64);
            assert_eq!(route.by_host + route.by_copy + route.by_kernel, moved.bytes as u64);
            assert!(memory.take(0, MEMORY) == held, "memory after step {turn}: {step:?}");
            let now = std::fs::read(&path).unwrap();
            assert_eq!(now.len(), model.len(), "length after step {turn}: {step:?}");
            assert!(now == model, "file after step {turn}: {step:?}");
        }
    }
}

fn check(mode: Mode, kind: MemoryKind, make: fn() -> TempDir) {
    let transfer = transfer();
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
    let cases = (sizes(500 << 10), sizes(100 << 10), steps());
    let run = |(start, sparse, steps): (usize, usize, Vec<Step>)| {
        Reference { transfer: &transfer, dir: make(), mode, kind }.run(start, sparse, &steps);
        Ok(())
    };
    runner.run(&cases, run).unwrap();
}

gpuio_testkit::tests! {
    plain_files_and_device_memory: check(Mode::Plain, MemoryKind::Device, dir);
    direct_files_and_device_memory: check(Mode::Direct, MemoryKind::Device, dir);
    direct_files_and_mapped_memory: check(Mode::Direct, MemoryKind::Vmm, dir);
    plain_files_and_host_memory: check(Mode::Plain, MemoryKind::Malloc, dir);
    direct_files_and_host_memory: check(Mode::Direct, MemoryKind::Malloc, dir);
    direct_files_and_locked_memory: check(Mode::Direct, MemoryKind::Pinned, dir);
    files_in_memory_and_device_memory: check(Mode::Plain, MemoryKind::Device, memory_dir);
}
