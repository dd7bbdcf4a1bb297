//! The library in events of the process: fork, exit, contexts that are destroyed.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{
    Cuda, Cufile, GOOD, alone, child, cuda, cufile, is_child, name, on_system, random_bytes,
};

/// A file of so many bytes.
fn file(len: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
    let bytes = random_bytes(9, len);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    (file, bytes)
}

/// Forks; the child leaves with what `inside` answers, without running any handler. The answer is
/// how it ended, or nothing if it hung.
pub(crate) fn fork(inside: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child calls what `inside` is, which is what is tested, and leaves.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside)).unwrap_or(99);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(code) }
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let mut status = 0;
        // SAFETY: room for one number.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
            let code =
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + status };
            return Some(code);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: the child that was made above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    None
}

#[test]
fn a_forked_child_has_host_memory_and_no_gpu_and_hangs_nowhere() {
    alone(name(a_forked_child_has_host_memory_and_no_gpu_and_hangs_nowhere), &[], || {
        let (cuda, cufile): (&Cuda, &Cufile) = (&cuda(), &cufile());
        let (file, bytes) = (&file(4 << 20).0, &file(4 << 20).1);
        let handle = cufile.register(file.as_file()).unwrap();
        let places: Vec<u64> = (0..3).map(|_| cuda.room(1 << 20)).collect();
        let stop = AtomicBool::new(false);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for device in places {
                let (stop, rounds) = (&stop, &rounds);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        assert_eq!(cufile.read(handle, device, 1 << 20, 4096, 0), 1 << 20);
                        let other = cufile.register(file.as_file()).unwrap();
                        cufile.deregister(other);
                        // SAFETY: bookkeeping.
                        let _ = unsafe { (cufile.cuFileBufRegister)(device, 16, 0) };
                        // SAFETY: as above.
                        let _ = unsafe { (cufile.cuFileBufDeregister)(device) };
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let device = cuda.room(4096);
            for _ in 0..20 {
                let before = rounds.load(Ordering::Relaxed);
                let ended = fork(|| {
                    let mut host = vec![0_u8; 1 << 20];
                    let base = host.as_mut_ptr().expose_provenance() as u64;
                    if cufile.read(handle, base, 1 << 20, 100, 0) != 1 << 20 {
                        return 1;
                    }
                    if host != bytes[100..100 + (1 << 20)] {
                        return 2;
                    }
                    if cufile.read(handle, device, 4096, 0, 0) >= 0 {
                        return 3;
                    }
                    let Ok(own) = cufile.register(file.as_file()) else { return 4 };
                    cufile.deregister(own);
                    // Other threads of the parent use it; they are not here.
                    cufile.deregister(handle);
                    if cufile.read(handle, base, 1, 0, 0) == -5027 { 0 } else { 5 }
                });
                assert_eq!(ended, Some(0));
                while rounds.load(Ordering::Relaxed) == before {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let device = cuda.room(4096);
        assert_eq!(cufile.read(handle, device, 4096, 0, 0), 4096, "the parent goes on");
    });
}

#[test]
fn a_process_ends_while_transfers_are_under_way() {
    let test = name(a_process_ends_while_transfers_are_under_way);
    if is_child(test) {
        let cuda: &'static Cuda = Box::leak(Box::new(cuda()));
        let cufile: &'static Cufile = Box::leak(Box::new(cufile()));
        let (file, _) = file(8 << 20);
        let handle = cufile.register(file.as_file()).unwrap();
        let started = std::sync::Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let device = cuda.room(8 << 20);
            let started = std::sync::Arc::clone(&started);
            std::thread::spawn(move || {
                loop {
                    let _ = cufile.read(handle, device, 8 << 20, 0, 0);
                    let _ = cufile.read(handle, device, 4096, 0, 0);
                    started.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while started.load(Ordering::Relaxed) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // With all handlers and destructors, and threads inside the library.
        // SAFETY: ends the process.
        unsafe { libc::exit(0) }
    }
    for _ in 0..5 {
        let (status, output) = child(test, &[]);
        assert!(status.success(), "{status}\n{output}");
    }
}

#[test]
fn an_object_that_was_closed_stays_and_works() {
    alone(name(an_object_that_was_closed_stays_and_works), &[], || {
        let cuda = cuda();
        let (file, bytes) = file(1 << 20);
        let path = crate::client::built("libcufile.so");
        let device = cuda.room(1 << 20);
        let kept = cufile();
        let handle = kept.register(file.as_file()).unwrap();
        for _ in 0..5 {
            let flags = libc::RTLD_NOW;
            // SAFETY: its initialisers are what is tested.
            let again = unsafe { libloading::os::unix::Library::open(Some(&path), flags) };
            again.unwrap().close().unwrap();
            assert_eq!(kept.read(handle, device, 1 << 20, 0, 0), 1 << 20);
            assert!(cuda.get(device, 1 << 20) == bytes);
        }
    });
}

#[test]
fn a_context_that_is_destroyed_is_an_error_and_no_crash() {
    alone(name(a_context_that_is_destroyed_is_an_error_and_no_crash), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let (file, bytes) = file(1 << 20);
        let handle = cufile.register(file.as_file()).unwrap();
        let mut primary = 0;
        // SAFETY: as the driver's manual has it, here and below.
        assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut primary) }, 0);
        let mut own = 0;
        // SAFETY: as above.
        assert_eq!(unsafe { (cuda.cuCtxCreate_v2)(&raw mut own, 0, 0) }, 0);
        let theirs = cuda.room(1 << 20);
        for len in [4096_usize, 1 << 20] {
            assert_eq!(cufile.read(handle, theirs, len, 0, 0), len.cast_signed());
            assert!(cuda.get(theirs, len) == bytes[..len], "memory of a context of its own");
            let mut now = 0;
            // SAFETY: as above.
            assert_eq!(unsafe { (cuda.cuCtxGetCurrent)(&raw mut now) }, 0);
            assert_eq!(now, own, "the thread's context is as before");
        }
        // SAFETY: as above; nothing of it is used by CUDA calls below.
        assert_eq!(unsafe { (cuda.cuCtxDestroy_v2)(own) }, 0);
        for len in [4096_usize, 1 << 20] {
            assert!(cufile.read(handle, theirs, len, 0, 0) < 0, "memory that is gone");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { (cuda.cuCtxSetCurrent)(primary) }, 0);
        let device = cuda.room(1 << 20);
        assert_eq!(cufile.read(handle, device, 1 << 20, 0, 0), 1 << 20);
        assert!(cuda.get(device, 1 << 20) == bytes, "all else goes on");
        assert_eq!(cufile.close(), GOOD);
    });
}

#[test]
fn a_driver_that_forks_while_it_is_initialised() {
    // As hardware's driver does where it runs nvidia-modprobe. The first call initialises it.
    let variables = [("GPUIO_SOFT_FORK", "1")];
    alone(name(a_driver_that_forks_while_it_is_initialised), &variables, || {
        let cufile = cufile();
        assert_eq!(cufile.open(), GOOD);
        let (file, _) = file(4096);
        assert!(cufile.register(file.as_file()).is_ok());
        assert_eq!(fork(|| 7), Some(7));
    });
}

#[test]
fn a_device_may_be_reset() {
    alone(name(a_device_may_be_reset), &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let (file, bytes) = file(1 << 20);
        let handle = cufile.register(file.as_file()).unwrap();
        for round in 0..3 {
            // Memory that was registered before the reset may have the same address.
            let device = cuda.room(1 << 20);
            // SAFETY: numbers only.
            let registered = unsafe { (cufile.cuFileBufRegister)(device, 1 << 20, 0) };
            assert!(registered == GOOD || round > 0);
            for len in [4096, 1 << 20] {
                assert_eq!(cufile.read(handle, device, len, 0, 0), len.cast_signed());
                assert!(cuda.get(device, len) == bytes[..len]);
                assert_eq!(cufile.write(handle, device, len, 0, 0), len.cast_signed());
            }
            let stream = crate::stream::stream(&cuda);
            let mut kept = crate::stream::Kept::new(1 << 20, 0, 0);
            assert_eq!(kept.put(cufile.cuFileReadAsync, handle, device, stream), GOOD);
            crate::stream::sync(&cuda, stream);
            assert_eq!(kept.done(), 1 << 20);
            // SAFETY: as the driver's manual has it; nothing is under way.
            assert_eq!(unsafe { (cuda.cuDevicePrimaryCtxReset_v2)(0) }, 0);
            // As CUDA's runtime does after a reset.
            let mut context = 0;
            // SAFETY: as the driver's manual has it, here and below.
            assert_eq!(unsafe { (cuda.cuDevicePrimaryCtxRetain)(&raw mut context, 0) }, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { (cuda.cuCtxSetCurrent)(context) }, 0);
        }
    });
}

#[test]
fn kernels_that_could_not_be_loaded_are_tried_again() {
    if on_system() {
        return; // The system's driver can't be made to fail a load.
    }
    // Two loads fail, as on a GPU whose memory is full for a moment.
    let variables = [("GPUIO_SOFT_FAIL", "cuModuleLoadData:2:0:2")];
    alone(name(kernels_that_could_not_be_loaded_are_tried_again), &variables, || {
        let (cuda, cufile) = (cuda(), cufile());
        let (file, bytes) = file(65536);
        let handle = cufile.register(file.as_file()).unwrap();
        let device = cuda.room(65536);
        assert_eq!(cufile.read(handle, device, 65536, 0, 0), 65536, "by copies");
        assert!(cuda.get(device, 65536) == bytes);
        let stream = crate::stream::stream(&cuda);
        let mut kept = crate::stream::Kept::new(65536, 0, 0);
        let answer = kept.put(cufile.cuFileReadAsync, handle, device, stream);
        assert_eq!((answer.code, answer.cuda), (5011, 2), "the driver's own answer");
        let began = Instant::now();
        let put = || kept.put(cufile.cuFileReadAsync, handle, device, stream);
        let answers = std::iter::repeat_with(put).inspect(|_| {
            std::thread::sleep(Duration::from_millis(20));
        });
        let mut answers = answers.take_while(|_| began.elapsed() < Duration::from_secs(60));
        assert!(answers.any(|answer| answer == GOOD), "the kernel was not loaded again");
        crate::stream::sync(&cuda, stream);
        assert_eq!(kept.done(), 65536);
    });
}

#[test]
fn a_mapping_that_may_not_be_written_is_refused_and_the_context_lives() {
    let name = name(a_mapping_that_may_not_be_written_is_refused_and_the_context_lives);
    alone(name, &[], || {
        let (cuda, cufile) = (cuda(), cufile());
        let (file, bytes) = file(65536);
        let handle = cufile.register(file.as_file()).unwrap();
        let mapped = cuda.mapped(2 << 20);
        // Access of device 0, to read only.
        let access = [1, 0, 1];
        // SAFETY: as the driver's manual has it.
        let set = unsafe { (cuda.cuMemSetAccess)(mapped, 2 << 20, &raw const access, 1) };
        // Hardware's driver may know no such access on a device.
        if set == 0 {
            assert!(cufile.read(handle, mapped, 65536, 0, 0) < 0);
        }
        let device = cuda.room(65536);
        assert_eq!(cufile.read(handle, device, 65536, 0, 0), 65536);
        assert!(cuda.get(device, 65536) == bytes);
    });
}
