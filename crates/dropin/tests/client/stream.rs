//! I/O in the order of streams.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::{
    Answer, Cuda, Cufile, GOOD, alone, code, cuda, cufile, name, on_system, random_bytes,
};

/// The parameters of one I/O, where a program keeps them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    len: usize,
    file_offset: i64,
    buffer_offset: i64,
    done: isize,
}

/// A value that is never stored.
const NOT_STORED: isize = 0x1234_5678;

impl Kept {
    pub(crate) fn new(len: usize, file_offset: i64, buffer_offset: i64) -> Self {
        Self { len, file_offset, buffer_offset, done: NOT_STORED }
    }

    pub(crate) fn put(
        &mut self,
        call: unsafe extern "C" fn(
            usize,
            u64,
            *mut usize,
            *mut i64,
            *mut i64,
            *mut isize,
            usize,
        ) -> Answer,
        handle: usize,
        base: u64,
        stream: usize,
    ) -> Answer {
        let (len, done) = (&raw mut self.len, &raw mut self.done);
        let (file_offset, buffer_offset) = (&raw mut self.file_offset, &raw mut self.buffer_offset);
        // SAFETY: all of it is the test's, which waits for the stream.
        unsafe { call(handle, base, len, file_offset, buffer_offset, done, stream) }
    }

    pub(crate) fn done(&self) -> isize {
        let place = &raw const self.done;
        // SAFETY: a field of our own, which somebody else stores.
        unsafe { place.read_volatile() }
    }
}

pub(crate) fn stream(cuda: &Cuda) -> usize {
    let mut stream = 0;
    // SAFETY: as the driver's manual has it; 1 is without order with the legacy stream.
    assert_eq!(unsafe { (cuda.cuStreamCreate)(&raw mut stream, 1) }, 0);
    stream
}

pub(crate) fn sync(cuda: &Cuda, stream: usize) {
    // SAFETY: as the driver's manual has it.
    assert_eq!(unsafe { (cuda.cuStreamSynchronize)(stream) }, 0);
}

unsafe extern "C" fn pass(gate: *mut c_void) {
    // SAFETY: a gate of a test's, which lives until the stream has passed.
    let gate = unsafe { AtomicBool::from_ptr(gate.cast()) };
    while !gate.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Holds a stream until the gate is open. Where the driver has each launch wait for its end, the
/// stream can't be held by the thread that opens the gate: the test, alone in its process, ends.
#[expect(clippy::print_stdout, reason = "a test that was left out is named")]
fn hold(cuda: &Cuda, stream: usize, gate: &AtomicBool) {
    if std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value != "0") {
        println!("SKIPPED: no stream can be held with CUDA_LAUNCH_BLOCKING");
        std::process::exit(0);
    }
    // SAFETY: as the driver's manual has it.
    assert_eq!(unsafe { (cuda.cuLaunchHostFunc)(stream, pass, gate.as_ptr().cast()) }, 0);
}

fn open(path: &Path, flags: i32) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
    options.open(path).unwrap()
}

/// A file with a megabyte and more, its handle, its bytes.
fn made(cufile: &Cufile, directory: &Path, flags: i32) -> (usize, Vec<u8>) {
    let bytes = random_bytes(5, (1 << 20) + 777);
    let path = directory.join("data");
    std::fs::write(&path, &bytes).unwrap();
    (cufile.register(&open(&path, flags)).unwrap(), bytes)
}

fn parameters_and_order() {
    let (cuda, cufile) = (cuda(), cufile());
    let directory = tempfile::tempdir().unwrap();
    let (handle, bytes) = made(&cufile, directory.path(), 0);
    let out = directory.path().join("out");
    let onto = cufile.register(&open(&out, 0)).unwrap();
    let base = cuda.with(&vec![0; bytes.len() + 4096]);
    // Loads kernels, which would wait for a stream that is held.
    assert_eq!(cufile.read(handle, base, 1, 0, 0), 1);
    let made_here = stream(&cuda);
    for (number, flags) in [(made_here, None), (made_here, Some(15)), (0, Some(7)), (2, None)] {
        cuda.put(base, &vec![0; bytes.len() + 4096]);
        if let Some(flags) = flags {
            // SAFETY: any number is one.
            assert_eq!(unsafe { (cufile.cuFileStreamRegister)(number, flags) }, GOOD);
        }
        let gate = AtomicBool::new(false);
        hold(&cuda, number, &gate);
        let mut read = Kept::new(bytes.len(), 0, 0);
        let mut write = Kept::new(bytes.len(), 0, 0);
        assert_eq!(read.put(cufile.cuFileReadAsync, handle, base, number), GOOD);
        assert_eq!(write.put(cufile.cuFileWriteAsync, onto, base, number), GOOD);
        // The calls' original arguments count only where the stream says so.
        for kept in [&mut read, &mut write] {
            (kept.len, kept.file_offset, kept.buffer_offset) = (500_001, 4099, 17);
        }
        assert_eq!((read.done(), write.done()), (NOT_STORED, NOT_STORED));
        gate.store(true, Ordering::Release);
        sync(&cuda, number);
        let (len, at, skip) =
            if flags.is_some() { (bytes.len(), 0, 0) } else { (500_001, 4099, 17) };
        assert_eq!((read.done(), write.done()), (len.cast_signed(), len.cast_signed()));
        assert!(cuda.get(base, skip + len)[skip..] == bytes[at..at + len], "stream {number}");
        assert!(std::fs::read(&out).unwrap()[at..at + len] == bytes[at..at + len]);
        if flags.is_some() {
            // SAFETY: any number is one.
            assert_eq!(unsafe { (cufile.cuFileStreamDeregister)(number) }, GOOD);
        }
    }
}

#[test]
fn parameters_are_read_when_the_stream_comes_there_unless_fixed() {
    let name = name(parameters_are_read_when_the_stream_comes_there_unless_fixed);
    alone(name, &[], parameters_and_order);
}

#[test]
fn streams_that_shall_not_wait_for_words_are_served_as_well() {
    let name = name(streams_that_shall_not_wait_for_words_are_served_as_well);
    alone(name, &[("CUFILE_STREAM_MEMOPS_BYPASS", "1")], parameters_and_order);
}

#[test]
fn all_flags_are_taken_and_no_others() {
    alone(name(all_flags_are_taken_and_no_others), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let number = stream(&cuda);
        // SAFETY: any number is a stream's to the library, here and below.
        let register = |flags| unsafe { (cufile.cuFileStreamRegister)(number, flags) };
        // SAFETY: as above.
        let deregister = || unsafe { (cufile.cuFileStreamDeregister)(number) };
        for flags in 0..16 {
            assert_eq!(register(flags), GOOD);
            assert_eq!(register(flags), code(5022));
            assert_eq!(deregister(), GOOD);
            assert_eq!(deregister(), code(5022));
        }
        assert_eq!(register(16), code(5022));
    });
}

#[test]
fn a_refused_registration_changes_no_flags() {
    alone(name(a_refused_registration_changes_no_flags), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), 0);
        let number = stream(&cuda);
        // SAFETY: any number is a stream's to the library.
        let register = |flags| unsafe { (cufile.cuFileStreamRegister)(number, flags) };
        // 2: the file's offset is known at the call.
        assert_eq!((register(2), register(0)), (GOOD, code(5022)));
        let device = cuda.room(4096);
        // The first use of a device loads kernels, which may wait for a held stream.
        assert_eq!(cufile.read(handle, device, 4096, 0, 0), 4096);
        let gate = AtomicBool::new(false);
        hold(&cuda, number, &gate);
        let mut kept = Kept::new(4096, 4096, 0);
        assert_eq!(kept.put(cufile.cuFileReadAsync, handle, device, number), GOOD);
        kept.file_offset = 0;
        gate.store(true, Ordering::Release);
        sync(&cuda, number);
        assert_eq!(kept.done(), 4096);
        assert!(cuda.get(device, 4096) == bytes[4096..8192], "the offset of the call counts");
    });
}

#[test]
fn a_late_offset_may_lead_into_the_next_mapping() {
    alone(name(a_late_offset_may_lead_into_the_next_mapping), &[], || {
        const PIECE: usize = 2 << 20;
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), 0);
        let (kind, access, mut base) = ([1, 1, 0, 0], [1, 0, 3], 0);
        // SAFETY: as the driver's manual has it, here and below.
        assert_eq!(unsafe { (cuda.cuMemAddressReserve)(&raw mut base, 2 * PIECE, 0, 0, 0) }, 0);
        for at in [base, base + PIECE as u64] {
            let mut piece = 0;
            // SAFETY: as above.
            assert_eq!(unsafe { (cuda.cuMemCreate)(&raw mut piece, PIECE, &raw const kind, 0) }, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { (cuda.cuMemMap)(at, PIECE, 0, piece, 0) }, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { (cuda.cuMemSetAccess)(at, PIECE, &raw const access, 1) }, 0);
        }
        let number = stream(&cuda);
        let gate = AtomicBool::new(false);
        // The first use of a device loads kernels, which may wait for a held stream.
        assert_eq!(cufile.read(handle, base, 4096, 0, 0), 4096);
        hold(&cuda, number, &gate);
        let mut kept = Kept::new(4096, 0, 0);
        assert_eq!(kept.put(cufile.cuFileReadAsync, handle, base, number), GOOD);
        kept.buffer_offset = PIECE as i64 + 512;
        gate.store(true, Ordering::Release);
        sync(&cuda, number);
        assert_eq!(kept.done(), 4096);
        assert!(cuda.get(base + PIECE as u64 + 512, 4096) == bytes[..4096]);
    });
}

#[test]
fn failures_are_returned_instead_of_bytes() {
    alone(name(failures_are_returned_instead_of_bytes), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), libc::O_DIRECT);
        let path = directory.path().join("data");
        let read_only = cufile.register(&File::open(&path).unwrap()).unwrap();
        let write_only = OpenOptions::new().write(true).open(&path).unwrap();
        let write_only = cufile.register(&write_only).unwrap();
        let (number, base) = (stream(&cuda), cuda.room(1 << 20));
        let (read, write) = (cufile.cuFileReadAsync, cufile.cuFileWriteAsync);
        let end = i64::try_from(bytes.len()).unwrap();
        // Call, handle, parameters, and what comes of it.
        let mut all = [
            (read, handle, Kept::new(100, end, 0), 0),
            (read, handle, Kept::new(100, end - 30, 0), 30),
            (read, handle, Kept::new(100, end + 1_000_000, 0), 0),
            (read, handle, Kept::new(0, 0, 0), 0),
            (read, handle, Kept::new(100, -1, 0), -5022),
            (write, handle, Kept::new(100, 0, -1), -5022),
            (read, handle, Kept::new(1 << 20, 0, 1), -5014),
            (write, read_only, Kept::new(100, 0, 0), -1),
            (read, read_only, Kept::new(1 << 20, 0, 0), 1 << 20),
        ];
        for (call, handle, kept, _) in &mut all {
            assert_eq!(kept.put(*call, *handle, base, number), GOOD);
        }
        sync(&cuda, number);
        for (at, (.., kept, wanted)) in all.iter().enumerate() {
            assert_eq!(kept.done(), *wanted, "I/O {at}");
        }
        assert!(cuda.get(base, 1 << 20) == bytes[..1 << 20]);
        let mut kept = Kept::new(100, 0, 0);
        assert_eq!(kept.put(read, write_only, base, number), code(5019));
        assert_eq!(kept.put(read, handle + (1 << 24), base, number), code(5027));
        assert_eq!(kept.put(read, handle, 0, number), code(5022));
        let null = std::ptr::null_mut();
        // SAFETY: null is refused.
        let answer = unsafe { read(handle, base, null, null.cast(), null.cast(), null.cast(), 0) };
        assert_eq!(answer, code(5022));
        // SAFETY: as the driver's manual has it; mode 2 forbids nothing to other threads.
        assert_eq!(unsafe { (cuda.cuStreamBeginCapture_v2)(number, 2) }, 0);
        assert_eq!(kept.put(read, handle, base, number), code(5038));
        assert_eq!(kept.done(), NOT_STORED);
    });
}

#[test]
fn handles_may_end_while_streams_hold_their_io() {
    alone(name(handles_may_end_while_streams_hold_their_io), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), 0);
        let mut host = vec![0_u8; bytes.len()];
        let base = cuda.room(bytes.len());
        let plain = host.as_mut_ptr().expose_provenance() as u64;
        // Loads kernels, which would wait for a stream that is held.
        assert_eq!(cufile.read(handle, base, 1, 0, 0), 1);
        let (number, gate) = (stream(&cuda), AtomicBool::new(false));
        hold(&cuda, number, &gate);
        let mut to_device = Kept::new(bytes.len(), 0, 0);
        let mut to_host = Kept::new(bytes.len(), 0, 0);
        assert_eq!(to_device.put(cufile.cuFileReadAsync, handle, base, number), GOOD);
        assert_eq!(to_host.put(cufile.cuFileReadAsync, handle, plain, number), GOOD);
        cufile.deregister(handle);
        let mut late = Kept::new(1, 0, 0);
        assert_eq!(late.put(cufile.cuFileReadAsync, handle, base, number), code(5027));
        assert_eq!(to_device.done(), NOT_STORED);
        gate.store(true, Ordering::Release);
        sync(&cuda, number);
        let len = bytes.len().cast_signed();
        assert_eq!((to_device.done(), to_host.done()), (len, len));
        assert!(cuda.get(base, bytes.len()) == bytes);
        assert!(host == bytes);
    });
}

/// Descriptors of this process on files in a directory, deleted ones too.
fn open_in(directory: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.starts_with(directory)).count()
}

/// All that a program has of an I/O but the memory ends while a stream holds it.
fn all_may_end() {
    let (cuda, cufile) = (cuda(), cufile());
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = random_bytes(9, (1 << 20) + 777);
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::write(&from, &bytes).unwrap();
    let (base, number, gate) = (cuda.room(bytes.len()), stream(&cuda), AtomicBool::new(false));
    let files = [open(&from, 0), open(&to, 0)];
    let [source, onto] = files.each_ref().map(|file| cufile.register(file).unwrap());
    // Loads kernels, which would wait for a stream that is held.
    assert_eq!(cufile.read(source, base, 1, 0, 0), 1);
    // SAFETY: numbers only, here and below.
    assert_eq!(unsafe { (cufile.cuFileBufRegister)(base, bytes.len(), 0) }, GOOD);
    // SAFETY: as above.
    assert_eq!(unsafe { (cufile.cuFileStreamRegister)(number, 0) }, GOOD);
    hold(&cuda, number, &gate);
    let (mut read, mut write) = (Kept::new(bytes.len(), 0, 0), Kept::new(bytes.len(), 0, 0));
    assert_eq!(read.put(cufile.cuFileReadAsync, source, base, number), GOOD);
    assert_eq!(write.put(cufile.cuFileWriteAsync, onto, base, number), GOOD);
    [source, onto].into_iter().for_each(|handle| cufile.deregister(handle));
    // SAFETY: as above.
    assert_eq!(unsafe { (cufile.cuFileStreamDeregister)(number) }, GOOD);
    // SAFETY: as above.
    assert_eq!(unsafe { (cufile.cuFileBufDeregister)(base) }, GOOD);
    while cufile.uses() > 0 {
        assert_eq!(cufile.close(), GOOD);
    }
    let numbers = files.each_ref().map(AsRawFd::as_raw_fd);
    drop(files);
    std::fs::remove_file(&from).unwrap();
    // Other files get the numbers.
    let others: Vec<File> =
        (0..8).map(|name| open(&elsewhere.path().join(name.to_string()), 0)).collect();
    assert!(others.iter().any(|other| numbers.contains(&other.as_raw_fd())));
    assert!(open_in(directory.path()) >= 2, "the I/O has descriptors of its own");
    assert_eq!((read.done(), write.done()), (NOT_STORED, NOT_STORED));
    gate.store(true, Ordering::Release);
    sync(&cuda, number);
    let len = bytes.len().cast_signed();
    assert_eq!((read.done(), write.done(), cufile.uses()), (len, len, 0));
    assert!(cuda.get(base, bytes.len()) == bytes && std::fs::read(&to).unwrap() == bytes);
    assert!(others.iter().all(|other| other.metadata().unwrap().len() == 0));
    // Whoever has the I/O last lets the files go, a moment after the stream has passed.
    while open_in(directory.path()) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn all_but_the_memory_may_end_while_streams_hold_io() {
    alone(name(all_but_the_memory_may_end_while_streams_hold_io), &[], all_may_end);
}

#[test]
fn the_same_where_streams_do_not_wait_for_words() {
    let name = name(the_same_where_streams_do_not_wait_for_words);
    alone(name, &[("CUFILE_STREAM_MEMOPS_BYPASS", "1")], all_may_end);
}

#[test]
fn a_process_may_end_with_io_in_its_streams() {
    alone(name(a_process_may_end_with_io_in_its_streams), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), 0);
        let (base, gate) = (cuda.room(bytes.len()), Box::leak(Box::new(AtomicBool::new(false))));
        // Loads kernels, which would wait for a stream that is held.
        assert_eq!(cufile.read(handle, base, 1, 0, 0), 1);
        let (held, busy) = (stream(&cuda), stream(&cuda));
        hold(&cuda, held, gate);
        for turn in 0..64 {
            // They outlive the test.
            let kept = Box::leak(Box::new(Kept::new(bytes.len(), 0, 0)));
            let number = if turn % 4 == 0 { held } else { busy };
            assert_eq!(kept.put(cufile.cuFileReadAsync, handle, base, number), GOOD);
        }
        // One stream never goes on, the other is at work: the process's end waits for neither.
        if on_system() {
            // Hardware's driver does wait, for functions that it called.
            gate.store(true, Ordering::Release);
        }
    });
}

#[test]
fn a_context_may_be_destroyed_with_io_in_its_streams() {
    alone(name(a_context_may_be_destroyed_with_io_in_its_streams), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let directory = tempfile::tempdir().unwrap();
        let (handle, bytes) = made(&cufile, directory.path(), 0);
        let (own, own_base) = (stream(&cuda), cuda.room(bytes.len()));
        for _ in 0..5 {
            let mut context = 0;
            // SAFETY: as the driver's manual has it.
            assert_eq!(unsafe { (cuda.cuCtxCreate_v2)(&raw mut context, 0, 0) }, 0);
            let (number, base) = (stream(&cuda), cuda.room(bytes.len()));
            for _ in 0..4 {
                // They outlive the stream, which may never come to them.
                let kept = Box::leak(Box::new(Kept::new(bytes.len(), 0, 0)));
                assert_eq!(kept.put(cufile.cuFileReadAsync, handle, base, number), GOOD);
            }
            // SAFETY: as above: stream and memory are gone with it.
            assert_eq!(unsafe { (cuda.cuCtxDestroy_v2)(context) }, 0);
            let mut kept = Kept::new(bytes.len(), 0, 0);
            assert_eq!(kept.put(cufile.cuFileReadAsync, handle, own_base, own), GOOD);
            sync(&cuda, own);
            assert_eq!(kept.done(), bytes.len().cast_signed());
        }
        assert!(cuda.get(own_base, bytes.len()) == bytes);
        cufile.deregister(handle);
    });
}
