//! A transfer comes after the program's own synchronous operations on its memory.
//!
//! CUDA lets such a call return before its work has ended: a copy from pageable memory, a copy on
//! the device, a memset. The software GPU does that work some milliseconds later here. On hardware
//! it ends microseconds later, or behind other copies, which the tests put there.

use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch::{destroy, fetch, set_up, submit};
use crate::client::{Cuda, Cufile, Entry, GOOD, alone, cuda, cufile, name, random_bytes};
use crate::stream::{Kept, stream, sync};

/// How late the software GPU is, microseconds: longer than a transfer takes.
const LAG: [(&str, &str); 1] = [("GPUIO_SOFT_LAG_US", "4000")];
const LENGTHS: [usize; 3] = [4096, 65536, 1 << 20];

/// The program's operation on the memory right before the transfer.
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
    let bytes = random_bytes(seed, len);
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
fn transfer(of: (&Cuda, &Cufile), how: (Call, bool), handle: usize, (address, len): (u64, usize)) {
    transfer_part(of, how, handle, (address, len, 0));
}

/// Moves a part of the memory from or to the same place in the file.
fn transfer_part(
    (cuda, cufile): (&Cuda, &Cufile),
    (call, is_write): (Call, bool),
    handle: usize,
    (address, len, at): (u64, usize, i64),
) {
    let moved = match call {
        Call::Blocking if is_write => cufile.write(handle, address, len, at, at),
        Call::Blocking => cufile.read(handle, address, len, at, at),
        Call::Batch => {
            let batch = set_up(cufile, 1).unwrap();
            let (base, opcode) = (address, i32::from(is_write));
            let mut entries = [Entry {
                mode: 1,
                base,
                file_offset: at,
                buffer_offset: at,
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
            let mut kept = Kept::new(len, at, at);
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
                    // The bytes of a read stay: the program's operation is not under way any more.
                    let content = random_bytes(seed + 1000, len);
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
    alone(name(after_operations_on_memory), &LAG, || all(Memory::Plain));
}

#[test]
fn after_operations_on_registered_memory() {
    alone(name(after_operations_on_registered_memory), &LAG, || all(Memory::Registered));
}

#[test]
fn after_operations_on_memory_of_a_pool() {
    alone(name(after_operations_on_memory_of_a_pool), &LAG, || all(Memory::Pool));
}

#[test]
fn after_operations_on_mapped_memory() {
    alone(name(after_operations_on_mapped_memory), &LAG, || all(Memory::Mapped));
}

/// A mapping makes the primary context synchronize as a whole, and no other context.
#[test]
fn after_operations_in_another_context_that_follow_use_of_a_mapping() {
    let name = name(after_operations_in_another_context_that_follow_use_of_a_mapping);
    alone(name, &LAG, || {
        let (cuda, cufile) = (cuda(), cufile());
        compare((&cuda, &cufile), Memory::Mapped, &[Call::Blocking]);
        let mut own = 0;
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (cuda.cuCtxCreate_v2)(&raw mut own, 0, 0) }, 0);
        compare((&cuda, &cufile), Memory::Plain, &[Call::Blocking, Call::Batch]);
    });
}

/// Long enough for other threads to come while one waits.
const LONG_LAG: [(&str, &str); 1] = [("GPUIO_SOFT_LAG_US", "60000")];

/// Fills new memory, lets `uses` move it as first uses of it, and compares. `uses` gets the handle
/// of a file, whether to write, and the memory.
fn first_use((cuda, cufile): (&Cuda, &Cufile), uses: impl Fn(Call, usize, bool, u64)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
    let handle = cufile.register(&file).unwrap();
    let warm = cuda.room(4096);
    assert_eq!(cufile.write(handle, warm, 4096, 0, 0), 4096);
    for (seed, call) in (1..).zip([Call::Blocking, Call::Batch, Call::Stream]) {
        let address = cuda.room(FIRST_USED);
        let held = before(cuda, Before::PageableCopy, address, FIRST_USED, seed);
        uses(call, handle, true, address);
        let mut stored = vec![0; FIRST_USED];
        file.read_exact_at(&mut stored, 0).unwrap();
        assert!(stored == held, "{call:?}: the file has bytes from before the copy");
        let content = random_bytes(seed + 1000, FIRST_USED);
        file.write_all_at(&content, 0).unwrap();
        let address = cuda.room(FIRST_USED);
        before(cuda, Before::Memset, address, FIRST_USED, seed);
        uses(call, handle, false, address);
        // SAFETY: takes nothing.
        assert_eq!(unsafe { (cuda.cuCtxSynchronize)() }, 0);
        assert!(cuda.get(address, FIRST_USED) == content, "{call:?}: overwritten after the read");
    }
}

const FIRST_USED: usize = 4 * 65536;

#[test]
fn several_threads_are_the_first_to_use_memory() {
    alone(name(several_threads_are_the_first_to_use_memory), &LONG_LAG, || {
        let (cuda, cufile) = (&cuda(), &cufile());
        let mut context = 0;
        // SAFETY: room for one handle.
        assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) }, 0);
        first_use((cuda, cufile), |call, handle, is_write, address| {
            let together = &Barrier::new(4);
            std::thread::scope(|scope| {
                for at in (0..FIRST_USED).step_by(FIRST_USED / 4) {
                    scope.spawn(move || {
                        // SAFETY: a living context.
                        assert_eq!(unsafe { (cuda.cuCtxSetCurrent)(context) }, 0);
                        together.wait();
                        let part = (address, FIRST_USED / 4, i64::try_from(at).unwrap());
                        transfer_part((cuda, cufile), (call, is_write), handle, part);
                    });
                }
            });
        });
    });
}

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
const SYNC_MEMOPS: i32 = 6;

/// Another library registers the memory for its own use, and is not through with it yet.
#[test]
fn the_attribute_of_another_library_stands_for_no_wait() {
    alone(name(the_attribute_of_another_library_stands_for_no_wait), &LONG_LAG, || {
        let (cuda, cufile) = (&cuda(), &cufile());
        first_use((cuda, cufile), |call, handle, is_write, address| {
            let has_set = &AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let on = 1;
                    // SAFETY: the attribute's value is a number of this size.
                    let code = unsafe {
                        (cuda.cuPointerSetAttribute)(&raw const on, SYNC_MEMOPS, address)
                    };
                    has_set.store(true, Ordering::Release);
                    assert_eq!(code, 0);
                });
                // The software GPU shows it while that thread waits, hardware afterwards.
                let mut value = 0;
                while value == 0 && !has_set.load(Ordering::Acquire) {
                    // SAFETY: as above.
                    let code = unsafe {
                        (cuda.cuPointerGetAttribute)(&raw mut value, SYNC_MEMOPS, address)
                    };
                    assert_eq!(code, 0);
                }
                transfer((cuda, cufile), (call, is_write), handle, (address, FIRST_USED));
            });
        });
    });
}
