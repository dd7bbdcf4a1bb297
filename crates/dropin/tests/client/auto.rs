//! Files that NVIDIA's library moves, and files that it does not (`GPUIO_CUFILE=auto`). gpuio's
//! stand-in plays NVIDIA's library; it reports nvidia-fs where a test requires that.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::client::{
    Cufile, GOOD, alone, child, cuda, cufile, errno, is_child, name, on_system, random_bytes,
};
use crate::filesystem::{say_skips, skip};
use crate::nvidia::stand_in;
use crate::process::fork;

/// A file's length.
const LEN: usize = 10_000;

/// The variables of a process with the stand-in, which reports nvidia-fs, and further ones.
fn variables<'v>(library: &'v str, more: &[(&'v str, &'v str)]) -> Vec<(&'v str, &'v str)> {
    let mut all = vec![
        ("GPUIO_CUFILE", "auto"),
        ("GPUIO_CUFILE_LIB", library),
        ("GPUIO_SOFT_CUFILE_NVFS", "2.25"),
        ("CUFILE_STATS_LEVEL", "3"),
        ("CUFILE_LOGGING_LEVEL", "INFO"),
    ];
    all.extend(more);
    all
}

/// Like [`alone`], with the stand-in and further variables; returns what was skipped.
fn with_stand_in(test: &str, more: &[(&str, &str)], body: impl FnOnce()) -> String {
    let library = stand_in();
    let output = alone(test, &variables(&library, more), body);
    say_skips(&output);
    output
}

/// A file on a file system that has `O_DIRECT`, which `/tmp` often lacks.
struct Made {
    _directory: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Made {
    /// None if the stand-in can't be used: with hardware, or without `O_DIRECT`.
    fn new() -> Option<Self> {
        if on_system() {
            skip("auto", "the stand-in needs the software GPU");
            return None;
        }
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (path, bytes) = (directory.path().join("data"), random_bytes(2, LEN));
        std::fs::write(&path, &bytes).unwrap();
        let made = Self { _directory: directory, path, bytes };
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&made.path);
        if direct.is_err() {
            skip("auto", "the target directory's file system has no O_DIRECT");
            return None;
        }
        Some(made)
    }

    fn open(&self, flags: i32) -> File {
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path).unwrap()
    }

    fn direct(&self) -> File {
        self.open(libc::O_DIRECT)
    }
}

/// Transfers of GPU memory in the statistics: reads and writes, by NVIDIA's library and by ours.
fn counted(cufile: &Cufile) -> [[u64; 2]; 2] {
    let mut words = vec![0_u64; 5112 / 8];
    // SAFETY: room for the structure.
    assert_eq!(unsafe { (cufile.cuFileGetStatsL3)(words.as_mut_ptr()) }, GOOD);
    let gpu = 1032;
    [16, 120].map(|way| [48, 56].map(|who| words[(gpu + way + who) / 8]))
}

#[test]
fn files_with_a_direct_path_are_handed_on_and_named() {
    let test = name(files_with_a_direct_path_are_handed_on_and_named);
    // A third read would fail there.
    let output = with_stand_in(test, &[("GPUIO_SOFT_CUFILE_FAIL", "cuFileRead:5010:2")], || {
        let Some(made) = Made::new() else { return };
        let (cuda, cufile) = (cuda(), cufile());
        let direct = cufile.register(&made.direct()).unwrap();
        let plain = cufile.register(&made.open(0)).unwrap();
        let device = cuda.room(2 * LEN);
        let mut managed = 0;
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (cuda.cuMemAllocManaged)(&raw mut managed, LEN, 1) }, 0);
        let mut host = vec![0_u8; LEN];
        let host_base = host.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(cufile.read(direct, device, 2 * LEN, 100, 50), 9900, "up to the file's end");
        assert!(cuda.get(device + 50, 9900) == made.bytes[100..]);
        assert_eq!(counted(&cufile), [[1, 0], [0, 0]]);
        // There is no direct path to these.
        assert_eq!(cufile.read(direct, host_base, LEN, 0, 0), LEN.cast_signed());
        assert_eq!(cufile.read(direct, managed, LEN, 0, 0), LEN.cast_signed());
        assert!(host == made.bytes);
        assert_eq!(cufile.read(plain, device, LEN, 0, 0), LEN.cast_signed());
        assert_eq!(cufile.read(direct, device, 1, -1, 0), -5022);
        assert_eq!(cufile.read(direct, device, 100, 1 << 40, 0), 0, "beyond the file's end");
        assert_eq!(counted(&cufile), [[2, 2], [0, 0]], "of the plain file, and managed memory");
        assert_eq!(cufile.write(direct, device, 4096, 0, 0), 4096);
        assert_eq!(cufile.write(plain, device, 4096, 4096, 0), 4096);
        assert_eq!(counted(&cufile)[1], [1, 1]);
        [direct, plain].into_iter().for_each(|handle| cufile.deregister(handle));
    });
    if !is_child(test) && !output.contains("SKIPPED") {
        assert!(output.contains("/data: moved by NVIDIA's library"), "{output}");
        assert!(
            output.contains("/data: moved by gpuio: the file is open without O_DIRECT"),
            "{output}"
        );
        assert!(!output.contains("from now on"), "{output}");
    }
}

#[test]
fn what_fails_there_is_done_here() {
    let test = name(what_fails_there_is_done_here);
    // A code, an errno, and half of the bytes without an error.
    for how in ["5010", "5", "short"] {
        let faults = format!("cuFileRead:{how}:1:1,cuFileWrite:{how}:0:1");
        let output = with_stand_in(test, &[("GPUIO_SOFT_CUFILE_FAIL", &faults)], || {
            let Some(made) = Made::new() else { return };
            let (cuda, cufile) = (cuda(), cufile());
            let handles = [made.direct(), made.direct()].map(|file| cufile.register(&file));
            let [reads, writes] = handles.map(Result::unwrap);
            let device = cuda.room(LEN);
            for at in [0, 1, 2] {
                cuda.put(device, &vec![0; LEN]);
                assert_eq!(cufile.read(reads, device, 8000, at, 7), 8000);
                let from = usize::try_from(at).unwrap();
                assert!(cuda.get(device + 7, 8000) == made.bytes[from..from + 8000]);
            }
            assert_eq!(counted(&cufile), [[1, 2], [0, 0]], "two by ours");
            let bytes = random_bytes(3, LEN);
            cuda.put(device, &bytes);
            for (at, skip) in [(0, 0), (5000, 5000)] {
                assert_eq!(cufile.write(writes, device, 5000, at, skip), 5000);
            }
            assert!(std::fs::read(&made.path).unwrap() == bytes);
            assert_eq!(counted(&cufile)[1], [0, 2]);
        });
        if is_child(test) {
            return;
        }
        if !output.contains("SKIPPED") {
            let lines =
                output.lines().filter(|line| line.contains("/data: moved by gpuio from now on"));
            assert_eq!(lines.count(), 2, "{output}");
        }
    }
}

#[test]
fn an_error_of_both_libraries_is_returned_and_the_file_stays() {
    let name = name(an_error_of_both_libraries_is_returned_and_the_file_stays);
    with_stand_in(name, &[], || {
        let Some(made) = Made::new() else { return };
        let (cuda, cufile) = (cuda(), cufile());
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_DIRECT).open(&made.path).unwrap();
        let handle = cufile.register(&file).unwrap();
        let device = cuda.room(LEN);
        assert_eq!(cufile.write(handle, device, LEN, 0, 0), -1);
        assert_eq!(errno(), libc::EBADF);
        assert_eq!(cufile.read(handle, device, LEN, 0, 0), LEN.cast_signed());
        assert_eq!(counted(&cufile), [[1, 0], [0, 0]]);
    });
}

#[test]
fn without_a_direct_path_no_file_is() {
    let test = name(without_a_direct_path_no_file_is);
    let fails = "GPUIO_SOFT_CUFILE_FAIL";
    for (variable, value) in [
        ("GPUIO_SOFT_CUFILE_NVFS", ""),
        // A version, and no storage.
        ("GPUIO_SOFT_CUFILE_NVFS", "2.25:0"),
        ("CUFILE_FORCE_COMPAT_MODE", "1"),
        (fails, "cuFileSetParameterBool:5026"),
        (fails, "cuFileGetParameterBool:5022"),
        (fails, "cuFileDriverOpen:5033"),
        (fails, "cuFileDriverGetProperties:5001"),
        (fails, "cuFileHandleRegister:5008"),
    ] {
        with_stand_in(test, &[(variable, value)], || {
            let Some(made) = Made::new() else { return };
            let (cuda, cufile) = (cuda(), cufile());
            let handle = cufile.register(&made.direct()).unwrap();
            let device = cuda.room(LEN);
            assert_eq!(cufile.read(handle, device, LEN, 0, 0), LEN.cast_signed());
            assert!(cuda.get(device, LEN) == made.bytes);
            assert_eq!(counted(&cufile), [[0, 1], [0, 0]]);
        });
        if is_child(test) {
            return;
        }
    }
}

#[test]
fn a_number_that_the_kernel_gave_again_is_another_file() {
    let name = name(a_number_that_the_kernel_gave_again_is_another_file);
    with_stand_in(name, &[], || {
        let (Some(one), Some(other)) = (Made::new(), Made::new()) else { return };
        let bytes = random_bytes(4, LEN);
        std::fs::write(&other.path, &bytes).unwrap();
        let (cuda, cufile) = (cuda(), cufile());
        let (first, number) = {
            let file = one.direct();
            (cufile.register(&file).unwrap(), file.as_raw_fd())
        };
        // Closed without notice: the stand-in would refuse the number as registered.
        let second = other.direct();
        assert_eq!(second.as_raw_fd(), number);
        let second = cufile.register(&second).unwrap();
        let device = cuda.room(LEN);
        for (handle, bytes) in [(first, &one.bytes), (second, &bytes)] {
            assert_eq!(cufile.read(handle, device, LEN, 0, 0), LEN.cast_signed());
            assert!(cuda.get(device, LEN) == *bytes);
        }
        assert_eq!(counted(&cufile), [[2, 0], [0, 0]]);
    });
}

#[test]
fn a_forked_child_calls_nothing_of_that_library() {
    // The stand-in would end it.
    let faults =
        "cuFileHandleRegister:crash:1,cuFileHandleDeregister:crash,cuFileBufRegister:crash";
    let name = name(a_forked_child_calls_nothing_of_that_library);
    with_stand_in(name, &[("GPUIO_SOFT_CUFILE_FAIL", faults)], || {
        let Some(made) = Made::new() else { return };
        let (cuda, cufile) = (cuda(), cufile());
        let handle = cufile.register(&made.direct()).unwrap();
        let device = cuda.room(LEN);
        assert_eq!(cufile.read(handle, device, LEN, 0, 0), LEN.cast_signed());
        assert_eq!(counted(&cufile), [[1, 0], [0, 0]]);
        let ended = fork(|| {
            // SAFETY: bookkeeping.
            let _ = unsafe { (cufile.cuFileBufRegister)(device, LEN, 0) };
            let Ok(own) = cufile.register(&made.direct()) else { return 1 };
            [own, handle].into_iter().for_each(|handle| cufile.deregister(handle));
            0
        });
        assert_eq!(ended, Some(0));
        assert_eq!(cufile.read(handle, device, LEN, 0, 0), LEN.cast_signed());
        assert_eq!(counted(&cufile), [[2, 0], [0, 0]]);
    });
}

#[test]
fn buffers_of_a_gpu_are_registered_there_too_and_given_back() {
    let test = name(buffers_of_a_gpu_are_registered_there_too_and_given_back);
    let body = || {
        let (cuda, cufile) = (cuda(), cufile());
        let (device, mut managed, host) = (cuda.room(8192), 0, [0_u8; 8192]);
        // SAFETY: as the driver's manual has it.
        assert_eq!(unsafe { (cuda.cuMemAllocManaged)(&raw mut managed, 8192, 1) }, 0);
        let host = host.as_ptr().expose_provenance() as u64;
        // SAFETY: numbers only.
        let register = |base| unsafe { (cufile.cuFileBufRegister)(base, 8192, 0) };
        assert_eq!((register(host), register(managed), register(device)), (GOOD, GOOD, GOOD));
        println!("three are registered");
        while cufile.uses() > 0 {
            assert_eq!(cufile.close(), GOOD);
        }
        println!("none is any more");
        assert_eq!(register(device), GOOD);
        println!("one is again");
    };
    if is_child(test) {
        return body();
    }
    if on_system() {
        skip("auto", "the stand-in needs the software GPU");
        return;
    }
    let library = stand_in();
    // The stand-in ends the process where it is called: never, at the first call, at the second.
    for (fault, last, missing) in [
        ("", "one is again", "panicked"),
        ("cuFileBufDeregister:crash", "three are registered", "none is any more"),
        ("cuFileBufRegister:crash:1", "none is any more", "one is again"),
    ] {
        let variables = variables(&library, &[("GPUIO_SOFT_CUFILE_FAIL", fault)]);
        let (status, output) = child(test, &variables);
        assert_eq!(status.signal(), (!fault.is_empty()).then_some(libc::SIGABRT), "{output}");
        assert!(output.contains(last) && !output.contains(missing), "{fault}: {output}");
    }
}
