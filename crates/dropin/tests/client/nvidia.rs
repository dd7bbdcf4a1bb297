//! Calls that are handed on. NVIDIA's library is played by gpuio's stand-in for it.

use std::io::Write;

use crate::client::{GOOD, alone, built, code, cuda, cufile, pattern, system};

fn stand_in() -> String {
    built("libgpuio_softcufile.so").into_os_string().into_string().unwrap()
}

#[test]
fn every_call_is_handed_on_where_that_is_asked_for() {
    let library = stand_in();
    // The stand-in fails the second read that it sees: so it was it that was asked.
    let variables = [
        ("GPUIO_CUFILE", "nvidia"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
        ("GPUIO_SOFT_CUFILE_FAIL", "cuFileRead:5016:1:1"),
    ];
    alone("nvidia::every_call_is_handed_on_where_that_is_asked_for", &variables, || {
        if system() {
            return;
        }
        let (cuda, cufile) = (cuda(), cufile());
        assert_eq!(cufile.open(), GOOD);
        let bytes = pattern(10_000, 1);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = cufile.register(file.as_file()).unwrap();
        assert_eq!(handle, 1, "a handle of the stand-in's");
        assert_eq!(cufile.register(file.as_file()), Err(code(5028)));
        let device = cuda.room(10_000);
        assert_eq!(cufile.read(handle, device, 10_000, 0, 0), 10_000);
        assert!(cuda.get(device, 10_000) == bytes);
        assert_eq!(cufile.read(handle, device, 10_000, 0, 0), -5016);
        // What it does not have is told so.
        assert_eq!(cufile.uses(), 0);
        let list = [[device, 8]];
        // SAFETY: the memory is the test's.
        assert_eq!(unsafe { (cufile.cuFileReadv)(handle, list.as_ptr(), 1, 0, 0) }, -5008);
        cufile.deregister(handle);
        assert_eq!(cufile.close(), GOOD);
    });
}

#[test]
fn a_library_that_is_not_there_is_no_other() {
    let ours = built("libcufile.so").into_os_string().into_string().unwrap();
    for library in ["/nowhere/libcufile.so.0", &ours] {
        let variables = [("GPUIO_CUFILE", "nvidia"), ("GPUIO_CUFILE_LIB", library)];
        alone("nvidia::a_library_that_is_not_there_is_no_other", &variables, || {
            let cufile = cufile();
            assert_eq!(cufile.open(), code(5001));
            assert_eq!(cufile.register(&tempfile::tempfile().unwrap()), Err(code(5001)));
        });
    }
}

/// Reads with `GPUIO_CUFILE=auto` and says how many the statistics count as handed on.
fn automatic() -> u64 {
    let (cuda, cufile) = (cuda(), cufile());
    let bytes = pattern(10_000, 2);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let handle = cufile.register(file.as_file()).unwrap();
    let device = cuda.room(20_000);
    assert_eq!(cufile.read(handle, device, 20_000, 100, 50), 9900);
    assert!(cuda.get(device + 50, 9900) == bytes[100..]);
    assert_eq!(cufile.read(handle, device, 1, -1, 0), -5022);
    cufile.deregister(handle);
    let mut words = vec![0_u64; 5112 / 8];
    // SAFETY: room for the structure.
    assert_eq!(unsafe { (cufile.cuFileGetStatsL3)(words.as_mut_ptr()) }, GOOD);
    assert_eq!(words[0], 1);
    words[(1032 + 16 + 48) / 8]
}

#[test]
fn files_with_a_direct_path_are_handed_on() {
    let library = stand_in();
    let variables = [
        ("GPUIO_CUFILE", "auto"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
        ("GPUIO_SOFT_CUFILE_NVFS", "2.25"),
        ("CUFILE_STATS_LEVEL", "3"),
    ];
    alone("nvidia::files_with_a_direct_path_are_handed_on", &variables, || {
        assert!(system() || automatic() == 1);
    });
}

#[test]
fn files_without_one_are_not() {
    let library = stand_in();
    let variables = [
        ("GPUIO_CUFILE", "auto"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
        ("CUFILE_STATS_LEVEL", "3"),
    ];
    alone("nvidia::files_without_one_are_not", &variables, || assert_eq!(automatic(), 0));
}

#[test]
fn files_that_are_refused_are_not() {
    let library = stand_in();
    let refused = [
        ("GPUIO_CUFILE", "auto"),
        ("GPUIO_CUFILE_LIB", library.as_str()),
        ("GPUIO_SOFT_CUFILE_NVFS", "2.25"),
        ("GPUIO_SOFT_CUFILE_FAIL", "cuFileHandleRegister:5008"),
        ("CUFILE_STATS_LEVEL", "3"),
    ];
    alone("nvidia::files_that_are_refused_are_not", &refused, || assert_eq!(automatic(), 0));
}
