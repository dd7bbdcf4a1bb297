//! Reading and writing.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::client::{Cuda, Cufile, GOOD, alone, code, cuda, cufile, errno, name, random_bytes};

/// A file's length: no multiple of anything.
pub(crate) const LEN: usize = (3 << 20) + 1234;

pub(crate) fn made(directory: &Path, bytes: &[u8]) -> std::path::PathBuf {
    let path = directory.join("data");
    File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

pub(crate) fn opened(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// Ranges of a file, aligned and not, at its end and beyond.
const RANGES: [(usize, usize); 12] = [
    (0, 4096),
    (0, 1),
    (1, 10),
    (199, 1024),
    (4096, 65536),
    (4095, 65538),
    (100, 1 << 20),
    (0, LEN),
    (12345, LEN - 12345),
    (LEN - 1, 1),
    (LEN - 100, 4096),
    (LEN, 4096),
];

/// Reads all ranges into memory that `get` fetches from.
pub(crate) fn ranges(
    cufile: &Cufile,
    handle: usize,
    base: u64,
    bytes: &[u8],
    get: impl Fn(usize) -> Vec<u8>,
) {
    for (offset, len) in RANGES {
        for skip in [0, 3, 4096] {
            let want = len.min(bytes.len() - offset);
            let (at, skip_by) = (i64::try_from(offset).unwrap(), i64::try_from(skip).unwrap());
            let actual = cufile.read(handle, base, len, at, skip_by);
            assert_eq!(actual, want.cast_signed(), "{len} bytes at {offset}");
            let found = get(skip + want);
            assert!(found[skip..] == bytes[offset..offset + want], "{len} bytes at {offset}");
        }
    }
}

#[test]
fn any_range_of_any_file_goes_to_any_memory() {
    alone(name(any_range_of_any_file_goes_to_any_memory), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let bytes = random_bytes(1, LEN);
        let room = LEN + 8192;
        let device = cuda.room(room);
        let (mut managed, mut pinned, mut pool) = (0, 0, 0);
        // SAFETY: as the driver's manual has it, here and below.
        assert_eq!(unsafe { (cuda.cuMemAllocManaged)(&raw mut managed, room, 1) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (cuda.cuMemHostAlloc)(&raw mut pinned, room, 0) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (cuda.cuMemAllocAsync)(&raw mut pool, room, 0) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { (cuda.cuStreamSynchronize)(0) }, 0);
        let mapped = cuda.mapped(room);
        let mut host = vec![0_u8; room];
        let plain = host.as_mut_ptr().expose_provenance() as u64;
        let from_host = |base: u64, len: usize| {
            let start = std::ptr::with_exposed_provenance::<u8>(usize::try_from(base).unwrap());
            // SAFETY: `len` bytes of the test's memory, which nobody writes now.
            unsafe { std::slice::from_raw_parts(start, len) }.to_vec()
        };
        for directory in [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()] {
            let path = made(directory.path(), &bytes);
            for flags in [0, libc::O_DIRECT] {
                let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
                // tmpfs takes O_DIRECT from Linux 6.6 on.
                let Ok(file) = file else { continue };
                let handle = cufile.register(&file).unwrap();
                drop(file);
                ranges(&cufile, handle, device, &bytes, |len| cuda.get(device, len));
                ranges(&cufile, handle, pool, &bytes, |len| cuda.get(pool, len));
                ranges(&cufile, handle, mapped, &bytes, |len| cuda.get(mapped, len));
                ranges(&cufile, handle, managed, &bytes, |len| cuda.get(managed, len));
                ranges(&cufile, handle, pinned, &bytes, |len| from_host(pinned, len));
                ranges(&cufile, handle, plain, &bytes, |len| from_host(plain, len));
                cufile.deregister(handle);
            }
        }
    });
}

#[test]
fn any_range_is_written_and_nothing_outside_it() {
    alone(name(any_range_is_written_and_nothing_outside_it), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let source = random_bytes(2, LEN + 8192);
        let device = cuda.with(&source);
        let host = source.as_ptr().expose_provenance() as u64;
        let directory = tempfile::tempdir().unwrap();
        for flags in [0, libc::O_DIRECT] {
            for base in [device, host] {
                let mut expected = random_bytes(3, LEN);
                let path = made(directory.path(), &expected);
                let handle = cufile.register(&opened(&path, flags)).unwrap();
                for (offset, len) in RANGES {
                    for skip in [0, 5] {
                        let at = i64::try_from(offset).unwrap();
                        let skip_by = i64::try_from(skip).unwrap();
                        let done = cufile.write(handle, base, len, at, skip_by);
                        assert_eq!(done, len.cast_signed(), "{len} bytes at {offset}");
                        expected.resize(expected.len().max(offset + len), 0);
                        expected[offset..offset + len].copy_from_slice(&source[skip..skip + len]);
                    }
                }
                cufile.deregister(handle);
                assert!(std::fs::read(&path).unwrap() == expected, "flags {flags:#x}");
            }
        }
    });
}

#[test]
fn several_ranges_in_one_call() {
    alone(name(several_ranges_in_one_call), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let bytes = random_bytes(4, 10_000);
        let path = made(directory.path(), &bytes);
        let handle = cufile.register(&opened(&path, 0)).unwrap();
        let device = cuda.room(20_000);
        let list = [[device + 7, 5000], [device + 10_000, 0], [device + 10_001, 9000]];
        let call = cufile.cuFileReadv;
        // SAFETY: the list and its memory are the test's, here and below.
        let read = |count, flags| unsafe { call(handle, list.as_ptr(), count, 100, flags) };
        assert_eq!(read(3, 0), 9900);
        assert!(cuda.get(device + 7, 5000) == bytes[100..5100]);
        assert!(cuda.get(device + 10_001, 4900) == bytes[5100..]);
        assert_eq!((read(0, 0), read(3, 1)), (-5022, -5022));
        let list = [[device + 7, 5000], [device + 10_001, 4900]];
        // SAFETY: as above.
        let written = unsafe { (cufile.cuFileWritev)(handle, list.as_ptr(), 2, 200, 0) };
        assert_eq!(written, 9900);
        assert!(std::fs::read(&path).unwrap()[200..] == bytes[100..]);
    });
}

#[test]
fn what_is_refused_and_how() {
    alone(name(what_is_refused_and_how), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let path = made(directory.path(), &[1; 8192]);
        let file = opened(&path, 0);
        let kind = |kind| {
            let mut descriptor = crate::client::Descriptor { kind, fd: 0, operations: 0 };
            let mut handle = 0;
            // SAFETY: both are valid.
            unsafe { (cufile.cuFileHandleRegister)(&raw mut handle, &raw mut descriptor) }
        };
        assert_eq!((kind(2), kind(3), kind(77)), (code(5008), code(5008), code(5008)));
        assert_eq!(cufile.register(&File::open(directory.path()).unwrap()), Err(code(5018)));
        assert_eq!(cufile.register(&File::open("/dev/null").unwrap()), Err(code(5018)));
        assert_eq!(cufile.register(&99_999), Err(code(5022)));
        assert_eq!(cufile.register(&-1), Err(code(5022)));
        // The same descriptor twice: two handles.
        let (one, two) = (cufile.register(&file).unwrap(), cufile.register(&file).unwrap());
        assert_ne!(one, two);
        cufile.deregister(two);
        let device = cuda.room(8192);
        for garbage in [0, 1, two, usize::MAX, 0x7fff_1234_5678] {
            assert_eq!(cufile.read(garbage, device, 1, 0, 0), -5027, "{garbage:#x}");
            cufile.deregister(garbage);
        }
        assert_eq!(cufile.read(one, device, 4096, -1, 0), -5022);
        assert_eq!(cufile.read(one, device, 4096, 0, -1), -5022);
        assert_eq!(cufile.read(one, 0, 4096, 0, 0), -5022);
        assert_eq!(cufile.read(one, device, usize::MAX, 0, 0), -5022);
        assert_eq!(cufile.read(one, device, 0, 0, 0), 0);
        let write_only = OpenOptions::new().write(true).open(&path).unwrap();
        let handle = cufile.register(&write_only).unwrap();
        assert_eq!(cufile.read(handle, device, 4096, 0, 0), -5019);
        assert_eq!(cufile.write(handle, device, 4096, 0, 0), 4096);
        let read_only = File::open(&path).unwrap();
        let handle = cufile.register(&read_only).unwrap();
        assert_eq!(cufile.write(handle, device, 4096, 0, 0), -1);
        assert_eq!(errno(), libc::EBADF);
        // Host memory that is not there is the kernel's to refuse.
        assert_eq!((cufile.read(one, 4096, 4096, 0, 0), errno()), (-1, libc::EFAULT));
    });
}

#[test]
fn buffers_are_bookkeeping() {
    alone(name(buffers_are_bookkeeping), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let bytes = random_bytes(5, 8192);
        let handle = cufile.register(&opened(&made(directory.path(), &bytes), 0)).unwrap();
        let device = cuda.room(65536);
        // SAFETY: numbers only, here and below.
        let register = |base, len| unsafe { (cufile.cuFileBufRegister)(base, len, 0) };
        // SAFETY: as above.
        let deregister = |base| unsafe { (cufile.cuFileBufDeregister)(base) };
        assert_eq!((register(0, 1), register(device, 0)), (code(5022), code(5022)));
        assert_eq!((register(device, 8192), register(device, 4096)), (GOOD, code(5023)));
        assert_eq!(register(device + 4096, 4096), GOOD);
        // Base and offset; a base in the middle; beyond what was registered.
        assert_eq!(cufile.read(handle, device, 4000, 10, 4192), 4000);
        assert!(cuda.get(device + 4192, 4000) == bytes[10..4010]);
        assert_eq!(cufile.read(handle, device, 4096, 0, 4097), -5017);
        assert_eq!(cufile.read(handle, device + 100, 8192, 0, 0), 8192);
        assert!(cuda.get(device + 100, 8192) == bytes);
        assert_eq!((deregister(device), deregister(device)), (GOOD, code(5024)));
        assert_eq!((deregister(0), deregister(device + 4096)), (code(5022), GOOD));
        assert_eq!(cufile.read(handle, device, 4096, 0, 4097), 4095 + 1);
        for nth in 0..2000 {
            assert_eq!(register(device + nth, 1 << 40), GOOD, "no budget is used up");
        }
    });
}

#[test]
fn the_callers_descriptor_stays_his() {
    alone(name(the_callers_descriptor_stays_his), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let bytes = random_bytes(6, 100_000);
        let file = opened(&made(directory.path(), &bytes), 0);
        let device = cuda.room(100_000);
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let warm = cufile.register(&file).unwrap();
        assert_eq!(cufile.read(warm, device, 100_000, 0, 0), 100_000);
        cufile.deregister(warm);
        let before = open();
        let handle = cufile.register(&file).unwrap();
        cufile.deregister(handle);
        assert_eq!(file.read_at(&mut [0; 8], 0).unwrap(), 8, "still open");
        for _ in 0..300 {
            // As DeepSpeed does: a handle for each operation.
            let handle = cufile.register(&file).unwrap();
            assert_eq!(cufile.read(handle, device, 5000, 77, 0), 5000);
            cufile.deregister(handle);
        }
        assert_eq!(open(), before, "descriptors of ours are closed");
        // Standard input, too.
        assert!(Path::new("/proc/self/fd/0").exists());
    });
}

#[test]
fn many_threads_without_a_context() {
    alone(name(many_threads_without_a_context), &[], || {
        let (cuda, cufile): (&Cuda, &Cufile) = (&cuda(), &cufile());
        let directory = tempfile::tempdir().unwrap();
        let bytes = &random_bytes(7, 4 << 20);
        let path = &made(directory.path(), bytes);
        let shared = cufile.register(&opened(path, libc::O_DIRECT)).unwrap();
        let places: Vec<u64> = (0..8).map(|_| cuda.room(1 << 20)).collect();
        std::thread::scope(|scope| {
            for (nth, base) in places.iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..40 {
                        let len = [4096, 65536, 1000, 1 << 20][round % 4];
                        let offset = (nth * 499_979 + round * 77_777) % ((4 << 20) - len);
                        let at = i64::try_from(offset).unwrap();
                        let actual = cufile.read(shared, *base, len, at, 0);
                        assert_eq!(actual, len.cast_signed());
                        let mut context = 1;
                        // SAFETY: room for one handle.
                        let code = unsafe { (cuda.cuCtxGetCurrent)(&raw mut context) };
                        assert_eq!((code, context), (0, 0), "the thread has no context still");
                        if round % 10 == 0 {
                            let own = cufile.register(&opened(path, 0)).unwrap();
                            assert_eq!(cufile.read(own, *base, len, at, 0), len.cast_signed());
                            cufile.deregister(own);
                        }
                    }
                });
            }
        });
        for base in &places {
            assert_eq!(cufile.read(shared, *base, 1 << 20, 4321, 0), 1 << 20);
            assert!(cuda.get(*base, 1 << 20) == bytes[4321..4321 + (1 << 20)]);
        }
    });
}
