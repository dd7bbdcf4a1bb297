//! A transfer comes after the program's own synchronous operations on its memory.
//!
//! CUDA lets such a call return before its work has ended: a copy from pageable memory, a copy on
//! the device, a memset. The software GPU does that work some milliseconds later here. On hardware
//! it ends microseconds later, or behind other copies, which the tests put there.

use std::os::unix::fs::FileExt;

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{Cuda, Cufile, Entry, GOOD, alone, cuda, cufile, pattern};
use crate::stream::{Kept, stream, sync};

/// How late the software GPU is, microseconds: longer than a transfer takes.
const LAG: [(&str, &str); 1] = [("GPUIO_SOFT_LAG_US", "4000")];
const LENGTHS: [usize; 3] = [4096, 65536, 1 << 20];

/// What the program does to the memory right before the transfer.
#[derive(Debug, Clone, Copy)]
enum Before {
    PageableCopy,
    DeviceCopy,
    Memset,
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Blocking,
    Batch,
    Stream,
}

#[derive(Debug, Clone, Copy)]
enum Memory {
    Plain,
    Registered,
    Pool,
    Mapped,
}

/// Does it, and answers what the memory holds then.
fn before(cuda: &Cuda, before: Before, address: u64, len: usize, seed: u64) -> Vec<u8> {
    let bytes = pattern(len, seed);
    match before {
        Before::PageableCopy => cuda.put(address, &bytes),
        Before::DeviceCopy => {
            let source = cuda.with(&bytes);
            // SAFETY: takes nothing.
            assert_eq!(unsafe { (cuda.cuCtxSynchronize)() }, 0);
            // SAFETY: both ranges are the test's.
            assert_eq!(unsafe { (cuda.cuMemcpyDtoD_v2)(address, source, len) }, 0);
        }
        Before::Memset => {
            let value = seed.to_le_bytes()[0];
            // SAFETY: the range is the test's.
            assert_eq!(unsafe { (cuda.cuMemsetD8_v2)(address, value, len) }, 0);
            return vec![value; len];
        }
    }
    bytes
}

fn room(cuda: &Cuda, cufile: &Cufile, memory: Memory, len: usize) -> u64 {
    let mut address = 0;
    match memory {
        Memory::Plain => address = cuda.room(len),
        Memory::Registered => {
            address = cuda.room(len);
            // SAFETY: numbers only.
            assert_eq!(unsafe { (cufile.cuFileBufRegister)(address, len, 0) }, GOOD);
        }
        Memory::Pool => {
            // SAFETY: as the driver's manual has it.
            assert_eq!(unsafe { (cuda.cuMemAllocAsync)(&raw mut address, len, 0) }, 0);
        }
        Memory::Mapped => address = cuda.mapped(len),
    }
    address
}

/// Moves the whole of the memory from or to the beginning of the file.
fn transfer(
    (cuda, cufile): (&Cuda, &Cufile),
    (call, is_write): (Call, bool),
    handle: usize,
    (address, len): (u64, usize),
) {
    let moved = match call {
        Call::Blocking if is_write => cufile.write(handle, address, len, 0, 0),
        Call::Blocking => cufile.read(handle, address, len, 0, 0),
        Call::Batch => {
            let batch = set_up(cufile, 1).unwrap();
            let (base, opcode) = (address, i32::from(is_write));
            let mut entries = [Entry {
                mode: 1,
                base,
                file_offset: 0,
                buffer_offset: 0,
                len,
                handle,
                opcode,
                cookie: 0,
            }];
            assert_eq!(submit(cufile, batch, &mut entries), GOOD);
            let events = fetch(cufile, batch, 1, 1, None);
            destroy(cufile, batch);
            events[0].result
        }
        Call::Stream => {
            // Without order to the default streams: the transfer alone has to keep it.
            let stream = stream(cuda);
            let mut kept = Kept::new(len, 0, 0);
            let call = if is_write { cufile.cuFileWriteAsync } else { cufile.cuFileReadAsync };
            assert_eq!(kept.put(call, handle, address, stream), GOOD);
            sync(cuda, stream);
            kept.done()
        }
    };
    assert_eq!(moved, len.cast_signed());
}

fn all(memory: Memory) {
    compare((&cuda(), &cufile()), memory, &[Call::Blocking, Call::Batch, Call::Stream]);
}

/// Writes and reads right after each kind of operation, in the current context.
fn compare((cuda, cufile): (&Cuda, &Cufile), memory: Memory, calls: &[Call]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
    let handle = cufile.register(&file).unwrap();
    // The first transfer loads kernels, which waits for all that is under way.
    let warm = cuda.room(4096);
    assert_eq!(cufile.write(handle, warm, 4096, 0, 0), 4096);
    let mut seed = 0;
    for &call in calls {
        for kind in [Before::PageableCopy, Before::DeviceCopy, Before::Memset] {
            for len in LENGTHS {
                let address = room(cuda, cufile, memory, len);
                // The first transfer of new memory, and one of memory that is known.
                for round in ["first", "second"] {
                    seed += 1;
                    let context = format!("{memory:?} {call:?} after {kind:?} of {len}, {round}");
                    let held = before(cuda, kind, address, len, seed);
                    transfer((cuda, cufile), (call, true), handle, (address, len));
                    let mut stored = vec![0; len];
                    file.read_exact_at(&mut stored, 0).unwrap();
                    assert!(stored == held, "{context}: the file has other bytes");
                    // What a read brings stays: the program's operation is not under way any more.
                    let content = pattern(len, seed + 1000);
                    file.write_all_at(&content, 0).unwrap();
                    before(cuda, kind, address, len, seed);
                    transfer((cuda, cufile), (call, false), handle, (address, len));
                    // SAFETY: takes nothing.
                    assert_eq!(unsafe { (cuda.cuCtxSynchronize)() }, 0);
                    assert!(cuda.get(address, len) == content, "{context}: overwritten after it");
                }
            }
        }
    }
}

#[test]
fn after_operations_on_memory() {
    alone("order::after_operations_on_memory", &LAG, || all(Memory::Plain));
}

#[test]
fn after_operations_on_registered_memory() {
    alone("order::after_operations_on_registered_memory", &LAG, || all(Memory::Registered));
}

#[test]
fn after_operations_on_memory_of_a_pool() {
    alone("order::after_operations_on_memory_of_a_pool", &LAG, || all(Memory::Pool));
}

#[test]
fn after_operations_on_mapped_memory() {
    alone("order::after_operations_on_mapped_memory", &LAG, || all(Memory::Mapped));
}

/// A mapping makes the primary context synchronize as a whole, and no other context.
#[test]
fn after_operations_in_another_context_that_follow_use_of_a_mapping() {
    let name = "order::after_operations_in_another_context_that_follow_use_of_a_mapping";
    alone(name, &LAG, || {
        let (cuda, cufile) = (cuda(), cufile());
        compare((&cuda, &cufile), Memory::Mapped, &[Call::Blocking]);
        let mut own = 0;
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (cuda.cuCtxCreate_v2)(&raw mut own, 0, 0) }, 0);
        compare((&cuda, &cufile), Memory::Plain, &[Call::Blocking, Call::Batch]);
    });
}
